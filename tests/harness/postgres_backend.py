"""Homes on PostgreSQL: each has a database of its own, made once for a test process and emptied
for the next test.

A trigger of the tests refuses every write to a session whose key the transaction does not hold: a
verb that forgets one is found by any test that calls it.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import psycopg
from psycopg import pq, sql
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from koboshi.clock import SystemClock
from koboshi.domain.errors import StoreFailed
from koboshi.domain.recovery import BootConfig
from koboshi.ports.clock import Clock
from koboshi.ports.store import Store
from koboshi.ports.wakeups import Wakeups
from koboshi.stores.options import StoreOptions
from koboshi.stores.postgres.schema import dialect, table_names
from koboshi.stores.postgres.statements import statements
from koboshi.stores.postgres.store import PostgresStore, open_postgres
from koboshi.stores.postgres.times import OwnTime
from koboshi.stores.postgres.wire import Wire
from tests.harness.backends import Codes, Limits, options_of
from tests.harness.named_keys import KEY_OF, NOT_NAMED
from tests.harness.postgres import server_url
from tests.harness.rows import ORDERED_BY, Rows

OPTIONS = StoreOptions(lock_wait_seconds=0, accepts_loss=True)
"""The server of the tests does not flush; a gateway would refuse it."""

VACUUM_EVERY = 200

_HELD = """
CREATE FUNCTION key_is_held(key bigint) RETURNS boolean LANGUAGE sql STABLE AS $$
    SELECT key IS NULL OR coalesce(current_setting('koboshi.behind_its_back', true), '') = 'on'
        OR EXISTS (
        SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND granted AND objsubid = 1
            AND pid = pg_backend_pid() AND classid = ((key >> 32) & 4294967295)::oid
            AND objid = (key & 4294967295)::oid) $$
