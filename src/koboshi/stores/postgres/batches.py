"""Batches of operations, each committed once, on a connection that may be lost at any moment.

Theory of operation. A batch is one transaction. It begins with the row of this worker: the update
of its mark is a sign of life, fails if the worker has been ended by another node, and holds the row
until the commit. Then all keys that the operations have named are taken, in order, so that two
nodes never wait for each other. Then the operations run (`rounds.py`).

If an operation fails, the batch is rolled back and run again, each under a savepoint of its own, so
that the failure is that caller's alone. If one needs another key, the batch is run again with it.
A deadlock or a time limit repeats the batch, too. So an operation may run several times before one
of its runs is committed.

The connection may be lost. Before the commit was sent nothing is durable, and the batch is run
again on the next connection. After that its outcome is unknown, and the mark of this worker tells
it: the batch that was committed last has this number, or the one before. The row is read under
lock, so that a transaction of the lost connection that has not ended yet is waited for, and what
is read is believed when that transaction is committed itself. A mark further back means that the
database is not the one that we wrote to: it went back in time, and this process must end. The
server refuses each batch whose predecessor it does not know, and a connection that leads to another
server is looked at (`reach.py`).
"""

from collections import deque
from collections.abc import Callable, Sequence, Set
from threading import Event
from typing import Any

from koboshi.domain.errors import Buried, Fenced, StoreFailed
from koboshi.domain.ids import SessionId, WorkerId
from koboshi.domain.timing import Timing
from koboshi.kernel.decode import encoded, number
from koboshi.kernel.keys import NeedsKey
from koboshi.kernel.transaction import NO_KEYS, Transaction
from koboshi.stores.batch_writer import Submitted
from koboshi.stores.faults import CrashPoint
from koboshi.stores.postgres.batch_clock import BatchClock
from koboshi.stores.postgres.reach import (
    NO_WRITES,
    READ_ONLY,
    ROUND_SECONDS_MAX,
    ServerReach,
    burial_of,
    mark_of,
    says_committed,
)
from koboshi.stores.postgres.rounds import OperationFailed, Rounds
from koboshi.stores.postgres.statements import statements
from koboshi.stores.postgres.times import StoreTime
from koboshi.stores.postgres.transaction import Ask, DrawnSteps, PostgresTransaction
from koboshi.stores.postgres.wire import (
    BEGIN,
    COMMIT,
    NOTHING,
    ROLLBACK,
    Lost,
    ServerError,
    Wire,
    WireAnswer,
    WireRequest,
)

PAUSES_SECONDS = (0.0, 0.2, 0.5, 1.0, 2.0)
"""Before each attempt to reach the server again; the last one from then on."""
BURIED, WENT_BACK = "KB001", "KB002"
TIMEOUT = "57014"
_AGAIN = ("40001", "40P01", "55P03", TIMEOUT, "53")
"""Errors that pass: a deadlock, a time limit, want of something on the server."""
_REPEATABLE = frozenset({"workers.start"})
"""Verbs that may be committed twice: the second ends what the first began."""

_END, _BEAT = "workers.end", "workers.beat"
_WRITE_STEPS = frozenset({"inbox.accept", "turns.append", "turns.finish_call", "turns.answer"})
"""Verbs that append a step, as a rule: its number is drawn with the keys."""

SAVEPOINT = WireRequest("SAVEPOINT operation", NOTHING)
RELEASE = WireRequest("RELEASE operation", NOTHING)
UNDO = WireRequest("ROLLBACK TO operation", NOTHING)


