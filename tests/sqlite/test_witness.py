"""The witness beside the database, and what a start makes of it."""

import json
import os
import shutil
from pathlib import Path

import pytest

from koboshi.domain.outbox import Delivery
from koboshi.stores.sqlite.restoring import restore_backup
from koboshi.stores.sqlite.store import SqliteStore
from koboshi.stores.sqlite.witness import (
    PART_NAME,
    WITNESS_NAME,
    forget_witness,
    read_witness,
    write_witness,
)
from tests.harness.fake_time import FakeClock
from tests.harness.homes import Home
from tests.harness.rows import read_rows
from tests.harness.victim import open_here, warnings_of

WENT_BACK = "the database went back"


async def booted(path: Path, birth: str = "birth", *, accepts_loss: bool = False) -> Home:
    path.mkdir(exist_ok=True)
    home = await open_here(path, accepts_loss=accepts_loss)
    home.worker = await home.store.workers.start("host", 1, birth, "0.1")
    return home


async def beat(home: Home) -> None:
    await home.store.workers.beat(home.worker.worker_id)


async def owe(home: Home, chat: str = "ann") -> None:
    """An answer that no one has sent."""
    await home.answer(await home.work_on("hello", chat=chat), "an answer")


async def gone_back(path: Path) -> None:
    """A home whose database was put back to where the first answer was owed."""
    home = await booted(path)
    await owe(home)
    await home.store.close()
    shutil.copyfile(path / "koboshi.db", path / "old")
    home = await booted(path, "another birth")
    home.keys = 10
    await home.deliver("ann")
    await owe(home)
    await beat(home)
    await home.store.close()
    os.replace(path / "old", path / "koboshi.db")


async def is_held(home: Home, chat: str = "ann") -> bool:
    session_id = await home.session_id(chat)
    claimed = await home.store.outbox.claim(session_id, home.worker.worker_id)
    return not isinstance(claimed, Delivery)


async def test_a_heartbeat_tells_no_more_than_is_durable(tmp_path: Path) -> None:
    """Issue 12, A7: the newest line of the journal and the boot, behind the commit."""
    home = await booted(tmp_path)
    assert read_witness(tmp_path) is None
    await owe(home)
    await beat(home)

    told = read_witness(tmp_path)
    assert told is not None
    assert told.journal == read_rows(tmp_path).journal[-1]["seq"]
    assert (told.boot, told.birth) == (home.worker.worker_id, "birth")
    assert set(json.loads((tmp_path / WITNESS_NAME).read_bytes())) == {
        "journal",
        "boot",
        "birth",
        "at_ms",
    }
    assert (tmp_path / WITNESS_NAME).stat().st_mode & 0o777 == 0o600
    assert not (tmp_path / PART_NAME).exists()
    await home.store.close()


async def test_a_heartbeat_that_has_nothing_new_to_tell_writes_nothing(tmp_path: Path) -> None:
    home = await booted(tmp_path)
    await beat(home)
    before = (tmp_path / WITNESS_NAME).stat()
    home.clock.move(5_000)
    await beat(home)

    assert os.path.samestat((tmp_path / WITNESS_NAME).stat(), before)
    await home.store.close()


async def test_what_a_database_that_went_back_owes_is_held(tmp_path: Path) -> None:
    """Issue 12, A7: before anything can be claimed; and the one who writes since is answered."""
    await gone_back(tmp_path)
    home = await booted(tmp_path, "a third birth")

    (warning,) = warnings_of(home)
    assert WENT_BACK in warning
    assert await is_held(home)
    status = await home.store.views.status()
    assert (status.gap, status.outbox_held) == (warning, 1)
    home.keys = 20
    await owe(home, "bob")
    assert not await is_held(home, "bob")
    await home.store.close()


async def test_the_range_that_is_gone_is_named(tmp_path: Path) -> None:
    await gone_back(tmp_path)
    witness = read_witness(tmp_path)
    there = read_rows(tmp_path).journal[-1]["seq"]
    home = await booted(tmp_path, "a third birth")

    assert witness is not None
    (warning,) = warnings_of(home)
    assert f"lines {there + 1} to {witness.journal} are gone" in warning
    assert "2027-01-15 08:00:00 UTC" in warning
    await home.store.close()


