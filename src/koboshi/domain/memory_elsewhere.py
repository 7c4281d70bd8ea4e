"""What another gateway remembered: how its files are read, and which entries fit here. Pure."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from koboshi.domain.memory import (
    DIVIDER,
    MemoryEntry,
    MemoryLimits,
    Shelf,
    normal,
    read_picture,
    size_of,
)

NO_ROOM = "there is no room for it; it stays in the other home"
_USER_MODEL = "# USER.md - User Model"
"""How a file of OpenClaw begins that is a page of advice with a place for entries."""
_ITEM = re.compile(r"(?:[-*+]|\d{1,3}[.)])(?:[ \t]+(?:\[[ xX]\][ \t]+)?|$)")
_HEADING = re.compile(r"(#{1,6})[ \t]+(.*?)[ \t#]*")


def texts_elsewhere(content: str) -> tuple[str, ...]:
    """The entries of a file. Divided by § they are those of our own files. Else it is a page for
    people: each item of a list is an entry, and so is each paragraph; what stands below a heading
    that is not the title begins with it."""
    lines = content.splitlines()
    if content.startswith(_USER_MODEL):
        found = _directives(lines)
    elif any(line.strip() == DIVIDER for line in lines):
        return read_picture(content).texts
    else:
        found = _entries(lines)
    return read_picture(f"\n{DIVIDER}\n".join(found)).texts


def _directives(lines: Iterable[str]) -> Iterator[str]:
    """The items below the heading for them, without those that are superseded or that no person
    has filled in."""
    is_inside = is_superseded = False
    entry: list[str] = []
    for line in (*lines, "# end"):
        title, item = _HEADING.fullmatch(line), _ITEM.match(line)
        is_comment = line.startswith("<!--")
        if entry and (title or item or is_comment or not line.strip()):
            text = "\n".join(entry)
            if not is_superseded and not text.endswith("..."):
                yield text
            entry = []
        if title:
            is_inside = title[2] == "Directives"
        elif is_comment:
            is_superseded = "status: superseded" in line
        elif item and is_inside:
            entry = [line[item.end() :].strip()]
        elif entry:
            entry.append(line.strip())


def _entries(lines: Iterable[str]) -> Iterator[str]:
    heading, entry = "", list[str]()
    for line in (*lines, ""):
        title, item = _HEADING.fullmatch(line), _ITEM.match(line)
        if (title or item or not line.strip()) and entry:
            yield heading + "\n".join(entry)
            entry = []
        if title:
            heading = f"{title[2]}: " if len(title[1]) > 1 and title[2] else ""
        elif item:
            entry = [line[item.end() :]] if line[item.end() :].strip() else []
        elif line.strip():
            entry.append(line)


@dataclass(frozen=True, slots=True, kw_only=True)
class Fitting:
    """Texts from elsewhere: those that a memory takes over, and those that find no room."""

    taken: tuple[tuple[Shelf, str], ...] = ()
    left: tuple[tuple[Shelf, str], ...] = ()


def fitting(
    texts: Iterable[tuple[Shelf, str]],
    limits: MemoryLimits,
    entries: Sequence[MemoryEntry] = (),
) -> Fitting:
    """Which of the texts fit beside the entries, in their order. One that is there is neither."""
    held = {shelf: [each.text for each in entries if each.shelf is shelf] for shelf in Shelf}
    taken: list[tuple[Shelf, str]] = []
    left: list[tuple[Shelf, str]] = []
    for shelf, said in texts:
        words = normal(said)
        if not words or words in held[shelf]:
            continue
        if size_of([*held[shelf], words]) > limits.of(shelf):
            left.append((shelf, words))
        else:
            held[shelf].append(words)
            taken.append((shelf, words))
    return Fitting(taken=tuple(taken), left=tuple(left))
