"""Models that speak the responses interface: how one is recognised, and what goes to and fro."""

import json
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from koboshi.domain.errors import ModelBusy, ModelRefused
from koboshi.domain.transcript import Answer as Answered
from koboshi.models.provider import open_model
from koboshi.models.remote import RemoteModel
from tests.crash.telling import checked
from tests.fakes.model_servers import openai_form, responses_form
from tests.fakes.model_servers.server import Answer, ModelServer, Received, serving
from tests.harness.lives import KILLED_BY_HAND
from tests.harness.modelled import modelled, run
from tests.models.asking import HELLO, KEY, PAUSE, asked, call, called, found, said
from tests.models.conftest import Opened
from tests.models.forms import OPENAI, RESPONSES

ONLY_RESPONSES = (
    "This model is only supported in v1/responses and not in v1/chat/completions.",
    "Unsupported legacy protocol: /v1/chat/completions is not supported. Please use /v1/responses.",
    "This model requires the Responses API.",
)


@pytest.fixture
async def server() -> AsyncIterator[ModelServer]:
    async with serving(responses_form.complain) as server:
        yield server
        assert not server.complaints, server.complaints


@pytest.fixture
def model(server: ModelServer, opened: Opened) -> RemoteModel:
    return opened("openai-responses:m1", base_url=f"{server.url}/v1", api_key=KEY)


def stream(*output: dict[str, Any]) -> Answer:
    return Answer(pieces=tuple(responses_form.events(*output)))


async def test_a_reply_is_text_and_calls_and_is_shown_as_it_grows(
    server: ModelServer, model: RemoteModel
) -> None:
    """Issue 13, C19."""
    form = responses_form
    server.answers += [
        stream(form.message("One ", "word or two."), form.call("c1", "pause", '{"a":', "1}"))
    ]
    shown: list[str] = []

    reply = await model.respond(asked(said("hello"), tools=(PAUSE,)), shown.append)

    assert reply.text == "One word or two." == "".join(shown)
    assert len(shown) > 1
    assert [(each.provider_id, each.tool, each.arguments) for each in reply.calls] == [
        ("c1", "pause", '{"a":1}')
    ]
    assert (reply.tokens_in, reply.tokens_out, reply.raw) == (11, 7, "")
    body = server.last
    assert body["instructions"] == "Be brief."
    assert body["input"] == [{"role": "user", "content": "hello"}]
    (tool,) = body["tools"]
    assert (tool["type"], tool["name"], tool["strict"]) == ("function", "pause", False)


async def test_thoughts_go_back_as_they_came_before_the_call_that_they_led_to(
    server: ModelServer, model: RemoteModel
) -> None:
    """Issue 13, C19: nothing is kept at the provider, so what was sealed for good is passed back;
    not the beginning of it that the first event shows."""
    form = responses_form
    server.answers += [
        stream(form.thought(), form.call("c1", "pause", "{}")),
        stream(form.message("Done.")),
    ]
    reply = await model.respond(asked(said("go"), tools=(PAUSE,)))
    proposed = called(call("2.0", provider_id="c1"), raw=reply.raw)

    await model.respond(asked(said("go"), proposed, found("2.0", "slept"), tools=(PAUSE,)))

    assert server.last["input"] == [
        {"role": "user", "content": "go"},
        form.thought(),
        form.call("c1", "pause", "{}"),
        {"type": "function_call_output", "call_id": "c1", "output": "slept"},
    ]


async def test_what_another_made_is_told_in_plain_items(
    server: ModelServer, model: RemoteModel, opened: Opened
) -> None:
    """Issue 13, C19: thoughts are understood where they were made, by the model that made them."""
    form = responses_form
    server.answers += [
        stream(form.thought(), form.call("c1", "pause", "{}")),
        stream(form.message("Done.")),
    ]
    reply = await model.respond(asked(said("go"), tools=(PAUSE,)))
    proposed = called(call("2.0", provider_id="c1"), text="I go.", raw=reply.raw)
    other = opened("openai-responses:m2", base_url=f"{server.url}/v1", api_key=KEY)

    steps = (said("go"), proposed, found("2.0", "slept"), Answered(text="Slept."), said("more"))
    await other.respond(asked(*steps, tools=(PAUSE,)))

    assert server.last["input"] == [
        {"role": "user", "content": "go"},
        {"role": "assistant", "content": "I go."},
        {"type": "function_call", "call_id": "c1", "name": "pause", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "c1", "output": "slept"},
        {"role": "assistant", "content": "Slept."},
        {"role": "user", "content": "more"},
    ]


