"""A standing goal: what the agent keeps at until it is done, and its life as one table. Pure.

A goal moves on only by a judged answer. An error, a stop or a question of the agent is never
progress: `gate` says for each end of a turn what it means to the goal.
"""

import json
from dataclasses import dataclass
from enum import StrEnum

from koboshi.domain.ids import (
    Epoch,
    Generation,
    GoalId,
    ProcessId,
    SessionId,
    TurnId,
    WorkerId,
    parse_shown,
    shown,
)
from koboshi.domain.machine import Machine, transitions_of
from koboshi.domain.turn import TurnEvent, TurnState

TEXT_CHARS_MAX = 4_000
CRITERIA_MAX = 20
TRIES_MAX = 6
"""So often in a row the judge is asked without an answer; then a person decides."""
UNREADABLE_MAX = 2
JUDGE_WAIT_MS = (10_000, 60_000, 300_000)
WAIT_MINUTES_MAX = 7 * 24 * 60


@dataclass(frozen=True, slots=True, kw_only=True)
class GoalLimits:
    steps_max: int = 20
    """Steps that a goal begins by itself."""
    tokens_max: int = 2_000_000
    """Of its turns and of its judge together."""


class GoalState(StrEnum):
    ACTIVE = "active"  # a turn works on it, or is about to
    JUDGING = "judging"  # an answer is there, and it is asked whether that was all
    WAITING = "waiting"  # for a process or a time
    PAUSED = "paused"  # until a person says so
    DONE = "done"
    CLEARED = "cleared"


class GoalEvent(StrEnum):
    ANSWERED = "answered"
    CONTINUED = "continued"
    WAITS = "waits"
    WOKEN = "woken"
    PAUSED = "paused"
    RESUMED = "resumed"
    REACHED = "reached"
    CLEARED = "cleared"


_STANDING = (GoalState.ACTIVE, GoalState.JUDGING, GoalState.WAITING, GoalState.PAUSED)
_WORKING = (GoalState.ACTIVE, GoalState.JUDGING, GoalState.WAITING)
ENDED = frozenset({GoalState.DONE, GoalState.CLEARED})

TRANSITIONS = transitions_of(
    {
        GoalEvent.ANSWERED: {GoalState.ACTIVE: GoalState.JUDGING},
        GoalEvent.CONTINUED: {GoalState.JUDGING: GoalState.ACTIVE},
        GoalEvent.WAITS: {GoalState.JUDGING: GoalState.WAITING},
        # What it waited for has come; or nothing works on it any more, and none of it was judged.
        GoalEvent.WOKEN: {
            GoalState.WAITING: GoalState.JUDGING,
            GoalState.ACTIVE: GoalState.JUDGING,
        },
        GoalEvent.PAUSED: dict.fromkeys(_WORKING, GoalState.PAUSED),
        GoalEvent.RESUMED: {GoalState.PAUSED: GoalState.JUDGING},
        GoalEvent.REACHED: dict.fromkeys(_STANDING, GoalState.DONE),
        GoalEvent.CLEARED: dict.fromkeys(_STANDING, GoalState.CLEARED),
    }
)

MACHINE = Machine(name="goal", begins=frozenset({GoalState.ACTIVE}), transitions=TRANSITIONS)
advance = MACHINE.advance


@dataclass(frozen=True, slots=True, kw_only=True)
class Goal:
    goal_id: GoalId
    session_id: SessionId
    generation: Generation
    person: str
    text: str
    criteria: tuple[str, ...]
    state: GoalState
    reason: str | None
    rule: str | None
    step: int
    """How many steps the goal has begun by itself."""
    steps_max: int
    tokens: int
    tokens_max: int
    wait_process: ProcessId | None
    wait_until_ms: int | None
    judged_turn: TurnId | None
    revision: int
    worker_id: WorkerId | None
    epoch: Epoch
    tries: int
    unreadable: int
    not_before_ms: int
    created_ms: int
    changed_ms: int

    @property
    def shown(self) -> str:
        return shown("goal", self.goal_id)

    @property
    def source(self) -> str:
        return f"goal:{self.goal_id}"


@dataclass(frozen=True, slots=True, kw_only=True)
class GoalClaim:
    """The right to judge a goal once. A newer epoch makes it worthless."""

    goal_id: GoalId
    session_id: SessionId
    epoch: Epoch
    worker_id: WorkerId


