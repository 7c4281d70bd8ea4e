"""Issue 13, A2: the reserve for a full disk takes real blocks, and never fills a disk itself."""

from pathlib import Path

from koboshi.stores.sqlite.room import (
    MADE_FROM,
    PART_NAME,
    RESERVE_BYTES_MAX,
    RESERVE_NAME,
    give_up_reserve,
    make_reserve,
    make_way,
)
from tests.harness.disk import MEGABYTE, filled, small_disk


def test_the_reserve_is_made_of_real_blocks_and_once(tmp_path: Path) -> None:
    """Issue 13, A2: a hole would keep nothing back."""
    assert make_reserve(tmp_path) == RESERVE_BYTES_MAX
    made = (tmp_path / RESERVE_NAME).stat()
    assert made.st_blocks * 512 >= made.st_size == RESERVE_BYTES_MAX
    assert make_reserve(tmp_path) == RESERVE_BYTES_MAX
    assert (tmp_path / RESERVE_NAME).stat().st_ino == made.st_ino
    give_up_reserve(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_reserve_that_is_a_hole_or_half_made_is_made_anew(tmp_path: Path) -> None:
    with (tmp_path / RESERVE_NAME).open("wb") as file:
        file.truncate(RESERVE_BYTES_MAX)
    (tmp_path / PART_NAME).write_bytes(b"half")
    assert make_reserve(tmp_path) == RESERVE_BYTES_MAX
    made = (tmp_path / RESERVE_NAME).stat()
    assert made.st_blocks * 512 >= RESERVE_BYTES_MAX
    assert not (tmp_path / PART_NAME).exists()


def test_a_small_volume_has_a_small_reserve(tmp_path: Path) -> None:
    """Issue 13, A2: a twentieth of it."""
    with small_disk(tmp_path / "disk", 10) as disk:
        assert 0.4 * MEGABYTE < make_reserve(disk) < 0.6 * MEGABYTE


def test_the_reserve_is_not_made_where_it_would_take_what_is_left(tmp_path: Path) -> None:
    """Issue 13, A2: it never makes a disk full itself."""
    with small_disk(tmp_path / "disk", 10) as disk:
        size = make_reserve(disk)
        give_up_reserve(disk)
        with filled(disk):
            assert make_reserve(disk) == 0
            with (disk / "filler").open("r+b") as file:
                file.truncate((disk / "filler").stat().st_size - (MADE_FROM - 1) * size)
            assert make_reserve(disk) == 0
            with (disk / "filler").open("r+b") as file:
                file.truncate((disk / "filler").stat().st_size - 2 * size)
            assert make_reserve(disk) == size


def test_a_start_makes_way_for_itself_only_where_there_is_no_room(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", 10) as disk:
        assert make_reserve(disk)
        assert not make_way(disk)
        with filled(disk):
            assert make_way(disk)
            assert not make_way(disk)
        assert not (disk / RESERVE_NAME).exists()


def test_a_home_that_cannot_be_written_has_no_reserve(tmp_path: Path) -> None:
    (tmp_path / PART_NAME).mkdir()
    assert make_reserve(tmp_path) == 0
