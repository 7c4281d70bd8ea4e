"""Operations side by side in one transaction, their statements in common rounds.

Theory of operation. An operation is synchronous: it asks, and goes on with the answer. Here each
runs in a greenlet until it asks the database something. When all of them wait, what they ask goes
out as one round, and each goes on with its own answer. So a batch costs as many round trips as its
longest operation, and not as many as all of them together.

Operations that share a key follow each other, in the order in which they were submitted. Those
that name no key run behind all others, one after the other. An operation that finds a key later
gets it only if no other one that is not finished has named or found it; else it must name it. So
operations that are under way at the same time write to different chats, as those of two nodes do.
"""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from greenlet import getcurrent, greenlet

from koboshi.kernel.keys import NeedsKey
from koboshi.kernel.transaction import Keys, Operation
from koboshi.stores.postgres.transaction import PostgresTransaction
from koboshi.stores.postgres.wire import WireAnswer, WireRequest


@dataclass(slots=True, eq=False)
class Submitted:
    """An operation that a caller waits for."""

    verb: str
    operation: Operation[Any]
    keys: Keys
    future: "asyncio.Future[Any] | None" = None
    found: set[int] = field(default_factory=set)
    """Keys that an earlier run has found."""
    result: object = None
    error: BaseException | None = None
    hints: set[str] = field(default_factory=set)


class OperationFailed(Exception):
    """An operation of the batch raised something. The transaction has to be rolled back."""

    def __init__(self, error: Exception) -> None:
        super().__init__(str(error))
        self.error = error


@dataclass(slots=True, eq=False)
class _Task:
    submitted: Submitted
    keys: frozenset[int]
    greenlet: "greenlet | None" = None
    found: set[int] = field(default_factory=set)


class Rounds:
    """Runs operations of one batch."""

    def __init__(
        self,
        send: Callable[[Sequence[WireRequest]], list[WireAnswer]],
        new_transaction: Callable[
            [Callable[[WireRequest], WireAnswer], Callable[[int], bool]], PostgresTransaction
        ],
        held: set[int],
    ) -> None:
        """`held` are the keys that the transaction holds; keys that are found are added."""
        self._send = send
        self._new_transaction = new_transaction
        self._unfinished: dict[_Task, None] = {}
        self._held = held

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
            for task in tasks:
                if task.greenlet is not None and not task.greenlet.dead:
                    task.greenlet.throw()

    def _run(self, waiting: list[_Task], before: Callable[[str], None]) -> None:
        answered: list[tuple[_Task, WireAnswer | None]] = []
        while waiting or answered:
            answered += [(task, None) for task in self._startable(waiting, before)]
            asked: list[tuple[_Task, WireRequest]] = []
            for task, answer in answered:
                request = self._go_on(task, answer)
                if request is not None:
                    asked.append((task, request))
            if not asked:
                answered = []
                continue
            answers = self._send([request for _, request in asked])
            answered = [(task, answer) for (task, _), answer in zip(asked, answers, strict=True)]

    def _startable(self, waiting: list[_Task], before: Callable[[str], None]) -> list[_Task]:
        """What no earlier operation keeps waiting any more; taken out of what waits."""
        taken: set[int] = set()
        for task in self._unfinished:
            if task.greenlet is not None:
                taken |= task.keys | task.found
        begun = []
        for task in list(waiting):
            if taken.isdisjoint(task.keys):
                waiting.remove(task)
                before(task.submitted.verb)
                task.greenlet = greenlet(self._work)
                begun.append(task)
            taken |= task.keys
        return begun

    def _go_on(self, task: _Task, answer: WireAnswer | None) -> WireRequest | None:
        """Let an operation run until it asks something; None when it has ended."""
        assert task.greenlet is not None
        request: WireRequest | None = task.greenlet.switch(task if answer is None else answer)
        if task.greenlet.dead:
            self._unfinished.pop(task, None)
        return request

    def _work(self, task: _Task) -> None:
        submitted = task.submitted
        parent = getcurrent().parent

        def ask(request: WireRequest) -> WireAnswer:
            answer: WireAnswer = parent.switch(request)
            return answer

        def try_lock(key: int) -> bool:
            return self._try_lock(task, key, ask)

        transaction = self._new_transaction(ask, try_lock)
        try:
            submitted.result = submitted.operation(transaction)
        except NeedsKey as missing:
            submitted.found.add(missing.key)
            raise
        except Exception as error:
            raise OperationFailed(error) from error
        submitted.error = None
        submitted.hints = transaction.hints

    def _try_lock(self, task: _Task, key: int, ask: Callable[[WireRequest], WireAnswer]) -> bool:
        if key in task.keys or key in task.found:
            return True
        others = (other for other in self._unfinished if other is not task)
        if any(key in other.keys or key in other.found for other in others):
            return False
        task.found.add(key)
        if key not in self._held:
            if not ask(WireRequest("key_try", {"key": key})).rows[0][0]:
                task.found.discard(key)
                return False
            self._held.add(key)
        return True
