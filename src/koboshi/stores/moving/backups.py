"""Backups of PostgreSQL: the same files that a home in SQLite has, each of one moment."""

from pathlib import Path

from psycopg import IsolationLevel

from koboshi.ports.clock import Clock
from koboshi.stores.faults import CrashPoint
from koboshi.stores.moving.file import write_file
from koboshi.stores.moving.server import asked, connected
from koboshi.stores.moving.table_rows import shapes
from koboshi.stores.sqlite.backups import SqliteBackups


class ServerBackups(SqliteBackups):
    def __init__(self, url: str, home: Path, clock: Clock, crash_point: CrashPoint) -> None:
        super().__init__(home, clock, crash_point)
        self._url = url

    def copy(self, part: Path) -> dict[str, int]:
        """One transaction sees one moment, however long it takes, and holds up no writer."""
        tables = [each.name for each in shapes()]
        with connected(self._url) as server:
            server.isolation_level = IsolationLevel.REPEATABLE_READ
            server.read_only = True
            rows = asked(server, "rows_by_table")
            write_file(part, server, lambda table, _: self.copied(tables.index(table), len(tables)))
        return {str(name): int(str(count)) for name, count in rows}
