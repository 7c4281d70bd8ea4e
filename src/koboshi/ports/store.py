"""The store: the one truth. Each verb is one transaction; it is durable when it has returned.

A verb that takes a `Claim` raises `Fenced` and writes nothing when the claim is no longer valid.
Any verb raises `StoreFailed` when the outcome of a commit is unknown: then this process must end.
A verb that was called is never withdrawn: cancelling the caller does not cancel the write.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Protocol, TypeAlias

from koboshi.domain.command import Command, OperatorAction, Response, SessionFacts, Standing
from koboshi.domain.files import OutFile, Parcel
from koboshi.domain.ids import (
    CallId,
    ChannelName,
    EntryId,
    ProcessId,
    SessionId,
    TurnId,
    WorkerId,
)
from koboshi.domain.outage import Decision, Failure
from koboshi.domain.process import Birth, Process, ProcessState
from koboshi.domain.progress import ProgressFacts
from koboshi.domain.recovery import Verdict
from koboshi.domain.retry import Retried
from koboshi.domain.route import Route
from koboshi.domain.session import Session, Settings
from koboshi.domain.transcript import (
    CallRecord,
    Choice,
    Note,
    ProposedCall,
    Reply,
    Result,
    Step,
    Summary,
)
from koboshi.domain.turn import Claim
from koboshi.domain.watch import Finding, Watcher, WatcherSpec
from koboshi.ports.backups import Backups
from koboshi.ports.channel import Inbound, Receipt
from koboshi.ports.outbox import Outbox
from koboshi.ports.people import People
from koboshi.ports.retention import Retention
from koboshi.ports.views import OwnerViews
from koboshi.ports.workers import Workers

NO_SIZES: Mapping[ProcessId, int] = MappingProxyType({})


@dataclass(frozen=True, slots=True, kw_only=True)
class Arrival:
    """An `Inbound` after a first look: a command if it is one, ignored if it is not for us."""

    inbound: Inbound
    command: Command | None = None
    ignored: str | None = None


Respond: TypeAlias = Callable[[Command, SessionFacts], Response]
"""What a command does; pure, called inside the transaction that stores the command."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Loaded:
    """What a claimed turn starts from: the earlier conversation, and its own steps and calls."""

    session: Session
    context: tuple[Step, ...]
    """Steps of earlier turns that the model may be shown, oldest first: those that the summary does
    not cover."""
    steps: tuple[Step, ...]
    calls: tuple[CallRecord, ...]
    model_tries: int
    summary: Step | None = None
    """The newest summary of the session, of this turn or an earlier one."""


class Sessions(Protocol):
    async def find(self, route: Route) -> Session | None: ...

    async def set(self, session_id: SessionId, settings: Settings) -> None:
        """Replace the session's own settings."""
        ...


class Inbox(Protocol):
    async def bind(self, accounts: Mapping[ChannelName, str]) -> tuple[ChannelName, ...]:
        """Store the accounts of the channels, before anything is received or sent. Where the
        account changed, the old account's platform ids are forgotten, as after a move. Returns
        those channels."""
        ...

    async def adopt(self, channel: ChannelName, account: str) -> None:
        """The platform confirms this account. Messages from before accounts were stored belong to
        the first confirmed one."""
        ...

    async def cursor(self, channel: ChannelName, account: str = "") -> str | None:
        """How far the channel was read as this account."""
        ...

    async def accept(
        self,
        channel: ChannelName,
        arrivals: Sequence[Arrival],
        *,
        cursor: str | None,
        respond: Respond,
        account: str = "",
    ) -> tuple[Receipt, ...]:
        """Store new messages for this account and how far we have read, and do at once what
        follows: open a turn where the session is idle, answer its open question, carry out a
        command. Messages of a person who is not allowed are ignored; in a private chat they may be
        given a code. An external id of the account that is already stored changes nothing."""
        ...

    async def drop(self, entry_id: EntryId) -> bool:
        """A waiting message will not be taken up. False if nothing was done: it is in a turn, it
        does not wait, it is no message, or there is none."""
        ...

    async def retry(self, entry_id: EntryId) -> Retried | None:
        """Ask an unanswered message again, as a new message that names the old one or its turn.
        Returns the new one, or the existing one if it was asked again before. None if there is no
        such message."""
        ...

    async def messages_waiting(self, session_id: SessionId) -> int:
        """How many messages of people wait in the session."""
        ...


