"""What may be wrong, by its name."""

from dataclasses import dataclass
from enum import StrEnum

CLOSED = frozenset({"done", "stopped", "failed"})
"""States of turns that have ended."""


class Fault(StrEnum):
    LOST = "lost"  # an acknowledged message has no end, or its end was not told
    DOUBLED = "doubled"  # something was said twice
    WRONG = "wrong"  # something else was said
    DISORDER = "disorder"  # something was said too early or too late
    RAN_TWICE = "ran-twice"  # a command
    NOT_RUN = "not-run"  # a command that is said to have run
    JOB = "job"  # a background command that was not reported once, with its code
    OUTSIDE = "outside"  # a command that ran with nothing around it, where others had a boundary
    DAMAGE = "damage"  # the database
    ENDED = "ended"  # a gateway that was not killed
    BROKEN = "broken"  # the torture cannot go on


@dataclass(frozen=True, slots=True, kw_only=True)
class Violation:
    fault: Fault
    words: str

    def __str__(self) -> str:
        return f"{self.fault}: {self.words}"