class Batches:
    """Commits batches, one after the other, in one thread."""

    def __init__(
        self,
        connect: Callable[[], Wire],
        *,
        time: StoreTime,
        worker: Callable[[], WorkerId | None],
        crash_point: CrashPoint,
        on_trouble: Callable[[str], None],
    ) -> None:
        self.reach = ServerReach(connect)
        self._time = time
        self._clock = BatchClock(time)
        self._worker = worker
        self._crash_point = crash_point
        self._on_trouble = on_trouble
        self._wire: Wire | None = None
        self._keys: dict[SessionId, int] = {}
        self._clock_keys: set[int] = set()
        """What a jump of the clock needs."""
        self._steps: deque[int] = deque()
        """Numbers of steps that the batch has drawn behind its keys."""
        self._first: list[WireRequest] = []
        """What is sent at the head of the next round."""
        self._known: tuple[WorkerId | None, int] = (None, 0)
        """The worker of the last batch, and the number of that batch."""
        self._ended: WorkerId | None = None
        """This boot, once it has ended itself."""
        self._is_commit_sent = False
        self.clock_hints: Set[str] = frozenset()
        """Whom the last batch wakes because the clock jumped."""
        self.impatient = Event()
        self.trouble: str | None = None
        self.commits = 0
        self.fenced = 0
        self.refusals = {"lost": 0, "busy": 0}
        self.rounds = 0
        self.lock_waits = Timing()
        """How long the rounds took that ask for the keys of a batch."""
        self.alive_at = self._time.monotonic()
        """When the newest batch was begun that is committed."""
        self._begun = self.alive_at
        self.resolved = {"committed": 0, "repeated": 0}
        """Commits of unknown outcome, by what became of them."""

    def commit(self, batch: Sequence[Submitted]) -> None:
        """Returns when every operation is committed or has its error. Raises StoreFailed."""
        is_alone, tries = False, 0
        while True:
            try:
                self._attempt(batch, is_alone=is_alone)
                self.trouble = None
                return
            except NeedsKey:
                self._roll_back()
            except OperationFailed:
                self._roll_back()
                is_alone = True
            except ServerError as error:
                self._roll_back()
                if error.state == BURIED:
                    raise self._burial(f"another node has ended this worker: {error}") from error
                if error.state == READ_ONLY:
                    self.close()
                    self._pause(tries, NO_WRITES)
                    tries += 1
                    continue
                if error.state == WENT_BACK:
                    raise StoreFailed(f"the database went back: {error}") from error
                # A statement that always takes too long is found, and is its caller's alone.
                is_alone |= error.state == TIMEOUT or not error.state.startswith(_AGAIN)
                if error.state.startswith(_AGAIN):
                    self.refusals["busy"] += 1
                    self._pause(tries, str(error))
                    tries += 1
            except Lost as lost:
                if self._lose(lost, batch):
                    return
                self._pause(tries, f"the database cannot be reached: {lost}")
                tries += 1

    def _burial(self, words: str) -> Buried:
        worker = self._living_worker()
        try:
            if worker is not None and self._wire is not None:
                return burial_of(self._wire, worker, words)
        except (Lost, ServerError):
            self.close()
        return Buried(words)

    def close(self) -> None:
        if self._wire is not None:
            self._wire.close()
            self._wire = None

    # ── one attempt ─────────────────────────────────────────────────────────────────────────────

    def _attempt(self, batch: Sequence[Submitted], *, is_alone: bool) -> None:
        if self._wire is None:
            self._wire = self.reach.connect()
        worker = self._living_worker()
        before = self._known[1] if worker == self._known[0] else 0
        self._first = [BEGIN]
        self._clock.begin()
        self._begun = self._time.monotonic()
        if worker is not None:
            mark = {"worker_id": worker, "number": before + 1, "now": self._time.told_ms()}
            self._first.append(WireRequest("batch_begin", mark))
            if any(each.verb == _BEAT for each in batch):
                self._first.append(WireRequest("promise_note", NOTHING))
        self._look_up_keys(batch)
        planned = [(each, self._keys_of(each)) for each in batch]
        held = {key for _, keys in planned for key in keys} | self._clock_keys
        if held:
            self._first.append(WireRequest("keys_take", {"ids": encoded(sorted(held))}))
        self._steps.clear()
        if held and (wanted := sum(each.verb in _WRITE_STEPS for each in batch)):
            self._first.append(WireRequest("steps_reserve", {"limit": wanted}))
        now_ms = self._look_at_clock(held)
        if is_alone:
            for each, keys in planned:
                self._carry_out_alone(each, keys, held, now_ms)
        else:
            self._rounds(held, now_ms).carry_out(planned, before=self._before)
        self._commit_now()
        self._known = (worker, before + 1)
        self._note_end(worker, batch)
        self._clock.committed()
        self._clock_keys = set()
        self.commits += 1
        self.alive_at = self._begun
        self._after(batch)

    def _living_worker(self) -> WorkerId | None:
        """This boot, from its row on until it has ended it itself: from then on it holds nothing,
        and its row can fence nothing."""
        worker = self._worker()
        return None if worker == self._ended else worker

    def _look_up_keys(self, batch: Sequence[Submitted]) -> None:
        asked = {session for each in batch for session in each.keys.sessions}
        if unknown := asked - self._keys.keys():
            found = self._round(
                [WireRequest("keys_of_sessions", {"ids": encoded(sorted(unknown))})]
            )
            for session_id, key in found[0].rows:
                self._keys[SessionId(number(session_id))] = number(key)

    def _keys_of(self, submitted: Submitted) -> frozenset[int]:
        known = (self._keys.get(session) for session in submitted.keys.sessions)
        sessions = (key for key in known if key is not None)
        return frozenset((*submitted.keys.chats, *sessions, *(submitted.found or ())))

    def _note_end(self, worker: WorkerId | None, batch: Sequence[Submitted]) -> None:
        if any(each.verb == _END and each.error is None for each in batch):
            self._ended = worker

    def _look_at_clock(self, held: set[int]) -> int:
        """The time of the batch. A jump of the clock is made good in its first operation."""
        seen_ms = 0

        def look(tx: Transaction) -> None:
            nonlocal seen_ms
            seen_ms = self._clock.look(tx)

        clock = Submitted("clock", look, NO_KEYS, found=self._clock_keys)
        named = frozenset(self._clock_keys)
        self._rounds(held, 0).carry_out([(clock, named)], before=lambda _: None)
        self.clock_hints = clock.hints
        return seen_ms

    def _carry_out_alone(
        self, submitted: Submitted, keys: frozenset[int], held: set[int], now_ms: int
    ) -> None:
        self._first.append(SAVEPOINT)
        try:
            self._rounds(held, now_ms).carry_out([(submitted, keys)], before=self._before)
        except OperationFailed as failed:
            self._undo(submitted, failed.error)
        except ServerError as error:
            if error.state == BURIED:
                raise
            if error.state.startswith(_AGAIN) and error.state != TIMEOUT:
                raise
            self._undo(submitted, error)
        self._first.append(RELEASE)

    def _undo(self, submitted: Submitted, error: Exception) -> None:
        """The failure belongs to its caller; what the operation has written goes."""
        submitted.error = error
        submitted.hints = set()
        self.fenced += isinstance(error, Fenced)
        self._first.append(UNDO)

    def _rounds(self, held: set[int], now_ms: int) -> Rounds:
        known = statements()

        def new_transaction(
            ask: Ask,
            try_lock: Callable[[int], bool],
            each: Callable[..., list[Any]],
            found: Set[int],
        ) -> PostgresTransaction:
            drawn = DrawnSteps(self._steps, found)
            return PostgresTransaction(ask, now_ms, known, try_lock, each, drawn)

        return Rounds(self._round, new_transaction, held)

    def _round(
        self, requests: Sequence[WireRequest], on_sent: Callable[[], None] = lambda: None
    ) -> list[WireAnswer]:
        assert self._wire is not None
        first, self._first = self._first, []
        begun = self._time.monotonic()
        answers = self._wire.round([*first, *requests], within_s=ROUND_SECONDS_MAX, on_sent=on_sent)
        self.rounds += 1
        for request, answer in zip(first, answers, strict=False):
            if request.query == "batch_begin":
                at_ms, jumps_ms = answer.rows[0]
                self._clock.measured(number(at_ms), number(jumps_ms), begun)
            elif request.query == "promise_note":
                self.reach.loses_none = bool(answer.rows[0][0])
            elif request.query == "steps_reserve":
                self._steps.extend(number(drawn) for (drawn,) in answer.rows)
            elif request.query == "keys_take":
                self.lock_waits.note(self._time.monotonic() - begun)
        return answers[len(first) :]

    def _commit_now(self) -> None:
        assert self._wire is not None
        if self._crash_point.is_armed:
            self._crash_point.reach("batch", "open")
        self._is_commit_sent = True
        (answer,) = self._round([COMMIT], on_sent=self._commit_is_sent)
        if answer.tag != b"COMMIT":
            self._is_commit_sent = False
            raise StoreFailed(f"the database ended a batch with {answer.tag.decode()}")
        if self._wire.is_in_doubt:
            raise Lost("no standby has confirmed the commit")
        self._is_commit_sent = False

    # ── what goes wrong ─────────────────────────────────────────────────────────────────────────

    def _roll_back(self) -> None:
        """A statement that failed before the commit in its round has kept it from being sent."""
        self._is_commit_sent = False
        self._first = []
        try:
            if self._wire is not None:
                self._wire.round([ROLLBACK], within_s=ROUND_SECONDS_MAX)
        except (Lost, ServerError):
            self.close()

    def _lose(self, lost: Lost, batch: Sequence[Submitted]) -> bool:
        """The connection is gone. Returns whether the batch had been committed. Raises
        StoreFailed where that cannot be known."""
        self.close()
        self._first = []
        self.refusals["lost"] += 1
        if not self._is_commit_sent:
            return False
        worker = self._living_worker()
        if worker is None or worker != self._known[0]:
            self._is_commit_sent = False
            if worker is None and {each.verb for each in batch} <= _REPEATABLE:
                return False
            if worker is None:
                raise StoreFailed(f"the outcome of a commit is unknown: {lost}") from lost
            self._known = (worker, 0)
        is_committed = self._was_committed(worker, self._known[1] + 1)
        self._is_commit_sent = False
        self.resolved["committed" if is_committed else "repeated"] += 1
        if is_committed:
            self._known = (worker, self._known[1] + 1)
            self._note_end(worker, batch)
            self._clock.committed()
            self.commits += 1
            self._after(batch)
        return is_committed

    def _was_committed(self, worker: WorkerId, batch_number: int) -> bool:
        tries = 0
        while True:
            self._pause(tries, "the outcome of a commit is looked up")
            tries += 1
            try:
                self._wire = self.reach.connect()
                found = mark_of(self._wire, worker)
            except (Lost, ServerError):
                self.close()
                continue
            break
        return says_committed(found, batch_number)

    def _pause(self, tries: int, why: str) -> None:
        """Wait a moment before the next attempt. Raises StoreFailed where no caller may wait."""
        if self.trouble is None and tries:
            self._on_trouble(why)
        if tries:
            self.trouble = why
        if self.impatient.wait(PAUSES_SECONDS[min(tries, len(PAUSES_SECONDS) - 1)]):
            raise StoreFailed(f"the database failed: {why}")

    # ── points where the tests kill ─────────────────────────────────────────────────────────────

    def _commit_is_sent(self) -> None:
        if self._crash_point.is_armed:
            self._crash_point.reach("commit", "sent")

    def _before(self, verb: str) -> None:
        if self._crash_point.is_armed:
            self._crash_point.reach(verb, "before")

    def _after(self, batch: Sequence[Submitted]) -> None:
        if self._crash_point.is_armed:
            for submitted in batch:
                if submitted.error is None:
                    self._crash_point.reach(submitted.verb, "after")
