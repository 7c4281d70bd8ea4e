"""Backups: made while the store is used, proven before they count, and put back with care."""

import os
import stat
from pathlib import Path

import apsw
import pytest

from koboshi.domain.errors import HomeHeld, StoreRefused
from koboshi.domain.outbox import Delivery
from koboshi.ports.backups import BackupStanding, BackupState
from koboshi.stores.sqlite.backup_check import prove
from koboshi.stores.sqlite.restoring import restore_backup
from tests.harness.homes import Home
from tests.harness.polling import until_asked
from tests.harness.victim import open_here

NAME = "koboshi.db"


async def open_home(path: Path) -> Home:
    home = await open_here(path)
    home.worker = await home.store.workers.start("host", 1, "birth", "0.1")
    return home


async def ended(home: Home) -> BackupStanding:
    async def look() -> BackupStanding | None:
        standing = home.store.backups.standing()
        is_over = standing and standing.state in (BackupState.MADE, BackupState.FAILED)
        return standing if is_over else None

    return await until_asked(look, "the backup has ended")


async def backed_up(home: Home, to: str = "", keep: int = 0) -> Path:
    assert home.store.backups.begin(to, keep)
    standing = await ended(home)
    assert standing.state is BackupState.MADE, standing.trouble
    return Path(standing.file)


async def with_an_answer_owed(path: Path) -> Home:
    home = await open_home(path)
    await home.answer(await home.work_on(chat="ann"), "answer to ann")
    return home


async def test_a_backup_has_everything_that_was_committed(tmp_path: Path) -> None:
    home = await with_an_answer_owed(tmp_path)
    file = await backed_up(home)

    proven = prove(file)
    assert (proven.rows["turns"], proven.rows["outbox"]) == (1, 1)
    assert file.parent == tmp_path / "backups"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert [each.name for each in file.parent.iterdir()] == [file.name]
    await home.store.close()


async def test_what_is_committed_meanwhile_stays_out_and_is_not_held_up(tmp_path: Path) -> None:
    """One moment is copied, however long it takes."""
    home = await open_home(tmp_path)
    for number in range(100):
        await home.say("x" * 20_000, chat=f"chat {number}")
    assert home.store.backups.begin("", 0)
    said = 0
    while (standing := home.store.backups.standing()) and standing.state is BackupState.COPYING:
        await home.say("meanwhile", chat=f"late {said}")
        said += 1
    made = await ended(home)

    assert made.state is BackupState.MADE, made.trouble
    assert 100 <= made.rows["turns"] <= 100 + said
    assert prove(Path(made.file)).rows == made.rows
    assert (await home.store.views.status()).sessions == 100 + said
    await home.store.close()


async def test_only_so_many_are_kept(tmp_path: Path) -> None:
    """The newest; and what does not carry our name is not ours to remove."""
    home = await open_home(tmp_path)
    files = []
    for _ in range(4):
        home.clock.move(1_000)
        files.append(await backed_up(home, keep=2))
        (tmp_path / "backups" / "by-hand.db").write_bytes(b"")

    left = {each.name for each in (tmp_path / "backups").iterdir()}
    assert left == {files[2].name, files[3].name, "by-hand.db"}
    standing = home.store.backups.standing()
    assert standing is not None
    assert standing.removed == (files[1].name,)
    await home.store.close()


async def test_a_file_that_is_there_is_never_written_over(tmp_path: Path) -> None:
    home = await open_home(tmp_path / "home")
    there = tmp_path / "there.db"
    there.write_text("mine")
    assert home.store.backups.begin(str(there), 0)
    standing = await ended(home)

    assert standing.state is BackupState.FAILED
    assert "is there already" in standing.trouble
    assert there.read_text() == "mine"
    assert not list(tmp_path.glob("*.part"))
    await home.store.close()


async def test_a_place_that_cannot_be_written_leaves_nothing(tmp_path: Path) -> None:
    home = await open_home(tmp_path / "home")
    assert home.store.backups.begin(str(tmp_path / "nowhere" / "a.db"), 0)
    standing = await ended(home)

    assert standing.state is BackupState.FAILED
    assert "nowhere" in standing.trouble
    await home.store.close()


async def test_a_store_that_closes_ends_the_copy_and_leaves_nothing(tmp_path: Path) -> None:
    home = await open_home(tmp_path)
    for number in range(200):
        await home.say("x" * 20_000, chat=f"chat {number}")
    assert home.store.backups.begin("", 0)
    await home.store.close()

    standing = home.store.backups.standing()
    assert standing is not None
    assert standing.state in (BackupState.FAILED, BackupState.MADE)
    assert not list((tmp_path / "backups").glob("*.part"))
    for file in (tmp_path / "backups").glob("*.db"):
        prove(file)


# ── what is no backup ───────────────────────────────────────────────────────────────────────────


