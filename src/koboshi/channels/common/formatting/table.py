"""A table as lines of fixed-width text."""

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass

# A longer cell sticks out, or one of them would make every line as long as itself.
CELL_COLUMNS_MAX = 40


@dataclass(frozen=True, slots=True)
class Cell:
    """The words of a cell, and how its column is aligned: left, right, center or nothing."""

    text: str
    align: str


def table_lines(rows: Sequence[Sequence[Cell]]) -> str:
    """The rows below each other; the first one is the head. Empty cells at the end are left out."""
    widths: list[int] = []
    for row in rows:
        widths.extend([0] * (len(row) - len(widths)))
        for at, cell in enumerate(row):
            widths[at] = max(widths[at], min(columns(cell.text), CELL_COLUMNS_MAX))
    lines = [_line(row, widths) for row in rows]
    lines[1:1] = ["-+-".join("-" * width for width in widths)] if any(lines[:1]) else []
    return "\n".join(lines)


def columns(text: str) -> int:
    """How wide a text is in fixed-width type."""
    if text.isascii():
        return len(text)
    return sum(_char_columns(char) for char in text)


def _char_columns(char: str) -> int:
    if unicodedata.combining(char) or char in "\u200b\u200c\u200d\ufe0e\ufe0f":
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1


def _line(row: Sequence[Cell], widths: Sequence[int]) -> str:
    filled = max((at for at, cell in enumerate(row, 1) if cell.text), default=0)
    return " | ".join(_padded(cell, widths[at]) for at, cell in enumerate(row[:filled])).rstrip()


def _padded(cell: Cell, width: int) -> str:
    missing = max(width - columns(cell.text), 0)
    before = {"right": missing, "center": missing // 2}.get(cell.align, 0)
    return " " * before + cell.text + " " * (missing - before)
