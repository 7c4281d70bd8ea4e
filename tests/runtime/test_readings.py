"""What received files say, and which of them are read at all."""

from pathlib import Path

import pytest

from koboshi.domain.files import Attachment
from koboshi.domain.media import MediaKind, media_kind, shelved
from koboshi.domain.transcript import HeardPicture, Note
from koboshi.runtime.picture_shelf import PictureShelf
from koboshi.runtime.readings import read_inside
from tests.harness.open_files import open_below
from tests.models.asking import asked, said

PNG = b"\x89PNG\r\n\x1a\n" + bytes(20)


@pytest.mark.parametrize(
    "name, kind, head, expected",
    [
        ("a.txt", "text/plain", PNG, MediaKind.PICTURE),
        ("a.png", "image/png", b"<svg/>", None),
        ("a.pdf", "application/pdf", b"%PDF-1.7", MediaKind.DOCUMENT),
        ("a.docx", "", b"PK\x03\x04", MediaKind.DOCUMENT),
        ("a.zip", "", b"PK\x03\x04", None),
        ("a.ogg", "", b"OggS", MediaKind.VOICE),
        ("a", "voice", b"OggS", MediaKind.VOICE),
        ("a", "audio/mpeg", b"ID3", MediaKind.VOICE),
        ("a.txt", "text/plain", b"hello", None),
    ],
)
def test_a_file_is_known_by_how_it_begins(
    name: str, kind: str, head: bytes, expected: MediaKind | None
) -> None:
    assert media_kind(Attachment(reference="r", path=name, kind=kind), head) is expected


def test_no_link_that_the_agent_made_is_followed(tmp_path: Path) -> None:
    """Else a picture of the gateway's own files could be asked for."""
    secret = tmp_path / "outside" / "secret"
    secret.parent.mkdir()
    secret.write_bytes(PNG)
    work = tmp_path / "work"
    (work / "received").mkdir(parents=True)
    (work / "received" / "a.png").symlink_to(secret)
    (work / "link").symlink_to(secret.parent)
    (work / "received" / "real.png").write_bytes(PNG)

    assert read_inside(work, "received/a.png", 100) is None
    assert read_inside(work, "link/secret", 100) is None
    assert read_inside(work, "received/real.png", 8) == PNG[:8]


def test_a_folder_with_the_name_of_a_file_costs_no_descriptor(tmp_path: Path) -> None:
    """The agent can make one, and it is looked at in every turn."""
    (tmp_path / "AGENTS.md").mkdir()
    assert [read_inside(tmp_path, "AGENTS.md", 100) for _ in range(9)] == [None] * 9
    assert open_below(tmp_path) == 0


async def test_a_picture_that_is_gone_or_another_by_now_is_only_words(tmp_path: Path) -> None:
    shelf = PictureShelf(folder=tmp_path / "pictures")
    digest = await shelf.put("1-0", PNG)
    note = Note(cause=f"picture:1:0:{digest}", text="[koboshi] The picture a.png:")
    request = asked(said("look"), note)

    seen = await shelf.shown(request)
    await shelf.put("1-0", PNG + b"other")
    changed = await shelf.shown(request)

    assert isinstance(seen.steps[1].body, HeardPicture)
    assert changed.steps[1].body == note
    assert shelved("picture:1:0") is None