async def test_a_damaged_one_is_told_from_a_whole_one(tmp_path: Path) -> None:
    home = await with_an_answer_owed(tmp_path)
    file = await backed_up(home)
    await home.store.close()
    whole = file.read_bytes()
    for broken in (whole[: len(whole) // 2], b"garbage!" * 100, b"", whole[:-8192]):
        file.write_bytes(broken)
        with pytest.raises(StoreRefused):
            prove(file)


async def test_a_page_that_was_changed_is_found(tmp_path: Path) -> None:
    home = await with_an_answer_owed(tmp_path)
    file = await backed_up(home)
    await home.store.close()
    with file.open("r+b") as content:
        content.seek(8192 * 3)
        content.write(b"\xff" * 4096)

    with pytest.raises(StoreRefused, match="damaged"):
        prove(file)


async def test_a_database_in_use_is_no_backup(tmp_path: Path) -> None:
    """Its log may hold what is not in the file: a copy of the file alone would lose it."""
    home = await with_an_answer_owed(tmp_path)

    with pytest.raises(StoreRefused, match="log beside it"):
        prove(tmp_path / NAME)
    await home.store.close()


async def test_a_row_that_names_another_that_is_not_there_is_found(tmp_path: Path) -> None:
    home = await with_an_answer_owed(tmp_path)
    file = await backed_up(home)
    await home.store.close()
    connection = apsw.Connection(str(file))
    connection.execute("PRAGMA foreign_keys = OFF; DELETE FROM sessions")
    connection.close()

    with pytest.raises(StoreRefused, match="not there"):
        prove(file)


# ── the way back ────────────────────────────────────────────────────────────────────────────────


async def test_a_restore_keeps_what_was_there_and_holds_what_is_owed(tmp_path: Path) -> None:
    home = await with_an_answer_owed(tmp_path)
    file = await backed_up(home)
    await home.say(chat="bob")
    await home.store.close()
    done = await restore_backup(tmp_path, file, clock=home.clock)

    assert done.held == 1
    assert done.kept is not None
    assert (Path(done.kept) / NAME).exists()
    again = await open_home(tmp_path)
    assert (await again.store.views.status()).sessions == 1
    session_id = await again.session_id("ann")
    held = await again.store.outbox.claim(session_id, again.worker.worker_id)
    assert not isinstance(held, Delivery)
    await again.store.close()


async def test_a_restore_gives_sends_other_keys(tmp_path: Path) -> None:
    """Issue 17: ids of deliveries begin again there, and a platform that knows the old key would
    give the old message for the new answer."""
    home = await with_an_answer_owed(tmp_path)
    file = await backed_up(home)
    before = await home.take_delivery("ann")
    assert len(before.send_key) <= 25
    await home.store.close()
    await restore_backup(tmp_path, file, clock=home.clock)
    home = await open_home(tmp_path)
    await home.store.outbox.release(None)

    after = await home.take_delivery("ann")
    assert after.delivery_id == before.delivery_id
    assert after.send_key != before.send_key
    assert after.send_key.endswith(f"-{after.delivery_id}")
    await home.store.close()


async def test_what_is_released_is_owed_again_and_says_that_it_may_be_a_duplicate(
    tmp_path: Path,
) -> None:
    home = await with_an_answer_owed(tmp_path)
    await home.answer(await home.work_on(chat="bob"), "answer to bob")
    file = await backed_up(home)
    await home.store.close()
    await restore_backup(tmp_path, file, clock=home.clock)
    home = await open_home(tmp_path)

    assert await home.store.outbox.release(None) == 2
    assert await home.store.outbox.release(None) == 0
    delivery = await home.take_delivery("ann")
    assert delivery.may_be_duplicate
    await home.store.close()


async def test_only_what_is_held_is_released(tmp_path: Path) -> None:
    home = await with_an_answer_owed(tmp_path)
    delivery = await home.take_delivery("ann")

    assert await home.store.outbox.release(delivery.delivery_id) == 0
    assert await home.store.outbox.release(None) == 0
    await home.store.close()


async def test_no_one_restores_under_a_gateway(tmp_path: Path) -> None:
    home = await with_an_answer_owed(tmp_path)
    file = await backed_up(home)

    with pytest.raises(HomeHeld):
        await restore_backup(tmp_path, file, clock=home.clock)
    await home.store.close()
    assert not (tmp_path / "quarantine").exists()


async def test_a_broken_backup_changes_nothing(tmp_path: Path) -> None:
    home = await with_an_answer_owed(tmp_path)
    file = await backed_up(home)
    await home.store.close()
    os.truncate(file, 8192)
    before = (tmp_path / NAME).read_bytes()

    with pytest.raises(StoreRefused):
        await restore_backup(tmp_path, file, clock=home.clock)
    assert (tmp_path / NAME).read_bytes() == before
    assert not (tmp_path / "quarantine").exists()


async def test_a_new_machine_has_nothing_to_keep(tmp_path: Path) -> None:
    home = await with_an_answer_owed(tmp_path / "old")
    file = await backed_up(home, str(tmp_path / "moved.db"))
    await home.store.close()
    (tmp_path / "new").mkdir()
    done = await restore_backup(tmp_path / "new", file, clock=home.clock)

    assert (done.kept, done.held) == (None, 1)
    assert stat.S_IMODE((tmp_path / "new" / NAME).stat().st_mode) == 0o600


async def test_processes_that_the_past_does_not_know_leave_their_ids(tmp_path: Path) -> None:
    """It gives these ids to others, which must not find an end that is not theirs."""
    home = await with_an_answer_owed(tmp_path)
    file = await backed_up(home)
    await home.store.close()
    (tmp_path / "processes" / "1").mkdir(parents=True)
    (tmp_path / "processes" / "1" / "exit.json").write_text("{}")
    done = await restore_backup(tmp_path, file, clock=home.clock)

    assert not (tmp_path / "processes" / "1").exists()
    assert done.kept is not None
    assert (Path(done.kept) / "processes" / "1" / "exit.json").exists()


async def test_what_a_restore_left_that_changed_nothing_is_forgotten(tmp_path: Path) -> None:
    """It died before it had moved anything: a later start must not take it up by mistake."""
    home = await with_an_answer_owed(tmp_path)
    file = await backed_up(home)
    await home.store.close()
    (tmp_path / f"{NAME}.restoring").write_bytes(file.read_bytes())
    home = await open_home(tmp_path)

    assert not (tmp_path / f"{NAME}.restoring").exists()
    assert (await home.store.views.status()).sessions == 1
    await home.store.close()
