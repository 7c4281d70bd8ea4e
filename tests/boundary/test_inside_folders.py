"""Temporary folders of chats are removed when they are not used any more. Issue 15."""

import os
from pathlib import Path

from koboshi.processes.inside_folders import REMOVED, remove_unused

DAY_MS = 86_400_000
NOW_MS = 1_000 * DAY_MS


def made(folder: Path, name: str, *, days_ago: float) -> Path:
    """A folder with a file, last changed that long ago."""
    place = folder / name
    (place / "sub").mkdir(parents=True)
    (place / "sub" / "file").write_text("words")
    for each in (place / "sub" / "file", place / "sub", place):
        age(each, days_ago)
    return place


def age(path: Path, days_ago: float) -> None:
    seconds = NOW_MS / 1_000 - days_ago * 86_400
    os.utime(path, (seconds, seconds), follow_symlinks=False)


def test_what_was_not_used_for_long_goes_and_all_else_stays(tmp_path: Path) -> None:
    old, new, running = (
        made(tmp_path, "s1", days_ago=11),
        made(tmp_path, "s2", days_ago=9),
        made(tmp_path, "s3", days_ago=99),
    )
    written = made(tmp_path, "s4", days_ago=99)
    age(written / "sub" / "file", 1)

    count = remove_unused(tmp_path, {"s3"}, NOW_MS - 10 * DAY_MS)

    assert count == 1
    assert not old.exists()
    assert all(each.exists() for each in (new, running, written))
    assert not (tmp_path / REMOVED).exists()


def test_a_link_in_it_is_removed_and_not_followed(tmp_path: Path) -> None:
    """The agent made it, and the gateway deletes."""
    precious = made(tmp_path, "precious", days_ago=99)
    precious.chmod(0o755)
    inside = tmp_path / "inside"
    old = made(inside, "s1", days_ago=99)
    (old / "link").symlink_to(precious)
    (old / "sub" / "file2").symlink_to(precious / "sub" / "file")
    (inside / "s2").symlink_to(precious)
    for each in (old / "link", old / "sub" / "file2", old / "sub", old, inside / "s2"):
        age(each, 99)

    remove_unused(inside, set(), NOW_MS)

    assert list(inside.iterdir()) == []
    assert (precious / "sub" / "file").read_text() == "words"
    assert precious.stat().st_mode & 0o777 == 0o755


def test_a_folder_that_its_maker_closed_is_removed(tmp_path: Path) -> None:
    old = made(tmp_path, "s1", days_ago=99)
    (old / "sub").chmod(0)
    age(old, 99)

    remove_unused(tmp_path, set(), NOW_MS)

    assert list(tmp_path.iterdir()) == []


def test_what_a_kill_left_half_removed_goes_the_next_time(tmp_path: Path) -> None:
    made(tmp_path / REMOVED, "0123", days_ago=1)

    assert remove_unused(tmp_path, set(), NOW_MS) == 0
    assert list(tmp_path.iterdir()) == []


def test_no_folder_at_all_is_fine(tmp_path: Path) -> None:
    assert remove_unused(tmp_path / "none", set(), NOW_MS) == 0
