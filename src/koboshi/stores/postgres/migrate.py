"""Making the tables in a database, and knowing which version it has.

The first node of a new version changes the database, under a lock that all nodes ask for. The row
in `koboshi_schema` says which version the tables have, and which is the oldest program that may
work on them. `shape` is a hash of the statements that made them.
"""

from collections.abc import Iterator
from hashlib import blake2b

from koboshi.domain.errors import StoreFailed, StoreRefused
from koboshi.kernel.decode import encoded, number, text
from koboshi.kernel.keys import key_named
from koboshi.kernel.sql import load_queries
from koboshi.kernel.transaction import Value
from koboshi.stores.postgres.schema import schema_statements
from koboshi.stores.postgres.wire import (
    BEGIN,
    COMMIT,
    NOTHING,
    Lost,
    ServerError,
    Wire,
    WireRequest,
)

VERSION = 1
OLDEST_CODE = 1
"""The oldest version of the program that may work on these tables."""
SERVER_OLDEST = 140_000
WITHIN_S = 60.0
_LOCK = key_named("koboshi:schema")
_PATIENT = (
    WireRequest("SET LOCAL statement_timeout = '60s'", NOTHING),
    WireRequest("SET LOCAL lock_timeout = '60s'", NOTHING),
)


def bring_up_to_date(wire: Wire) -> None:
    """Make the tables in an empty database, once. Raises StoreRefused for a database of another
    program, of a newer version, or of another state of development; it is unchanged then."""
    if wire.server_version < SERVER_OLDEST:
        raise StoreRefused(f"PostgreSQL 14 or newer is needed, not {wire.server_version // 10_000}")
    try:
        begin = (BEGIN, *_PATIENT, WireRequest("schema_lock", {"key": _LOCK}))
        *_, found = wire.round([*begin, WireRequest("schema_exists", NOTHING)], within_s=WITHIN_S)
        if found.rows[0][0]:
            _check(wire)
        else:
            _make(wire)
        wire.round([COMMIT], within_s=WITHIN_S)
    except Lost as error:
        raise StoreFailed(f"the database cannot be used now: {error}") from error
    except ServerError as error:
        raise StoreRefused(f"the tables cannot be made: {error}") from error


def _make(wire: Wire) -> None:
    if number(wire.one("schema_of_others", within_s=WITHIN_S).rows[0][0]):
        raise StoreRefused(
            "the database has tables of another program; it was left as it is. "
            "Give koboshi a database of its own"
        )
    made: dict[str, Value] = {"version": VERSION, "oldest_code": OLDEST_CODE, "shape": shape()}
    requests = [WireRequest(each, NOTHING) for each in _all()]
    wire.round([*requests, WireRequest("schema_note", made)], within_s=WITHIN_S)


def _check(wire: Wire) -> None:
    (row,) = wire.one("schema_read", within_s=WITHIN_S).rows
    version, oldest_code, found = number(row[0]), number(row[1]), text(row[2])
    if oldest_code > VERSION:
        raise StoreRefused(
            f"the database was changed by a newer koboshi (schema {version}, this one knows "
            f"{VERSION}); install that version again"
        )
    if version == VERSION and found != shape():
        raise StoreRefused(
            f"the tables of the database are not those of schema {VERSION}: another state of "
            "development has made them"
        )


def shape() -> str:
    """A hash of all statements that make the tables."""
    return blake2b(encoded(list(_all())).encode(), digest_size=16).hexdigest()


def _all() -> Iterator[str]:
    yield from schema_statements()
    yield from load_queries("koboshi.stores.postgres", "own_schema.sql").values()