async def test_a_model_that_seals_nothing_is_asked_without_seals_from_then_on(
    server: ModelServer, model: RemoteModel
) -> None:
    """Issue 13, C19: a model that has no thoughts refuses the request for them."""
    refuse = openai_form.error(400, "Encrypted content is not supported with this model.")
    server.answers += [
        refuse,
        stream(responses_form.message("a")),
        stream(responses_form.message("b")),
    ]

    assert (await model.respond(HELLO)).text == "a"
    assert (await model.respond(HELLO)).text == "b"

    assert ["include" in each.body for each in server.requests] == [True, False, False]


ENDS: dict[str, tuple[list[bytes], type[Exception], str]] = {
    "cut in a call": (
        responses_form.incomplete("max_output_tokens", responses_form.call("c", "pause", "{}")),
        ModelBusy,
        "longer than the model may write",
    ),
    "filtered": (responses_form.incomplete("content_filter"), ModelRefused, "content filter"),
    "broke off": (responses_form.incomplete("steered"), ModelBusy, "broke off"),
    "failed": (responses_form.failed("server_error", "oh no"), ModelBusy, "status 500: oh no"),
    "too fast": (responses_form.failed("rate_limit_exceeded", "x"), ModelBusy, "fewer requests: x"),
    "rejected": (responses_form.failed("invalid_prompt", "bad"), ModelRefused, "400\\): bad"),
    "declined": (
        responses_form.events(responses_form.refusal("No.")),
        ModelRefused,
        "declined.* No.",
    ),
    "no object": (
        responses_form.events(responses_form.call("c", "pause", "[]")),
        ModelBusy,
        "not a JSON object",
    ),
    "no end": (responses_form.events(responses_form.message("a"))[:-1], ModelBusy, "ended early"),
    "an error": (
        [b'event: error\ndata: {"type":"error","code":"server_error","message":"oh"}\n\n'],
        ModelBusy,
        "status 500: oh",
    ),
    "not an event": ([b"data: {}\n\n"], ModelBusy, "no reply"),
    "an item that is none": (
        [b'data: {"type":"response.output_item.done","item":7}\n\n'],
        ModelBusy,
        "no reply",
    ),
}


@pytest.mark.parametrize("how", ENDS)
async def test_what_is_not_a_whole_reply_is_none(
    server: ModelServer, model: RemoteModel, how: str
) -> None:
    """Issue 13, C19: only the end of the stream makes a reply count."""
    pieces, kind, words = ENDS[how]
    server.answers += [Answer(pieces=tuple(pieces))]

    with pytest.raises(kind, match=words):
        await model.respond(HELLO)


async def test_a_text_that_was_cut_at_its_length_counts(
    server: ModelServer, model: RemoteModel
) -> None:
    """Issue 13, C19."""
    pieces = responses_form.incomplete("max_output_tokens", responses_form.message("half a"))
    server.answers += [Answer(pieces=tuple(pieces))]

    reply = await model.respond(HELLO)

    assert (reply.text, reply.is_cut) == ("half a", True)


async def test_items_that_are_told_only_in_the_end_count(
    server: ModelServer, model: RemoteModel
) -> None:
    """Issue 13, C19: servers that imitate the interface leave events out."""
    whole = responses_form.events(responses_form.message("all at once"))
    server.answers += [Answer(pieces=(whole[0], whole[-1]))]

    assert (await model.respond(HELLO)).text == "all at once"


async def test_a_reply_without_bound_is_given_up(server: ModelServer) -> None:
    """Issue 13, C19: everything has a limit."""
    from koboshi.models.limits import ModelLimits

    for output in (responses_form.message("x" * 500), responses_form.thought("s" * 5_000)):
        server.answers += [stream(output)]
        model = open_model(
            "openai-responses:m1",
            base_url=f"{server.url}/v1",
            limits=ModelLimits(reply_chars_max=300),
        )
        with pytest.raises(ModelRefused, match="too long to be kept"):
            await model.respond(HELLO)
        await model.aclose()


