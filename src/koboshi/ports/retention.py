"""Forgetting old rows: journal lines, and settled deliveries."""

from dataclasses import dataclass
from typing import Protocol

from koboshi.domain.ids import WorkerId


@dataclass(frozen=True, slots=True, kw_only=True)
class Outdated:
    """What one look has found. `place` is how far it has looked; None at the end."""

    ids: tuple[int, ...]
    place: int | None


class Retention(Protocol):
    """Looks are made beside the writer; only a deletion costs a transaction, a small one."""

    async def begin(self, worker_id: WorkerId) -> int:
        """The first journal line of a boot: it and later lines are never outdated."""
        ...

    async def lines(self, after: int, before_ms: int, boot_seq: int) -> Outdated:
        """Journal lines behind `after` that are no longer needed: older than that moment, of turns
        closed as long, in sessions with nothing open."""
        ...

    async def forget_lines(self, seqs: tuple[int, ...]) -> int:
        """Delete those of them whose sessions still have nothing open. Returns how many."""
        ...

    async def deliveries(self, after: int, before_ms: int) -> Outdated:
        """The same, of settled deliveries."""
        ...

    async def forget_deliveries(self, delivery_ids: tuple[int, ...]) -> int:
        """Delete those of them whose sessions still have nothing open. Returns how many."""
        ...
