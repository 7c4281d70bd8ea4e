"""Whether the database went back in time alone: what the witness beside it saw, and what the
database knows. Pure."""

from dataclasses import dataclass
from datetime import UTC, datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Witness:
    """How far a boot had come at one of its heartbeats: never further than what was durable."""

    journal: int
    """The newest line of the journal."""
    boot: int
    birth: str
    """What tells the boot from another one with the same number."""
    at_ms: int
    """When that line was first seen as the newest."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reached:
    """How far the database has come."""

    journal: int
    """The newest line of the journal; 0 if there is none."""
    at_ms: int
    """When that line was written."""
    knows_boot: bool
    """Whether the boot that the witness tells of has its row."""


def is_behind(witness: Witness, reached: Reached) -> bool:
    """Whether the database does not hold what the witness saw. Lines that were written since must
    not hide it: a database of another past does not know the boot."""
    return reached.journal < witness.journal or not reached.knows_boot


def gap_words(witness: Witness, reached: Reached) -> str:
    """What the operator is told, until what is held was released."""
    saw = f"boot {witness.boot} had written journal line {witness.journal} by"
    had = f"{saw} {_moment(witness.at_ms)}"
    if not reached.journal:
        gone = f"it is empty, and {had}"
    elif reached.journal < witness.journal:
        ends = f"it ends with journal line {reached.journal} of {_moment(reached.at_ms)}"
        lines = f"lines {reached.journal + 1} to {witness.journal}"
        gone = f"{ends}, and {had}; {lines} are gone"
    else:
        ends = f"it ends with journal line {reached.journal} of {_moment(reached.at_ms)}"
        gone = f"{ends}, and does not know that {had}"
    return (
        f"the database went back: {gone}. What came in then is lost unless its platform sends it "
        "again, processes that were started then are not known any more, and whatever is owed is "
        "held, because it may have arrived"
    )


def _moment(at_ms: int) -> str:
    try:
        return datetime.fromtimestamp(at_ms / 1000, tz=UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    except (ValueError, OverflowError, OSError):
        return "an unknown time"
