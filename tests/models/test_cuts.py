"""A stream that is cut is a whole reply or none: never a part of a text, never a part of a call.

Every stream is cut behind every single byte, in such a way that HTTP itself sees nothing wrong: the
body just ends. Only what the stream says can tell.
"""

from pathlib import Path

import pytest

from koboshi.domain.errors import ModelBusy
from tests.fakes.model_servers.server import Answer, Framing
from tests.models.asking import HELLO, KEY, Line
from tests.models.conftest import Opened, Place
from tests.models.forms import OPENAI

RECORDED = Path(__file__).parent.parent / "fakes" / "model_servers" / "recorded"
STREAMS = sorted(path.name for path in RECORDED.glob("*.sse"))

# What the provider's last word about a reply looks like. Before it, nothing counts.
LAST_WORDS = {
    "openai": b'"finish_reason":"',
    "anthropic": b'"stop_reason":"',
    "google": b'"finishReason":"',
}


def recorded(name: str) -> bytes:
    return (RECORDED / name).read_bytes()


def test_there_are_streams_enough() -> None:
    for form in LAST_WORDS:
        assert sum(name.startswith(form) for name in STREAMS) >= 2
    assert len(STREAMS) >= 8


@pytest.mark.parametrize("name", STREAMS)
async def test_a_stream_cut_at_any_byte_is_a_whole_reply_or_none(name: str, opened: Opened) -> None:
    form, body = name.partition("_")[0], recorded(name)
    length = len(body)
    model = opened(
        f"{form}:m1", api_key=KEY, transport=Line(lambda _: Answer(pieces=(body[:length],)))
    )
    whole = await model.respond(HELLO)
    assert whole.text or whole.calls
    last_word = body.index(LAST_WORDS[form])

    kept = 0
    for length in range(len(body)):
        try:
            reply = await model.respond(HELLO)
        except ModelBusy:
            continue
        assert (reply.text, reply.calls) == (whole.text, whole.calls), f"cut at {length}"
        assert length > last_word, f"cut at {length}, before the end was said"
        kept += 1

    assert kept < len(body) - last_word


@pytest.mark.parametrize("name", STREAMS)
async def test_a_stream_whose_connection_breaks_is_no_reply(name: str, opened: Opened) -> None:
    form, body = name.partition("_")[0], recorded(name)
    line = Line(lambda _: Answer(pieces=(body[:length],)), breaks=True)
    model = opened(f"{form}:m1", api_key=KEY, transport=line)

    for length in range(0, len(body) - 20, 13):  # noqa: B007  (the line above reads it)
        with pytest.raises(ModelBusy, match="the stream ended early"):
            await model.respond(HELLO)


@pytest.mark.parametrize("framing", Framing)
async def test_a_stream_is_cut_the_same_way_over_a_real_connection(
    place: Place, framing: Framing
) -> None:
    name = "openai_two_calls.sse" if place.form is OPENAI else "anthropic_two_calls.sse"
    body = recorded(name)
    model = place.model(Answer(pieces=(body,)))
    whole = await model.respond(HELLO)
    last_word = body.index(LAST_WORDS[place.form.name])

    for length in [*range(1, len(body), 41), *range(len(body) - 20, len(body))]:
        place.server.answers.append(Answer(pieces=(body,), framing=framing, cut_at=length))
        try:
            reply = await model.respond(HELLO)
        except ModelBusy:
            continue
        assert reply.calls == whole.calls
        assert length > last_word
