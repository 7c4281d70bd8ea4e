"""What a person, the agent or the operator wants of schedules and goals, and who may. Pure."""

from dataclasses import dataclass, field
from datetime import tzinfo
from enum import StrEnum
from typing import TypeAlias

from koboshi.domain import time_words
from koboshi.domain.due import NotATime, check_expression, first_after
from koboshi.domain.goal import CRITERIA_MAX, TEXT_CHARS_MAX, Goal, GoalEvent
from koboshi.domain.ids import ChannelName, ScheduleId
from koboshi.domain.role import Role
from koboshi.domain.schedule import (
    NAME_CHARS_MAX,
    PROMPT_CHARS_MAX,
    Order,
    Schedule,
    ScheduleEvent,
    ScheduleKind,
)

TIMES_TOLD = 3
EVERY_SECONDS_MIN = 60
"""People and models do not order anything more often; only the store itself could."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MakeSchedule:
    order: Order
    asks_zone: bool = False
    """The reply asks the person for their zone, and no later one does."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeSchedule:
    schedule_id: ScheduleId
    order: Order


@dataclass(frozen=True, slots=True, kw_only=True)
class MoveSchedule:
    schedule_id: ScheduleId
    event: ScheduleEvent
    """PAUSED, RESUMED or REMOVED."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSchedule:
    schedule_id: ScheduleId


@dataclass(frozen=True, slots=True, kw_only=True)
class TellZone:
    zone: str


@dataclass(frozen=True, slots=True, kw_only=True)
class BeginGoal:
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class MoveGoal:
    event: GoalEvent
    """PAUSED, RESUMED, REACHED or CLEARED."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AddCriterion:
    text: str


ScheduleWish: TypeAlias = MakeSchedule | ChangeSchedule | MoveSchedule | RunSchedule | TellZone
GoalWish: TypeAlias = BeginGoal | MoveGoal | AddCriterion
TimedWish: TypeAlias = ScheduleWish | GoalWish


class WishStatus(StrEnum):
    DONE = "done"
    SAME = "same"  # it was done before, by the same wish
    REFUSED = "refused"
    NOT_FOUND = "not_found"


@dataclass(frozen=True, slots=True, kw_only=True)
class WishOutcome:
    """What became of a wish, in words for the person."""

    status: WishStatus
    words: str
    schedule: Schedule | None = None
    times: tuple[int, ...] = ()
    """The next due times."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wisher:
    """Who has a wish, and what counts against it."""

    person: str
    role: Role
    schedules: int
    """How many they have on their channel."""
    schedules_max: int
    """How many a member may have."""
    now_ms: int
    channel: ChannelName
    """Where they are this person: elsewhere the same name may be that of another one."""
    is_operator: bool = False


def why_no_order(order: Order, zone: tzinfo, wisher: Wisher, *, is_new: bool) -> str | None:
    """Why an order is refused, in words; None if it is not. `zone` is that of the order."""
    if not order.name.strip() or not (order.prompt.strip() or order.command.strip()):
        return "It has no name, or says nothing to do."
    if len(order.name) > NAME_CHARS_MAX or len(order.prompt or order.command) > PROMPT_CHARS_MAX:
        return "It is too long."
    if order.command and not wisher.role.is_owner:
        return "Only an owner can order commands. Order it in words, and I do it as your agent."
    if is_new and not wisher.role.is_owner and wisher.schedules >= wisher.schedules_max:
        return f"You have {wisher.schedules} schedules already; that is all a member can have."
    try:
        check_expression(order.kind, order.expression, zone)
        following = first_after(order.kind, order.expression, zone, wisher.now_ms, wisher.now_ms)
    except NotATime as error:
        return str(error)
    if following is None:
        return "That time is over." if order.kind is ScheduleKind.AT else "That never comes."
    return None


def why_too_often(order: Order) -> str | None:
    """Why people and models may not order it that often; None if they may."""
    is_often = order.kind is ScheduleKind.EVERY and order.expression.isdecimal()
    if is_often and int(order.expression) < EVERY_SECONDS_MIN:
        return "That is too often: once a minute is the most."
    return None


def why_not_theirs(schedule: Schedule, channel: ChannelName, wisher: Wisher) -> str | None:
    """Why a person may not touch a schedule of this channel; None if they may. Owners manage
    all."""
    is_theirs = (channel, schedule.person) == (wisher.channel, wisher.person)
    if wisher.is_operator or wisher.role.is_owner or is_theirs:
        return None
    return f"{schedule.shown} is not yours."


def why_not_their_goal(goal: Goal, wisher: Wisher) -> str | None:
    """Why a person may not say what becomes of a goal; None if they may. What is added to a goal is
    worked on with the rights of the person who set it. All can pause it, as by `/stop`."""
    if wisher.is_operator or wisher.role.is_owner or goal.person == wisher.person:
        return None
    return f"{goal.shown} is not yours."


def why_no_goal(text: str, criteria: int) -> str | None:
    if not text.strip():
        return "Say what the goal is."
    if len(text) > TEXT_CHARS_MAX:
        return "It is too long."
    return "These are criteria enough." if criteria >= CRITERIA_MAX else None


def next_times(order: Order, zone: tzinfo, after_ms: int, anchor_ms: int) -> tuple[int, ...]:
    """The next due times of an order: at most three."""
    times: list[int] = []
    while len(times) < TIMES_TOLD:
        following = first_after(order.kind, order.expression, zone, after_ms, anchor_ms)
        if following is None:
            break
        times.append(following)
        after_ms = following
    return tuple(times)


@dataclass(frozen=True, slots=True, kw_only=True)
class Calendar:
    """What a chat has of schedules, for the commands that tell of them."""

    zone: tzinfo
    zone_name: str = ""
    """What the person told; empty: the gateway's is used."""
    is_zone_asked: bool = False
    """They were asked for it."""
    schedules: tuple[Schedule, ...] = field(default_factory=tuple)
    waiting: tuple[str, ...] = field(default_factory=tuple)
    """The names of occasions that wait in the inbox."""
    at_work: tuple[str, ...] = field(default_factory=tuple)
    """The names of schedules that work beside the conversation now."""

    def lines(self) -> list[str]:
        return [time_words.listed(each, self.zone) for each in self.schedules]
