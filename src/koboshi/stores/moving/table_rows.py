"""All rows of the kernel's tables, out of one store and into the other, and what proves that they
arrived: how many there are, and a hash of them in the order of their keys.

The tables are read from the schema. What a store has for itself stays behind: an index of words is
made anew, and so is the place up to which it is filled.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, TypeAlias

import apsw
import msgspec
import psycopg

from koboshi.kernel.transaction import Value
from koboshi.stores.postgres.schema import TableShape, dialect, table_shapes
from koboshi.stores.postgres.wire import storable

_LEFT_BEHIND = frozenset({"moves", "search_place"})
_OWN_TABLE = "CREATE TABLE "
_OWN_FUNCTION = "CREATE FUNCTION "

Connection: TypeAlias = "psycopg.Connection[tuple[object, ...]]"
Tell: TypeAlias = Callable[[str, int], None]
"""Told of a table, and of how many rows of it are through."""
ROWS_BETWEEN_WORDS = 1_000


@dataclass(frozen=True, slots=True)
class Carried:
    """What a table holds."""

    rows: int
    hash: str


def shapes() -> tuple[TableShape, ...]:
    """The tables whose rows are carried."""
    return tuple(each for each in table_shapes() if each.name not in _LEFT_BEHIND)


def rows_in_file(file: apsw.Connection, shape: TableShape) -> Iterator[tuple[Value, ...]]:
    """As PostgreSQL stores them: without zeros in texts."""
    for row in file.execute(_select(shape)):
        yield tuple(storable(each) if isinstance(each, str) else each for each in row)


def rows_in_server(server: Connection, shape: TableShape) -> Iterator[tuple[Any, ...]]:
    types = ["int8" if name in shape.numbers else "text" for name in shape.columns]
    with (
        server.cursor() as cursor,
        cursor.copy(f"COPY ({_select(shape)}) TO STDOUT".encode()) as out,
    ):
        out.set_types(types)
        yield from out.rows()


def into_server(server: Connection, file: apsw.Connection, tell: Tell) -> None:
    """Copy all rows into tables that are empty and have nothing that acts on rows."""
    for shape in shapes():
        listed = ", ".join(shape.columns)
        with (
            server.cursor() as cursor,
            cursor.copy(f"COPY {shape.name} ({listed}) FROM STDIN".encode()) as into,
        ):
            for row in _told(rows_in_file(file, shape), shape, tell):
                into.write_row(row)


def into_file(file: apsw.Connection, server: Connection, tell: Tell) -> None:
    """Copy all rows into the tables of a new file, in which no trigger acts."""
    for shape in shapes():
        listed, marks = ", ".join(shape.columns), ", ".join("?" for _ in shape.columns)
        insert = f"INSERT INTO {shape.name} ({listed}) VALUES ({marks})"
        file.executemany(insert, _told(rows_in_server(server, shape), shape, tell))


def carried_in_file(file: apsw.Connection) -> Mapping[str, Carried]:
    return {each.name: _hashed(rows_in_file(file, each)) for each in shapes()}


def carried_in_server(server: Connection) -> Mapping[str, Carried]:
    return {each.name: _hashed(rows_in_server(server, each)) for each in shapes()}


def set_sequences(server: Connection) -> None:
    """The next row of each table gets the number behind the newest."""
    for table, column in dialect().ids.items():
        newest = f"SELECT max({column}) AS newest FROM {table}"
        server.execute(
            f"SELECT setval('{table}_{column}_seq', coalesce(newest, 1), newest IS NOT NULL) "
            f"FROM ({newest}) AS found".encode()
        )


def removal(own: Iterator[str], rules: tuple[str, ...]) -> Iterator[str]:
    """What removes all tables and functions of ours. `own` are the statements that make those
    beside the kernel, and `rules` are the functions of checks and triggers."""
    for statement in own:
        first, paren, rest = statement.partition("(")
        if statement.startswith(_OWN_TABLE):
            yield f"DROP TABLE IF EXISTS {first.removeprefix(_OWN_TABLE).strip()} CASCADE"
        elif statement.startswith(_OWN_FUNCTION):
            named = first.removeprefix(_OWN_FUNCTION) + paren + rest.partition(")")[0]
            yield f"DROP FUNCTION IF EXISTS {named}) CASCADE"
    for shape in table_shapes():
        yield f"DROP TABLE IF EXISTS {shape.name} CASCADE"
    for name in rules:
        yield f"DROP FUNCTION IF EXISTS {name}() CASCADE"


def _select(shape: TableShape) -> str:
    return f"SELECT {', '.join(shape.columns)} FROM {shape.name} ORDER BY {', '.join(shape.key)}"


def _told(
    rows: Iterator[tuple[Any, ...]], shape: TableShape, tell: Tell
) -> Iterator[tuple[Any, ...]]:
    for number, row in enumerate(rows, start=1):
        if number % ROWS_BETWEEN_WORDS == 0:
            tell(shape.name, number)
        yield row


def _hashed(rows: Iterator[tuple[Any, ...]]) -> Carried:
    found, count = blake2b(digest_size=16), 0
    encode = msgspec.json.Encoder().encode
    for row in rows:
        found.update(encode(row))
        count += 1
    return Carried(count, found.hexdigest())
