"""The views of the kernel, and how the server is that they are asked of."""

from dataclasses import replace

from koboshi.domain.standby import standby_words
from koboshi.kernel.context import VerbContext
from koboshi.kernel.decode import number, text
from koboshi.kernel.transaction import Reading
from koboshi.kernel.views import ViewVerbs
from koboshi.ports.clock import Clock
from koboshi.ports.server import ServerStanding
from koboshi.ports.views import Status
from koboshi.stores.postgres.reader import PostgresReaders


class ServerViews(ViewVerbs):
    def __init__(
        self, readers: PostgresReaders, context: VerbContext, engine: str, clock: Clock
    ) -> None:
        super().__init__(readers, context, engine)
        self._engine_name = engine
        self._server = readers
        self._clock = clock

    async def status(self) -> Status:
        def look(tx: Reading) -> ServerStanding:
            (names, commit, standbys) = tx.rows("server_standing")[0]
            # The second time no statement is prepared, and no transaction begun.
            begun = self._clock.monotonic()
            tx.rows("server_standing")
            seconds = self._clock.monotonic() - begun
            return ServerStanding(
                name=self._engine_name,
                round_trip_ms=seconds * 1_000,
                standby=standby_words(text(names), text(commit), number(standbys)),
            )

        status = await super().status()
        return replace(status, server=await self._server.read(look))