class Turns(Protocol):
    async def claim(
        self, worker_id: WorkerId, limit: int, *, recovered_max: int | None = None
    ) -> tuple[Claim, ...]:
        """Claim up to `limit` queued turns that are due, oldest first: interrupted ones behind all
        others, and at most `recovered_max` of them. A turn with earlier work is judged first; only
        a verdict to resume lets it through."""
        ...

    async def due_in_ms(self, *, with_recovered: bool = True) -> int | None:
        """How long until the next queued turn is due; None if there is none."""
        ...

    async def load(self, claim: Claim) -> Loaded: ...

    async def holds(self, claim: Claim) -> bool:
        """Whether the claim is still valid."""
        ...

    async def append(
        self, claim: Claim, reply: Reply, calls: Sequence[ProposedCall]
    ) -> tuple[Step, ...]:
        """Store a reply with its calls. Returns the new steps."""
        ...

    async def note(self, claim: Claim, note: Note) -> tuple[Step, ...]:
        """Add a note for the model. Not progress."""
        ...

    async def summarise(self, claim: Claim, summary: Summary) -> tuple[Step, ...]:
        """From now on the summary stands for the steps that it covers. Not progress; but the model
        has answered, so its tries are counted anew. Raises ValueError if it covers no more than the
        newest one: this bounds their number."""
        ...

    async def start_call(self, claim: Claim, call_id: CallId) -> bool:
        """The call is about to run: from here on its outcome is unknown until it is finished.

        False, and nothing is written, if the same call ran before in this turn, its outcome is
        unknown or the gateway died while it ran, and no person has allowed it since."""
        ...

    async def finish_call(
        self,
        claim: Claim,
        result: Result,
        exits_read: Sequence[ProcessId] = (),
        parcel: Parcel | None = None,
    ) -> tuple[Step, ...]:
        """Store the result, the processes whose end it showed to the model, and what it owes to the
        person. Returns the new steps: the result, and at a step boundary the messages that waited
        for it."""
        ...

    async def ask(
        self, claim: Claim, call_id: CallId, text: str, choices: Sequence[Choice], age_ms_max: int
    ) -> None:
        """Ask the person; the turn waits, and the claim is given back."""
        ...

    async def answer(
        self,
        claim: Claim,
        reply: Reply,
        parts: Sequence[str],
        log_sizes: Mapping[ProcessId, int] = NO_SIZES,
        file: OutFile | None = None,
    ) -> None:
        """End the turn with its answer: the words, the state and the deliveries owed are one
        transaction, which also opens the next turn if a message waits. `log_sizes` is the output of
        its background processes until now: later matches in it are too late. `file` goes along with
        the last part."""
        ...

    async def fail(self, claim: Claim, reason: str) -> None:
        """End the turn with an apology."""
        ...

    async def progress(self, claim: Claim) -> ProgressFacts:
        """What a person may be told while the turn works."""
        ...

    async def tell_progress(self, claim: Claim, ordinal: int, words: str) -> None:
        """Owe the person these words while the turn runs: any end of the work, for good or for now,
        abandons them if they are not on their way. An ordinal is used once."""
        ...

    async def retry_model(self, claim: Claim, failure: Failure) -> Decision:
        """Store that the model did not answer, decide what follows, and owe the person one notice
        about it once it is due."""
        ...

    async def postpone(self, claim: Claim, wait_ms: int, reason: str) -> None:
        """Give the claim back until `wait_ms` have passed, because the model does not answer. That
        is no interruption: neither a death nor a recovery, and the model is told nothing. The wait
        counts as waited from here on, even if the clock is changed."""
        ...

    async def release(self, claim: Claim) -> None:
        """Give the claim back cleanly, for the next worker."""
        ...

    async def unowned(self, *, with_suspended: bool) -> tuple[TurnId, ...]:
        """Turns that need a verdict, newest first: running under a worker that is gone; and at a
        boot, when the environment may have changed, those set aside, and those that are stopped
        because of a person in them and hold up another person's message."""
        ...

    async def recover(self, turn_id: TurnId) -> Verdict | None:
        """Read the facts, decide, apply, journal: one transaction. None if there was nothing left
        to decide."""
        ...

    async def will(self, turn_id: TurnId, will: OperatorAction) -> Standing | None:
        """Apply the operator's action to a turn, as `/resume` and `/drop` do. It is done exactly
        when LEFT comes back; any other standing says why nothing was written, and None that there
        is no such turn."""
        ...

    async def expire(self, limit: int) -> int:
        """End turns whose question was not answered in time. Returns how many."""
        ...


