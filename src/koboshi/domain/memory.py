"""What the agent remembers: entries of a person or a group, and the files that show them.

An entry is a short text on one of two shelves: what the agent noted, and what it knows of the
person. Every change is a revision of its scope. A file is the picture of a revision. A hand edit is
merged against the revision that its first line names: what the hand took away goes, what it added
comes, and what was changed elsewhere meanwhile stays. Pure.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NewType, TypeAlias

from koboshi.domain.ids import ChannelName, SessionId, TurnId, shown
from koboshi.domain.marks import unmarked
from koboshi.domain.phrases import excerpt
from koboshi.domain.text import plain

MemoryId = NewType("MemoryId", int)
ScopeId = NewType("ScopeId", int)

ENTRY_CHARS_MAX = 1_000
KEPT_REVISIONS = 100
"""So many revisions back an entry that is gone can be had again, and a hand edit has its base."""
MEMORY_FOLDER = "memory"
NOT_TAKEN = ".not-taken-over"
"""The end of the name of a hand edit that does not fit, where another one was saved meanwhile."""
DIVIDER = "§"
_HEAD = "<!-- koboshi"
_HEAD_LINE = re.compile(r"<!-- koboshi: revision (\d{1,15})\b")
_SLUG = re.compile(r"[^A-Za-z0-9]+")


class ScopeKind(StrEnum):
    PERSON = "person"  # their private chats on a channel
    CHAT = "chat"  # a group


class Shelf(StrEnum):
    MEMORY = "memory"  # what the agent noted
    USER = "user"  # what it knows of the person, or of the people of the group

    @property
    def file(self) -> str:
        return f"{self.value.upper()}.md"


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """Whose memory it is. `name` is the id of the person or the chat on the platform; empty for the
    one owner of a channel such as the page."""

    channel: ChannelName
    kind: ScopeKind
    name: str

    def __str__(self) -> str:
        whose = self.name or "its owner"
        return f"{self.channel}/{whose}" + (" (group)" if self.kind is ScopeKind.CHAT else "")


def scope_of(channel: ChannelName, chat: str, person: str, *, is_owners_channel: bool) -> Scope:
    """The memory of a chat: that of its person, if it is private, else of the group alone."""
    if person or is_owners_channel:
        return Scope(channel=channel, kind=ScopeKind.PERSON, name=person)
    return Scope(channel=channel, kind=ScopeKind.CHAT, name=chat)


def folder_of(scope_id: ScopeId, scope: Scope) -> str:
    """The folder of its files, below the one of all: readable, and unique by its number."""
    words = _SLUG.sub("-", f"{scope.channel} {scope.name or 'owner'}").strip("-").lower()[:60]
    return f"{scope_id}-{words}"


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryEntry:
    memory_id: MemoryId
    shelf: Shelf
    text: str
    turn_id: TurnId | None = None
    """The turn in which it was noted; None: by hand, or by the operator."""
    revision: int = 0
    """Since which revision of its scope it is there."""

    @property
    def shown(self) -> str:
        return shown("memory", self.memory_id)


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryLimits:
    memory_chars: int = 2_200
    user_chars: int = 1_375

    def of(self, shelf: Shelf) -> int:
        return self.user_chars if shelf is Shelf.USER else self.memory_chars


@dataclass(frozen=True, slots=True, kw_only=True)
class AddMemory:
    shelf: Shelf
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplaceMemory:
    which: str
    """The entry: its id, as n3, or words that no other entry has."""
    text: str
    shelf: Shelf | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoveMemory:
    which: str
    shelf: Shelf | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class UndoMemory:
    """The newest change is taken back; said again, the one before it."""


MemoryWish: TypeAlias = AddMemory | ReplaceMemory | RemoveMemory | UndoMemory


class MemoryStatus(StrEnum):
    DONE = "done"
    SAME = "same"  # it was done before, or is so already
    REFUSED = "refused"


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryOutcome:
    status: MemoryStatus
    words: str


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryPlan:
    """What a wish does: these entries go, these texts come."""

    removed: tuple[MemoryEntry, ...] = ()
    added: tuple[tuple[Shelf, str], ...] = ()
    words: str = ""

    @property
    def is_empty(self) -> bool:
        return not self.removed and not self.added


def normal(text: str) -> str:
    """An entry as it is stored: no blank lines, nothing that divides entries, no control characters
    and no mark of the gateway. Doing it again changes nothing."""
    text = unmarked(plain(text.encode("utf-8", "replace").decode()))
    lines = (line.strip() for line in text.splitlines())
    return "\n".join(line for line in lines if line and not _divides(line))


def _divides(line: str) -> bool:
    return set(line) <= {DIVIDER, " ", "\t"} or line.startswith(_HEAD)


def size_of(texts: Iterable[str]) -> int:
    """How many characters the texts take on their shelf."""
    return len(f"\n{DIVIDER}\n".join(texts))


def plan_wish(
    wish: AddMemory | ReplaceMemory | RemoveMemory,
    entries: Sequence[MemoryEntry],
    limits: MemoryLimits,
) -> MemoryPlan | MemoryOutcome:
    """What the wish does to these entries, or why it does nothing."""
    if isinstance(wish, AddMemory):
        return _plan_text(wish.text, wish.shelf, None, entries, limits)
    found = find_entry(wish.which, wish.shelf, entries)
    if isinstance(found, MemoryOutcome):
        return found
    if isinstance(wish, RemoveMemory):
        return MemoryPlan(
            removed=(found,), words=f"Removed {found.shown}: {excerpt(found.text, 200)}"
        )
    return _plan_text(wish.text, found.shelf, found, entries, limits)


def _plan_text(
    text: str,
    shelf: Shelf,
    old: MemoryEntry | None,
    entries: Sequence[MemoryEntry],
    limits: MemoryLimits,
) -> MemoryPlan | MemoryOutcome:
    words = normal(text)
    if not words:
        return _refused("There is nothing to remember in that.")
    if len(words) > ENTRY_CHARS_MAX:
        return _refused(
            f"An entry has at most {ENTRY_CHARS_MAX:,} characters, and this has {len(words):,}. "
            "Nothing was stored: say it shorter."
        )
    there = [each for each in entries if each.shelf is shelf and each is not old]
    same = next((each for each in there if each.text == words), None)
    if same is not None and old is None:
        return MemoryOutcome(status=MemoryStatus.SAME, words=f"{same.shown} says so already.")
    if old is not None and old.text == words:
        return MemoryOutcome(status=MemoryStatus.SAME, words=f"{old.shown} says so already.")
    added = () if same is not None else ((shelf, words),)
    refusal = why_too_full(shelf, [each.text for each in there], words, limits, there)
    if refusal is not None:
        return _refused(refusal)
    removed = () if old is None else (old,)
    verb = "Remembered" if old is None else f"Changed {old.shown}"
    return MemoryPlan(removed=removed, added=added, words=f"{verb}: {excerpt(words, 200)}")


def why_too_full(
    shelf: Shelf,
    texts: Sequence[str],
    new: str,
    limits: MemoryLimits,
    entries: Sequence[MemoryEntry] = (),
) -> str | None:
    """Why a text does not fit beside the others, and what could go; None if it fits."""
    limit, size = limits.of(shelf), size_of([*texts, new])
    if size <= limit:
        return None
    first = (
        f"Nothing was stored: the shelf `{shelf}` has room for {limit:,} characters, and with this "
        f"it would have {size:,}. Remove, or replace by something shorter, what matters least:"
    )
    lines = [
        f"{each.shown} ({len(each.text)} characters): {excerpt(each.text, 100)}" for each in entries
    ]
    return "\n".join([first, *lines])


def find_entry(
    which: str, shelf: Shelf | None, entries: Sequence[MemoryEntry]
) -> MemoryEntry | MemoryOutcome:
    """The one entry that is meant, by its id or by words that no other has."""
    wanted = which.strip()
    there = [each for each in entries if shelf is None or each.shelf is shelf]
    by_id = next((each for each in entries if each.shown == wanted), None)
    if by_id is not None:
        return by_id
    found = [each for each in there if wanted and wanted in each.text]
    exact = [each for each in found if each.text == normal(wanted)]
    if len(exact) == 1:
        return exact[0]
    if len(found) == 1:
        return found[0]
    listed = "; ".join(f"{each.shown}: {excerpt(each.text, 80)}" for each in found or there)
    why = "several entries have" if found else "no entry has"
    return _refused(f"Nothing was changed: {why} «{excerpt(wanted, 80)}». There are: {listed}")


def _refused(words: str) -> MemoryOutcome:
    return MemoryOutcome(status=MemoryStatus.REFUSED, words=words)


# ── pictures ──────────────────────────────────────────────────────────────────────────────────────


def picture(texts: Sequence[str], revision: int) -> str:
    """The file that shows these entries."""
    head = (
        f"{_HEAD}: revision {revision}. You can edit this file. Entries are divided by a line with "
        f"{DIVIDER}, or by an empty one. -->"
    )
    body = f"\n{DIVIDER}\n".join(texts)
    return f"{head}\n\n{body}\n" if texts else f"{head}\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadPicture:
    """What a file says. `base` is the revision that its first line names; None without one."""

    texts: tuple[str, ...]
    base: int | None = None
    is_blank: bool = False
    """It is empty: cut off by a program that is about to write it, and no edit."""


def read_picture(content: str) -> ReadPicture:
    """What a file says: one of this gateway, of a person, or of the agent that was here before."""
    if not content.strip():
        return ReadPicture(texts=(), is_blank=True)
    head = _HEAD_LINE.match(content.lstrip("\ufeff"))
    texts: dict[str, None] = {}
    block: list[str] = []
    for line in [*content.splitlines(), ""]:
        if line.strip() and not _divides(line.strip()):
            block.append(line)
        elif block:
            texts.setdefault(normal("\n".join(block)))
            block = []
    kept = tuple(each for each in texts if each)
    return ReadPicture(texts=kept, base=None if head is None else int(head[1]))


@dataclass(frozen=True, slots=True, kw_only=True)
class Merged:
    """What a hand edit does to the entries that are there now."""

    removed: tuple[str, ...] = ()
    added: tuple[str, ...] = ()

    @property
    def is_empty(self) -> bool:
        return not self.removed and not self.added


def merge(base: Sequence[str], now: Sequence[str], edited: Sequence[str]) -> Merged:
    """A hand edit of `base`, applied to what is there now. What only the hand took away goes, and
    what only the hand added comes; nothing that came meanwhile is lost."""
    kept, there, before = set(edited), set(now), set(base)
    return Merged(
        removed=tuple(each for each in now if each in before and each not in kept),
        added=tuple(each for each in edited if each not in before and each not in there),
    )


def why_no_edit(
    shelf: Shelf, now: Sequence[str], merged: Merged, limits: MemoryLimits
) -> str | None:
    """Why a hand edit is not taken over; None if it is. The file stays as it is until then."""
    long = next((each for each in merged.added if len(each) > ENTRY_CHARS_MAX), None)
    if long is not None:
        return f"the entry «{excerpt(long, 60)}» is longer than {ENTRY_CHARS_MAX:,} characters"
    gone = set(merged.removed)
    size = size_of([*(each for each in now if each not in gone), *merged.added])
    limit = limits.of(shelf)
    return f"it has {size:,} characters, and {limit:,} fit" if size > limit else None


@dataclass(frozen=True, slots=True, kw_only=True)
class EditedFile:
    """A file that was found, as it was read."""

    shelf: Shelf
    content: str


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryView:
    """A memory as it is shown."""

    scope_id: ScopeId
    scope: Scope
    revision: int
    entries: tuple[MemoryEntry, ...]
    troubles: tuple[str, ...] = ()
    """Files that were edited by hand and cannot be taken over."""
    changed_ms: int = 0

    @property
    def folder(self) -> str:
        return folder_of(self.scope_id, self.scope)

    def texts(self, shelf: Shelf) -> list[str]:
        return [each.text for each in self.entries if each.shelf is shelf]


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownToTurn:
    """What a turn is shown beside its conversation."""

    scope: Scope
    text: str | None = None
    """What it was shown before; None: nothing is fixed yet."""
    memory: MemoryView | None = None
    """The memory as it is now; None: there is none yet."""
    session_id: SessionId = field(default=SessionId(0))
