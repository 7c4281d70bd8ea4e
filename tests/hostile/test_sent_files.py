"""Files that the agent sent, fetched by those who mean no good: names, ids and paths."""

import os
from collections.abc import AsyncIterator
from pathlib import Path
from urllib.parse import quote

import httpx2
import pytest

from koboshi.domain.files import OutFile, Parcel, safe_name
from koboshi.domain.outbox import DeliveryState
from koboshi.domain.transcript import Result, ResultStatus
from tests.channels.fakes import TOKEN
from tests.harness.backends import Limits, SqliteBackend
from tests.harness.homes import Home, a_call, a_world
from tests.harness.rows import read_rows
from tests.hostile.whole_api import WholeApi

BEARER = {"Authorization": f"Bearer {TOKEN}"}
CONTENT = b"<script>alert(1)</script>\x00\xff"


@pytest.fixture
async def whole(tmp_path: Path) -> AsyncIterator[WholeApi]:
    home = Home(backend=SqliteBackend(tmp_path), world=a_world(), limits=Limits())
    await home.boot()
    (tmp_path / "files").mkdir(mode=0o700)
    yield WholeApi(home, folder=tmp_path)
    await home.store.close()


async def owe(whole: WholeApi, file: OutFile, *, chat: str = "ann") -> int:
    """A file is owed in the chat. Returns the id of the delivery."""
    home = whole.home
    await home.say("send it", chat=chat)
    claim = await home.claim()
    (call_id,) = await home.propose(claim, a_call())
    await home.start(claim, call_id)
    result = Result(call_id=call_id, status=ResultStatus.OK, text="queued")
    await home.store.turns.finish_call(claim, result, (), Parcel(file=file, caption="here"))
    await home.answer(claim)
    rows = read_rows(whole.folder).of("outbox")
    return max(int(str(row["delivery_id"])) for row in rows if row["file"] is not None)


async def sent(whole: WholeApi, name: str, *, chat: str = "ann", stored: str = "") -> str:
    """A file was delivered in the chat. Returns its address."""
    path = stored or f"files/1-1.1-{safe_name(name, 'file')}"
    if not stored:
        (whole.folder / path).write_bytes(CONTENT)
    number = await owe(whole, OutFile(path=path, name=name, size=len(CONTENT)), chat=chat)
    await whole.home.deliver(chat)
    return address(chat, f"d{number}")


def address(chat: str, delivery: str) -> str:
    return f"/api/v1/sessions/{quote(chat, safe='')}/files/{quote(delivery, safe='')}"


async def got(
    whole: WholeApi, path: str, headers: dict[str, str] = BEARER, method: str = "GET"
) -> httpx2.Response:
    async with whole.client() as client:
        return await client.request(method, path, headers=headers)


async def test_a_file_is_fetched_as_an_attachment_that_no_browser_runs(whole: WholeApi) -> None:
    """Issue 13, B15: whatever it holds, it is bytes to be saved."""
    answer = await got(whole, await sent(whole, "page.html"))

    assert answer.status_code == 200
    assert answer.content == CONTENT
    assert answer.headers["content-type"] == "application/octet-stream"
    assert answer.headers["content-disposition"].startswith('attachment; filename="page.html"')
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["content-length"] == str(len(CONTENT))
    assert "sandbox" in answer.headers["content-security-policy"]


async def test_only_the_size_is_told_to_who_asks_for_no_more(whole: WholeApi) -> None:
    answer = await got(whole, await sent(whole, "page.html"), method="HEAD")

    assert (answer.status_code, answer.content) == (200, b"")
    assert answer.headers["content-length"] == str(len(CONTENT))


async def test_the_page_gets_it_with_its_cookie_and_others_do_not(whole: WholeApi) -> None:
    """Issue 13, B15: with the token or the page's cookie; red before, the cookie alone got 401, and
    a link that was opened in a tab of its own showed an error."""
    path, page = await sent(whole, "a.txt"), (await whole.let_in())
    cookie = {"Cookie": page["Cookie"]}

    assert (await got(whole, path, page)).status_code == 200
    answer = await got(whole, path, cookie)
    assert (answer.status_code, answer.content) == (200, CONTENT)
    assert answer.headers["content-disposition"].startswith("attachment;")
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert "set-cookie" not in answer.headers
    assert (await got(whole, path, cookie, "HEAD")).status_code == 200
    for site in ("same-origin", "none"):
        assert (await got(whole, path, {**cookie, "Sec-Fetch-Site": site})).status_code == 200
    assert (await got(whole, path, {})).status_code == 401
    assert (await got(whole, path, {"Cookie": f"{page['Cookie']}x"})).status_code == 401
    assert (await got(whole, path, {"X-Koboshi-Proof": "x"})).status_code == 401


