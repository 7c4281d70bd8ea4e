"""Spoken words → written words."""

from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True, kw_only=True)
class Transcript:
    """What is said in a recording, and what the service says that it took."""

    words: str
    seconds: float | None = None
    tokens: int = 0


class NotTranscribed(Exception):
    """There are no words, and why. `may_work_later` if the service was only not to be had;
    `is_free` if it certainly did no work."""

    def __init__(self, why: str, *, may_work_later: bool = False, is_free: bool = False) -> None:
        super().__init__(why)
        self.may_work_later = may_work_later
        self.is_free = is_free


class Transcriber(Protocol):
    async def transcribe(self, name: str, content: bytes) -> Transcript:
        """What is said in the recording. Raises NotTranscribed."""
        ...
