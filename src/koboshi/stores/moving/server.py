"""The end of a move that is a server."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TypeAlias

import psycopg

from koboshi.domain.errors import StoreFailed, StoreRefused
from koboshi.kernel.decode import number, text
from koboshi.kernel.transaction import Value
from koboshi.stores.marks import Mark
from koboshi.stores.migration_scripts import migration_scripts
from koboshi.stores.moving.table_rows import Connection, removal
from koboshi.stores.postgres.migrate import LOCK, newest_mark, own_statements
from koboshi.stores.postgres.schema import bare_tables, behind_tables, rule_names
from koboshi.stores.postgres.statements import statements

_SETTINGS = (
    # A copy takes as long as it takes; other nodes that start meanwhile wait.
    "SET statement_timeout = 0",
    "SET lock_timeout = '60s'",
    "SET idle_in_transaction_session_timeout = 0",
    "SET synchronous_commit = on",
)
ALIVE_MS = 15_000
"""A worker that has given a sign of life more recently may still work."""
_UNSAFE = ("off",)

Rows: TypeAlias = "list[tuple[object, ...]]"


@contextmanager
def connected(url: str) -> Iterator[Connection]:
    """A connection in a transaction that is rolled back unless it was committed. Raises
    StoreFailed where the server cannot be reached or fails, and StoreRefused where it refuses."""
    try:
        with psycopg.connect(url, connect_timeout=10) as server:
            for setting in _SETTINGS:
                server.execute(setting.encode())
            server.commit()
            yield server
            server.rollback()
    except psycopg.OperationalError as error:
        raise StoreFailed(f"the database cannot be used now: {error}") from error
    except psycopg.Error as error:
        raise StoreRefused(f"the database refused: {error}") from error


def unreachable(error: Exception) -> StoreFailed:
    return StoreFailed(f"the database cannot be reached: {error}")


def asked(server: Connection, query: str, **values: Value) -> Rows:
    """The answer to a named query of this store."""
    statement = statements()[query]
    given = [values[name] for name in statement.names]
    cursor = psycopg.RawCursor(server)
    cursor.execute(statement.text.encode(), given)
    return cursor.fetchall() if cursor.description else []


def check_safety(server: Connection, *, accepts_loss: bool) -> None:
    """Raises StoreRefused where the server would lose what it acknowledges, or stores no text."""
    ((fsync, _, encoding),) = asked(server, "server_safety")
    if fsync in _UNSAFE and not accepts_loss:
        raise StoreRefused("the server would lose what it acknowledged: fsync is off")
    if encoding != "UTF8":
        raise StoreRefused(f"the encoding of the database must be UTF8, not {encoding}")


def take_schema(server: Connection) -> None:
    """No node starts on the database, or changes its tables, while the connection lasts."""
    asked(server, "schema_hold", key=LOCK)
    server.commit()


def mark_of(server: Connection) -> Mark | None:
    """What the database says of its rows; None if it says nothing, and they count."""
    if not asked(server, "moves_exist")[0][0]:
        return None
    found = asked(server, "move_state")
    return Mark.of_row(found[0]) if found else None


def set_mark(server: Connection, mark: Mark) -> None:
    asked(server, "move_set", **mark.values())


def has_tables(server: Connection) -> bool:
    return bool(asked(server, "schema_exists")[0][0])


def refuse_use(server: Connection) -> None:
    """Raises StoreRefused for a database that has rows which count, or tables of others."""
    if has_tables(server):
        if number(asked(server, "workers_count")[0][0]):
            raise StoreRefused(
                "a gateway has worked on this database, and its rows are no copy; "
                "give the move an empty database"
            )
    elif number(asked(server, "schema_of_others")[0][0]):
        raise StoreRefused(
            "the database has tables of another program; it was left as it is. "
            "Give koboshi a database of its own"
        )


def begin_empty(server: Connection) -> None:
    """Only the bare tables are there, whatever of ours was there before."""
    if has_tables(server):
        for each in removal(own_statements(), rule_names(migration_scripts().values())):
            server.execute(each.encode())
    for each in bare_tables():
        server.execute(each.encode())


def complete(server: Connection) -> None:
    """All that stands beside the rows, once they are there."""
    for each in (*behind_tables(), *own_statements()):
        server.execute(each.encode())
    asked(server, "schema_note", **newest_mark())


def end_workers(server: Connection, own_home: str) -> None:
    """No worker writes to the database any more: it is refused in its next batch. Raises
    StoreRefused where one of another home has just given a sign of life."""
    asked(server, "workers_lock")
    alive = asked(server, "workers_recent", home=own_home, age_ms=ALIVE_MS)
    if alive:
        nodes = ", ".join(sorted({text(node) for (node,) in alive}))
        raise StoreRefused(f"gateways still work on the database: {nodes}; stop them first")
    asked(server, "workers_bury_all")