@pytest.mark.parametrize("how", ["release", "drop"])
async def test_it_is_told_until_the_operator_has_decided(tmp_path: Path, how: str) -> None:
    """Issue 12, A7: and then neither the next start nor any other speaks of it."""
    await gone_back(tmp_path)
    home = await booted(tmp_path, "a third birth")
    (owed,) = read_rows(tmp_path).of("outbox")
    if how == "release":
        assert await home.store.outbox.release(None) == 1
    else:
        assert await home.store.outbox.drop(owed["delivery_id"])

    assert (await home.store.views.status()).gap is None
    await home.store.close()
    home = await booted(tmp_path, "a fourth birth")
    assert not warnings_of(home)
    await home.store.close()


async def test_a_reader_neither_holds_nor_settles(tmp_path: Path) -> None:
    """A command that owns the home for a moment leaves it to the next gateway to notice."""
    await gone_back(tmp_path)
    looking = await open_here(tmp_path, may_replace=False)
    assert not warnings_of(looking)
    assert (await looking.store.views.status()).gap is None
    await looking.store.outbox.release(None)
    await looking.store.close()

    home = await booted(tmp_path, "a third birth")
    assert len(warnings_of(home)) == 1
    assert await is_held(home)
    await home.store.close()


async def test_a_database_of_another_past_is_noticed_however_long_it_is(tmp_path: Path) -> None:
    """Issue 12, A7: lines that were written since do not hide that a boot is gone."""
    await gone_back(tmp_path)
    # As an earlier version does, which knows no witness.
    (tmp_path / WITNESS_NAME).rename(tmp_path / "hidden")
    home = await booted(tmp_path, "of an earlier version")
    home.keys = 30
    for number in range(20):
        await home.say("hello", chat=f"chat-{number}")
    await home.store.close()
    (tmp_path / "hidden").rename(tmp_path / WITNESS_NAME)

    home = await booted(tmp_path, "a third birth")
    (warning,) = warnings_of(home)
    assert WENT_BACK in warning
    assert "does not know that boot 2" in warning
    await home.store.close()


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\0" * 100,
        b"{}",
        b"[1, 2]",
        b'{"journal":99999,"boot":9,"birth":"b","at',
        b'{"journal":"99999","boot":9,"birth":"b","at_ms":1}',
        b'{"journal":-1,"boot":9,"birth":"b","at_ms":1}',
        b'{"journal":9223372036854775808,"boot":9,"birth":"b","at_ms":1}',
        b'{"journal":1e400,"boot":9,"birth":"b","at_ms":1}',
        b"\xff\xfe",
        b"[" * 4_000,
        b" " * 10_000,
    ],
)
async def test_a_witness_that_cannot_be_read_is_none_and_is_replaced(
    tmp_path: Path, content: bytes
) -> None:
    """Issue 12, A7."""
    home = await booted(tmp_path)
    await home.store.close()
    (tmp_path / WITNESS_NAME).write_bytes(content)

    home = await booted(tmp_path)
    assert not warnings_of(home)
    await beat(home)
    told = read_witness(tmp_path)
    assert told is not None
    assert told.boot == home.worker.worker_id
    await home.store.close()


@pytest.mark.parametrize("kind", ["fifo", "link", "folder"])
async def test_what_is_no_file_is_no_witness(tmp_path: Path, kind: str) -> None:
    """No caller waits for it, follows it, or fails by it."""
    place = tmp_path / WITNESS_NAME
    match kind:
        case "fifo":
            os.mkfifo(place)
        case "link":
            (tmp_path / "other").write_text('{"journal":999,"boot":9,"birth":"b","at_ms":1}')
            place.symlink_to(tmp_path / "other")
        case _:
            place.mkdir()
    home = await booted(tmp_path)
    assert not warnings_of(home)
    await beat(home)

    assert (read_witness(tmp_path) is None) == (kind == "folder")
    if kind == "link":
        assert json.loads((tmp_path / "other").read_text())["journal"] == 999
    await home.store.close()


