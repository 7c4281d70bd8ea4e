"""The database file: whose it is, which version it has, and what happens to a damaged one."""

import os
import shutil
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import apsw
import pytest

from koboshi.domain.errors import StoreRefused
from koboshi.domain.ids import DeliveryId
from koboshi.domain.outbox import Delivery
from koboshi.stores.migration_scripts import migration_scripts
from koboshi.stores.sqlite import file, migrate
from koboshi.stores.sqlite.file import open_reader, open_writer
from koboshi.stores.sqlite.migrate import APPLICATION_ID, newest_version
from tests.harness.homes import Home
from tests.harness.strace import Traced, needs_strace, run_traced
from tests.harness.tally import WANTS_ALL
from tests.harness.victim import open_here, warnings_of

NAME = "koboshi.db"

EVERY = 5 if WANTS_ALL else 60
"""Calls of a first start from one kill to the next."""
FEW = {"pwrite64": 80, "unlink": 8, "fsync": 4, "fdatasync": 2}
STEP_OF = {"pwrite64": 7} if WANTS_ALL else FEW
"""Likewise of a restore, where it is not each call."""


def files_of(folder: Path) -> dict[str, bytes]:
    """Every file below the folder with its content, but the lock, and what SQLite makes to look
    at a file: a log without content and its index."""
    found = {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name != "koboshi.lock" and not path.name.endswith("-shm")
    }
    return {name: content for name, content in found.items() if content}


async def open_home(path: Path, *, accepts_loss: bool = False) -> Home:
    home = await open_here(path, accepts_loss=accepts_loss)
    home.worker = await home.store.workers.start("host", 1, "birth", "0.1")
    return home


async def make_home(path: Path, *chats: str) -> None:
    """A closed home in which each chat has a turn."""
    home = await open_home(path)
    for chat in chats:
        await home.say(chat=chat)
    await home.store.close()


async def chats_of(home: Home) -> set[str]:
    _, chats = await home.store.views.chats_touched(home.inbound().route.channel, after=0)
    return set(chats)


# ── a new one ───────────────────────────────────────────────────────────────────────────────────


async def test_a_home_without_a_database_gets_one(tmp_path: Path) -> None:
    """S7."""
    home = await open_home(tmp_path)

    assert (await home.store.views.status()).turns == {}
    assert warnings_of(home) == ()
    await home.store.close()


async def test_an_empty_file_is_a_new_database(tmp_path: Path) -> None:
    (tmp_path / NAME).touch()
    await make_home(tmp_path, "ann")


def test_the_settings_are_those_that_lose_nothing(tmp_path: Path) -> None:
    """S10."""
    writer = open_writer(tmp_path / NAME)
    reader = open_reader(tmp_path / NAME)

    assert {
        name: writer.pragma(name)
        for name in (
            "journal_mode synchronous page_size foreign_keys trusted_schema mmap_size "
            "cell_size_check application_id user_version"
        ).split()
    } == {
        "journal_mode": "wal",
        "synchronous": 2,
        "page_size": 8192,
        "foreign_keys": 1,
        "trusted_schema": 0,
        "mmap_size": 0,
        "cell_size_check": 1,
        "application_id": APPLICATION_ID,
        "user_version": newest_version(),
    }
    assert writer.pragma("wal_autocheckpoint") <= 1_000
    assert reader.pragma("query_only") == 1
    assert reader.pragma("wal_autocheckpoint") == 0
    with pytest.raises(apsw.ReadOnlyError):
        reader.execute("DELETE FROM journal")
    reader.close()
    writer.close()


def test_a_library_that_can_lose_data_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(file, "sqlite_version", lambda: (3, 51, 2))

    with pytest.raises(StoreRefused, match="can lose data"):
        open_writer(tmp_path / NAME)
    assert files_of(tmp_path) == {}


async def test_a_folder_in_its_place_is_refused(tmp_path: Path) -> None:
    (tmp_path / NAME).mkdir()

    with pytest.raises(StoreRefused):
        await open_home(tmp_path)


@pytest.mark.slow
@pytest.mark.slow
@needs_strace
async def test_a_first_start_may_be_killed_anywhere(tmp_path: Path) -> None:
    """S10: the schema is made in one transaction; the next start finds all of it or nothing."""
    whole = run_traced("open", str(tmp_path / "whole"), calls="pwrite64,fdatasync")
    assert whole.said == ["open"], "the victim does not run"
    assert whole.calls["pwrite64"] > 20, "the calls of a first start were not seen"
    places = [
        (call, number)
        for call, count in whole.calls.items()
        for number in range(1, count + 1, EVERY)
    ]

    def kill_at(place: tuple[str, int]) -> Path:
        call, number = place
        home = tmp_path / f"{call}-{number}"
        ended = run_traced("open", str(home), calls=call, inject=f"signal=KILL:when={number}")
        assert ended.is_killed, ended
        return home

    with ThreadPoolExecutor(4) as pool:
        homes = list(pool.map(kill_at, places))
    states = set()
    for path in homes:
        states.add((path / NAME).exists() and (path / NAME).stat().st_size > 0)
        home = await open_home(path)
        await home.say()
        await home.store.close()
        connection = apsw.Connection(str(path / NAME))
        assert connection.pragma("integrity_check") == "ok"
        assert connection.pragma("user_version") == newest_version()
        connection.close()
    assert states == {True, False}, "the kills did not fall on both sides"


