"""A store whose files lose their names: nothing more is acknowledged, and no other is harmed."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from koboshi.domain.errors import StoreFailed
from koboshi.stores.sqlite.open_files import HomeGone, look_at_open_files
from tests.harness.homes import Home
from tests.harness.rows import read_rows
from tests.harness.victim import open_here


async def booted(path: Path) -> Home:
    path.mkdir(exist_ok=True)
    home = await open_here(path)
    home.worker = await home.store.workers.start("host", 1, "birth", "0.1")
    return home


def texts(path: Path) -> list[str]:
    rows = read_rows(path)
    return [rows.body(row)["text"] for row in rows.inbox]


def remove(path: Path) -> None:
    shutil.rmtree(path)


def put_another_in_its_place(path: Path) -> None:
    shutil.copyfile(path / "koboshi.db", path / "copy")
    (path / "copy").rename(path / "koboshi.db")


def make_anew(path: Path) -> None:
    path.rename(path.with_name("moved"))
    path.mkdir()


def remove_lock(path: Path) -> None:
    (path / "koboshi.lock").unlink()


@pytest.mark.parametrize("harm", [remove, put_another_in_its_place, make_anew, remove_lock])
async def test_a_write_fails_and_every_person_is_told_once(
    tmp_path: Path, harm: Callable[[Path], None]
) -> None:
    """Issue 12, A8."""
    home = await booted(tmp_path / "home")
    await home.say("one")
    harm(tmp_path / "home")

    for text in ("two", "three"):
        with pytest.raises(HomeGone, match="while it was in use"):
            await home.say(text)
    assert len(home.failures) == 1
    await home.store.close()


async def test_what_was_not_acknowledged_is_not_stored_in_the_home_of_another(
    tmp_path: Path,
) -> None:
    """Issue 12, A8: the lock is gone, a second owner has written; the first writes no more."""
    first = await booted(tmp_path)
    await first.say("one")
    remove_lock(tmp_path)
    second = await booted(tmp_path)
    await second.say("two", key="of-the-second")

    with pytest.raises(HomeGone):
        await first.say("three")
    await first.store.close()
    await second.say("four", key="also-of-the-second")
    await second.store.close()

    assert texts(tmp_path) == ["one", "two", "four"]


async def test_a_close_leaves_the_log_of_another_database_alone(tmp_path: Path) -> None:
    """Issue 12, A8: SQLite removes the log by its name, and that may be another's by now."""
    path = tmp_path / "home"
    first = await booted(path)
    await first.say("one")
    make_anew(path)
    second = await booted(path)
    await second.say("two")

    await first.store.close()

    assert (path / "koboshi.db-wal").stat().st_size
    assert texts(path) == ["two"]
    assert texts(tmp_path / "moved") == ["one"]
    await second.store.close()


def test_a_look_that_fails_is_not_a_file_that_is_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Issue 12, A8: no false alarm where it cannot be told."""
    (tmp_path / "file").touch()
    files = look_at_open_files([tmp_path / "file"], [tmp_path / "none"])
    files.check()

    def refuse(_name: str) -> None:
        raise PermissionError(13, "no")

    with monkeypatch.context() as patched:
        patched.setattr("os.stat", refuse)
        files.check()
    (tmp_path / "file").unlink()
    with pytest.raises(StoreFailed, match="removed"):
        files.check()
