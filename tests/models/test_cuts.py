"""A stream that is cut is a whole reply or none: never a part of a text, never a part of a call.

The long campaign cuts every stream behind every single byte, `make test` behind many of them, in
such a way that HTTP itself sees nothing wrong: the body just ends. Only what the stream says can
tell. The streams are written down byte by byte in the form of the real ones; that they are
well-formed is checked in `test_real_clients`.
"""

from dataclasses import dataclass

import pytest

from koboshi.domain.errors import ModelBusy
from tests.fakes.model_servers.server import Answer, Framing
from tests.harness.model_streams import STREAMS, stream_in
from tests.harness.tally import WANTS_ALL
from tests.models.asking import HELLO, KEY, Line
from tests.models.conftest import Opened, Place
from tests.models.forms import OPENAI

# What the provider's last word about a reply looks like. Before it, nothing counts.
LAST_WORDS = {
    "openai": b'"finish_reason":"',
    "openai-responses": b'"type":"response.completed"',
    "anthropic": b'"stop_reason":"',
    "google": b'"finishReason":"',
}


@dataclass
class Scissors:
    """Answers with the beginning of a stream."""

    body: bytes
    length: int

    def answer(self, _: object) -> Answer:
        return Answer(pieces=(self.body[: self.length],))


def test_there_are_streams_enough() -> None:
    for form, count in {"openai": 3, "openai-responses": 3, "anthropic": 3, "google": 2}.items():
        assert sum(name.startswith(f"{form}_") for name in STREAMS) >= count


def cuts_of(body: bytes, last_word: int) -> list[int]:
    """Where a stream is cut: in the long campaign behind every byte, else near its ends."""
    near = (0, last_word, len(body))
    return [
        length
        for length in range(len(body))
        if WANTS_ALL or length % 11 == 0 or any(abs(length - each) < 40 for each in near)
    ]


@pytest.mark.parametrize("name", STREAMS)
async def test_a_stream_cut_at_any_byte_is_a_whole_reply_or_none(name: str, opened: Opened) -> None:
    form, body = name.partition("_")[0], stream_in(name)
    scissors = Scissors(body, len(body))
    model = opened(f"{form}:m1", api_key=KEY, transport=Line(scissors.answer))
    whole = await model.respond(HELLO)
    assert whole.text or whole.calls
    last_word = body.index(LAST_WORDS[form])

    for scissors.length in cuts_of(body, last_word):
        try:
            reply = await model.respond(HELLO)
        except ModelBusy:
            continue
        assert (reply.text, reply.calls) == (whole.text, whole.calls), scissors.length
        assert scissors.length > last_word, "taken for whole before the end was said"


@pytest.mark.parametrize("name", STREAMS)
async def test_a_stream_whose_connection_breaks_is_no_reply(name: str, opened: Opened) -> None:
    form, body = name.partition("_")[0], stream_in(name)
    scissors = Scissors(body, 0)
    model = opened(f"{form}:m1", api_key=KEY, transport=Line(scissors.answer, breaks=True))

    for scissors.length in range(0, len(body) - 20, 13):
        with pytest.raises(ModelBusy, match="the stream ended early"):
            await model.respond(HELLO)


@pytest.mark.parametrize("framing", Framing)
async def test_a_stream_is_cut_the_same_way_over_a_real_connection(
    place: Place, framing: Framing
) -> None:
    name = "openai_two_calls.sse" if place.form is OPENAI else "anthropic_two_calls.sse"
    body = stream_in(name)
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
