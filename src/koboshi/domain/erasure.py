"""What is left of words that were erased. Rows stay with their keys, so that a platform that sends
a message again finds it stored; only what they say goes."""

from dataclasses import dataclass, replace

from koboshi.domain.ids import ChannelName
from koboshi.domain.marks import MARK
from koboshi.domain.transcript import (
    Answer,
    Body,
    Message,
    Note,
    Question,
    Reply,
    Result,
    Summary,
)

ERASED = f"{MARK} This was erased at the wish of the person who wrote it."


@dataclass(frozen=True, slots=True, kw_only=True)
class Erasure:
    """A wish that is stored, and not finished while its files or the log may hold words."""

    erasure_id: int
    channel: ChannelName
    person: str
    files: tuple[str, ...]
    """Below the working folder, or the home."""


def erased_body(body: Body, person: str | None) -> Body | None:
    """A step of a turn with words of the person, after their erasure; None if it stays as it is,
    because another person said it. Without a person nothing stays. Replies and results may repeat
    the words, so they go, too. A summary stands for nothing any more."""
    match body:
        case Message() if person is not None and body.sender != person:
            return None
        case Message():
            return replace(body, text=ERASED, files=(), name="", command="")
        case Reply():
            calls = tuple(replace(call, arguments="{}") for call in body.calls)
            return replace(body, text=ERASED if body.text else "", calls=calls, raw="")
        case Answer():
            return replace(body, text=ERASED, raw="")
        case Question():
            return replace(body, text=ERASED, choices=(), sealed=None)
        case Summary():
            return replace(body, text=ERASED, covers=type(body.covers)(0))
        case Note() | Result():
            return replace(body, text=ERASED)
