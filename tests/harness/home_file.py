"""The database of a home, looked at or changed while no store has it, or beside one."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import apsw


@contextmanager
def opened(home: Path, flags: int = apsw.SQLITE_OPEN_READONLY) -> Iterator[apsw.Connection]:
    connection = apsw.Connection(str(home / "koboshi.db"), flags=flags)
    connection.set_busy_timeout(10_000)
    try:
        yield connection
    finally:
        connection.close()


def numbers(connection: apsw.Connection, query: str, *values: int) -> list[tuple[int, ...]]:
    return [tuple(int(str(each or 0)) for each in row) for row in connection.execute(query, values)]


def number(connection: apsw.Connection, query: str, *values: int) -> int:
    ((found,),) = numbers(connection, query, *values)
    return found
