"""All verbs of the kernel on the writer and the readers of a store, whichever it is."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

from koboshi.domain.timing import Timing
from koboshi.kernel.accept import InboxVerbs
from koboshi.kernel.accounts import AccountVerbs
from koboshi.kernel.agents import AgentVerbs
from koboshi.kernel.approval_verbs import ApprovalVerbs
from koboshi.kernel.browsers import BrowserVerbs
from koboshi.kernel.budget import BudgetVerbs
from koboshi.kernel.chats import ChatVerbs
from koboshi.kernel.child_verbs import ChildVerbs
from koboshi.kernel.context import VerbContext
from koboshi.kernel.deliveries import DeliveryVerbs
from koboshi.kernel.erasure_verbs import ErasureVerbs
from koboshi.kernel.goals import GoalVerbs
from koboshi.kernel.imports import ImportVerbs
from koboshi.kernel.kept_files import KeptFileVerbs
from koboshi.kernel.memory import MemoryVerbs
from koboshi.kernel.minutes import MinuteVerbs
from koboshi.kernel.models import ModelVerbs
from koboshi.kernel.people import PeopleVerbs
from koboshi.kernel.processes import ProcessVerbs
from koboshi.kernel.retention import RetentionVerbs
from koboshi.kernel.schedules import ScheduleVerbs
from koboshi.kernel.search import SearchVerbs
from koboshi.kernel.sessions import SessionVerbs
from koboshi.kernel.turns import TurnVerbs
from koboshi.kernel.views import ViewVerbs
from koboshi.kernel.workers import TellsWitness, WorkerVerbs
from koboshi.stores.batch_writer import BatchWriter
from koboshi.stores.lock import HomeLock
from koboshi.stores.reader_threads import ReaderThreads


@dataclass(frozen=True, slots=True, kw_only=True)
class DatabaseWays:
    """How this database does what the kernel cannot say in SQL."""

    engine: str
    match: Callable[[tuple[str, ...]], tuple[str, ...]]
    """How it is asked for all of these words, the last one begun."""
    forget_log: Callable[[], Awaitable[bool]]
    """Empty the log of what was erased; False if that was not possible now."""


class CommitCounts(Protocol):
    """What is counted where transactions are committed."""

    trouble: str | None
    commits: int
    fenced: int
    refusals: dict[str, int]


class StoreVerbs:
    def __init__(
        self,
        *,
        lock: HomeLock,
        writer: BatchWriter,
        readers: ReaderThreads,
        counts: CommitCounts,
        context: VerbContext,
        ways: DatabaseWays,
        warnings: tuple[str, ...],
        witness: TellsWitness | None = None,
    ) -> None:
        self._lock = lock
        self._batch_writer = writer
        self._readers = readers
        self._counts = counts
        self._is_closed = False
        self.warnings = warnings
        self.sessions = SessionVerbs(readers)
        self.inbox = InboxVerbs(writer, readers, context)
        self.turns = TurnVerbs(writer, readers, context)
        self.outbox = DeliveryVerbs(writer, readers, context)
        self.processes = ProcessVerbs(writer, readers, context)
        self.accounts = AccountVerbs(writer, readers)
        self.files = KeptFileVerbs(writer, readers)
        self.workers = WorkerVerbs(writer, readers, context, witness)
        self.people = PeopleVerbs(writer, readers, context)
        self.erasures = ErasureVerbs(writer, readers, context, ways.forget_log)
        self.browsers = BrowserVerbs(writer, readers)
        self.minutes = MinuteVerbs(writer, readers)
        self.search = SearchVerbs(writer, readers, ways.match)
        self.chats = ChatVerbs(writer, context)
        self.approvals = ApprovalVerbs(writer, readers)
        self.views = ViewVerbs(readers, context, ways.engine)
        self.retention = RetentionVerbs(writer, readers)
        self.imports = ImportVerbs(writer, readers, context)
        self.schedules = ScheduleVerbs(writer, readers, context)
        self.goals = GoalVerbs(writer, readers, context)
        self.children = ChildVerbs(writer, readers, context)
        self.agents = AgentVerbs(writer, readers, context)
        self.models = ModelVerbs(writer, readers, context)
        self.budget = BudgetVerbs(writer, readers, context)
        self.memory = MemoryVerbs(writer, readers, context, ways.match)

    @property
    def trouble(self) -> str | None:
        return self._counts.trouble

    @property
    def failure(self) -> str | None:
        return self._batch_writer.failure

    @property
    def commits(self) -> int:
        """How many transactions were committed, for measuring."""
        return self._counts.commits

    @property
    def commit_times(self) -> Timing:
        """How long transactions took, from their first statement until they were durable."""
        return self._batch_writer.commit_times

    @property
    def refusals(self) -> Mapping[str, int]:
        """How often a commit had to be tried again, by why."""
        return self._counts.refusals

    @property
    def fenced(self) -> int:
        """How many writes were refused because their claim no longer held."""
        return self._counts.fenced

    def stop_waiting(self) -> None:
        self._batch_writer.stop_waiting()

    async def close(self) -> None:
        """Finish what was submitted and give the home back."""
        if self._is_closed:
            return
        self._is_closed = True
        await self._stop_own()
        await self._readers.close()
        await self._batch_writer.close()
        self._lock.release()

    async def _stop_own(self) -> None:
        """Stop what a store has beside its writer and its readers."""
