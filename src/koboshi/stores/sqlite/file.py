"""Opening the database file: whose it is, which version it has, and what to do when it is damaged.

Only apsw opens it, only here, once at boot: a second `open()` by this process, even to look at the
header, would drop SQLite's locks on it.
"""

import errno
import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import apsw

from koboshi.domain.errors import StoreFailed, StoreRefused
from koboshi.kernel.queries import QUERIES
from koboshi.kernel.sql import load_queries
from koboshi.stores.marks import Mark, refuse_idle_rows
from koboshi.stores.sqlite.migrate import APPLICATION_ID, migrate

DATABASE_NAME = "koboshi.db"
SQLITE_OLDEST = (3, 51, 3)
READER_COUNT = 2
_OWN = load_queries("koboshi.stores.sqlite", "own.sql")

_PRAGMAS = (
    "PRAGMA synchronous = FULL",
    "PRAGMA fullfsync = 1",
    "PRAGMA checkpoint_fullfsync = 1",
    "PRAGMA foreign_keys = ON",
    "PRAGMA trusted_schema = OFF",
    "PRAGMA cell_size_check = ON",
    "PRAGMA mmap_size = 0",
    "PRAGMA temp_store = MEMORY",
    # What was deleted or replaced is overwritten: erased words are in no free page.
    "PRAGMA secure_delete = ON",
    "PRAGMA journal_size_limit = 67108864",
    # Small checkpoints: the checkpoint is the latency tail, and a small log is a fast boot.
    "PRAGMA wal_autocheckpoint = 500",
)

BROKEN = (apsw.IOError, apsw.CorruptError, apsw.NotADBError, apsw.CantOpenError)
"""Nothing that a later look would mend: this process must end."""

_PASSING = frozenset(
    {errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EIO, errno.ENOSPC, errno.EDQUOT}
)
"""What the machine lacks or fails at, now; a later start may find it well."""


def _count_no_memory() -> None:
    """SQLite counts every byte that it takes, under a lock. The gateway never asks for the sum, and
    it costs a twentieth of a turn. The library can be told so only while it has no connection."""
    if apsw.connections():
        return
    apsw.shutdown()
    apsw.config(apsw.SQLITE_CONFIG_MEMSTATUS, 0)
    apsw.initialize()


_count_no_memory()


class Damaged(StoreRefused):
    """The file is not a database any more, or pages of it are broken."""


def open_writer(path: Path, *, may_be_idle: bool = False) -> apsw.Connection:
    """The connection that writes, on a database of the newest version. One that `may_be_idle` has
    rows that do not count: only a move looks at those.

    Raises StoreRefused for a file of another program, of a newer version, or whose rows were moved
    elsewhere, which stays untouched, Damaged for a broken one, and StoreFailed where the disk is
    full or fails.
    """
    if sqlite_version() < SQLITE_OLDEST:
        raise StoreRefused(
            f"SQLite {apsw.sqlite_lib_version()} can lose data; 3.51.3 or newer is needed"
        )
    try:
        with ExitStack() as undo, _blaming_the_machine(path):
            connection = _connect(path)
            # What is not used is closed at once, and its log is not moved into it: it may be
            # a foreign file, or damaged, and another file may take its place.
            undo.callback(connection.close)
            connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
            _check_owner(connection, path)
            connection.execute("PRAGMA page_size = 8192")
            connection.execute("PRAGMA journal_mode = WAL")
            for pragma in _PRAGMAS:
                connection.execute(pragma)
            migrate(connection, path)
            if not may_be_idle:
                refuse_idle_rows(str(path), mark_in(connection))
            _keep_name(path)
            connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 0)
            undo.pop_all()
    except (apsw.NotADBError, apsw.CorruptError) as error:
        raise Damaged(f"{path} is damaged: {error}") from error
    except apsw.CantOpenError as error:
        raise StoreRefused(f"{path} cannot be opened: {error}") from error
    except (apsw.ReadOnlyError, apsw.PermissionsError, apsw.AuthError) as error:
        raise StoreRefused(f"{path} cannot be written: {error}") from error
    except (apsw.FullError, apsw.IOError, apsw.BusyError, apsw.LockedError) as error:
        # Nothing is wrong with the file: once there is room, or the lock is gone, it is usable.
        raise StoreFailed(f"{path} cannot be used now: {error}") from error
    except OSError as error:
        if error.errno not in _PASSING:
            raise
        raise StoreFailed(f"{path} cannot be used now: {error}") from error
    return connection


def mark_in(connection: apsw.Connection) -> Mark | None:
    """What the file says of its rows; None if it says nothing, and they count."""
    found = connection.execute(QUERIES["move_state"]).fetchall()
    return Mark.of_row(found[0]) if found else None


def open_reader(path: Path) -> apsw.Connection:
    """A connection that only looks, at a file that the writer has opened. Raises StoreFailed."""
    try:
        connection = _connect(path)
        connection.execute("PRAGMA query_only = ON")
        connection.execute("PRAGMA wal_autocheckpoint = 0")
        connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
    except apsw.Error as error:
        raise StoreFailed(f"{path} cannot be used now: {error}") from error
    return connection


def forget_log(path: Path) -> bool:
    """Move the log into the database and truncate it. False if another connection was in the way
    for too long."""
    connection = open_reader(path)
    try:
        # A connection that has read nothing does not know of the log.
        connection.execute("PRAGMA schema_version").fetchall()
        connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
    except (apsw.BusyError, apsw.LockedError):
        return False
    finally:
        connection.close()
    return True


@contextmanager
def _blaming_the_machine(path: Path) -> Iterator[None]:
    """A file that cannot be opened may be a wrong one; but not while nothing can be opened here,
    for lack of descriptors for example. Raises OSError then. SQLite does not tell the two apart."""
    try:
        yield
    except apsw.CantOpenError as error:
        try:
            os.close(os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC))
        except OSError as machine:
            if machine.errno in _PASSING:
                raise machine from error
        raise


def _connect(path: Path) -> apsw.Connection:
    with suppress(OSError):
        # SQLite would make it readable by others; its log gets the mode that the file has.
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
    connection = apsw.Connection(str(path), statementcachesize=256)
    connection.set_busy_timeout(5_000)
    # Without it the planner looks at bound values to see whether a partial index fits, and then
    # prepares the statement anew for every value: ten times the cost of running it.
    connection.config(apsw.SQLITE_DBCONFIG_ENABLE_QPSG, 1)
    return connection


def sqlite_version() -> tuple[int, ...]:
    return tuple(int(number) for number in apsw.sqlite_lib_version().split("."))


def _check_owner(connection: apsw.Connection, path: Path) -> None:
    application, version = connection.pragma("application_id"), connection.pragma("user_version")
    tables = connection.execute(_OWN["tables_count"]).get
    if application == APPLICATION_ID or not (application or version or tables):
        return
    raise StoreRefused(
        f"{path} is a database of another program; it was left as it is. "
        "Move it away or choose another --home"
    )


def _keep_name(path: Path) -> None:
    """A power cut may lose the name of a new file unless its folder is flushed, too."""
    descriptor = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
