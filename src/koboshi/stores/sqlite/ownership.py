"""Whose the rows of a database are that lies in a home: all of them are that home's. The file has
one owner at a time, and this process is it."""

import apsw

from koboshi.domain.errors import StoreFailed

_HOMES = ("workers", "processes")


def adopt(connection: apsw.Connection, home: str) -> None:
    """What the database knows of other homes is of this one: it was brought here, came from a
    backup, or is from before homes had ids. Raises StoreFailed where nothing can be written now."""
    for table in _HOMES:
        is_other = f"SELECT EXISTS (SELECT 1 FROM {table} WHERE home <> ?)"
        if not connection.execute(is_other, (home,)).get:
            continue
        try:
            connection.execute(f"UPDATE {table} SET home = ?1 WHERE home <> ?1", (home,))
        except (apsw.FullError, apsw.IOError, apsw.BusyError, apsw.LockedError) as error:
            raise StoreFailed(f"the database cannot be taken over now: {error}") from error


def end_workers_in_sight(connection: apsw.Connection) -> None:
    """In a transaction that is rolled back: who looks at a home that nobody else owns sees the
    workers that were left there as gone, and changes nothing."""
    connection.execute(
        "UPDATE workers SET ended_ms = heartbeat_ms, ended_how = 'killed' WHERE ended_ms IS NULL"
    )
