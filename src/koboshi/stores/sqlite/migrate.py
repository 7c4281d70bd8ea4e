"""Bringing the database to the newest schema.

`schema.sql` is always the newest whole schema: a new database is made by it alone. A database of
an earlier version is changed by the numbered scripts in `migrations/`, in order. Both ways end in
the same schema, and a test proves it.

A migration cannot lose anything. The database is copied into `backups/` first. All scripts and the
new version number are one transaction, so a kill at any instruction leaves the old version whole.
Foreign keys are switched off before that transaction begins, because SQLite ignores the switch
inside one and a script may have to replace a table that others refer to. They are checked before
the commit.
"""

import os
from contextlib import suppress
from importlib.resources import files
from pathlib import Path

import apsw

from koboshi.domain.errors import StoreRefused
from koboshi.kernel.keys import chat_key
from koboshi.stores.migration_scripts import FIRST_VERSION, migration_scripts
from koboshi.stores.sqlite.plain_checks import plain_checks

APPLICATION_ID = 0x6B6F626F  # "kobo"
BACKUPS_NAME = "backups"
PAGES_AT_ONCE = 1_024


def newest_version() -> int:
    """The version of the schema that this program works with."""
    return max(migration_scripts(), default=FIRST_VERSION)


def migrate(connection: apsw.Connection, path: Path, *, keeps_copy: bool = True) -> None:
    """Bring the schema to the newest version: all of it, or nothing.

    Raises StoreRefused for a database of a newer version, and for one whose rows a script would
    leave without what they refer to. The file is unchanged then.
    """
    version, newest = connection.pragma("user_version"), newest_version()
    if version > newest:
        raise StoreRefused(
            f"{path} was written by a newer koboshi (schema {version}, this one knows {newest}); "
            "install that version again"
        )
    if version == newest:
        return
    if version and keeps_copy:
        _copy(connection, path.parent / BACKUPS_NAME, f"before-schema-{newest}.db")
    connection.pragma("foreign_keys", False)
    # A script may replace a table that triggers of others name: the new one gets its name while
    # they still look for it.
    connection.pragma("legacy_alter_table", True)
    connection.create_scalar_function("chat_key", _chat_key, 2, deterministic=True)
    connection.create_scalar_function("plain_checks", _plain_checks, 1, deterministic=True)
    try:
        _change(connection, path, version, newest)
    finally:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        connection.create_scalar_function("chat_key", None, 2)
        connection.create_scalar_function("plain_checks", None, 1)
        connection.pragma("legacy_alter_table", False)
        connection.pragma("foreign_keys", True)
    # The schema is the largest commit of all. In the log it would take the room that is kept back
    # for a full disk, when the log is emptied there.
    with suppress(apsw.BusyError):
        connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)


def _chat_key(*place: object) -> int:
    """For a script: the key of a channel and a chat."""
    channel, chat = place
    return chat_key(str(channel), str(chat))


def _plain_checks(*texts: object) -> str:
    """For a script: the text of a table without lists."""
    (text,) = texts
    return plain_checks(str(text))


def _change(connection: apsw.Connection, path: Path, version: int, newest: int) -> None:
    connection.execute("BEGIN EXCLUSIVE")
    for script in _scripts_from(version):
        # Fetched, so that a statement in it that gives rows does not end it.
        connection.execute(script).fetchall()
    lost = connection.execute("PRAGMA foreign_key_check").fetchall()
    if lost:
        raise StoreRefused(
            f"{path} cannot be brought from schema {version} to {newest}: {len(lost)} rows of "
            f"{lost[0][0]} refer to rows that are not there. The file was left as it is; install "
            "the version that wrote it again and report this"
        )
    connection.pragma("application_id", APPLICATION_ID)
    connection.pragma("user_version", newest)
    connection.execute("COMMIT")


def _scripts_from(version: int) -> list[str]:
    if not version:
        own = files("koboshi.stores.sqlite").joinpath("own_schema.sql")
        kernel = files("koboshi.kernel").joinpath("schema.sql")
        return [plain_checks(kernel.read_text(encoding="utf-8")), own.read_text(encoding="utf-8")]
    scripts = migration_scripts()
    return [scripts[number] for number in sorted(scripts) if number > version]


def _copy(connection: apsw.Connection, folder: Path, name: str) -> None:
    """Keep the database as it is now. It gets its name when it is whole, and takes the place of a
    copy that an earlier attempt left."""
    if not folder.exists():
        folder.mkdir(mode=0o700)
        _flush(folder.parent)
    part = folder / f"{name}.part"
    part.unlink(missing_ok=True)
    os.close(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
    target = apsw.Connection(str(part))
    try:
        with target.backup("main", connection, "main") as copying:
            while not copying.done:
                copying.step(PAGES_AT_ONCE)
        # A backup is one file: a copy in the mode of the original would want a log beside it.
        target.pragma("journal_mode", "DELETE")
    finally:
        target.close()
    _flush(part)
    os.replace(part, folder / name)
    _flush(folder)


def _flush(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
