"""Backups of PostgreSQL: files of one moment, which every store can be made of again."""

from functools import partial
from pathlib import Path

import pytest

from koboshi.clock import SystemClock
from koboshi.domain.errors import StoreRefused
from koboshi.ports.backups import BackupStanding, BackupState
from koboshi.stores.faults import CrashPoint
from koboshi.stores.moving.backups import ServerBackups
from koboshi.stores.moving.restoring import restore_to_server
from koboshi.stores.moving.server import connected
from koboshi.stores.moving.table_rows import carried_in_file, carried_in_server
from koboshi.stores.sqlite.backup_check import prove
from koboshi.stores.sqlite.file import open_writer
from koboshi.stores.sqlite.restoring import restore_backup
from tests.harness.homes import Home
from tests.harness.polling import until
from tests.harness.postgres_backend import Database, PostgresBackend
from tests.harness.victim import open_here


async def made(backups: ServerBackups, to: str = "") -> BackupStanding:
    assert backups.begin(to, 0)
    over = (BackupState.MADE, BackupState.FAILED)
    await until(lambda: (found := backups.standing()) and found.state in over, "it has ended")
    standing = backups.standing()
    assert standing is not None
    return standing


def backups_of(database: Database, home: Path, crash_at: str = "") -> ServerBackups:
    return ServerBackups(database.url, home, SystemClock(), CrashPoint(crash_at))


async def with_an_answer_owed(database: Database, path: Path) -> Home:
    home = Home(backend=PostgresBackend(path, database=database))
    await home.boot()
    await home.answer(await home.work_on(chat="ann"), "answer to ann")
    return home


async def test_a_backup_is_the_file_of_one_moment(database: Database, tmp_path: Path) -> None:
    home = await with_an_answer_owed(database, tmp_path)
    backups = backups_of(database, tmp_path)
    with connected(database.url) as server:
        there = dict(carried_in_server(server))

    standing = await made(backups)

    assert standing.state is BackupState.MADE, standing.trouble
    assert prove(Path(standing.file)).rows == standing.rows
    assert (standing.rows["turns"], standing.rows["outbox"]) == (1, 1)
    file = open_writer(Path(standing.file))
    assert dict(carried_in_file(file)) == there
    file.close()
    await home.store.close()


async def test_what_is_committed_meanwhile_stays_out(
    database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = await with_an_answer_owed(database, tmp_path)
    backups = backups_of(database, tmp_path)
    monkeypatch.setattr("koboshi.stores.moving.table_rows.ROWS_BETWEEN_WORDS", 1)

    def copied(_self: ServerBackups, _done: int, _pages: int) -> None:
        database.past.execute("INSERT INTO zones VALUES ('c', 'ann', 'UTC') ON CONFLICT DO NOTHING")

    monkeypatch.setattr(ServerBackups, "copied", copied)
    standing = await made(backups)

    assert standing.state is BackupState.MADE, standing.trouble
    assert database.past.execute("SELECT count(*) FROM zones").fetchone() == (1,)
    file = open_writer(Path(standing.file))
    assert carried_in_file(file)["zones"].rows == 0
    file.close()
    await home.store.close()


async def test_a_backup_of_the_server_is_restored_into_a_home(
    database: Database, tmp_path: Path
) -> None:
    home = await with_an_answer_owed(database, tmp_path / "there")
    standing = await made(backups_of(database, tmp_path / "there"))
    await home.store.close()
    (tmp_path / "here").mkdir()

    done = await restore_backup(tmp_path / "here", Path(standing.file), clock=SystemClock())

    assert done.held == 1, "it may have arrived since"
    here = await open_here(tmp_path / "here")
    assert [row["text"] for row in here.rows().outbox] == ["answer to ann"]
    await here.store.close()


async def test_a_backup_is_restored_into_an_empty_database_and_into_no_other(
    database: Database, tmp_path: Path
) -> None:
    home = await with_an_answer_owed(database, tmp_path / "there")
    standing = await made(backups_of(database, tmp_path / "there"))
    await home.store.close()
    (tmp_path / "here").mkdir()
    restored = partial(
        restore_to_server,
        tmp_path / "here",
        Path(standing.file),
        clock=SystemClock(),
        accepts_loss=True,
    )
    with pytest.raises(StoreRefused, match="empty database"):
        restored(database.url)

    empty = Database("koboshi_test_restored")
    done = restored(empty.url)

    assert (done.held, dict(done.open_turns)) == (1, {"answered": 1})
    here = Home(backend=PostgresBackend(tmp_path / "here", database=empty))
    await here.boot()
    (owed,) = here.rows().outbox
    assert (owed["text"], owed["state"]) == ("answer to ann", "held")
    await here.say("and on it goes", chat="bob")
    assert not list((tmp_path / "here").glob("koboshi.db*"))
    await here.store.close()
    empty.close()


async def test_a_server_that_is_gone_leaves_no_backup(tmp_path: Path) -> None:
    backups = ServerBackups(f"host={tmp_path}", tmp_path, SystemClock(), CrashPoint(""))
    standing = await made(backups)
    assert standing.state is BackupState.FAILED
    assert "cannot be used now" in standing.trouble
    assert not list((tmp_path / "backups").iterdir())