async def test_a_restore_rewrites_the_witness(tmp_path: Path) -> None:
    """Issue 12, A7: it is in step with the database from then on."""
    path = tmp_path / "home"
    home = await booted(path)
    await owe(home)
    await home.store.close()
    shutil.copyfile(path / "koboshi.db", tmp_path / "backup.db")
    home = await booted(path, "another birth")
    home.keys = 10
    await owe(home, "bob")
    await beat(home)
    await home.store.close()

    await restore_backup(path, tmp_path / "backup.db", clock=FakeClock())
    told = read_witness(path)
    assert told is not None
    assert told.journal == read_rows(path).journal[-1]["seq"]
    assert told.birth == "birth"
    home = await booted(path, "a third birth")
    assert not warnings_of(home)
    await home.store.close()


async def test_who_accepted_the_loss_is_not_told_of_it_again(tmp_path: Path) -> None:
    """Issue 12, A7: and folders of processes are not given to others with the same number."""
    home = await booted(tmp_path)
    await owe(home)
    await beat(home)
    await home.store.close()
    (tmp_path / "processes" / "1").mkdir(parents=True)
    (tmp_path / "koboshi.db").write_bytes(b"no database" * 1_000)

    home = await booted(tmp_path, accepts_loss=True)
    (warning,) = warnings_of(home)
    assert "we start empty" in warning
    assert [each.parent.parent.name for each in (tmp_path / "quarantine").glob("*/processes/1")]
    assert not list((tmp_path / "processes").iterdir())
    await home.store.close()


async def test_processes_that_the_database_does_not_know_are_set_aside(tmp_path: Path) -> None:
    """Issue 12, A7: their ids will be given to others."""
    await gone_back(tmp_path)
    (tmp_path / "processes" / "7").mkdir(parents=True)

    home = await booted(tmp_path, "a third birth")

    assert not list((tmp_path / "processes").iterdir())
    assert len(list((tmp_path / "quarantine").glob("*/processes/7"))) == 1
    await home.store.close()


async def test_a_witness_that_cannot_be_written_ends_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = await booted(tmp_path)
    await beat(home)
    before = read_witness(tmp_path)
    await owe(home)

    def refuse(*_: object) -> None:
        raise OSError(28, "no space left")

    with monkeypatch.context() as patched:
        patched.setattr("koboshi.stores.sqlite.witness.os.fsync", refuse)
        await beat(home)
    assert read_witness(tmp_path) == before
    await beat(home)
    assert read_witness(tmp_path) != before
    assert isinstance(home.store, SqliteStore)
    assert home.store.failure is None
    await home.store.close()


def test_a_witness_that_was_forgotten_is_gone(tmp_path: Path) -> None:
    forget_witness(tmp_path)
    (tmp_path / WITNESS_NAME).write_text("{}")
    forget_witness(tmp_path)

    assert not list(tmp_path.iterdir())
    with pytest.raises(FileNotFoundError):
        write_witness(tmp_path / "nowhere", None)  # type: ignore[arg-type]


async def test_a_damaged_file_that_gave_way_to_a_backup_is_told_once(tmp_path: Path) -> None:
    """Issue 12, A7: the backup is older, and that is what the warning of the damage says."""
    home = await booted(tmp_path)
    await owe(home)
    await home.store.close()
    (tmp_path / "backups").mkdir()
    shutil.copyfile(tmp_path / "koboshi.db", tmp_path / "backups" / "one.db")
    home = await booted(tmp_path, "another birth")
    home.keys = 10
    await owe(home, "bob")
    await beat(home)
    await home.store.close()
    (tmp_path / "koboshi.db").write_bytes(b"no database" * 1_000)

    home = await booted(tmp_path, "a third birth")
    (warning,) = warnings_of(home)
    assert "one.db is used with its outbox held" in warning
    assert (await home.store.views.status()).gap is None
    await home.store.close()
