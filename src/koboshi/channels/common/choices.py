"""Buttons and choices: what a button carries, and what a choice is called where there are none.

A button names the question that it answers, so that a late press cannot answer another one. Where a
platform has no buttons, choices are numbered; a person answers with the number, or by marking the
message with it.
"""

import re
from collections.abc import Sequence

from koboshi.domain.ids import Seq
from koboshi.domain.transcript import Choice

_PRESS = re.compile(r"q([0-9]{1,18}):(.{1,64})", re.DOTALL)
_NUMBER = re.compile(r"\s*([0-9]{1,2})[.)]?\s*")
KEYCAP = "\ufe0f\u20e3"
"""What makes a digit a key to be pressed."""
NUMBERED_MAX = 9


def press_of(question: int | None, choice_id: str) -> str:
    """What a button carries: the question it answers, and how."""
    return f"q{question or 0}:{choice_id}"


def read_press(carried: str) -> tuple[Seq, str] | None:
    """The question and the choice of a button of ours; None for any other text."""
    found = _PRESS.fullmatch(carried)
    return None if found is None else (Seq(int(found[1])), found[2])


def numbered(choices: Sequence[Choice]) -> str:
    """The choices as lines below a question; empty if there are none."""
    return "".join(f"\n{number}. {choice.label}" for number, choice in enumerate(choices, 1))


def key_of(number: int) -> str:
    """The mark for a choice, from 1 to 9."""
    return f"{number}{KEYCAP}"


def number_in(mark: str) -> int | None:
    """The number that a mark or a short answer names; None if it names none."""
    found = _NUMBER.fullmatch(mark.removesuffix(KEYCAP).removesuffix("\u20e3"))
    return int(found[1]) if found else None
