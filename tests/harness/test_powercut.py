"""The simulated disk forgets what a disk may forget, and nothing else."""

import random
from pathlib import Path

import pytest

from tests.harness.powercut import SECTOR, Disk, Image
from tests.harness.tracer import Change

FOLDER = Path("/folder")
NAME = "/folder/file"
MADE = Change(call="openat", path=NAME, is_new=True)
NAMED = Change(call="fsync", path="/folder")
FLUSHED = Change(call="fdatasync", path=NAME)


def wrote(content: bytes, offset: int = 0) -> Change:
    return Change(call="pwrite64", path=NAME, content=content, offset=offset)


def images(*changes: Change, has_journal: bool = False) -> list[Image]:
    disk = Disk(FOLDER, has_journal=has_journal)
    for change in changes:
        disk.make(change)
    return [disk.after_a_cut(number, random.Random(number)) for number in range(200)]


@pytest.mark.parametrize("has_journal", [True, False])
def test_what_was_flushed_is_there(has_journal: bool) -> None:
    found = images(MADE, wrote(b"old"), FLUSHED, NAMED, has_journal=has_journal)

    assert all(image == {"file": b"old"} for image in found)


def test_what_was_not_flushed_may_be_there() -> None:
    found = images(MADE, wrote(b"old"), FLUSHED, NAMED, wrote(b"new"))

    assert {image["file"] for image in found} == {b"old", b"new"}


def test_a_later_write_may_be_there_without_an_earlier_one() -> None:
    found = images(MADE, NAMED, wrote(b"first"), wrote(b"second", offset=5))

    assert {b"", b"first", b"firstsecond", bytes(5) + b"second"} <= {
        image["file"] for image in found
    }


def test_a_write_may_be_there_by_sectors() -> None:
    found = images(MADE, NAMED, wrote(b"a" * SECTOR + b"b" * SECTOR))

    assert b"a" * SECTOR in {image["file"] for image in found}
    assert bytes(SECTOR) + b"b" * SECTOR in {image["file"] for image in found}


def test_a_name_is_sure_when_its_folder_was_flushed_or_there_is_a_journal() -> None:
    changes = (MADE, wrote(b"old"), FLUSHED)

    assert {} in images(*changes)
    assert {} not in images(*changes, NAMED)
    assert {} not in images(*changes, has_journal=True)


def test_a_rename_is_all_or_nothing() -> None:
    moved = Change(call="rename", path=NAME, target="/folder/other")
    found = images(MADE, wrote(b"old"), FLUSHED, NAMED, moved)

    assert {name for image in found for name in image} == {"file", "other"}
    assert all(len(image) == 1 for image in found)


def test_a_truncation_may_have_happened() -> None:
    shorter = Change(call="ftruncate", path=NAME, size=1)
    found = images(MADE, wrote(b"old"), FLUSHED, NAMED, shorter)

    assert {image["file"] for image in found} == {b"old", b"o"}
