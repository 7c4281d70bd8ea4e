"""Schedules and goals, as the loops, the tools and the operator use them."""

from dataclasses import dataclass
from typing import Protocol

from koboshi.domain.goal import Goal, GoalClaim, Judgement
from koboshi.domain.ids import GoalId, ScheduleId, SessionId, TurnId, WorkerId
from koboshi.domain.outbox import Delivery
from koboshi.domain.route import Route
from koboshi.domain.schedule import Occasion, Schedule
from koboshi.domain.transcript import Step
from koboshi.domain.wish import TimedWish, WishOutcome


@dataclass(frozen=True, slots=True, kw_only=True)
class Fired:
    """What one look at the schedules has done."""

    decided: tuple[tuple[ScheduleId, str], ...]
    """Each schedule with the rule that spoke."""
    stood: bool = False
    """The boot breaker lets nothing through; it is of no use to look again at once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduleView:
    schedule: Schedule
    route: Route
    occasions: tuple[Occasion, ...] = ()
    """The newest first."""
    times: tuple[int, ...] = ()
    """The next due times, at most three."""
    rule: str = ""
    """When it comes, in words."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GoalView:
    goal: Goal
    route: Route


@dataclass(frozen=True, slots=True, kw_only=True)
class GoalCase:
    """What a judge is shown: the goal and the evidence."""

    goal: Goal
    steps: tuple[Step, ...]
    processes: tuple[str, ...]
    """Background processes of the chat, a line each."""


class Schedules(Protocol):
    async def fire(self, limit: int) -> Fired:
        """Decide about schedules whose time has come: at most `limit`, in one transaction."""
        ...

    async def due_in_ms(self) -> int | None:
        """How long until the next schedule is due; None if there is none."""
        ...

    async def begin(self, rules: str | None = None) -> None:
        """At the start of a boot: due times that were reckoned by other rules of zones than these
        are to be reckoned again. Without rules: than those that the store was opened with."""
        ...

    async def reckon(self, limit: int) -> int:
        """Reckon due times again after a change of zones or of the clock; how many."""
        ...

    async def wish(
        self,
        session_id: SessionId,
        person: str,
        wish: TimedWish,
        by: str,
        *,
        is_operator: bool = False,
        turn_id: TurnId | None = None,
    ) -> WishOutcome:
        """Do what is wished for. `by` is its key: a second time it changes nothing. With a turn,
        its agent wishes: for its person, with its role, and the chat is told what was done."""
        ...

    async def order(self, session_id: SessionId, text: str, by: str) -> WishOutcome:
        """The operator orders something in a chat, in words as behind `/cron add`."""
        ...

    async def views(
        self, session_id: SessionId | None = None, *, limit: int, occasions: int = 0
    ) -> tuple[ScheduleView, ...]: ...

    async def view(self, schedule_id: ScheduleId, *, occasions: int) -> ScheduleView | None: ...

    async def thread_begun_by(self, delivery: Delivery) -> str:
        """The thread that a delivery has begun, as far as is known; empty if it is not."""
        ...

    async def zone_of_turn(self, turn_id: TurnId) -> str:
        """The zone that the person of a turn told; empty if none."""
        ...

    async def old(self, after: int, before_ms: int, limit: int) -> tuple[ScheduleId, ...]:
        """Schedules after this one with occasions that were decided before that moment."""
        ...

    async def forget(self, schedule_id: ScheduleId, before_ms: int) -> int:
        """Delete occasions that were decided before that moment; the newest stays."""
        ...


class Goals(Protocol):
    async def claim(self, worker_id: WorkerId, limit: int) -> tuple[GoalClaim, ...]:
        """Claim goals that are to be judged. One that was idle for long is offered instead."""
        ...

    async def due_in_ms(self) -> int | None:
        """How long until a goal is to be judged or woken; None if there is none."""
        ...

    async def load(self, claim: GoalClaim) -> GoalCase | None:
        """What the judge is shown; None if the claim is no longer valid."""
        ...

    async def judged(self, claim: GoalClaim, judgement: Judgement, tokens: int) -> None:
        """The verdict, and what follows: one transaction."""
        ...

    async def unjudged(
        self, claim: GoalClaim, reason: str, *, is_unreadable: bool, tokens: int = 0
    ) -> None:
        """There is no verdict: it is asked for again, or the goal is paused. Never a step."""
        ...

    async def wake(self, limit: int) -> int:
        """Wake goals whose wait is over; how many."""
        ...

    async def views(self, *, limit: int) -> tuple[GoalView, ...]: ...

    async def move(self, goal_id: GoalId, wish: TimedWish, by: str) -> WishOutcome:
        """The operator pauses, resumes or ends a goal."""
        ...
