"""What is answered about schedules and goals."""

import msgspec

from koboshi.control.replies import Done, Explained
from koboshi.domain.route import Route


class OccasionRow(msgspec.Struct, frozen=True, kw_only=True):
    due_ms: int
    verdict: str
    rule: str
    words: str
    """Why it was fired, late, skipped or missed."""
    count: int
    """How many due times it stands for."""
    decided_ms: int
    turn: str | None = None


class ScheduleRow(msgspec.Struct, frozen=True, kw_only=True):
    schedule: str
    name: str
    rule: str
    """When it comes, in words."""
    kind: str
    expression: str
    zone: str
    """Empty: the gateway's."""
    prompt: str
    command: str
    place: str
    late: str
    overlap: str
    quiet: bool
    state: str
    reason: str | None
    failures: int
    person: str
    route: Route
    next_ms: tuple[int, ...]
    """The next due times, at most three."""
    occasions: tuple[OccasionRow, ...]
    """The newest first."""


class ScheduleList(Done, frozen=True, kw_only=True):
    schedules: tuple[ScheduleRow, ...]


class ScheduleShown(Done, frozen=True, kw_only=True):
    schedule: ScheduleRow


class GoalRow(msgspec.Struct, frozen=True, kw_only=True):
    goal: str
    text: str
    criteria: tuple[str, ...]
    state: str
    reason: str | None
    """Of the last verdict, or why it does not go on."""
    step: int
    steps_max: int
    tokens: int
    tokens_max: int
    turn: str | None
    """The turn that was judged last."""
    wait_process: str | None
    wait_until_ms: int | None
    changed_ms: int
    person: str
    route: Route


class GoalList(Done, frozen=True, kw_only=True):
    goals: tuple[GoalRow, ...]


class ScheduleExplained(Explained, frozen=True, kw_only=True):
    schedule: ScheduleRow
    words: str
    """Why it stands as it does, and what comes next."""


class GoalExplained(Explained, frozen=True, kw_only=True):
    goal: GoalRow
    words: str


class TimedDone(Done, frozen=True, kw_only=True):
    """What became of a wish, in words."""

    words: str