class Processes(Protocol):
    async def begin(
        self,
        claim: Claim,
        call_id: CallId,
        *,
        command: str,
        workdir: str,
        is_foreground: bool,
        watchers: Sequence[WatcherSpec] = (),
        background_max: int | None = None,
    ) -> Process:
        """Store the intent to start a process for a call, with its watchers, before anything runs.
        A call has one process for ever: an existing one is returned as it is. Raises
        BackgroundFull, and nothing is written, if it is for the background and `background_max`
        commands of the session run there already."""
        ...

    async def born(self, process_id: ProcessId, birth: Birth) -> None: ...

    async def ended(
        self,
        process_id: ProcessId,
        state: ProcessState,
        *,
        exit_code: int | None,
        reason: str,
        ended_ms: int,
        output: str = "",
    ) -> None:
        """How it ended, and the last of its output; a second end changes nothing. The report is
        filed in the same transaction: to the agent if it asked for that, else to the person, and to
        neither after a request to end it."""
        ...

    async def report(self, before: Watcher, found: Finding) -> bool:
        """Report a watcher's finding and move the watcher behind it, in one transaction. False, and
        nothing is written, when it may report nothing now, or was moved meanwhile: look again
        later."""
        ...

    async def forget(self, process_id: ProcessId) -> None:
        """Delete an ended process and its watchers."""
        ...

    async def ask_end(self, process_id: ProcessId) -> None:
        """Store the request to end it; the supervisor acts on that, also after a boot. For a lost
        one, it ends what may be left."""
        ...

    async def with_remains(self) -> tuple[ProcessId, ...]:
        """Lost processes with a request to end what may be left of them."""
        ...

    async def remains_ended(self, process_id: ProcessId) -> None:
        """Nothing of it is left that could be found."""
        ...

    async def find(self, turn_id: TurnId, call_id: CallId) -> Process | None: ...

    async def get(self, process_id: ProcessId) -> Process | None: ...

    async def of_session(self, session_id: SessionId, limit: int) -> tuple[Process, ...]:
        """The session's processes, newest first."""
        ...

    async def watchers(self, process_id: ProcessId) -> tuple[Watcher, ...]:
        """All watchers of a process, past ones included."""
        ...

    async def watched(self) -> tuple[tuple[Watcher, Process], ...]:
        """The active watchers of output, the longest unheard first."""
        ...

    async def of_turn(self, turn_id: TurnId) -> tuple[ProcessId, ...]:
        """The background processes that the turn has started."""
        ...

    async def outdated(self, before_ms: int, kept_max: int, limit: int) -> tuple[ProcessId, ...]:
        """Ended before that moment, or ended and more than are kept; oldest first."""
        ...

    async def stranded(self) -> tuple[ProcessId, ...]:
        """Begun for a turn that has closed since; unknown whether they were started."""
        ...

    async def commands_running(self) -> frozenset[tuple[TurnId, CallId]]:
        """The calls of all foreground commands that have no end, as far as we know."""
        ...

    async def alive(self) -> tuple[Process, ...]:
        """Every process that has no end, as far as we know."""
        ...


class Store(Protocol):
    @property
    def sessions(self) -> Sessions: ...
    @property
    def inbox(self) -> Inbox: ...
    @property
    def turns(self) -> Turns: ...
    @property
    def outbox(self) -> Outbox: ...
    @property
    def processes(self) -> Processes: ...
    @property
    def workers(self) -> Workers: ...
    @property
    def people(self) -> People: ...
    @property
    def views(self) -> OwnerViews: ...
    @property
    def backups(self) -> Backups: ...
    @property
    def retention(self) -> Retention: ...

    @property
    def commits(self) -> int:
        """How many transactions were committed since the store was opened."""

    @property
    def trouble(self) -> str | None:
        """Why writes wait (a full disk, another program's lock), in words; None if they do not."""

    @property
    def failure(self) -> str | None:
        """Why nothing is written any more and this process must end; None if it need not."""

    def stop_waiting(self) -> None:
        """From now on a write that would wait for a full disk or another program's lock fails with
        StoreFailed: a stop cannot wait for space."""

    async def close(self) -> None: ...