def both(received: Received) -> Answer | None:
    """A server that speaks both interfaces."""
    form = responses_form if received.path.endswith("/responses") else openai_form
    return form.complain(received)


def only_responses(words: str, status: int) -> Callable[[Received], Answer | None]:
    def answer_to(received: Received) -> Answer | None:
        if received.path.endswith("/responses"):
            return stream(responses_form.message("by responses"))
        return openai_form.error(status, words)

    return answer_to


@pytest.mark.parametrize("status", [400, 404])
@pytest.mark.parametrize("words", ONLY_RESPONSES)
async def test_a_model_that_speaks_responses_only_is_recognised(
    opened: Opened, words: str, status: int
) -> None:
    """Issue 13, C19: `openai:` chooses by the provider's answer, once."""
    async with serving(both) as server:
        server.answer_to = only_responses(words, status)
        model = opened("openai:m1", base_url=f"{server.url}/v1", api_key=KEY)
        replies = [await model.respond(HELLO) for _ in range(2)]
        await model.aclose()

    assert [reply.text for reply in replies] == ["by responses"] * 2
    assert [request.path for request in server.requests] == [
        "/v1/chat/completions",
        "/v1/responses",
        "/v1/responses",
    ]


async def test_a_model_unknown_is_not_asked_again_in_another_way(opened: Opened) -> None:
    """Issue 13, C19."""
    async with serving(both) as server:
        model = opened("openai:m1", base_url=f"{server.url}/v1", api_key=KEY)
        server.answers += [openai_form.error(404, "The model `m1` does not exist.")]
        with pytest.raises(ModelRefused, match="knows no model"):
            await model.respond(HELLO)
        await model.aclose()

        assert len(server.requests) == 1


async def test_a_turn_goes_through_a_kill_with_its_thoughts(tmp_path: Path) -> None:
    """Issue 13, C19: a real gateway, killed behind the result of a call; the next one passes back
    what was thought before."""
    form = responses_form
    async with modelled(tmp_path / "home", RESPONSES) as it:
        proposed = form.call("call_1", "terminal", json.dumps({"command": "echo once >> lines"}))

        def answer_to(received: Received) -> Answer:
            """By what is shown: a request of the killed gateway may be read after the kill."""
            shown = json.dumps(received.body["input"])
            if "The gateway stopped without warning" in shown:
                return stream(form.message("done"))
            if "call_1" in shown:
                return Answer(status=503, pieces=(b"{}",), headers=(("Retry-After", "1"),))
            return stream(form.thought(), proposed)

        it.server.answer_to = answer_to
        await it.person.say("go", "1")
        await it.until_lines("once")
        await it.end(KILLED_BY_HAND)
        it.gateway.start()
        await it.person.hears("done")
        await checked(it.life)

    assert it.lines() == ["once"]
    assert form.thought() in it.server.last["input"]


async def test_a_person_is_answered_by_a_model_that_openai_was_wrong_about(tmp_path: Path) -> None:
    """Issue 13, C19: the configuration says `openai:`, the provider says responses."""
    async with modelled(tmp_path / "home", OPENAI) as it:
        it.server.complain = both
        it.server.answer_to = only_responses(ONLY_RESPONSES[0], 404)
        await it.person.say("hello", "1")
        await it.person.hears("by responses")

        assert "model_speaks_responses" in it.gateway.log


def test_the_call_of_a_terminal_is_the_same_in_all_forms() -> None:
    """The helper of the other tests is used with this form, too."""
    assert RESPONSES.reply((), (run("true"),), RESPONSES.calls).pieces


async def test_what_is_logged_of_a_refusal_is_the_providers_sentence(
    server: ModelServer, model: RemoteModel
) -> None:
    """Issue 13, C19."""
    server.answers += [openai_form.error(403, "Your organisation must be verified.")]
    with capture_logs() as logs, pytest.raises(ModelRefused):
        await model.respond(HELLO)

    (line,) = [each for each in logs if each["event"] == "model_request_failed"]
    assert line["status"] == 403
    assert "Your organisation must be verified." in line["reason"]
