"""Making the tables in a database, and bringing those of an earlier version up to date.

The first node of a new version changes the database, under a lock that all nodes ask for, in one
transaction: all scripts behind its version (`changes.py`), then the functions, checks and triggers
of the newest schema. The row in `koboshi_schema` says which version the tables have, and which is
the oldest program that may work on them. Changes are additive, so nodes of the version before go on
meanwhile. `shape` is a hash of the statements that make a new database.
"""

from collections.abc import Iterator
from hashlib import blake2b

from koboshi.domain.errors import StoreFailed, StoreRefused
from koboshi.kernel.decode import encoded, number, text
from koboshi.kernel.keys import key_named
from koboshi.kernel.sql import load_queries
from koboshi.kernel.transaction import Value
from koboshi.stores.migration_scripts import migration_scripts
from koboshi.stores.postgres.changes import statements_from
from koboshi.stores.postgres.schema import schema_statements
from koboshi.stores.postgres.wire import (
    BEGIN,
    COMMIT,
    NOTHING,
    Lost,
    Pooled,
    ServerError,
    Wire,
    WireRequest,
)

FIRST_VERSION = 23
"""What the first databases have. They were numbered 1."""
OLDEST_CODE = 31
"""The schema of the oldest program that may work on these tables. A change that such a program
would do harm on raises it, and only when every living node knows it. Those before this one would
tell a person what a sub-agent answers, and its parent nothing."""
SERVER_OLDEST = 140_000
WITHIN_S = 60.0
CHANGED_WITHIN_S = 3_600.0
LOCK = key_named("koboshi:schema")
_PATIENT = (
    WireRequest("SET LOCAL statement_timeout = '60s'", NOTHING),
    WireRequest("SET LOCAL lock_timeout = '60s'", NOTHING),
)
_UNHURRIED = (
    # An index of a large table takes as long as it takes.
    WireRequest("SET LOCAL statement_timeout = 0", NOTHING),
    # Functions may name tables that are made behind them.
    WireRequest("SET LOCAL check_function_bodies = off", NOTHING),
)
_NOT_ALLOWED = "42501"
_PASSING = ("40", "55P03", "57014", "53")
"""Errors that a later start may not meet: a deadlock, a time limit, want of something."""


def bring_up_to_date(wire: Wire) -> None:
    """Make the tables in an empty database, once. Raises StoreRefused for a database of another
    program, of a newer version, or of another state of development; it is unchanged then."""
    if wire.server_version < SERVER_OLDEST:
        raise StoreRefused(f"PostgreSQL 14 or newer is needed, not {wire.server_version // 10_000}")
    try:
        begin = (BEGIN, *_PATIENT, WireRequest("schema_lock", {"key": LOCK}))
        *_, found = wire.round([*begin, WireRequest("schema_exists", NOTHING)], within_s=WITHIN_S)
        if found.rows[0][0]:
            _check(wire)
        else:
            _make(wire)
        wire.round([COMMIT], within_s=WITHIN_S)
    except Lost as error:
        raise StoreFailed(f"the database cannot be used now: {error}") from error
    except ServerError as error:
        if error.state.startswith(_PASSING):
            raise StoreFailed(f"the database cannot be used now: {error}") from error
        raise StoreRefused(f"the tables cannot be made: {error}{_remedy(error)}") from error


def _remedy(error: ServerError) -> str:
    if error.is_pooled:
        return f"; {Pooled(error)}"
    if error.state != _NOT_ALLOWED:
        return ""
    return (
        "; the role that store.url names must own the database, or be allowed to: "
        "GRANT CREATE ON SCHEMA public TO it, and the tables must be its own"
    )


def newest_version() -> int:
    """The version of the schema that this program works with."""
    return max(migration_scripts())


def _make(wire: Wire) -> None:
    if number(wire.one("schema_of_others", within_s=WITHIN_S).rows[0][0]):
        raise StoreRefused(
            "the database has tables of another program; it was left as it is. "
            "Give koboshi a database of its own"
        )
    requests = [WireRequest(each, NOTHING) for each in _all()]
    wire.round([*requests, WireRequest("schema_note", newest_mark())], within_s=WITHIN_S)


def _check(wire: Wire) -> None:
    (row,) = wire.one("schema_read", within_s=WITHIN_S).rows
    version, oldest_code, found = number(row[0]), number(row[1]), text(row[2])
    newest = newest_version()
    if oldest_code > newest:
        raise StoreRefused(
            f"the database was changed by a newer koboshi (schema {version}, this one knows "
            f"{newest}); install that version again"
        )
    if version < newest:
        _change(wire, max(version, FIRST_VERSION))
    elif version == newest and found != shape():
        raise StoreRefused(
            f"the tables of the database are not those of schema {newest}: another state of "
            "development has made them"
        )


def _change(wire: Wire, version: int) -> None:
    """Bring the tables from an earlier version to the newest."""
    statements = statements_from(version, newest_version())
    requests = [*_UNHURRIED, *(WireRequest(each, NOTHING) for each in statements)]
    changed = WireRequest("schema_change", newest_mark())
    wire.round([*requests, changed], within_s=CHANGED_WITHIN_S)


def newest_mark() -> dict[str, Value]:
    """What is noted of a database of the newest version."""
    return {"version": newest_version(), "oldest_code": OLDEST_CODE, "shape": shape()}


def shape() -> str:
    """A hash of all statements that make the tables."""
    return blake2b(encoded(list(_all())).encode(), digest_size=16).hexdigest()


def _all() -> Iterator[str]:
    yield from schema_statements()
    yield from own_statements()


def own_statements() -> Iterator[str]:
    """What makes all that stands beside the tables of the kernel."""
    yield from load_queries("koboshi.stores.postgres", "own_schema.sql").values()
