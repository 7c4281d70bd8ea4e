"""Speech services that are slow, endless or strange: told in words, within bounds."""

import gzip
import json

import pytest
from anyio import fail_after

from koboshi.models.transcription import ANSWER_BYTES_MAX, HttpTranscriber
from koboshi.ports.transcriber import NotTranscribed, Transcript
from tests.fakes.model_servers.server import Answer, ModelServer, as_json, serving
from tests.harness.polling import WITHIN_S

JSON = (("Content-Type", "application/json"),)


async def asked(
    *answers: Answer, seconds: float = 60
) -> tuple[Transcript | NotTranscribed, ModelServer]:
    async with serving(lambda _: None) as server:
        server.answers += answers
        service = HttpTranscriber(url=f"{server.url}/v1", model="w", key="k", seconds=seconds)
        try:
            with fail_after(WITHIN_S):
                return await service.transcribe("a.ogg", b"OggS"), server
        except NotTranscribed as error:
            return error, server


@pytest.mark.parametrize(
    "more, seconds, tokens",
    [
        ({}, None, 0),
        ({"duration": 3.5}, 3.5, 0),
        ({"usage": {"type": "duration", "seconds": 4}}, 4, 0),
        ({"usage": {"type": "tokens", "input_tokens": 9, "total_tokens": 12}}, None, 12),
        ({"usage": None, "duration": -1}, None, 0),
        ({"duration": 1e300}, None, 0),
        ({"usage": {"total_tokens": 10**40}}, None, 0),
        ({"usage": {"total_tokens": -5}}, None, 0),
    ],
)
async def test_what_a_service_says_that_it_took_is_heard(
    more: dict[str, object], seconds: float | None, tokens: int
) -> None:
    said, _ = await asked(as_json({"text": "hello", **more}, status=200))

    assert said == Transcript(words="hello", seconds=seconds, tokens=tokens)


async def test_a_service_that_says_a_little_now_and_then_is_too_slow() -> None:
    """A limit for each read alone would never end it."""
    drips = Answer(pieces=(b" ",) * 100_000, headers=JSON, pause_s=0.01)
    said, _ = await asked(drips, seconds=0.3)

    assert isinstance(said, NotTranscribed)
    assert str(said) == "the service did not answer in time"
    assert (said.may_work_later, said.is_free) == (True, False)


async def test_an_endless_answer_is_not_taken_in() -> None:
    endless = Answer(pieces=(b" " * 100_000,) * 100_000, headers=JSON)
    said, _ = await asked(endless)

    assert isinstance(said, NotTranscribed)
    assert "something else than words" in str(said)
    assert not said.is_free


async def test_an_answer_that_unpacks_to_more_is_not_unpacked() -> None:
    bomb = gzip.compress(json.dumps({"text": "a" * ANSWER_BYTES_MAX * 50}).encode())
    packed = Answer(pieces=(bomb,), headers=(*JSON, ("Content-Encoding", "gzip")))
    said, server = await asked(packed)

    assert isinstance(said, NotTranscribed)
    assert server.requests[0].headers["accept-encoding"] == "identity"


async def test_what_was_refused_or_never_reached_is_free() -> None:
    refused, server = await asked(as_json({}, status=429))
    gone = HttpTranscriber(url=server.url, model="w")  # it has ended
    with pytest.raises(NotTranscribed, match="no connection") as unreached:
        await gone.transcribe("a.ogg", b"OggS")

    assert isinstance(refused, NotTranscribed)
    for each in (refused, unreached.value):
        assert (each.is_free, each.may_work_later) == (True, True)
