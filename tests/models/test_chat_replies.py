"""What servers send that only imitate chat completions, and what becomes of it."""

import pytest
from anyio import Event, fail_after

from koboshi.domain.errors import ModelBusy, ModelOverfull, ModelRefused
from koboshi.ports.model import ModelReply
from tests.fakes.model_servers import openai_form as form
from tests.fakes.model_servers.server import Answer, serving
from tests.harness.polling import WITHIN_S
from tests.models.asking import HELLO, KEY, Line, asked, call, called, found, said
from tests.models.conftest import Opened

URL = "http://127.0.0.1:9/v1"
CALLED = form.end("tool_calls")


async def reply_to(opened: Opened, *pieces: bytes) -> ModelReply:
    line = Line(lambda _: form.stream(*pieces))
    return await opened("openai:m1", base_url=URL, api_key=KEY, transport=line).respond(HELLO)


def piece_of_call(**more: object) -> bytes:
    return form.chunk({"tool_calls": [more]})


async def test_a_call_without_index_is_a_call(opened: Opened) -> None:
    reply = await reply_to(
        opened,
        piece_of_call(id="a", function={"name": "pause", "arguments": '{"x"'}),
        piece_of_call(function={"arguments": ": 1}"}),
        piece_of_call(id="b", function={"name": "other", "arguments": "{}"}),
        *CALLED,
    )

    made = [(each.provider_id, each.tool, each.arguments) for each in reply.calls]
    assert made == [("a", "pause", '{"x": 1}'), ("b", "other", "{}")]


async def test_calls_that_come_mixed_are_told_apart_by_their_index(opened: Opened) -> None:
    reply = await reply_to(
        opened,
        piece_of_call(index=0, id="a", function={"name": "pa", "arguments": '{"x"'}),
        piece_of_call(index=1, id="b", function={"name": "other", "arguments": ""}),
        piece_of_call(index=0, function={"name": "use", "arguments": ": 1}"}),
        piece_of_call(index=1, id="b", function={"name": None, "arguments": '{"y": 2}'}),
        *CALLED,
    )

    made = [(each.provider_id, each.tool, each.arguments) for each in reply.calls]
    assert made == [("a", "pause", '{"x": 1}'), ("b", "other", '{"y": 2}')]


async def test_arguments_may_come_as_an_object(opened: Opened) -> None:
    told = piece_of_call(index=0, id="a", function={"name": "pause", "arguments": {"x": 1}})

    reply = await reply_to(opened, told, *CALLED)

    assert reply.calls[0].arguments == '{"x":1}'


async def test_a_call_without_id_is_a_call(opened: Opened) -> None:
    told = piece_of_call(index=0, function={"name": "pause", "arguments": "{}"})

    reply = await reply_to(opened, told, *CALLED)

    assert [each.tool for each in reply.calls] == ["pause"]


async def test_a_text_may_come_in_parts(opened: Opened) -> None:
    content = [{"type": "text", "text": "Hel"}, "lo", {"type": "reference", "ids": [1]}]

    reply = await reply_to(opened, form.chunk({"content": content}), *form.end())

    assert reply.text == "Hello"


async def test_thoughts_between_tags_are_no_part_of_the_text(opened: Opened) -> None:
    reply = await reply_to(opened, *form.text("<think>", "hm", "</think>", "Hello"), *form.end())

    assert reply.text == "Hello"
    assert '"hm"' in reply.raw


async def test_texts_around_a_call_are_paragraphs(opened: Opened) -> None:
    told: list[str] = []
    pieces = (*form.text("A"), *form.call(0, "i", "pause", "{}"), form.chunk({"content": "B"}))
    line = Line(lambda _: form.stream(*pieces, *CALLED))

    reply = await opened("openai:m1", api_key=KEY, transport=line).respond(HELLO, told.append)

    assert reply.text == "".join(told) == "A\n\nB"


async def test_what_a_call_brings_along_goes_back_with_it(opened: Opened) -> None:
    """Signatures of thoughts, without which the next request would be refused."""
    extra = {"google": {"thought_signature": "c2ln"}}
    function = {"name": "pause", "arguments": "{}"}
    told = piece_of_call(index=0, id="id_a", function=function, extra_content=extra)
    line = Line(lambda _: form.stream(told, *CALLED))
    model = opened("openai:m1", base_url=URL, api_key=KEY, transport=line)
    reply = await model.respond(HELLO)
    stored = called(call("2.0", provider_id="id_a"), raw=reply.raw)

    await model.respond(asked(said("go"), stored, found("2.0", "done")))

    (spoken,) = [each for each in line.last["messages"] if each["role"] == "assistant"]
    assert spoken["tool_calls"][0]["extra_content"] == extra


