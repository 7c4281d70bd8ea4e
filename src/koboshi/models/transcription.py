"""Speech to text: by any service with OpenAI's form, `POST …/audio/transcriptions`, or by a model
on this machine, in a process of its own."""

from dataclasses import dataclass, field

import httpx2
import msgspec
from anyio import fail_after

from koboshi.ports.parsers import NotParsed, ParserKind, Parsers
from koboshi.ports.transcriber import NotTranscribed, Transcript

SECONDS_MAX = 120.0
ANSWER_BYTES_MAX = 1_000_000
TOKENS_MAX = 2**53
"""More than this is no count, and could not be stored as one."""
NOT_WORDS = "the service answered with something else than words"
_LATER = (408, 409, 425, 429, 500, 502, 503, 504, 529)


class _Usage(msgspec.Struct):
    seconds: float | None = None
    total_tokens: int = 0


class _Heard(msgspec.Struct):
    text: str
    duration: float | None = None
    usage: _Usage | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpTranscriber:
    url: str
    model: str
    key: str = field(default="", repr=False)
    seconds: float = SECONDS_MAX
    """For all of it: a service that says a little now and then is slow, too."""

    async def transcribe(self, name: str, content: bytes) -> Transcript:
        try:
            with fail_after(self.seconds):
                return await self._ask(name, content)
        except (TimeoutError, httpx2.TimeoutException):
            raise NotTranscribed(
                "the service did not answer in time", may_work_later=True
            ) from None
        except (httpx2.HTTPError, OSError) as error:
            words = str(error).strip()[:200] or type(error).__name__
            raise NotTranscribed(
                f"no connection: {words}",
                may_work_later=True,
                is_free=isinstance(error, httpx2.ConnectError),
            ) from None

    async def _ask(self, name: str, content: bytes) -> Transcript:
        # What is not compressed cannot be larger than what came.
        headers = {"Accept-Encoding": "identity"}
        if self.key:
            headers["Authorization"] = f"Bearer {self.key}"
        async with (
            httpx2.AsyncClient(timeout=self.seconds) as client,
            client.stream(
                "POST",
                f"{self.url}/audio/transcriptions",
                headers=headers,
                data={"model": self.model, "response_format": "json"},
                files={"file": (name, content)},
            ) as answer,
        ):
            if answer.status_code != 200:
                raise NotTranscribed(
                    f"the service answered {answer.status_code}",
                    may_work_later=answer.status_code in _LATER,
                    is_free=True,
                )
            said = bytearray()
            async for chunk in answer.aiter_raw():
                said += chunk
                if len(said) > ANSWER_BYTES_MAX:
                    raise NotTranscribed(NOT_WORDS)
        return _transcript(bytes(said))


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalTranscriber:
    """faster-whisper with a model in a folder of this machine. It costs nothing."""

    parsers: Parsers
    folder: str
    language: str = ""

    async def transcribe(self, name: str, content: bytes) -> Transcript:
        del name  # what it is stands in the recording
        options = {"folder": self.folder, "language": self.language}
        try:
            said = await self.parsers.parse(ParserKind.SPEECH, content, options)
        except NotParsed as error:
            raise NotTranscribed(str(error), is_free=True) from None
        return _transcript(said)


def _transcript(said: bytes) -> Transcript:
    try:
        heard = msgspec.json.decode(said, type=_Heard)
    except (msgspec.DecodeError, UnicodeError):
        raise NotTranscribed(NOT_WORDS) from None
    usage = heard.usage or _Usage()
    seconds = heard.duration if usage.seconds is None else usage.seconds
    is_told = seconds is not None and 0 < seconds < 1e6
    return Transcript(
        words=heard.text,
        seconds=seconds if is_told else None,
        tokens=usage.total_tokens if 0 < usage.total_tokens <= TOKENS_MAX else 0,
    )