async def test_the_cookie_alone_opens_files_and_nothing_else(whole: WholeApi) -> None:
    """Issue 13, B15: a page of another site, or of another port, makes a browser send it."""
    path, page = await sent(whole, "a.txt"), (await whole.let_in())
    cookie = {"Cookie": page["Cookie"]}

    for site in ("same-site", "cross-site"):
        for headers in (cookie, BEARER):
            answer = await got(whole, path, {**headers, "Sec-Fetch-Site": site})
            assert answer.status_code == 403
    foreign = {**cookie, "Origin": "http://127.0.0.1:9"}
    assert (await got(whole, path, foreign)).status_code == 403
    assert (await got(whole, path, cookie, "POST")).status_code == 401
    chat = path.partition("/files/")[0]
    others = ("/api/v1/status", "/api/v1/chats", f"{chat}/events", f"{chat}/files/d1/more")
    for other in (*others, f"{chat}/files/", f"{chat}/files/../events"):
        assert (await got(whole, other, cookie)).status_code in (401, 404), other


@pytest.mark.parametrize(
    "name",
    [
        "../../etc/passwd",
        'x"; filename="evil.exe',
        "a\r\nSet-Cookie: a=b",
        "\u202egpj.exe",
        "naïve ünïcode.txt",
        "%2e%2e%2fkoboshi.db",
        "." * 300,
        "",
        "\x00.txt",
    ],
)
async def test_a_hostile_name_is_one_plain_name(whole: WholeApi, name: str) -> None:
    """Issue 13, B15: nothing in it ends the header, leads elsewhere, or hides an ending."""
    (whole.folder / "files" / "kept").write_bytes(CONTENT)

    answer = await got(whole, await sent(whole, name, stored="files/kept"))

    assert answer.status_code == 200
    said = answer.headers["content-disposition"]
    assert said.isascii()
    assert said.isprintable()
    assert said.count('"') == 2
    assert "set-cookie" not in answer.headers
    plain = said.split('"')[1]
    assert plain
    assert not set(plain) & set('/\\;:\r\n"')
    assert not plain.startswith(".")


@pytest.mark.parametrize(
    "delivery",
    ["d999", "999", "d0", "d-1", "m1", "t1", "d1/../d1", "..%2f..", "../../web-token", "d1\x00",
     "d99999999999999999999", "D1", "d1 ", "koboshi.db", "files%2Fkept"],
)  # fmt: skip
async def test_an_id_that_is_none_finds_nothing(whole: WholeApi, delivery: str) -> None:
    """Issue 13, B15: only the id of a delivery of this chat names a file."""
    await sent(whole, "a.txt")

    answer = await got(whole, address("ann", delivery))

    assert answer.status_code in (400, 404)
    assert CONTENT not in answer.content


async def test_a_file_of_another_chat_is_not_given(whole: WholeApi) -> None:
    """Issue 13, B15: the id is good in its own chat only."""
    number = (await sent(whole, "a.txt", chat="ann")).rpartition("/")[2]

    for chat in ("bob", "", "ann%2F", "ANN", "..", "ann/"):
        assert (await got(whole, address(chat, number))).status_code in (400, 404)
    assert (await got(whole, address("ann", number))).status_code == 200


async def test_words_without_a_file_and_a_file_that_was_not_delivered_are_not_given(
    whole: WholeApi,
) -> None:
    """Issue 13, B15: what is still owed, or was given up, was sent to no one."""
    (whole.folder / "files" / "kept").write_bytes(CONTENT)
    number = await owe(whole, OutFile(path="files/kept", name="kept", size=len(CONTENT)))
    rows = read_rows(whole.folder).of("outbox")
    assert {str(row["state"]) for row in rows} == {DeliveryState.OWED}

    for each in {int(str(row["delivery_id"])) for row in rows} | {number}:
        assert (await got(whole, address("ann", f"d{each}"))).status_code == 404


@pytest.mark.parametrize(
    "stored",
    ["koboshi.db", "web-token", "../secret", "files/../web-token", "/etc/passwd", "files",
     "files/", "files/link", "files/folder", "files/pipe", "files/folder/inner", "files/gone",
     "files/./kept", "files/\x00"],
)  # fmt: skip
async def test_a_path_that_leads_elsewhere_is_not_followed(whole: WholeApi, stored: str) -> None:
    """Issue 13, B15: a row that names anything but a plain file in files/ gives nothing."""
    folder = whole.folder / "files"
    (whole.folder / "web-token").write_bytes(CONTENT)
    (whole.folder.parent / "secret").write_bytes(CONTENT)
    (folder / "kept").write_bytes(CONTENT)
    (folder / "link").symlink_to(whole.folder / "web-token")
    (folder / "folder").mkdir()
    (folder / "folder" / "inner").write_bytes(CONTENT)
    os.mkfifo(folder / "pipe")

    answer = await got(whole, await sent(whole, "a.txt", stored=stored))

    assert answer.status_code == 410
    assert CONTENT not in answer.content
    assert str(whole.folder) not in answer.text
