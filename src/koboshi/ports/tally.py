"""Counts since a line of the journal: the source of metrics."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Happened:
    """Lines of the journal that are alike, and how many there are."""

    subject: str
    event: str
    after: str | None
    label: str | None
    """Why: the rule of a turn, the reason a message was set aside."""
    channel: str | None
    count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Took:
    """Things that took about as long as each other, and how many there are."""

    what: str
    """turn, message (from its arrival to its answer) or tool."""
    label: str
    """The end of a turn, the channel of a message, the name of a tool."""
    bound_ms: int | None
    """None: longer than all bounds."""
    count: int
    total_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Called:
    """Calls that are alike, and how many there are."""

    tool: str
    effect: str
    outcome: str | None
    """None for one that got its result without having run."""
    decision: str | None
    """A person's decision; None where no person was asked."""
    count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Tally:
    """Counts since a line of the journal, and how things stand now."""

    place: int
    """The newest line that was counted."""
    happened: tuple[Happened, ...]
    took: tuple[Took, ...]
    called: tuple[Called, ...]
    waiting_since_ms: int | None
    owed_since_ms: int | None
    held: int
    ambiguous: int
    processes: int
    children: int
    unclean_boots: dict[str, int]
