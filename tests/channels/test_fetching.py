"""Files of people, whatever the platform sends: whole and small enough, or nothing of them."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from koboshi.channels.common.fetching import keep_pieces
from koboshi.domain.errors import FileNotHad
from koboshi.domain.files import Attachment

PIECE = b"x" * 1_000


def attached(place: str = "received/here/a.txt") -> Attachment:
    return Attachment(reference="f1", path=place, kind="file", size=10)


async def endless() -> AsyncIterator[bytes]:
    """It was said to have ten bytes."""
    while True:
        yield PIECE


async def test_a_file_without_an_end_is_cut_off_and_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(FileNotHad, match="at most"):
        await keep_pieces(endless(), attached(), tmp_path / "received/here/a.txt", 10_500)

    assert [each for each in tmp_path.rglob("*") if each.is_file()] == []


@pytest.mark.parametrize("link", ["received", "received/here"])
async def test_a_folder_that_is_a_link_is_not_entered(tmp_path: Path, link: str) -> None:
    """The agent works in this folder, and may have made the link."""
    root, outside = tmp_path / "work", tmp_path / "outside"
    outside.mkdir()
    (root / link).parent.mkdir(parents=True)
    (root / link).symlink_to(outside)
    with pytest.raises(FileNotHad, match="in the way"):
        await keep_pieces(few(), attached(), root / "received/here/a.txt", 10_000)

    assert not list(outside.iterdir())


async def test_a_link_with_the_name_of_the_file_is_replaced_and_not_followed(
    tmp_path: Path,
) -> None:
    root, outside = tmp_path / "work", tmp_path / "secret"
    outside.write_text("kept")
    place = root / "received/here/a.txt"
    place.parent.mkdir(parents=True)
    for name in (place, place.with_name(".a.txt.part")):
        name.symlink_to(outside)
    await keep_pieces(few(), attached(), place, 10_000)

    assert (outside.read_text(), place.is_symlink(), place.read_bytes()) == ("kept", False, PIECE)


async def few() -> AsyncIterator[bytes]:
    yield PIECE
