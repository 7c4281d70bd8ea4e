"""What a provider's stream becomes: a whole reply, or none."""

import json

import pytest
from anyio import create_task_group

from koboshi.domain.errors import ModelBusy, ModelCut, ModelRefused
from koboshi.ports.model import CallRequest
from tests.fakes.model_servers import anthropic_form, openai_form
from tests.models.asking import HELLO, PAUSE, asked, said
from tests.models.conftest import Place
from tests.models.forms import ANTHROPIC, OPENAI


async def test_a_text_is_the_reply(place: Place) -> None:
    model = place.model(place.form.text("Hello ", "there", "."))

    reply = await model.respond(HELLO)

    assert reply.text == "Hello there."
    assert reply.calls == ()
    assert reply.model == f"{place.form.name}:m1"


async def test_the_use_of_tokens_is_told(place: Place) -> None:
    reply = await place.model(place.form.text("Hello")).respond(HELLO)

    assert (reply.tokens_in, reply.tokens_out) == (11, 7)


async def test_every_script_and_emoji_arrives_as_it_was_sent(place: Place) -> None:
    words = "日本語 ελληνικά עברית 👩‍👩‍👧 \u0000 \u2028 e\u0301"

    reply = await place.model(place.form.text(*words)).respond(HELLO)

    assert reply.text == words


async def test_a_text_of_a_million_characters_arrives_whole(place: Place) -> None:
    piece = "0123456789" * 100

    reply = await place.model(place.form.text(*[piece] * 1_000)).respond(HELLO)

    assert reply.text == piece * 1_000


async def test_a_person_can_send_a_million_characters(place: Place) -> None:
    words = "0123456789" * 100_000

    await place.model(place.form.text("Long.")).respond(asked(said(words)))

    assert words in json.dumps(place.server.last)


async def test_two_calls_side_by_side_keep_their_order_and_ids(place: Place) -> None:
    calls = (("id_a", "pause", ('{"seconds"', ": 1}")), ("id_b", "terminal", ('{"x": "é"}',)))
    model = place.model(place.form.reply(("Wait.",), calls, place.form.calls))

    reply = await model.respond(asked(said("hello"), tools=(PAUSE,)))

    assert reply.text == "Wait."
    assert reply.calls == (
        CallRequest(provider_id="id_a", tool="pause", arguments='{"seconds": 1}'),
        CallRequest(provider_id="id_b", tool="terminal", arguments='{"x": "é"}'),
    )


async def test_a_call_without_arguments_has_an_empty_object(place: Place) -> None:
    calls = (("id_a", "pause", ()),)

    reply = await place.model(place.form.reply((), calls, place.form.calls)).respond(HELLO)

    assert reply.calls[0].arguments == "{}"


async def test_calls_count_also_when_the_server_says_that_it_just_stopped(place: Place) -> None:
    calls = (("id_a", "pause", ("{}",)),)

    reply = await place.model(place.form.reply((), calls, place.form.stop)).respond(HELLO)

    assert [each.tool for each in reply.calls] == ["pause"]


async def test_an_ending_unknown_is_an_ending(place: Place) -> None:
    reply = await place.model(place.form.reply(("Hello",), (), "tired")).respond(HELLO)

    assert reply.text == "Hello"


async def test_an_empty_reply_is_a_reply_without_words(place: Place) -> None:
    reply = await place.model(place.form.reply((), (), place.form.stop)).respond(HELLO)

    assert (reply.text, reply.calls) == ("", ())


async def test_a_text_at_the_limit_of_length_is_a_reply(place: Place) -> None:
    reply = await place.model(place.form.reply(("Hel",), (), place.form.length)).respond(HELLO)

    assert (reply.text, reply.is_cut) == ("Hel", True)


@pytest.mark.parametrize("arguments", [(), ("{}",), ('{"seconds": 1}',), ('{"sec',)])
async def test_a_call_at_the_limit_of_length_does_not_count(
    place: Place, arguments: tuple[str, ...]
) -> None:
    calls = (("id_a", "pause", arguments),)
    model = place.model(place.form.reply((), calls, place.form.length))

    with pytest.raises(ModelCut):
        await model.respond(HELLO)


