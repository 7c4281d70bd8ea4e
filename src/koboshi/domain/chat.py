"""What an operator sets for a chat on the page: its name, and its place in the list."""

from dataclasses import dataclass
from enum import StrEnum

TITLE_CHARS_MAX = 120


class ChatMark(StrEnum):
    """What can be set or taken back."""

    PIN = "pin"
    UNPIN = "unpin"
    ARCHIVE = "archive"
    UNARCHIVE = "unarchive"


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatMarks:
    title: str = ""
    """Empty where the first message names the chat."""
    pinned_ms: int | None = None
    archived_ms: int | None = None
    deleted_ms: int | None = None


NO_MARKS = ChatMarks()


def title_of(given: str, first_words: str) -> str:
    """The name of a chat: the one it was given, else the first line that was said in it. One
    that is too long ends with `…`."""
    line = next((each.strip() for each in first_words.splitlines() if each.strip()), "")
    title = given or line
    return title if len(title) <= TITLE_CHARS_MAX else f"{title[: TITLE_CHARS_MAX - 1].rstrip()}…"


def is_listed(marks: ChatMarks, newest_turn_ms: int | None) -> bool:
    """Whether the chat is in the list. One that was deleted comes back with its next turn."""
    if marks.deleted_ms is None:
        return True
    return newest_turn_ms is not None and newest_turn_ms > marks.deleted_ms
