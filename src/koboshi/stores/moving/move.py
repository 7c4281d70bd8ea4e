"""`koboshi move`: all rows go from the file in the home to a server, or back.

Theory of operation. The home is locked, and the server lets no node start meanwhile. The rows are
copied and compared; the copy is committed as *arriving*. Then the end that they come from is marked
as *moved*, and last the copy is *live*. A process that is killed anywhere leaves one live end, or
none, and a repeated move goes on: while the old end is live, it copies again; once that is marked,
only the last step is left, which the id of the move allows to be made once.
"""

import secrets
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from psycopg import IsolationLevel

from koboshi.domain.errors import StoreRefused
from koboshi.ports.clock import Clock
from koboshi.stores.faults import CrashPoint
from koboshi.stores.home_id import home_id
from koboshi.stores.lock import lock_now
from koboshi.stores.marks import Mark, MoveState, refuse_idle_rows
from koboshi.stores.moving import file as file_end
from koboshi.stores.moving import server as server_end
from koboshi.stores.moving.table_rows import (
    Carried,
    Connection,
    Tell,
    carried_in_file,
    carried_in_server,
    into_server,
    set_sequences,
)
from koboshi.stores.postgres.migrate import bring_up_to_date
from koboshi.stores.postgres.statements import statements
from koboshi.stores.postgres.wire import Lost, Wire
from koboshi.stores.sqlite.file import DATABASE_NAME, open_writer
from koboshi.stores.sqlite.ownership import rehome
from koboshi.stores.sqlite.quarantine import refuse_half_restored

WHO = "koboshi move"


@dataclass(frozen=True, slots=True, kw_only=True)
class MovedRows:
    place: str
    """Where the rows count from now on."""
    rows: Mapping[str, int]
    """How many of each table were copied; empty where an earlier attempt had copied them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mover:
    """Moves the rows of one home. Its methods raise HomeHeld while a gateway runs, StoreRefused
    where the rows cannot be moved, and StoreFailed where they cannot be moved now."""

    home: Path
    url: str
    clock: Clock
    crash_point: CrashPoint
    accepts_loss: bool = False
    tell: Tell = lambda _table, _rows: None

    @property
    def path(self) -> Path:
        return self.home / DATABASE_NAME

    def to_server(self) -> MovedRows:
        with ExitStack() as stack:
            server = self._begun(stack)
            here, there = file_end.mark_of_home(self.home), server_end.mark_of(server)
            if here is not None and here.state is MoveState.MOVED:
                self._refuse_other(there, here)
                rows: Mapping[str, Carried] = {}
            else:
                refuse_idle_rows(str(self.path), here)
                here, rows = self._copied_to_server(server, there)
                self.crash_point.reach("move.mark", "before")
                file_end.set_mark(self.home, here)
                self.crash_point.reach("move.mark", "after")
            self._finish_server(server, here)
        return MovedRows(place=self.url, rows=_counts(rows))

    def to_file(self) -> MovedRows:
        with ExitStack() as stack:
            server = self._begun(stack, is_ours=True)
            here, there = file_end.mark_of_home(self.home), server_end.mark_of(server)
            if there is not None and there.state is MoveState.MOVED:
                self._refuse_other(here, there)
                rows: Mapping[str, Carried] = {}
            else:
                refuse_idle_rows(self.url, there)
                self._refuse_counting_file(here)
                there, rows = self._copied_to_file(server)
                self.crash_point.reach("move.mark", "before")
                server_end.set_mark(server, there)
                server.commit()
                self.crash_point.reach("move.mark", "after")
            file_end.set_mark(self.home, self._mark(there.move_id, MoveState.LIVE, self.url))
            self.crash_point.reach("move.live", "after")
        return MovedRows(place=str(self.path), rows=_counts(rows))

    def _begun(self, stack: ExitStack, *, is_ours: bool = False) -> Connection:
        """The home is ours, and the server waits for us."""
        lock = lock_now(self.home, clock=self.clock, who=WHO)
        stack.callback(lock.release)
        refuse_half_restored(self.home)
        if is_ours:
            self._bring_up_to_date()
        server = stack.enter_context(server_end.connected(self.url))
        server_end.check_safety(server, accepts_loss=self.accepts_loss)
        server_end.take_schema(server)
        return server

    def _copied_to_server(
        self, server: Connection, there: Mark | None
    ) -> tuple[Mark, Mapping[str, Carried]]:
        """Returns what is to be marked at the file, and what was copied."""
        if not self.path.exists():
            raise StoreRefused(f"no gateway has run in {self.home}: there is nothing to move")
        if there is None or there.state is MoveState.LIVE:
            server_end.refuse_use(server)
        self.crash_point.reach("move.copy", "before")
        file = open_writer(self.path)
        try:
            rehome(file, home_id(self.home))
            server_end.begin_empty(server)
            into_server(server, file, self.tell)
            set_sequences(server)
            server_end.complete(server)
            carried = carried_in_file(file)
        finally:
            file.close()
        file_end.refuse_difference(dict(carried_in_server(server)), dict(carried))
        move_id = secrets.token_hex(8)
        server_end.set_mark(server, self._mark(move_id, MoveState.ARRIVING, str(self.path)))
        server.commit()
        self.crash_point.reach("move.copy", "after")
        return self._mark(move_id, MoveState.MOVED, self.url), carried

    def _finish_server(self, server: Connection, here: Mark) -> None:
        server_end.set_mark(server, self._mark(here.move_id, MoveState.LIVE, str(self.path)))
        server.commit()
        self.crash_point.reach("move.live", "after")

    def _copied_to_file(self, server: Connection) -> tuple[Mark, Mapping[str, Carried]]:
        """Returns what is to be marked at the server, in the transaction that was copied from."""
        server.commit()
        server.isolation_level = IsolationLevel.REPEATABLE_READ
        self.crash_point.reach("move.copy", "before")
        server_end.end_workers(server, home_id(self.home))
        move_id = secrets.token_hex(8)
        arriving = self._mark(move_id, MoveState.ARRIVING, self.url)
        part = self.home / file_end.ARRIVING_NAME
        carried = file_end.write_file(part, server, self.tell, arriving)
        file_end.put_in_place(self.home, self.clock.now_ms())
        self.crash_point.reach("move.copy", "after")
        return self._mark(move_id, MoveState.MOVED, str(self.path)), carried

    def _refuse_other(self, copy: Mark | None, moved: Mark) -> None:
        """Raises StoreRefused unless the copy is that of the move, and is not moved on."""
        if copy is None or copy.move_id != moved.move_id:
            raise StoreRefused(f"the rows were moved to {moved.place}, and are not here")
        if copy.state is MoveState.MOVED:
            raise StoreRefused(f"the rows were moved on to {copy.place}")

    def _refuse_counting_file(self, here: Mark | None) -> None:
        if self.path.exists() and (here is None or here.state is MoveState.LIVE):
            raise StoreRefused(
                f"{self.path} has rows that count for themselves; move the file away first"
            )

    def _bring_up_to_date(self) -> None:
        try:
            wire = Wire.connect(self.url, statements(), self.clock)
        except Lost as error:
            raise server_end.unreachable(error) from error
        try:
            bring_up_to_date(wire)
        finally:
            wire.close()

    def _mark(self, move_id: str, state: MoveState, place: str) -> Mark:
        return Mark(move_id=move_id, state=state, place=place, at_ms=self.clock.now_ms())


def _counts(carried: Mapping[str, Carried]) -> dict[str, int]:
    return {name: each.rows for name, each in carried.items()}
