"""Operations side by side in one transaction, their statements in common rounds.

Theory of operation. An operation is synchronous: it asks, and goes on with the answer. Here each
runs in a greenlet until it asks the database something. When all of them wait, what they ask goes
out as one round, and each goes on with its own answer. So a batch costs as many round trips as its
longest operation, and not as many as all of them together.

Operations that share a key follow each other, in the order in which they were submitted. Those
that name no key run behind all others, one after the other. An operation that finds a key later
gets it only if no other one that is not finished has named or found it; else it must name it. So
operations that are under way at the same time write to different chats, as those of two nodes do.

An operation may act on several chats side by side, too (`each`): it forks into strands, and goes on
when all of them have ended.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from greenlet import getcurrent, greenlet

from koboshi.kernel.keys import NeedsKey
from koboshi.stores.batch_writer import Submitted
from koboshi.stores.postgres.transaction import PostgresTransaction
from koboshi.stores.postgres.wire import WireAnswer, WireRequest


class OperationFailed(Exception):
    """An operation of the batch raised something. The transaction has to be rolled back."""

    def __init__(self, error: Exception) -> None:
        super().__init__(str(error))
        self.error = error


Ask: TypeAlias = Callable[[WireRequest], WireAnswer]


@dataclass(slots=True, eq=False)
class _Task:
    submitted: Submitted
    keys: frozenset[int]
    has_begun: bool = False
    found: set[int] = field(default_factory=set)
    asked: set[int] = field(default_factory=set)
    """Keys that the server has not answered for yet."""

    def has(self, key: int) -> bool:
        return key in self.keys or key in self.found or key in self.asked


@dataclass(slots=True, eq=False)
class _Fork:
    """Strands that one strand waits for."""

    act: Callable[[Any], Any]
    items: Sequence[Any]
    results: list[Any]
    left: int
    waiting: "_Strand | None" = None


@dataclass(slots=True, eq=False)
class _Strand:
    """What runs until it asks something."""

    task: _Task
    greenlet: "greenlet"
    fork: _Fork | None = None
    """Of which it is one; None: it is the operation itself."""


class Rounds:
    """Runs operations of one batch."""

    def __init__(
        self,
        send: Callable[[Sequence[WireRequest]], list[WireAnswer]],
        new_transaction: Callable[
            [Ask, Callable[[int], bool], Callable[..., list[Any]], Set[int]], PostgresTransaction
        ],
        held: set[int],
    ) -> None:
        """`held` are the keys that the transaction holds; keys that are found are added."""
        self._send = send
        self._new_transaction = new_transaction
        self._unfinished: dict[_Task, None] = {}
        self._alive: set[_Strand] = set()
        self._held = held
        self._hub = getcurrent()

    def carry_out(
        self, planned: Iterable[tuple[Submitted, frozenset[int]]], *, before: Callable[[str], None]
    ) -> None:
        """Run all operations to their ends. Raises NeedsKey, after the operation has noted the key;
        OperationFailed, ServerError and Lost. `before` is told of each verb that begins."""
        tasks = [_Task(submitted, keys) for submitted, keys in planned]
        self._unfinished = dict.fromkeys(task for task in tasks if task.keys)
        waiting = list(self._unfinished)
        last = [task for task in tasks if not task.keys]
        try:
            self._run(waiting, before)
            for task in last:
                self._unfinished = {task: None}
                self._run([task], before)
        finally:
            for strand in list(self._alive):
                strand.greenlet.throw()

    def _run(self, waiting: list[_Task], before: Callable[[str], None]) -> None:
        ready: deque[tuple[_Strand, object]] = deque()
        while True:
            for task in self._startable(waiting):
                before(task.submitted.verb)
                ready.append((self._strand(task, self._work), task))
            if not ready:
                return
            asked: list[tuple[_Strand, WireRequest]] = []
            while ready:
                strand, value = ready.popleft()
                told = strand.greenlet.switch(value)
                if isinstance(told, WireRequest):
                    asked.append((strand, told))
                else:
                    ready.extend(self._after(strand, told))
            if asked:
                answers = self._send([request for _, request in asked])
                pairs = zip(asked, answers, strict=True)
                ready.extend((strand, answer) for (strand, _), answer in pairs)

    def _strand(self, task: _Task, run: Callable[..., None], fork: _Fork | None = None) -> _Strand:
        strand = _Strand(task, greenlet(run, parent=self._hub), fork)
        self._alive.add(strand)
        return strand

    def _after(self, strand: _Strand, told: object) -> Iterator[tuple[_Strand, object]]:
        """Who can go on after a strand has forked, or has ended."""
        if isinstance(told, _Fork):
            told.waiting = strand
            if not told.items:
                yield strand, []
            for place in range(len(told.items)):
                yield self._strand(strand.task, self._act, told), (strand.task, told, place)
            return
        self._alive.discard(strand)
        fork = strand.fork
        if fork is None:
            self._unfinished.pop(strand.task, None)
            return
        fork.left -= 1
        if fork.left == 0:
            assert fork.waiting is not None
            yield fork.waiting, fork.results

    def _startable(self, waiting: list[_Task]) -> list[_Task]:
        """What no earlier operation keeps waiting any more; taken out of what waits."""
        taken: set[int] = set()
        for task in self._unfinished:
            if task.has_begun:
                taken |= task.keys | task.found | task.asked
        begun = []
        for task in list(waiting):
            if taken.isdisjoint(task.keys):
                waiting.remove(task)
                task.has_begun = True
                begun.append(task)
            taken |= task.keys
        return begun

    def _work(self, task: _Task) -> None:
        submitted = task.submitted

        def try_lock(key: int) -> bool:
            return self._try_lock(task, key)

        transaction = self._new_transaction(self._ask, try_lock, self._each, task.found)
        with _noted(task):
            submitted.result = submitted.operation(transaction)
        submitted.error = None
        submitted.hints = transaction.hints

    def _act(self, work: tuple[_Task, _Fork, int]) -> None:
        task, fork, place = work
        with _noted(task):
            fork.results[place] = fork.act(fork.items[place])

    def _ask(self, request: WireRequest) -> WireAnswer:
        answer: WireAnswer = self._hub.switch(request)
        return answer

    def _each(self, act: Callable[[Any], Any], items: Sequence[Any]) -> list[Any]:
        results: list[Any] = self._hub.switch(
            _Fork(act, items, results=[None] * len(items), left=len(items))
        )
        return results

    def _try_lock(self, task: _Task, key: int) -> bool:
        if key in task.keys or key in task.found:
            return True
        if any(other.has(key) for other in self._unfinished if other is not task):
            return False
        if key not in self._held:
            # Another strand of the operation that needs it meanwhile asks for it itself.
            task.asked.add(key)
            (answer,) = self._ask(WireRequest("key_try", {"key": key})).rows[0]
            task.asked.discard(key)
            if not answer:
                return False
            self._held.add(key)
        task.found.add(key)
        return True


@contextmanager
def _noted(task: _Task) -> Iterator[None]:
    """A key that is missing is noted for the next run; any other error is that of the operation."""
    try:
        yield
    except NeedsKey as missing:
        if task.submitted.found is None:
            task.submitted.found = set()
        task.submitted.found.add(missing.key)
        raise
    except Exception as error:
        raise OperationFailed(error) from error
