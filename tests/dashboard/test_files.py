"""The files of the page: what they weigh, and where what is not ours comes from."""

import gzip
import hashlib
import re
from pathlib import Path

import httpx2
from starlette.applications import Starlette

from koboshi.dashboard.files import contents, page_routes

ROOT = Path(__file__).resolve().parents[2]
FONT_SHA256 = "3100e775e8616cd2611beecfa23a4263d7037586789b43f035236a2e6fbd4c62"
"""inter-latin-wght-normal.woff2 of the npm package @fontsource-variable/inter 5.3.0."""


def asking() -> httpx2.AsyncClient:
    app = Starlette(routes=page_routes())
    return httpx2.AsyncClient(transport=httpx2.ASGITransport(app=app), base_url="http://page")


def test_the_font_is_the_one_that_is_noted_and_its_licence_is_beside_it() -> None:
    assert hashlib.sha256(contents()["inter.woff2"]).hexdigest() == FONT_SHA256
    assert b"SIL Open Font License" in contents()["inter.LICENSE.txt"]
    assert FONT_SHA256 in (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")


async def test_files_are_compressed_and_not_sent_twice() -> None:
    async with asking() as client:
        whole = await client.get("/static/base.css", headers={"Accept-Encoding": "identity"})
        packed = await client.get("/static/base.css")
        again = await client.get(
            "/static/base.css", headers={"If-None-Match": packed.headers["etag"]}
        )

    assert packed.headers["content-encoding"] == "gzip"
    assert packed.content == whole.content == contents()["base.css"]
    assert (again.status_code, again.content) == (304, b"")


def test_no_file_of_the_page_is_heavy() -> None:
    """The budget of the first view is counted with a browser; this finds which file grew."""
    heavy = {
        name: len(gzip.compress(content))
        for name, content in contents().items()
        if not name.startswith("inter") and len(gzip.compress(content)) > 8_000
    }
    assert heavy == {}


def test_the_page_has_no_style_in_its_markup() -> None:
    """The policy of the page would not let it through."""
    assert not re.search(rb"style=|<style", contents()["index.html"])