"""
_SCANNED = re.compile(r"Seq Scan on (\w+)")
_PARAMETER = re.compile(r"\$\d+")
_ROWS = {"INSERT": ("NEW",), "UPDATE": ("OLD", "NEW"), "DELETE": ("OLD",)}


class KeptWire(Wire):
    """A connection that outlives its store, if it is sound."""

    keep_in: "list[KeptWire] | None" = None

    def close(self) -> None:
        if self.keep_in is not None and self.is_idle:
            self.keep_in.append(self)
        else:
            super().close()


def _emptying() -> Iterator[str]:
    yield "SET session_replication_role = replica"
    for table in (*table_names(), "search_words", "search_bounds"):
        yield f"DELETE FROM {table}"
    # To restart a sequence by ALTER makes a new file of each, and every plan anew.
    starts = (f"setval('{table}_{name}_seq', 1, false)" for table, name in dialect().ids.items())
    yield f"SELECT {', '.join(starts)}"
    yield "SET session_replication_role = DEFAULT"


class Database:
    """A database of the test server, and a connection to it past any store."""

    def __init__(self, name: str, server_at: str | None = None) -> None:
        place = server_url() if server_at is None else server_at
        self.url = make_conninfo(place, dbname=name)
        with psycopg.connect(place, autocommit=True) as server:
            server.execute(sql.SQL("DROP DATABASE IF EXISTS {}").format(sql.Identifier(name)))
            server.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
        self._past: psycopg.Connection | None = None
        self._is_made = False
        self._is_used = False
        self._times = 0
        self._emptied = sql.SQL("; ").join(map(sql.SQL, _emptying()))
        self.idle: list[KeptWire] = []

    @property
    def address(self) -> str:
        """As a configuration names it."""
        place = conninfo_to_dict(self.url)
        return f"postgresql://{place['user']}@/{place['dbname']}?host={place['host']}"

    @property
    def past(self) -> "psycopg.Connection[tuple[object, ...]]":
        if self._past is None or self._past.closed:
            if self._past is not None:
                self._past.close()
            self._past = psycopg.connect(self.url, autocommit=True)
            self._past.execute("SET koboshi.behind_its_back = on")
        return self._past

    def opened(self) -> None:
        """A store has made the tables, if there were none."""
        self._is_used = True
        if not self._is_made:
            self._is_made = True
            refuse_unlocked(self.past)

    def empty(self) -> None:
        if self._is_used:
            # Truncating takes ten times as long, and makes every connection plan anew.
            self.past.execute(self._emptied)
            self._is_used = False
            self._times += 1
            if self._times % VACUUM_EVERY == 0:
                self.past.execute("VACUUM")

    def rows(self) -> Rows:
        """Every row that is committed."""
        found = {}
        for table, order in ORDERED_BY.items():
            asked = sql.SQL("SELECT * FROM {} ORDER BY {}").format(
                sql.Identifier(table), sql.Identifier(order)
            )
            cursor = self.past.execute(asked)
            names = [column.name for column in cursor.description or ()]
            found[table] = [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]
        return Rows(**found, damage=[])

    def close(self) -> None:
        """No connection of ours is left."""
        if self._past is not None:
            self._past.close()
        for wire in self.idle:
            wire.keep_in = None
            wire.close()
        self.idle.clear()

    def connect(self) -> "KeptWire":
        """A connection of an earlier test, or a new one: a server that has compiled no function
        and made no plan yet takes most of the time of a test for them."""
        while self.idle:
            wire = self.idle.pop()
            if wire.is_idle:
                return wire
        wire = KeptWire.connect(self.url, statements(), SystemClock())
        wire.keep_in = self.idle
        return wire


def refuse_unlocked(connection: "psycopg.Connection[tuple[object, ...]]") -> None:
    """From now on a write to a session needs the key of its chat."""
    run = connection.execute
    run(_HELD.encode())
    for table, key_of in KEY_OF.items():
        for event, rows in _ROWS.items():
            asked = " AND ".join(f"key_is_held({key_of.format(row=row)})" for row in rows)
            name, row = f"named_{table}_{event}".lower(), rows[-1]
            run(
                f"CREATE FUNCTION {name}() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
                f"IF NOT ({asked}) THEN RAISE EXCEPTION 'the key of a row of {table} {NOT_NAMED}'; "
                f"END IF; RETURN {row}; END $$".encode()
            )
            run(
                f"CREATE TRIGGER {name} BEFORE {event} ON {table} "
                f"FOR EACH ROW EXECUTE FUNCTION {name}()".encode()
            )


class Databases:
    """Those of this test process. One that is given back is emptied before it is used again."""

    def __init__(self) -> None:
        self._free: list[Database] = []
        self._count = 0

    def take(self) -> Database:
        if self._free:
            database = self._free.pop()
            database.empty()
            return database
        self._count += 1
        return Database(f"koboshi_test_{self._count}")

    def give_back(self, database: Database) -> None:
        self._free.append(database)


DATABASES = Databases()


class PostgresBackend:
    def __init__(
        self,
        folder: Path,
        *,
        database: Database | None = None,
        connect: Callable[[], Wire] | None = None,
        node: str = "",
    ) -> None:
        """On a database of its own, or one that it shares with others, where it may `connect` in
        its own way and have a name."""
        self._folder = folder
        self._options = replace(OPTIONS, node=node)
        self._codes = Codes()
        self._is_shared = database is not None
        self._database = DATABASES.take() if database is None else database
        self._connect = self._database.connect if connect is None else connect
        folder.mkdir(parents=True, exist_ok=True)

    async def open(
        self,
        world: BootConfig,
        clock: Clock,
        wakeups: Wakeups,
        limits: Limits,
        on_failure: Callable[[StoreFailed], None],
    ) -> PostgresStore:
        store = await open_postgres(
            self._database.url,
            self._folder,
            world=world,
            clock=clock,
            wakeups=wakeups,
            options=options_of(self._options, limits, self._codes),
            on_failure=on_failure,
            time=OwnTime(clock),
            connect=self._connect,
        )
        self._database.opened()
        return store

    async def kill(self, store: Store) -> None:
        """What is not committed by now is gone with the connections."""
        await store.close()

    def rows(self) -> Rows:
        return self._database.rows()

    def sql(self, *statements: str) -> list[tuple[object, ...]]:
        found: list[tuple[object, ...]] = []
        for statement in statements:
            cursor = self._database.past.execute(statement.encode())
            found = cursor.fetchall() if cursor.description else []
        return found

    @property
    def database(self) -> Database:
        return self._database

    def refusal_of(self, statement: str) -> str | None:
        """Why the server does not understand a statement; None if it does."""
        asked = self._database.past.pgconn.prepare(b"", statement.encode())
        return asked.get_error_message() if asked.status == pq.ExecStatus.FATAL_ERROR else None

    def plan_of(self, query: str) -> str:
        """The plan of a named query for any values."""
        statement = statements()[query]
        past = self._database.past
        past.execute("SET plan_cache_mode = force_generic_plan")
        past.execute("SET enable_seqscan = off")
        past.execute(f"PREPARE looked_at AS {statement.text}".encode())
        try:
            nothing = ", ".join("NULL" for _ in set(_PARAMETER.findall(statement.text)))
            given = f"({nothing})" if nothing else ""
            rows = past.execute(f"EXPLAIN EXECUTE looked_at{given}".encode()).fetchall()
        finally:
            past.execute("DEALLOCATE looked_at")
        return "\n".join(str(row[0]) for row in rows)

    def tables_scanned(self, query: str) -> set[str]:
        """The tables that a named query looks through as a whole."""
        return set(_SCANNED.findall(self.plan_of(query)))

    def done(self) -> None:
        if not self._is_shared:
            DATABASES.give_back(self._database)