@pytest.mark.parametrize(
    "arguments", ['{"a": 1', '{"a": 1}}', "{'a': 1}", "[1]", '"a"', "1", "null", '{"a": NaN}', " "]
)
async def test_arguments_that_are_no_object_do_not_count(place: Place, arguments: str) -> None:
    calls = (("id_a", "pause", ("{}",)), ("id_b", "pause", (arguments,)))
    model = place.model(place.form.reply((), calls, place.form.calls))

    with pytest.raises(ModelBusy, match="not a JSON object"):
        await model.respond(HELLO)


async def test_arguments_nested_without_end_do_not_count(place: Place) -> None:
    calls = (("id_a", "pause", ('{"a":' * 100_000,)),)
    model = place.model(place.form.reply((), calls, place.form.calls))

    with pytest.raises(ModelBusy):
        await model.respond(HELLO)


async def test_a_call_that_was_announced_and_did_not_come_is_asked_for_again(place: Place) -> None:
    model = place.model(place.form.reply(("Wait.",), (), place.form.calls))

    with pytest.raises(ModelBusy, match="announced a call"):
        await model.respond(HELLO)


async def test_half_a_character_is_replaced(place: Place) -> None:
    half = {
        OPENAI.name: openai_form.stream(
            b'data: {"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":'
            b'[{"index":0,"delta":{"content":"a\\ud83d"},"finish_reason":null}]}\n\n',
            *openai_form.end(),
        ),
        ANTHROPIC.name: anthropic_form.stream(
            anthropic_form.event(
                "content_block_start", index=0, content_block={"type": "text", "text": ""}
            ),
            b"event: content_block_delta\n"
            b'data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta",'
            b'"text":"a\\ud83d"}}\n\n',
            *anthropic_form.end(),
        ),
    }[place.form.name]
    told: list[str] = []

    reply = await place.model(half).respond(HELLO, told.append)

    assert reply.text == "a?"
    assert told == ["a?"]


async def test_the_text_is_told_piece_by_piece(place: Place) -> None:
    told: list[str] = []

    await place.model(place.form.text("Hello ", "there", ".")).respond(HELLO, told.append)

    assert told == ["Hello ", "there", "."]


async def test_an_error_of_the_listener_is_not_taken_for_one_of_the_provider(place: Place) -> None:
    def fail(_: str) -> None:
        raise ValueError("mine")

    with pytest.raises(ValueError, match="mine"):
        await place.model(place.form.text("Hello")).respond(HELLO, fail)


async def test_a_reply_without_end_is_refused_when_it_is_too_long(place: Place) -> None:
    model = place.model(place.form.text(*["x" * 100] * 11), reply_chars_max=1_000)

    with pytest.raises(ModelRefused, match="too long"):
        await model.respond(HELLO)


async def test_a_model_answers_many_at_the_same_time(place: Place) -> None:
    replies: list[str] = []
    model = place.model(*[place.form.text("Hello")] * 20)

    async def ask() -> None:
        replies.append((await model.respond(HELLO)).text)

    async with create_task_group() as tasks:
        for _ in range(20):
            tasks.start_soon(ask)

    assert replies == ["Hello"] * 20


REFUSALS = {
    OPENAI.name: openai_form.stream(
        openai_form.chunk({"role": "assistant", "refusal": "I can't "}),
        openai_form.chunk({"refusal": "help with that."}),
        *openai_form.end(),
    ),
    ANTHROPIC.name: anthropic_form.stream(
        *anthropic_form.end(
            "refusal", stop_details={"type": "refusal", "explanation": "I can't help with that."}
        )
    ),
}


async def test_a_refusal_is_told_in_the_words_of_the_model(place: Place) -> None:
    model = place.model(REFUSALS[place.form.name])

    with pytest.raises(ModelRefused, match=r"declined to answer: I can't help with that\."):
        await model.respond(HELLO)


async def test_a_filtered_answer_is_refused(place: Place) -> None:
    finish = {OPENAI.name: "content_filter", ANTHROPIC.name: "refusal"}[place.form.name]
    model = place.model(place.form.reply(("Well, ",), (), finish))

    with pytest.raises(ModelRefused, match="content filter"):
        await model.respond(HELLO)
