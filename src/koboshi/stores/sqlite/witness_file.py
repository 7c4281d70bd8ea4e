"""The witness of a store that is open. Apart from the rest, so that a quick look loads no loop."""

from contextlib import suppress
from pathlib import Path

from anyio import CapacityLimiter, to_thread

from koboshi.domain.resource_exhaustion import shortage_in
from koboshi.domain.witness import Witness
from koboshi.stores.sqlite.witness import write_witness


class WitnessFile:
    """The witness of a store that is open. It is written where there is something new to tell."""

    def __init__(self, home: Path) -> None:
        self._home = home
        self._told: tuple[int, int] | None = None

    async def tell(self, witness: Witness) -> None:
        """In a thread: a disk may take its time."""
        try:
            await to_thread.run_sync(self._tell, witness, limiter=CapacityLimiter(1))
        except RuntimeError as error:
            # Without a thread the old witness stays, which is as true as before.
            if shortage_in(error) is None:
                raise

    def _tell(self, witness: Witness) -> None:
        news = (witness.boot, witness.journal)
        if news == self._told:
            return
        # A witness that cannot be written is an old one, which is as true as before.
        with suppress(OSError):
            write_witness(self._home, witness)
            self._told = news
