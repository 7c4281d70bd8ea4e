"""Boots of gateways, as the store knows them."""

from typing import Protocol

from koboshi.domain.burial import LifeSign
from koboshi.domain.ids import WorkerId
from koboshi.domain.worker import NO_KILLS, EndedHow, MemoryKills, Worker


class Workers(Protocol):
    async def start(
        self, host: str, pid: int, birth: str, version: str, kills: MemoryKills = NO_KILLS
    ) -> Worker:
        """A new row for this boot; rows of boots that ended without a word get their end."""
        ...

    async def end_left(self, host: str, birth: str, kills: MemoryKills = NO_KILLS) -> None:
        """This process owns the home without a row of its own: rows of boots that ended without a
        word get their end, so that what they held can be taken."""
        ...

    async def beat(self, worker_id: WorkerId, kills: MemoryKills = NO_KILLS) -> bool:
        """Still alive. Returns whether a drain was requested."""
        ...

    @property
    def beaten_ms(self) -> int:
        """When the last beat of this process was stored, by the clock of the store."""
        ...

    async def others(self, worker_id: WorkerId) -> tuple[LifeSign, ...]:
        """The signs of life of all other workers that have not ended."""
        ...

    async def is_served_beside(self) -> bool:
        """Whether another worker lives and does not drain."""
        ...

    async def bury(self, sign: LifeSign) -> bool:
        """Give a worker its end that has given no sign since this one: what it held is free, and it
        writes nothing from now on. False if it did give one, or has ended already."""
        ...

    async def request_restart(self, worker_id: WorkerId, by: str) -> None:
        """Ask the worker to end and come back; the first requester is remembered."""
        ...

    async def begin_drain(self, worker_id: WorkerId) -> None:
        """From now on it takes up nothing new. People who wait for its work are told, once."""
        ...

    async def report(self, worker_id: WorkerId, words: str, back: str) -> None:
        """What it found at its start and decided; the requester of the restart is told `back`."""
        ...

    async def restarted_by(self, by: str) -> Worker | None:
        """The worker that this requester asked to restart."""
        ...

    async def end(self, worker_id: WorkerId, how: EndedHow) -> None: ...