# ── whose it is ─────────────────────────────────────────────────────────────────────────────────


def of_another_program(path: Path) -> None:
    connection = apsw.Connection(str(path))
    connection.execute("CREATE TABLE theirs (words); INSERT INTO theirs VALUES ('precious')")
    connection.close()


def of_another_program_that_was_killed(path: Path) -> None:
    """Its words are only in its log, and no one has closed it."""
    made = path.parent / "elsewhere.db"
    connection = apsw.Connection(str(made))
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("CREATE TABLE theirs (words); INSERT INTO theirs VALUES ('precious')")
    for suffix in ("", "-wal"):
        shutil.copyfile(f"{made}{suffix}", f"{path}{suffix}")
    connection.close()
    made.unlink()


def of_another_program_without_tables(path: Path) -> None:
    connection = apsw.Connection(str(path))
    connection.pragma("application_id", 7)
    connection.close()


def of_another_program_with_a_version(path: Path) -> None:
    """It says version 1 of something, and there is nothing of ours in it."""
    connection = apsw.Connection(str(path))
    connection.pragma("user_version", 1)
    connection.close()


FOREIGN = (
    of_another_program,
    of_another_program_that_was_killed,
    of_another_program_without_tables,
    of_another_program_with_a_version,
)


@pytest.mark.parametrize("make", FOREIGN, ids=lambda make: make.__name__)
@pytest.mark.parametrize("accepts_loss", [False, True])
async def test_a_database_of_another_program_is_left_as_it_is(
    tmp_path: Path, make: Callable[[Path], None], accepts_loss: bool
) -> None:
    make(tmp_path / NAME)
    before = files_of(tmp_path)

    with pytest.raises(StoreRefused, match="another program"):
        await open_home(tmp_path, accepts_loss=accepts_loss)
    assert files_of(tmp_path) == before


# ── which version it has ────────────────────────────────────────────────────────────────────────


async def test_a_database_of_a_newer_version_is_left_as_it_is(tmp_path: Path) -> None:
    await make_home(tmp_path, "ann")
    connection = apsw.Connection(str(tmp_path / NAME))
    connection.pragma("user_version", 99)
    connection.close()
    before = files_of(tmp_path)

    with pytest.raises(StoreRefused, match=r"newer koboshi \(schema 99"):
        await open_home(tmp_path)
    assert files_of(tmp_path) == before


def with_scripts(monkeypatch: pytest.MonkeyPatch, **added: str) -> None:
    numbered = {int(name.removeprefix("v")): text for name, text in added.items()}
    known = migration_scripts()
    monkeypatch.setattr(migrate, "migration_scripts", lambda: known | numbered)