class GoalRule(StrEnum):
    """Why a goal stands where it does."""

    ANSWERED = "answered"
    FAILED = "turn-failed"
    STOPPED = "turn-stopped"
    BY_PERSON = "by-person"
    NEW = "new-conversation"
    JUDGED = "judged"
    PERSON_FIRST = "person-first"
    STEPS = "steps-used-up"
    TOKENS = "tokens-used-up"
    UNREADABLE = "verdict-unreadable"
    NO_JUDGE = "no-verdict"
    IDLE = "idle"
    WOKEN = "woken"
    DECLINED = "declined"
    NOT_ALLOWED = "person-not-allowed"


class Gate(StrEnum):
    """What the end of a turn means to an active goal."""

    JUDGE = "judge"
    PAUSE = "pause"
    NOTHING = "nothing"


class BegunBy(StrEnum):
    PERSON = "person"
    GOAL = "goal"
    OTHER = "other"  # a schedule, a report of a process


def gate(
    turn: TurnState,
    event: str,
    begun_by: BegunBy,
    *,
    is_current: bool,
    has_other_words: bool = False,
) -> Gate:
    """What the end of a turn means to the active goal of its session.

    Only an answer is judged, and only in the generation of the goal, of a turn that a person or the
    goal began. `has_other_words` says that the turn had only asked whether to go on, and that the
    person said something else: that has a turn of its own, which is judged.
    """
    if not is_current or begun_by is BegunBy.OTHER:
        return Gate.NOTHING
    if turn is TurnState.ANSWERED or (turn is TurnState.DONE and event == TurnEvent.SILENCED):
        return Gate.JUDGE
    if turn is TurnState.FAILED:
        return Gate.PAUSE
    if turn is not TurnState.STOPPED or begun_by is BegunBy.PERSON:
        return Gate.NOTHING
    return Gate.NOTHING if event == TurnEvent.INTERRUPTED or has_other_words else Gate.PAUSE


class JudgeVerdict(StrEnum):
    DONE = "done"
    CONTINUE = "continue"
    WAIT = "wait"
    BLOCKED = "blocked"


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    verdict: JudgeVerdict
    reason: str
    process_id: ProcessId | None = None
    minutes: int | None = None


def read_judgement(text: str) -> Judgement | None:
    """The verdict in a reply of the judge; None if it cannot be read. A reply that says less than
    it must is not read as the best that it could mean."""
    begin, end = text.find("{"), text.rfind("}")
    if begin < 0 or end < begin:
        return None
    try:
        said = json.loads(text[begin : end + 1])
    except (ValueError, RecursionError):
        return None
    if not isinstance(said, dict) or not isinstance(said.get("reason"), str):
        return None
    try:
        verdict = JudgeVerdict(str(said.get("verdict")))
    except ValueError:
        return None
    process_id, minutes = _process(said.get("process")), _minutes(said.get("minutes"))
    if verdict is JudgeVerdict.WAIT and process_id is None and minutes is None:
        return None
    reason = " ".join(said["reason"].split())[:500]
    if not reason:
        return None
    return Judgement(verdict=verdict, reason=reason, process_id=process_id, minutes=minutes)


def _process(value: object) -> ProcessId | None:
    named = parse_shown(value) if isinstance(value, str) else None
    return ProcessId(named[1]) if named is not None and named[0] == "process" else None


def _minutes(value: object) -> int | None:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not is_number or not 0 < float(value) <= WAIT_MINUTES_MAX:  # type: ignore[arg-type]
        return None
    return max(1, round(float(value)))  # type: ignore[arg-type]


def judge_wait_ms(tries: int) -> int | None:
    """How long until the judge is asked again after so many failures; None to leave it."""
    if tries >= TRIES_MAX:
        return None
    return JUDGE_WAIT_MS[min(tries, len(JUDGE_WAIT_MS)) - 1]


def why_used_up(goal: Goal) -> GoalRule | None:
    """Which bound of the goal is reached, so that no further step is made."""
    if goal.step >= goal.steps_max:
        return GoalRule.STEPS
    return GoalRule.TOKENS if goal.tokens >= goal.tokens_max else None