@pytest.mark.parametrize(
    "usage,tokens",
    [
        (None, (0, 0)),
        ({"prompt_tokens": 5}, (5, 0)),
        ({"prompt_tokens": "5", "completion_tokens": None}, (0, 0)),
        ("many", (0, 0)),
    ],
)
async def test_a_use_of_tokens_that_no_one_understands_costs_nothing(
    opened: Opened, usage: object, tokens: tuple[int, int]
) -> None:
    reply = await reply_to(opened, *form.text("A"), form.chunk({}, "stop", usage=usage))

    assert (reply.text, reply.tokens_in, reply.tokens_out) == ("A", *tokens)


async def test_a_use_of_tokens_in_every_chunk_is_not_added_up(opened: Opened) -> None:
    first = {"prompt_tokens": 5, "completion_tokens": 1}
    last = {"prompt_tokens": 5, "completion_tokens": 2}

    reply = await reply_to(
        opened, form.chunk({"content": "A"}, usage=first), form.chunk({}, "stop", usage=last)
    )

    assert (reply.tokens_in, reply.tokens_out) == (5, 2)


async def test_a_reply_that_ended_with_an_error_is_none(opened: Opened) -> None:
    with pytest.raises(ModelBusy, match="broke off"):
        await reply_to(opened, *form.text("Half of"), *form.end("error"))


async def test_what_comes_behind_the_end_does_not_count(opened: Opened) -> None:
    reply = await reply_to(opened, *form.text("A"), *form.end(), form.chunk({"content": "B"}))

    assert reply.text == "A"


@pytest.mark.parametrize(
    "error,kind,words",
    [
        ("bad", ModelBusy, "broke off with an error"),
        ({"message": "x", "code": "context_length_exceeded"}, ModelOverfull, "too long"),
        ({"message": "x", "code": "rate_limit_exceeded"}, ModelBusy, "fewer requests"),
        ({"message": "x", "code": 429}, ModelBusy, "fewer requests"),
        ({"message": "x", "code": 401}, ModelRefused, "key was refused"),
        ({"message": "x", "code": "insufficient_quota"}, ModelRefused, "no credit"),
        ({"message": "x", "type": "server_error"}, ModelBusy, "status 500"),
    ],
)
async def test_an_error_in_the_stream_is_told_by_its_code(
    opened: Opened, error: object, kind: type[Exception], words: str
) -> None:
    with pytest.raises(kind, match=words):
        await reply_to(opened, *form.text("Hel"), form.event({"error": error}))


@pytest.mark.parametrize(
    "status,code,kind,words",
    [
        (400, "model_not_found", ModelRefused, 'knows no model "m1"'),
        (400, "invalid_api_key", ModelRefused, "key was refused"),
        (400, "insufficient_quota", ModelRefused, "no credit"),
        (403, "insufficient_quota", ModelRefused, "no credit"),
        (500, "context_length_exceeded", ModelOverfull, "too long"),
        (405, None, ModelRefused, r"rejected the request \(status 405\)"),
        (503, None, ModelBusy, "not available at the moment"),
        (300, None, ModelBusy, "no reply"),
    ],
)
async def test_an_error_is_told_by_its_code_before_its_status(
    opened: Opened, status: int, code: str | None, kind: type[Exception], words: str
) -> None:
    line = Line(lambda _: form.error(status, "x", code))
    model = opened("openai:m1", base_url=URL, api_key=KEY, transport=line)

    with pytest.raises(kind, match=words):
        await model.respond(HELLO)


async def test_milliseconds_to_wait_are_understood(opened: Opened) -> None:
    line = Line(lambda _: form.error(429, "x", retry_after_ms="1500", retry_after="7"))

    with pytest.raises(ModelBusy) as caught:
        await opened("openai:m1", api_key=KEY, transport=line).respond(HELLO)

    assert caught.value.retry_after_ms == 1_500


@pytest.mark.parametrize("base_url", ["nonsense", "ftp://127.0.0.1/v1", "http://[::1"])
async def test_an_address_that_is_none_is_refused(opened: Opened, base_url: str) -> None:
    model = opened("openai:m1", base_url=base_url, api_key=KEY)

    with pytest.raises(ModelRefused, match="base_url"):
        await model.respond(HELLO)


async def test_one_request_after_the_other_goes_over_the_same_connection(opened: Opened) -> None:
    async with serving(form.complain) as server:
        server.answers += [form.stream(*form.text("Ok."), *form.end())] * 5
        model = opened("openai:m1", base_url=f"{server.url}/v1", api_key=KEY)
        connections = set()

        for _ in range(5):
            await model.respond(HELLO)
            connections |= server.tasks

        assert len(connections) == 1
        await model.aclose()


async def test_a_server_that_does_not_end_behind_the_end_is_not_waited_for(opened: Opened) -> None:
    async with serving(form.complain) as server:
        hangs = Event()
        server.answers.append(Answer(pieces=(*form.text("Ok."), *form.end()), hangs_after=hangs))
        model = opened("openai:m1", base_url=f"{server.url}/v1", api_key=KEY)

        with fail_after(WITHIN_S):
            reply = await model.respond(HELLO)

        assert reply.text == "Ok."
        await model.aclose()