async def test_an_older_database_is_brought_up_to_date(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await make_home(tmp_path, "ann")
    newest = newest_version()
    with_scripts(
        monkeypatch,
        **{
            f"v{newest + 2}": "INSERT INTO extra VALUES ('second');",
            f"v{newest + 1}": "CREATE TABLE extra (words TEXT) STRICT;",
        },
    )
    home = await open_home(tmp_path)
    assert await chats_of(home) == {"ann"}
    await home.store.close()

    connection = apsw.Connection(str(tmp_path / NAME))
    assert connection.execute("SELECT words FROM extra").get == "second"
    assert connection.pragma("user_version") == newest + 2
    connection.close()


async def test_a_script_that_fails_half_way_changes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """S10: the old version, whole, and usable by the old program."""
    await make_home(tmp_path, "ann")
    before = files_of(tmp_path)
    newest = newest_version()
    with_scripts(
        monkeypatch,
        **{
            f"v{newest + 1}": "CREATE TABLE extra (words TEXT); DELETE FROM journal;",
            f"v{newest + 2}": "UPDATE extra SET words = 'x'; CREATE TABLE turns (twice);",
        },
    )
    with pytest.raises(apsw.SQLError, match="already exists"):
        await open_home(tmp_path)

    assert files_of(tmp_path)[NAME] == before[NAME]
    monkeypatch.undo()
    home = await open_home(tmp_path)
    assert await chats_of(home) == {"ann"}
    await home.store.close()


async def test_a_script_is_run_to_its_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also when a statement in the middle of it gives rows."""
    await make_home(tmp_path)
    newest = newest_version()
    script = "CREATE TABLE extra (words TEXT); SELECT count(*) FROM turns; CREATE TABLE more (x);"
    with_scripts(monkeypatch, **{f"v{newest + 1}": script})
    await make_home(tmp_path)

    connection = apsw.Connection(str(tmp_path / NAME))
    assert connection.execute("SELECT count(*) FROM more").get == 0
    connection.close()


# ── damage ──────────────────────────────────────────────────────────────────────────────────────


def break_header(path: Path) -> None:
    with path.open("r+b") as broken:
        broken.write(b"garbage!" * 16)


def cut_off(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2)


def break_schema(path: Path) -> None:
    """The page that says which tables there are."""
    with path.open("r+b") as broken:
        broken.seek(100)
        broken.write(b"\xff" * 4_000)


DAMAGES = (break_header, cut_off, break_schema)


@pytest.mark.parametrize("damage", DAMAGES, ids=lambda damage: damage.__name__)
async def test_a_damaged_file_is_refused_and_left_as_it_is(
    tmp_path: Path, damage: Callable[[Path], None]
) -> None:
    """S8: nothing is lost by starting; a person decides."""
    await make_home(tmp_path, "ann")
    damage(tmp_path / NAME)
    before = files_of(tmp_path)

    with pytest.raises(StoreRefused, match=r"damaged.*--accept-data-loss"):
        await open_home(tmp_path)
    assert files_of(tmp_path) == before


@pytest.mark.parametrize("damage", DAMAGES, ids=lambda damage: damage.__name__)
async def test_a_damaged_file_is_kept_aside_when_its_loss_is_accepted(
    tmp_path: Path, damage: Callable[[Path], None]
) -> None:
    """S8."""
    await make_home(tmp_path, "ann")
    damage(tmp_path / NAME)
    broken = (tmp_path / NAME).read_bytes()
    home = await open_home(tmp_path, accepts_loss=True)

    assert await chats_of(home) == set()
    (warning,) = warnings_of(home)
    assert "kept in" in warning
    (kept,) = (tmp_path / "quarantine").glob("*/koboshi.db")
    assert kept.read_bytes() == broken
    assert str(kept.parent) in warning
    await home.store.close()


async def test_two_damaged_files_are_kept_apart(tmp_path: Path) -> None:
    """Also in the same millisecond."""
    for _ in range(2):
        (tmp_path / NAME).write_bytes(b"garbage!" * 2_000)
        home = await open_home(tmp_path, accepts_loss=True)
        await home.store.close()

    assert len(list((tmp_path / "quarantine").glob("*/koboshi.db"))) == 2


async def test_a_damaged_file_is_refused_with_its_log_untouched(tmp_path: Path) -> None:
    """The log may hold the only copy of what was said last."""
    await make_home(tmp_path / "alive", "ann")
    home = await open_home(tmp_path / "alive")
    await home.say(chat="bob")
    path = tmp_path / "dead"
    path.mkdir()
    for suffix in ("", "-wal"):
        shutil.copyfile(tmp_path / "alive" / f"{NAME}{suffix}", path / f"{NAME}{suffix}")
    await home.store.close()
    os.truncate(path / NAME, 8192)
    break_header(path / NAME)
    before = files_of(path)

    with pytest.raises(StoreRefused):
        await open_home(path)
    assert files_of(path) == before


# ── backups ─────────────────────────────────────────────────────────────────────────────────────


async def home_with_backups(path: Path) -> None:
    """`ann` has an answer that is owed, `bob` one that was being sent; a newer backup knows `cat`
    but is broken; the database itself, which also knows `dan`, is broken."""
    home = await open_home(path)
    await home.answer(await home.work_on(chat="ann"), "answer to ann")
    await home.answer(await home.work_on(chat="bob"), "answer to bob")
    await home.take_delivery("bob")
    await home.store.close()
    (path / "backups").mkdir()
    back_up(path, "1-whole", at=1_000)
    await make_home(path, "cat")
    back_up(path, "2-broken", at=2_000)
    cut_off(path / "backups" / "2-broken.db")
    os.utime(path / "backups" / "2-broken.db", (2_000, 2_000))
    await make_home(path, "dan")
    break_header(path / NAME)


def back_up(path: Path, name: str, at: int) -> None:
    shutil.copyfile(path / NAME, path / "backups" / f"{name}.db")
    os.utime(path / "backups" / f"{name}.db", (at, at))


async def test_the_newest_whole_backup_takes_the_place_of_a_damaged_file(tmp_path: Path) -> None:
    """S8."""
    await home_with_backups(tmp_path)
    before = files_of(tmp_path)
    home = await open_home(tmp_path)

    assert await chats_of(home) == {"ann", "bob"}
    (warning,) = warnings_of(home)
    assert "1-whole.db is used with its outbox held" in warning
    after = files_of(tmp_path)
    (kept,) = [name for name in after if name.startswith("quarantine")]
    assert after[kept] == before[NAME]
    backup = "backups/1-whole.db"
    assert after[backup] == before[backup]
    await home.store.close()


async def test_what_a_restored_past_owes_is_held(tmp_path: Path) -> None:
    """S146, S149: it may have been said since."""
    await home_with_backups(tmp_path)
    home = await open_home(tmp_path)
    for chat in ("ann", "bob"):
        session_id = await home.session_id(chat)
        held = await home.store.outbox.claim(session_id, home.worker.worker_id)
        assert not isinstance(held, Delivery)
    await home.store.close()

    connection = apsw.Connection(str(tmp_path / NAME))
    rows = connection.execute("SELECT state, ambiguous, reason FROM outbox").get
    connection.close()
    assert rows == [("held", 1, "held after a restore")] * 2


async def test_what_is_said_after_a_restore_goes_out(tmp_path: Path) -> None:
    """S145: words that are held must not silence the chat for ever."""
    await home_with_backups(tmp_path)
    home = await open_home(tmp_path)
    claim = await home.work_on("are you back?", chat="ann", key="after")
    await home.answer(claim, "I am back")

    assert len(await home.store.outbox.due(DeliveryId(0))) == 1
    (delivery,) = await home.deliver("ann")
    assert delivery.text == "I am back"
    assert (await home.view(claim.turn_id)).state == "done"
    await home.store.close()


async def test_a_backup_of_another_program_or_version_is_not_used(tmp_path: Path) -> None:
    await make_home(tmp_path, "ann")
    (tmp_path / "backups").mkdir()
    back_up(tmp_path, "newer", at=2_000)
    connection = apsw.Connection(str(tmp_path / "backups" / "newer.db"))
    connection.pragma("user_version", 99)
    connection.close()
    of_another_program(tmp_path / "backups" / "foreign.db")
    break_header(tmp_path / NAME)
    before = files_of(tmp_path)

    with pytest.raises(StoreRefused, match="no backup"):
        await open_home(tmp_path)
    assert files_of(tmp_path)[NAME] == before[NAME]


async def test_a_reader_does_not_begin_a_new_file_in_the_middle_of_a_restore(
    tmp_path: Path,
) -> None:
    """S8: the old file is away, the new one not in its place, and a person asks for a status."""
    await home_with_backups(tmp_path)
    (tmp_path / NAME).rename(tmp_path / "away")
    shutil.copyfile(tmp_path / "backups" / "1-whole.db", tmp_path / f"{NAME}.restoring")
    before = files_of(tmp_path)

    with pytest.raises(StoreRefused, match="restore"):
        await open_here(tmp_path, may_replace=False)
    assert files_of(tmp_path) == before
    home = await open_home(tmp_path)
    assert await chats_of(home) == {"ann", "bob"}
    await home.store.close()


async def test_a_reader_replaces_nothing(tmp_path: Path) -> None:
    await home_with_backups(tmp_path)
    before = files_of(tmp_path)

    with pytest.raises(StoreRefused, match="damaged"):
        await open_here(tmp_path, may_replace=False)
    assert files_of(tmp_path) == before


@pytest.mark.slow
@pytest.mark.slow
@needs_strace
async def test_a_restore_may_be_killed_anywhere(tmp_path: Path) -> None:
    """S8, S10: the next start restores again; it never starts empty as if nothing had been."""
    await home_with_backups(tmp_path / "broken")

    def run(name: str, calls: str, inject: str = "") -> tuple[Path, Traced]:
        home = tmp_path / name
        shutil.copytree(tmp_path / "broken", home)
        return home, run_traced("open", str(home), calls=calls, inject=inject)

    _, whole = run("whole", "rename,unlink,fsync,fdatasync,pwrite64")
    places = [
        (call, number)
        for call, count in whole.calls.items()
        for number in range(1, count + 1, STEP_OF.get(call, 1))
    ]
    with ThreadPoolExecutor(4) as pool:
        ends = list(
            pool.map(
                lambda place: run(
                    "-".join(map(str, place)), place[0], f"signal=KILL:when={place[1]}"
                ),
                places,
            )
        )
    assert whole.calls["rename"] == 3
    killed = [path for path, ended in ends if ended.is_killed]
    assert len(killed) == len(places) > 10, "the restore was not interrupted everywhere"
    for path in killed:
        home = await open_home(path)
        assert await chats_of(home) == {"ann", "bob"}, path.name
        assert not list(path.glob("*.restoring*"))
        await home.store.close()
        assert list((path / "quarantine").glob("*/koboshi.db")), "the damaged file is gone"
