"""A home in which no gateway runs, read without threads and without an event loop: a person waits
at a keyboard, and there is no other caller."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import apsw

from koboshi.domain.errors import StoreFailed
from koboshi.domain.people import PairingLimits
from koboshi.domain.recovery import BootConfig
from koboshi.domain.watch import Notify, ReportLimits
from koboshi.kernel.context import VerbContext
from koboshi.kernel.transaction import Look, Outcome
from koboshi.kernel.views import ViewVerbs
from koboshi.ports.clock import Clock
from koboshi.stores.lock import lock_now
from koboshi.stores.sqlite.file import BROKEN, DATABASE_NAME, open_writer
from koboshi.stores.sqlite.ownership import end_workers_in_sight
from koboshi.stores.sqlite.quarantine import refuse_half_restored
from koboshi.stores.sqlite.transaction import SqliteReading


@contextmanager
def idle_home_views(
    home: Path, *, world: BootConfig, clock: Clock, who: str
) -> Iterator[ViewVerbs]:
    """The views of a home that this process owns meanwhile. Nothing they are asked ever waits.

    Raises what `open_store` raises for who only looks: HomeHeld at once when a gateway runs.
    """
    with ExitStack() as undo:
        lock = lock_now(home, clock=clock, who=who)
        undo.callback(lock.release)
        refuse_half_restored(home)
        connection = open_writer(home / DATABASE_NAME)
        undo.callback(connection.close)
        # What a look changes is rolled back, and no line of the journal tells of it.
        connection.config(apsw.SQLITE_DBCONFIG_ENABLE_TRIGGER, 0)
        context = VerbContext(
            world=world,
            waiting_max=0,
            question_age_ms_max=0,
            context_steps_max=0,
            notify=Notify.ALL,
            report_limits=ReportLimits(),
            pairing=PairingLimits(),
            new_code=str,  # no code is made here
        )
        yield ViewVerbs(_HereAndNow(connection, clock), context, apsw.sqlite_lib_version())


class _HereAndNow:
    """Looks on the thread of the one who asks."""

    def __init__(self, connection: apsw.Connection, clock: Clock) -> None:
        self._connection = connection
        self._clock = clock

    async def read(self, look: Look[Outcome]) -> Outcome:
        reading = SqliteReading(self._connection)
        try:
            self._connection.execute("BEGIN")
            end_workers_in_sight(self._connection)
            reading.now_ms = self._clock.now_ms()
            return look(reading)
        except BROKEN as broken:
            raise StoreFailed(f"the database cannot be read: {broken}") from broken
        finally:
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
