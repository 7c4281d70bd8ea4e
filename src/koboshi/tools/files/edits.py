"""One text in place of another, decided so that doing it twice is doing it once.

After a crash it is unknown whether an edit was made, and nothing is stored that could tell. So an
edit is planned only if planning it again on its own outcome would change nothing: the file itself
tells whether it was made. The few that cannot be told apart are refused, with what to do instead.
"""

from dataclasses import dataclass
from typing import TypeAlias


@dataclass(frozen=True, slots=True, kw_only=True)
class Edited:
    text: str
    count: int
    line: int
    """Where the first one is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Already:
    """Nothing to do: the new text is where the old one would be."""

    line: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Impossible:
    because: str


Plan: TypeAlias = Edited | Already | Impossible


def plan_edit(text: str, old: str, new: str, *, is_everywhere: bool) -> Plan:
    """What comes of replacing `old`, which must be there exactly once unless `is_everywhere`.

    For the text of an `Edited`, the same call plans no edit.
    """
    plan = _plan_once(text, old, new, is_everywhere=is_everywhere)
    if not isinstance(plan, Edited):
        return plan
    again = _plan_once(plan.text, old, new, is_everywhere=is_everywhere)
    if not isinstance(again, Edited):
        return plan
    return Impossible(
        because="`old` would still be there afterwards, made of `new` and what is beside it; take "
        "more of the text around it into `old` and `new`, or use `write_file`"
    )


def _plan_once(text: str, old: str, new: str, *, is_everywhere: bool) -> Plan:
    if "\r" not in old + new and _has_windows_lines(text):
        old, new = old.replace("\n", "\r\n"), new.replace("\n", "\r\n")
    first = text.find(old)
    if first < 0:
        return _plan_without_old(text, new)
    if old in new and not any(old in between for between in text.split(new)):
        return Already(line=_line_at(text, first))
    if is_everywhere:
        count = text.count(old)
    else:
        second = text.find(old, first + 1)
        if second >= 0:
            return Impossible(
                because=f"`old` is there {max(2, text.count(old))} times, first in lines "
                f"{_line_at(text, first)} and {_line_at(text, second)}; it must be there exactly "
                "once: take more of the text around it, or set `replace_all`"
            )
        count = 1
    return Edited(text=text.replace(old, new), count=count, line=_line_at(text, first))


def _plan_without_old(text: str, new: str) -> Plan:
    if not new:
        return Impossible(
            because="`old` is not there. As `new` is empty, it may have been taken out before"
        )
    at = text.find(new)
    if at >= 0:
        return Already(line=_line_at(text, at))
    return Impossible(
        because="`old` is not there; it must be the exact text of the file, spaces and all, and "
        "without the line numbers that `read_file` puts in front"
    )


def _has_windows_lines(text: str) -> bool:
    """Whether every line ends with a carriage return and a line feed."""
    count = text.count("\n")
    return count > 0 and count == text.count("\r\n")


def _line_at(text: str, position: int) -> int:
    return text.count("\n", 0, position) + 1
