"""One thread of a node writes (`stores/batch_writer.py`), by batches that are one transaction."""

from collections.abc import Callable

from koboshi.domain.errors import StoreFailed
from koboshi.kernel.workers import BURY
from koboshi.ports.clock import Clock
from koboshi.ports.wakeups import Wakeups
from koboshi.stores.batch_writer import BatchWriter, Submitted
from koboshi.stores.postgres.batches import Batches


class PostgresWriter(BatchWriter):
    def __init__(
        self,
        batches: Batches,
        *,
        clock: Clock,
        wakeups: Wakeups,
        batch_max: int,
        on_failure: Callable[[StoreFailed], None],
    ) -> None:
        super().__init__(
            clock=clock,
            wakeups=wakeups,
            batch_max=batch_max,
            on_failure=on_failure,
            impatient=batches.impatient,
        )
        self._batches = batches
        self.on_hints: Callable[[set[str]], None] = lambda _: None
        """Told in the thread of the writer what has happened, for other nodes."""
        self._thread.start()

    def _commit_batch(self, batch: list[Submitted], *, is_last: bool) -> set[str]:  # noqa: ARG002
        if not batch:
            return set()
        hints: set[str] = set()
        for part in _apart(batch):
            begun = self._clock.monotonic()
            self._batches.commit(part)
            self.commit_times.note(self._clock.monotonic() - begun)
            hints |= self._batches.clock_hints
        hints.update(*(each.hints for each in batch if each.error is None))
        self.on_hints(hints)
        return hints

    def _end(self, *, has_failed: bool) -> None:  # noqa: ARG002
        self._batches.close()


def _apart(batch: list[Submitted]) -> list[list[Submitted]]:
    """The batch, with each burial by itself: it waits for no chat that another verb writes to."""
    burials = [[each] for each in batch if each.verb == BURY]
    others = [each for each in batch if each.verb != BURY]
    return [*burials, others] if others else burials
