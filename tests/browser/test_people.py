"""Who uses the gateway, and as what, on the page."""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from playwright.sync_api import Browser, expect

from tests.browser.visit import link_of, visiting
from tests.cli.knocking import strangers_knock
from tests.cli.process import gateway, koboshi
from tests.harness.backends import nth_code


def test_the_page_shows_people_with_their_roles(browser: Browser, tmp_path: Path) -> None:
    """Issue 15, item 6. What they call themselves is text, and nothing else."""
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    # The browser has a loop of its own in this thread.
    with ThreadPoolExecutor(1) as thread:
        thread.submit(asyncio.run, strangers_knock(home, "111", "222")).result()
    assert koboshi("pairing", "approve", nth_code(1), "--role", "owner", home=home).code == 0
    with gateway(home) as one, visiting(browser) as visit:
        visit.open(link_of(one))
        visit.go("#/settings")
        rows = visit.page.locator(".rows li", has_text="telegram:main")
        expect(rows).to_have_count(2)
        expect(rows.filter(has_text="telegram:main 111").locator(".chip")).to_have_text("owner")
        expect(rows.filter(has_text="telegram:main 222").locator(".chip")).to_have_text("asks")
        assert nth_code(2) not in visit.page.content()
        visit.picture("people")

        assert koboshi("people", "role", "telegram:main", "111", "member", home=home).code == 0
        visit.page.reload()
        expect(rows.filter(has_text="telegram:main 111").locator(".chip")).to_have_text("member")
        assert visit.errors == []
