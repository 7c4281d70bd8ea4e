"""What arrives, and what becomes of it."""

from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias

from koboshi.domain.files import Attachment
from koboshi.domain.ids import (
    ChildId,
    EntryId,
    Generation,
    ProcessId,
    Seq,
    SessionId,
    TurnId,
    shown,
)
from koboshi.domain.machine import Machine, transitions_of
from koboshi.domain.schedule import Trigger
from koboshi.domain.session import Busy
from koboshi.domain.transcript import Choice, Question
from koboshi.domain.turn import TurnState
from koboshi.domain.watch import WatcherKind


class EntryKind(StrEnum):
    MESSAGE = "message"
    COMMAND = "command"
    REPORT = "report"
    IGNORED = "ignored"  # kept so that the cursor moves and `trace` can tell
    OCCASION = "occasion"  # a due time of a schedule
    GOAL = "goal"  # the next step of a standing goal
    TASK = "task"  # what a child is to do: it opens the child's first turn
    CHILD = "child"  # how a child ended, told to its parent


TIMED = frozenset({EntryKind.OCCASION, EntryKind.GOAL})
"""What the gateway itself puts in: no person says it now, so it steers and interrupts nothing."""
JOINING = frozenset({EntryKind.REPORT, EntryKind.CHILD})
"""What is told to the agent: it joins the turn that is at work."""


class EntryState(StrEnum):
    WAITING = "waiting"  # for its turn
    ATTACHED = "attached"  # it belongs to a turn
    HANDLED = "handled"  # a command with its effect and reply; a report that a person was told
    DROPPED = "dropped"  # with a reason
    IGNORED = "ignored"  # with a reason


class EntryEvent(StrEnum):
    ATTACHED = "attached"
    HANDLED = "handled"
    DROPPED = "dropped"
    CUT = "cut"


TRANSITIONS = transitions_of(
    {
        EntryEvent.ATTACHED: {EntryState.WAITING: EntryState.ATTACHED},
        EntryEvent.HANDLED: {EntryState.WAITING: EntryState.HANDLED},
        EntryEvent.DROPPED: {EntryState.WAITING: EntryState.DROPPED},
        EntryEvent.CUT: {EntryState.WAITING: EntryState.DROPPED},
    }
)

MACHINE = Machine(
    name="entry",
    # A command has its effect, and a stranger's message its refusal, in the transaction that
    # stores it.
    begins=frozenset({EntryState.WAITING, EntryState.HANDLED, EntryState.IGNORED}),
    transitions=TRANSITIONS,
)
advance = MACHINE.advance


@dataclass(frozen=True, slots=True, kw_only=True)
class Words:
    """What a person sent. `question` and `choice_id` come from a button, bound to what it answers;
    `anchor` is the platform's id of the message, for replies to it. `busy` says what these words do
    while a turn runs, where the person said so (`/queue`, `/steer`); None means: as the session
    does. Messages with the same `group` were sent as one, an album of pictures. `name` is what the
    sender calls themselves, where others write in the same conversation."""

    text: str
    sent_ms: int
    anchor: str = ""
    question: Seq | None = None
    choice_id: str | None = None
    busy: Busy | None = None
    files: tuple[Attachment, ...] = ()
    group: str = ""
    name: str = ""
    is_forwarded: bool = False
    """Another person wrote them, elsewhere: they command nothing and approve nothing."""
    replies_to: str = ""
    """The platform's id of the message of ours that they reply to."""
    trigger: Trigger | None = None
    """Time made the entry, and the words are those of a schedule or a goal."""

    @property
    def is_wordless(self) -> bool:
        """It is a recording or another file, and nothing beside it."""
        return bool(self.files) and not self.text.strip() and self.choice_id is None


@dataclass(frozen=True, slots=True, kw_only=True)
class StrangersWords(Words):
    """A message of a person who may not use the gateway. It is in no session, so it carries its
    chat."""

    chat: str = ""
    thread: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportWords:
    """What is said about a process."""

    kind: WatcherKind
    process_id: ProcessId
    headline: str
    output: str
    for_agent: bool = True
    """Whether the agent asked to hear this; otherwise it is for the person only."""
    anchor: str = ""
    """The message that the process was started for, for notices about it."""

    @property
    def name_to_tell(self) -> str:
        """The name by which the model is to tell the person of it; empty where it need not."""
        is_end = self.kind is WatcherKind.EXIT
        return shown("process", self.process_id) if is_end else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChildWords:
    """How a child ended, and what it has to say."""

    child_id: ChildId
    how: str
    headline: str
    output: str
    anchor: str = ""
    """The message that its parent worked on, for the answer to it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A message or a report that may wake its session."""

    entry_id: EntryId
    session_id: SessionId
    generation: Generation
    kind: EntryKind
    source: str
    external_id: str
    sender: str
    body: Words | ReportWords | ChildWords
    during_turn: TurnId | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenTurn:
    """The session's open turn, as far as an arriving entry must know it."""

    turn_id: TurnId
    state: TurnState
    question: Seq | None = None
    is_postponed: bool = False
    """It is at work, and waits for a time that the work itself chose."""
    group: str = ""
    """What its newest message was sent as a part of."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Attach:
    """It joins the open turn: as the answer to its question, or at its step boundary."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Open:
    """It opens a turn."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hold:
    """It waits in the inbox."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Interrupt:
    """It ends the turn that is worked on, and opens the next."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Redecide:
    """The open turn was set aside: recovery decides again, now that a message is there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Drop:
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Tell:
    """The person is told, and no turn is."""


Admission: TypeAlias = Attach | Open | Hold | Interrupt | Redecide | Drop | Tell


def admit(
    entry: Entry,
    *,
    generation: Generation,
    open_turn: OpenTurn | None,
    busy: Busy,
    is_exit_read: bool = False,
    is_boundary: bool = False,
    is_moved: bool = False,
) -> Admission:
    """What becomes of `entry` now; commands and ignored entries are never asked about.

    A message meets a WAITING turn here only when it arrives: one that was accepted before the
    question stays where it is, because admission is not repeated until the turn has closed.
    `generation` is the session's, `is_boundary` says that the claim holder of the open turn asks,
    with every call of its last reply resolved; `is_exit_read` that the model already knows how the
    reporting process ended. Words sent with `/queue` or `/steer` never answer a question.
    `is_moved` says that the schedule or the goal of an entry was changed since.
    """
    if entry.kind in TIMED:
        return _admit_timed(entry, generation, open_turn, is_moved=is_moved)
    if entry.kind is not EntryKind.MESSAGE and entry.kind not in JOINING:
        raise ValueError(f"a {entry.kind} never becomes input of a turn")
    is_report = entry.kind in JOINING
    if isinstance(entry.body, Words) and entry.body.busy is not None:
        busy = entry.body.busy
    if is_report and is_exit_read:
        return Drop(reason="already-read")
    if _is_for_person(entry, generation):
        return _admit_notice(open_turn)
    if entry.generation != generation:
        return Drop(reason="cut")
    if _belongs_to_ended_turn(entry, open_turn):
        return Drop(reason="turn-ended")
    if _presses(entry) and (open_turn is None or open_turn.state is not TurnState.WAITING):
        return Drop(reason="question-closed")
    if open_turn is None:
        return Open()
    joins = is_report or _was_sent_with(entry, open_turn)
    match open_turn.state:
        case TurnState.WAITING:
            return _admit_to_question(entry, open_turn)
        case TurnState.RUNNING if is_boundary:
            return Attach() if joins or busy is Busy.STEER else Hold()
        case TurnState.RUNNING:
            return Interrupt() if busy is Busy.INTERRUPT and not joins else Hold()
        case TurnState.QUEUED if open_turn.is_postponed and busy is Busy.INTERRUPT:
            return Attach() if joins else Interrupt()
        case TurnState.QUEUED:
            return Attach() if joins else Hold()
        case TurnState.SUSPENDED:
            return Hold() if is_report else Redecide()
        case closed:
            raise ValueError(f"a turn that is {closed} is not open")


def _admit_timed(
    entry: Entry, generation: Generation, open_turn: OpenTurn | None, *, is_moved: bool
) -> Admission:
    """An occasion or a step of a goal has a turn of its own, and waits for it."""
    if is_moved:
        return Drop(reason="goal-moved" if entry.kind is EntryKind.GOAL else "schedule-changed")
    if entry.generation != generation:
        return Drop(reason="cut")
    return Open() if open_turn is None else Hold()


def _is_for_person(entry: Entry, generation: Generation) -> bool:
    """The end of a process that no turn of the agent is to hear of, or whose agent is gone."""
    if not isinstance(entry.body, ReportWords) or entry.body.kind is not WatcherKind.EXIT:
        return False
    return not entry.body.for_agent or entry.generation != generation


def _admit_notice(open_turn: OpenTurn | None) -> Admission:
    """A turn that works may look at the process itself: then no notice is needed."""
    works = open_turn is not None and open_turn.state in (TurnState.RUNNING, TurnState.QUEUED)
    return Hold() if works else Tell()


def _belongs_to_ended_turn(entry: Entry, open_turn: OpenTurn | None) -> bool:
    """A match that was seen during a turn is of interest to that turn only."""
    if not isinstance(entry.body, ReportWords) or entry.body.kind is not WatcherKind.MATCH:
        return False
    if entry.during_turn is None:
        return False
    return open_turn is None or open_turn.turn_id != entry.during_turn


def _was_sent_with(entry: Entry, open_turn: OpenTurn) -> bool:
    """Whether it is a part of what the open turn began with."""
    if not isinstance(entry.body, Words) or not entry.body.group:
        return False
    return entry.body.group == open_turn.group


def _presses(entry: Entry) -> bool:
    return isinstance(entry.body, Words) and entry.body.question is not None


def _admit_to_question(entry: Entry, open_turn: OpenTurn) -> Admission:
    if entry.kind is not EntryKind.MESSAGE or not isinstance(entry.body, Words):
        return Hold()
    if entry.body.busy is not None:
        return Hold()
    if entry.body.question is not None and entry.body.question != open_turn.question:
        return Drop(reason="question-closed")
    return Attach()


def picked_choice(question: Question, words: Words) -> Choice | None:
    """The choice these words name: by button, by its label or id, or by its number."""
    if words.choice_id is not None:
        pressed = [choice for choice in question.choices if choice.choice_id == words.choice_id]
        return pressed[0] if pressed else None
    said = words.text.strip().casefold()
    numbered = {str(number): choice for number, choice in enumerate(question.choices, start=1)}
    by_id = {choice.choice_id.casefold(): choice for choice in question.choices}
    by_label = {choice.label.casefold(): choice for choice in question.choices}
    return by_label.get(said) or by_id.get(said) or numbered.get(said)


YES = frozenset({"yes", "y", "ok", "okay", "sure", "continue", "ja", "oui", "si", "sí", "はい"})
NO = frozenset({"no", "n", "nope", "stop", "drop", "nein", "non", "いいえ"})


def yes_or_no(words: Words) -> bool | None:
    """Whether the words are a literal yes or no; None for anything else."""
    said = (words.choice_id or words.text).strip().casefold().rstrip(".!。！")
    return True if said in YES else False if said in NO else None
