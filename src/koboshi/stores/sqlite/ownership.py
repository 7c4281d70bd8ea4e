"""Whose the rows of a database are that lies in a home: all of them are that home's. The file has
one owner at a time, and this process is it."""

import apsw

from koboshi.domain.errors import StoreFailed
from koboshi.kernel.sql import load_queries

_OWN = load_queries("koboshi.stores.sqlite", "own.sql")


def rehome(connection: apsw.Connection, home: str) -> None:
    """What the database knows of other homes is of this one: it was brought here, came from a
    backup, or is from before homes had ids. Raises StoreFailed where nothing can be written now."""
    values = {"home": home}
    if not connection.execute(_OWN["other_homes"], values).get:
        return
    try:
        with connection:
            connection.execute(_OWN["workers_rehome"], values)
            connection.execute(_OWN["processes_rehome"], values)
    except (apsw.FullError, apsw.IOError, apsw.BusyError, apsw.LockedError) as error:
        raise StoreFailed(f"the database cannot be taken over now: {error}") from error


def end_workers_in_sight(connection: apsw.Connection) -> None:
    """In a transaction that is rolled back: a reader of a home that no other process owns sees the
    workers that were left there as gone, and changes nothing."""
    connection.execute(_OWN["workers_end_in_sight"])
