"""What a person can tell the gateway itself, what it must know for that, and what it then does."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC
from enum import StrEnum

from koboshi.domain.budget import BudgetLimits, Purse
from koboshi.domain.chain import Bench
from koboshi.domain.goal import Goal
from koboshi.domain.ids import ProcessId, TurnId
from koboshi.domain.memory import MemoryView, MemoryWish
from koboshi.domain.price import Price
from koboshi.domain.process import ProcessState
from koboshi.domain.reasons import Reason
from koboshi.domain.recovery import RecoveryPolicy, Verdict
from koboshi.domain.role import NoRuling, Role
from koboshi.domain.rule import ApprovalRule, RuleId
from koboshi.domain.session import Busy, CutKind, Listen, Session, Settings
from koboshi.domain.transcript import Choice
from koboshi.domain.turn import TurnState
from koboshi.domain.usage import Usage
from koboshi.domain.wish import Calendar, TimedWish


class CommandName(StrEnum):
    HELP = "help"
    NEW = "new"
    STOP = "stop"
    STATUS = "status"
    WHY = "why"
    JOBS = "jobs"
    RESTART = "restart"
    APPROVE = "approve"
    DENY = "deny"
    QUEUE = "queue"
    STEER = "steer"
    BUSY = "busy"
    RESUME = "resume"
    DROP = "drop"
    RETRY = "retry"
    RESUME_POLICY = "resume-policy"
    LISTEN = "listen"
    WHOAMI = "whoami"
    FORGET = "forget"
    RULES = "rules"
    CRON = "cron"
    REMIND = "remind"
    GOAL = "goal"
    AGENT = "agent"
    MODEL = "model"
    USAGE = "usage"
    BUDGET = "budget"
    MEMORY = "memory"


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """`name` is None for a word that is no command of ours; `said` is what the person wrote."""

    name: CommandName | None
    said: str
    argument: str = ""
    process_id: ProcessId | None = None
    """The process that the argument names."""
    output: str = ""
    """The last of what it printed, read when the command came in."""
    trouble: str = ""
    """Why the gateway would not come back from a restart, looked for when the command came in."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnGlance:
    """A turn as `/status` and `/why` speak of it."""

    turn_id: int
    state: TurnState
    request: str
    opened_ms: int
    changed_ms: int
    steps: int
    reason: str | None
    is_worked_on: bool = False
    """This boot holds the claim on it."""
    is_claimed_before: bool = True
    event: str = ""
    """What happened to it last."""
    deaths: int = 0
    """In a row, without a new step."""
    story: tuple[str, ...] = ()
    """What happened to it, a line each, oldest first."""
    is_allowed: bool = True
    """Every sender of a message in it may use the gateway."""
    held_up: Reason | None = None
    """What keeps it from getting on while it is open."""
    verdict: Verdict | None = None
    """What recovery would decide about it, if no worker holds it."""


class QuestionKind(StrEnum):
    """What an open question wants to know."""

    APPROVAL = "approval"  # whether a call may run
    ANSWER = "answer"  # something that the model asks
    OFFER = "offer"  # the gateway's own: whether to go on


class QuestionEnd(StrEnum):
    """Why a question can no longer be answered."""

    EXPIRED = "expired"  # it was not answered in time
    REPLACED = "replaced"  # the words were bound to a question that is not the open one


