"""What a check found. Some of it is known: then it has the number of the promise in issue 12."""

from collections.abc import Callable
from dataclasses import dataclass

AWAITED: frozenset[str] = frozenset()
"""Promises, by their number, that the gateway does not keep yet. What breaks one of these is told
and fails no run, and the bug that is planted for it is expected to go unnoticed."""


class Violated(AssertionError):
    """A promise is broken; with its number, if it has one."""

    def __init__(self, words: str, number: str = "") -> None:
        super().__init__(words)
        self.number = number


@dataclass(frozen=True, slots=True)
class Violation:
    words: str
    number: str = ""

    @property
    def is_awaited(self) -> bool:
        return self.number in AWAITED


def violations_of(check: Callable[[], None]) -> list[Violation]:
    """What a check has to say."""
    try:
        check()
    except Violated as error:
        return [Violation(str(error), error.number)]
    except AssertionError as error:
        return [Violation(str(error) or "something is wrong")]
    return []
