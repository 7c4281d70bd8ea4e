"""Files that people send over the web: on disk before they are acknowledged."""

import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from koboshi.channels.web.limits import WebLimits
from koboshi.channels.web.uploads import UNUSED_NS, NoUpload, Uploads
from koboshi.domain.errors import FileNotHad
from koboshi.domain.files import Attachment
from koboshi.domain.pictures import picture_type
from tests.channels.fakes import FakeGateway, client_of, serving, web_channel

UPLOADS = "/api/v1/sessions/room/uploads"
MESSAGES = "/api/v1/sessions/room/messages"
PNG = b"\x89PNG\r\n\x1a\n" + b"\0" * 32


async def pieces(*parts: bytes) -> AsyncIterator[bytes]:
    for part in parts:
        yield part


@pytest.fixture
def uploads(tmp_path: Path) -> Uploads:
    return Uploads(home=tmp_path, bytes_max=1_000)


async def test_a_message_carries_files_that_were_stored_before_it(tmp_path: Path) -> None:
    gateway = FakeGateway()
    channel = web_channel(gateway, home=tmp_path)
    async with serving(channel, gateway.accept) as url, client_of(url) as client:
        stored = await client.post(UPLOADS, params={"name": "my notes.txt"}, content=b"hello")
        file = stored.json()["file"]
        posted = {"text": "", "files": [{"file": file, "name": "my notes.txt"}]}
        said = await client.post(MESSAGES, json=posted, headers={"Idempotency-Key": "1"})
        again = await client.post(MESSAGES, json=posted, headers={"Idempotency-Key": "1"})
        shown = await client.get(f"{UPLOADS}/{file}", params={"name": "my notes.txt"})

    assert stored.status_code == 201
    assert stored.json() == {"file": file, "name": "my_notes.txt", "size": 5}
    assert (said.status_code, again.status_code) == (202, 202)
    (attachment,) = gateway.stored["room/1"][1].words.files
    assert attachment.path.endswith("my_notes.txt")
    assert (attachment.kind, attachment.size) == ("text/plain", 5)
    assert shown.content == b"hello"
    assert shown.headers["content-disposition"].startswith("attachment;")
    assert shown.headers["x-content-type-options"] == "nosniff"

    await channel.fetch(attachment, tmp_path / "work" / attachment.path)
    assert (tmp_path / "work" / attachment.path).read_bytes() == b"hello"


async def test_a_file_that_is_not_there_is_refused_and_nothing_is_stored(tmp_path: Path) -> None:
    gateway = FakeGateway()
    channel = web_channel(gateway, home=tmp_path)
    async with serving(channel, gateway.accept) as url, client_of(url) as client:
        for number, name in enumerate(("0" * 32, "../../etc/passwd", "")):
            posted = {"text": "look", "files": [{"file": name}]}
            said = await client.post(
                MESSAGES, json=posted, headers={"Idempotency-Key": str(number)}
            )
            assert (said.status_code, said.json()["error"]["type"]) == (400, "no-file")
        assert (await client.get(f"{UPLOADS}/{'0' * 32}")).status_code == 404

    assert not gateway.stored


async def test_a_file_that_is_too_large_leaves_nothing(tmp_path: Path) -> None:
    gateway = FakeGateway()
    limits = WebLimits(file_bytes_max=10)
    channel = web_channel(gateway, home=tmp_path, limits=limits)
    async with serving(channel, gateway.accept) as url, client_of(url) as client:
        announced = await client.post(UPLOADS, content=b"x" * 11)
        streamed = await client.post(UPLOADS, content=pieces(b"x" * 6, b"x" * 6))

    assert (announced.status_code, streamed.status_code) == (413, 413)
    assert not [path for path in (tmp_path / "uploads").rglob("*") if path.is_file()]


async def test_only_a_file_without_a_message_is_swept(uploads: Uploads) -> None:
    kept, left = await uploads.take(pieces(b"kept")), await uploads.take(pieces(b"left"))
    await uploads.keep((kept,))

    assert await uploads.sweep(UNUSED_NS) == 0
    now = os.stat(uploads.home).st_mtime_ns
    assert await uploads.sweep(now + 2 * UNUSED_NS) == 1
    os.close(uploads.opened(kept))
    with pytest.raises(NoUpload):
        uploads.opened(left)


async def test_a_link_is_no_file(uploads: Uploads, tmp_path: Path) -> None:
    name = "a" * 32
    (tmp_path / "uploads").mkdir()
    (tmp_path / "uploads" / name).symlink_to("/etc/passwd")

    with pytest.raises(NoUpload):
        uploads.opened(name)
    with pytest.raises(FileNotHad):
        uploads.bring(Attachment(reference=name, path="received/x", kind="file"), tmp_path / "x")


def test_only_pictures_are_shown_and_their_content_tells() -> None:
    shown = {
        PNG: "image/png",
        b"\xff\xd8\xff\xe0": "image/jpeg",
        b"GIF89a": "image/gif",
        b"RIFF\0\0\0\0WEBP": "image/webp",
    }
    assert {head: picture_type(head) for head in shown} == shown
    for head in (b"", b"<svg xmlns", b"<html>", b"RIFF\0\0\0\0WAVE", b"%PDF-1.7"):
        assert picture_type(head) is None


async def test_a_picture_is_served_to_be_shown(tmp_path: Path) -> None:
    gateway = FakeGateway()
    channel = web_channel(gateway, home=tmp_path)
    async with serving(channel, gateway.accept) as url, client_of(url) as client:
        file = (await client.post(UPLOADS, content=PNG)).json()["file"]
        shown = await client.get(f"{UPLOADS}/{file}", params={"name": "page.html"})

    assert shown.headers["content-type"] == "image/png"
    assert shown.headers["content-disposition"].startswith("inline;")
    assert "sandbox" in shown.headers["content-security-policy"]