@dataclass(frozen=True, slots=True, kw_only=True)
class QuestionGlance:
    """A question as `/approve` and `/deny` speak of it. `end` is None while it is open."""

    kind: QuestionKind
    text: str
    end: QuestionEnd | None = None
    is_elsewhere: bool = False
    """It is too long for this chat: a yes counts on the page only."""
    is_shown: bool = True
    """It may stand in this chat. Where it certainly does not, a yes counts on the page only."""
    may_be_kept: bool = False
    """It can be allowed for good."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JobGlance:
    """A background process as `/jobs` speaks of it."""

    process_id: ProcessId
    command: str
    state: ProcessState
    started_ms: int
    ended_ms: int | None = None
    exit_code: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Failed:
    """The newest turn that can be asked again: it failed or was dropped, and was not retried yet.
    `words` are all that a person said in it, or which files they sent; empty without a message."""

    turn_id: TurnId
    words: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ChainGlance:
    """The models, and what the chat used of them, as far as the command asks."""

    models: tuple[str, ...] = ()
    """In the order of the chain."""
    benches: tuple[Bench, ...] = ()
    usage: Usage = field(default_factory=Usage)
    purses: tuple[Purse, ...] = ()
    budget: BudgetLimits = field(default_factory=BudgetLimits)
    prices: Mapping[str, Price] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionFacts:
    """What a command may rest its reply on, read in the transaction that stores the command."""

    session: Session
    now_ms: int
    open_turn: TurnGlance | None
    last_turn: TurnGlance | None
    waiting: int
    owed: int
    running_processes: tuple[str, ...]
    unsent: int = 0
    """Parts of answers that are owed and have certainly not been sent, while no turn is open."""
    on_the_way: int = 0
    """Parts of these answers that are being sent, or may have arrived."""
    jobs: tuple[JobGlance, ...] = ()
    """Background processes: the running ones, then the newest that have ended."""
    named_job: JobGlance | None = None
    """The one that the command names, if it is one of this session."""
    question: QuestionGlance | None = None
    """The open question, or else the one that ended last and needs a word."""
    failed: Failed | None = None
    sender: str = ""
    """Who sent the command; only people who are allowed are heard."""
    busy: Busy = Busy.QUEUE
    """What the configuration says, where the session has no setting of its own."""
    policy: RecoveryPolicy = RecoveryPolicy.AUTO
    listen: Listen = Listen.MENTION
    agents: tuple[str, ...] = ()
    """The foreign agents of the configuration."""
    agent: str = ""
    """The one that the configuration chose; empty: the built-in one."""
    chain: ChainGlance = field(default_factory=ChainGlance)
    is_group: bool = False
    role: Role = Role.MEMBER
    """That of the sender."""
    no_ruling: NoRuling | None = None
    """Why the sender does not decide about the open approval."""
    rules: tuple[ApprovalRule, ...] = ()
    """What was allowed for good in this chat, newest first."""
    calendar: Calendar = field(default_factory=lambda: Calendar(zone=UTC))
    goal: Goal | None = None
    """The goal of the session, if it has one that has not ended."""
    children: tuple[str, ...] = ()
    """Sub-agents that work or wait for the chat, in words."""
    memory: MemoryView | None = None
    """What is remembered of the person or the group; None: nothing yet."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ruling:
    """What a person says to the open approval question. `words` are for the model, with a no."""

    is_yes: bool
    words: str = ""
    keeps: bool = False
    """The same is allowed for good in this chat."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Retry:
    """A turn that has ended is asked again, with all that was said in it."""

    turn_id: TurnId


class OperatorAction(StrEnum):
    """What a person wants of a turn that no worker holds."""

    RESUME = "resume"
    DROP = "drop"


class ActionStanding(StrEnum):
    """Whether a person's will concerns a turn, and why not."""

    LEFT = "left"  # no worker holds it, and no answer would continue it: it does
    WORKED_ON = "worked-on"
    NEXT = "next"  # it is in the queue and was not tried yet
    ASKED = "asked"  # it waits for a person's answer to the model
    CLOSED = "closed"
    NOT_SERVED = "not-served"  # its person is no longer allowed, or its channel is gone


def standing_of(
    state: TurnState, *, is_worked_on: bool, is_claimed_before: bool, asked: QuestionKind | None
) -> ActionStanding:
    """Whether `/resume` and `/drop` concern a turn. `asked` is what its open question wants."""
    match state:
        case TurnState.RUNNING if is_worked_on:
            return ActionStanding.WORKED_ON
        case TurnState.QUEUED if not is_claimed_before:
            return ActionStanding.NEXT
        case TurnState.WAITING if asked is not QuestionKind.OFFER:
            return ActionStanding.ASKED
        case TurnState.QUEUED | TurnState.RUNNING | TurnState.WAITING | TurnState.SUSPENDED:
            return ActionStanding.LEFT
        case _:
            return ActionStanding.CLOSED


@dataclass(frozen=True, slots=True, kw_only=True)
class Response:
    """What a command does, stored with its reply in one transaction."""

    reply: str
    choices: tuple[Choice, ...] = ()
    """Buttons below the reply: each stands for the words of a command."""
    cut: CutKind | None = None
    end_process: ProcessId | None = None
    restarts: bool = False
    """The gateway is to end and come back."""
    ruling: Ruling | None = None
    settings: Settings | None = None
    will: OperatorAction | None = None
    retry: Retry | None = None
    erases: bool = False
    """Everything that the sender said is erased, before the reply is owed."""
    allows: tuple[int, int] | None = None
    """Which counter of the budget gets more today, and how much."""
    revokes: RuleId | None = None
    """This rule is in force no more."""
    wish: TimedWish | None = None
    """What is wanted of schedules or goals. What became of it is added to the reply."""
    memory: MemoryWish | None = None
    """What is wanted of the memory of the chat. What became of it is the reply."""
