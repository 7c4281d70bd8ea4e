"""The store: the one truth. Each verb is one transaction; it is durable when it has returned.

A verb that takes a `Claim` raises `Fenced` and writes nothing when the claim is no longer valid.
Any verb raises `StoreFailed` when the outcome of a commit is unknown: then this process must end.
A verb that was called is never withdrawn: cancelling the caller does not cancel the write.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Protocol

from koboshi.domain.command import ActionStanding, OperatorAction
from koboshi.domain.files import OutFile, Parcel
from koboshi.domain.ids import CallId, ProcessId, TurnId, WorkerId
from koboshi.domain.outage import Decision, ModelFailure
from koboshi.domain.progress import ProgressFacts
from koboshi.domain.recovery import Verdict
from koboshi.domain.role import Role, RoleStanding
from koboshi.domain.route import Route
from koboshi.domain.session import Session
from koboshi.domain.transcript import (
    ApprovalSeal,
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
from koboshi.ports.accounts import AccountOwners
from koboshi.ports.agents import Agents
from koboshi.ports.approvals import Approvals
from koboshi.ports.backups import Backups
from koboshi.ports.browsers import Browsers
from koboshi.ports.budget import Budget
from koboshi.ports.chats import Chats
from koboshi.ports.children import Children
from koboshi.ports.erasures import Erasures
from koboshi.ports.files import KeptFiles
from koboshi.ports.inbox import Arrival as Arrival
from koboshi.ports.inbox import Inbox
from koboshi.ports.inbox import Respond as Respond
from koboshi.ports.memory import Memories
from koboshi.ports.minutes import Minutes
from koboshi.ports.models import Models
from koboshi.ports.outbox import Outbox
from koboshi.ports.people import People
from koboshi.ports.processes import Processes as Processes
from koboshi.ports.retention import Retention
from koboshi.ports.schedules import Goals, Schedules
from koboshi.ports.search import WordSearch
from koboshi.ports.views import OwnerViews
from koboshi.ports.workers import Workers

if TYPE_CHECKING:
    from koboshi.ports.imports import Imports  # a look at a home does not load it

NO_SIZES: Mapping[ProcessId, int] = MappingProxyType({})


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
    standing: RoleStanding = RoleStanding()  # noqa: RUF009  (frozen)
    shown: str | None = None
    """What the turn is shown beside the conversation: memory, skills, files of its folder; None:
    not looked for yet."""


class Sessions(Protocol):
    async def find(self, route: Route) -> Session | None: ...


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

    async def standing(self, claim: Claim) -> RoleStanding:
        """What the turn may do now: a person with another role may have joined it."""
        ...

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

    async def start_call(
        self, claim: Claim, call_id: CallId, seal: str | None = None, role: Role = Role.MEMBER
    ) -> bool:
        """The call is about to run: from here on its outcome is unknown until it is finished. One
        that needs an approval starts only under the seal that the yes was given for.

        False, and nothing is written, if the same call ran before in this turn, its outcome is
        unknown or the gateway died while it ran, and no person has allowed it since. Raises
        RoleLost, and nothing is written, if the turn has less than `role` by now."""
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
        self,
        claim: Claim,
        call_id: CallId,
        text: str,
        choices: Sequence[Choice],
        age_ms_max: int,
        *,
        sealed: ApprovalSeal | None = None,
        chat_text: str = "",
    ) -> bool:
        """Ask the person; the turn waits, and the claim is given back. `sealed` is what a yes is
        bound to, and `chat_text` is said in the chat instead of a text that does not fit there.
        False if a rule of the chat has approved the call instead: then nothing is asked."""
        ...

    async def answer(
        self,
        claim: Claim,
        reply: Reply,
        parts: Sequence[str],
        log_sizes: Mapping[ProcessId, int] = NO_SIZES,
        file: OutFile | None = None,
        *,
        is_silent: bool = False,
    ) -> None:
        """End the turn with its answer: the words, the state and the deliveries owed are one
        transaction, which also opens the next turn if a message waits. `log_sizes` is the output of
        its background processes until now: later matches in it are too late. `file` goes along with
        the last part. With `is_silent` there are no parts: no person is told."""
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

    async def retry_model(self, claim: Claim, failure: ModelFailure) -> Decision:
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

    async def will(self, turn_id: TurnId, will: OperatorAction) -> ActionStanding | None:
        """Apply the operator's action to a turn, as `/resume` and `/drop` do. It is done exactly
        when LEFT comes back; any other standing says why nothing was written, and None that there
        is no such turn."""
        ...

    async def expire(self, limit: int) -> int:
        """End turns whose question was not answered in time. Returns how many."""
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
    def accounts(self) -> AccountOwners: ...
    @property
    def files(self) -> KeptFiles: ...
    @property
    def people(self) -> People: ...
    @property
    def erasures(self) -> Erasures: ...
    @property
    def search(self) -> WordSearch: ...
    @property
    def minutes(self) -> Minutes: ...
    @property
    def chats(self) -> Chats: ...
    @property
    def browsers(self) -> Browsers: ...
    @property
    def approvals(self) -> Approvals: ...
    @property
    def views(self) -> OwnerViews: ...
    @property
    def backups(self) -> Backups: ...
    @property
    def retention(self) -> Retention: ...
    @property
    def imports(self) -> "Imports": ...
    @property
    def schedules(self) -> Schedules: ...
    @property
    def goals(self) -> Goals: ...
    @property
    def children(self) -> Children: ...
    @property
    def agents(self) -> Agents: ...
    @property
    def models(self) -> Models: ...
    @property
    def budget(self) -> Budget: ...
    @property
    def memory(self) -> Memories: ...

    @property
    def is_shared(self) -> bool:
        """Whether gateways of other homes may work on the same database."""

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
        """From now on a write that would have to wait fails with StoreFailed."""

    async def close(self) -> None: ...
