"""Who tells the person how a background process ended, once the turn that knew it is over."""

import re
from dataclasses import dataclass
from enum import StrEnum

from koboshi.domain.ids import ProcessId, shown


class Teller(StrEnum):
    WORDS = "words"  # the model has named the process to the person
    QUOTE = "quote"  # words of ours about the turn have quoted how it ended
    CALL = "call"  # a call of the turn showed the end, and the turn was answered
    ANSWER = "answer"  # the turn had nothing else to answer
    GATEWAY = "gateway"  # the model has not told it: we do


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownEnd:
    """The end of a process that the model of a turn was told by a note, or was shown by a call."""

    process_id: ProcessId
    is_read: bool
    """Whether a call of the turn has shown it to the model."""
    is_sole_request: bool
    """Whether the turn was asked for nothing else: its answer can be about nothing else."""
    said: tuple[str, ...]
    """What the model has said to the person since it knew: its questions and its answer, as far as
    they are sent."""
    is_quoted: bool = False
    """Whether the person reads all of its first line in words of ours: an apology or an offer names
    a turn by the report that opened it."""


def teller_of(end: KnownEnd, *, is_answered: bool) -> Teller:
    """Who has told the person of `end`, or has to. Without an answer, whatever the model has read
    is lost on the person, unless a question has told it."""
    if any(names(text, end.process_id) for text in end.said):
        return Teller.WORDS
    if end.is_quoted:
        return Teller.QUOTE
    if is_answered and end.is_read:
        return Teller.CALL
    if is_answered and end.is_sole_request:
        return Teller.ANSWER
    return Teller.GATEWAY


def names(text: str, process_id: ProcessId) -> bool:
    """Whether a text has the literal id of the process as a word. A letter of another script may
    follow it at once."""
    word = re.escape(shown("process", process_id))
    return re.search(rf"(?<![A-Za-z0-9_]){word}(?![A-Za-z0-9_])", text) is not None
