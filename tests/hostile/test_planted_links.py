"""Issue 15, V11: a download goes where it belongs, whatever was planted there."""

import os
from pathlib import Path

import pytest

from koboshi.channels.common.received import receiving
from koboshi.domain.errors import FileNotHad

PLACE = "received/telegram-main/7-10-notes.txt"


def keep(root: Path, content: bytes = b"new") -> None:
    with receiving(root, PLACE) as received:
        received.file.write(content)
        received.keep()


def test_a_planted_part_is_not_followed(tmp_path: Path) -> None:
    canary = tmp_path / "canary"
    canary.write_text("precious")
    folder = tmp_path / "work" / "received" / "telegram-main"
    folder.mkdir(parents=True)
    (folder / ".7-10-notes.txt.part").symlink_to(canary)
    (folder / "7-10-notes.txt").symlink_to(canary)

    keep(tmp_path / "work")

    assert canary.read_text() == "precious"
    assert (folder / "7-10-notes.txt").read_text() == "new"
    assert not (folder / "7-10-notes.txt").is_symlink()
    assert os.listdir(folder) == ["7-10-notes.txt"]


@pytest.mark.parametrize("link", ["received", "received/telegram-main"])
def test_a_planted_folder_is_not_entered(tmp_path: Path, link: str) -> None:
    elsewhere, work = tmp_path / "elsewhere", tmp_path / "work"
    elsewhere.mkdir()
    (work / link).parent.mkdir(parents=True)
    (work / link).symlink_to(elsewhere)

    with pytest.raises(FileNotHad, match="stands in the way"):
        keep(work)

    assert list(elsewhere.rglob("*")) == []


@pytest.mark.parametrize("place", ["../out", "received/../../out", "/etc/out"])
def test_a_place_outside_is_refused(tmp_path: Path, place: str) -> None:
    with pytest.raises(FileNotHad), receiving(tmp_path / "work", place):
        pass

    assert not (tmp_path / "out").exists()


def test_what_is_not_whole_leaves_nothing(tmp_path: Path) -> None:
    with receiving(tmp_path, PLACE) as received:
        received.file.write(b"half")

    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []
