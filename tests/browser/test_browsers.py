"""Browsers that are let in, as a person at one meets them."""

from pathlib import Path

from playwright.sync_api import Browser, Page, Request, expect

from tests.browser.visit import link_of, visiting
from tests.cli.process import gateway
from tests.harness.impostor import impostor

LOOK_EVERY_MS = 20


def test_a_browser_lets_another_one_out(browser: Browser, tmp_path: Path) -> None:
    """Issue 15, V10: listed and revoked on the page."""
    with gateway(tmp_path / "home") as one, visiting(browser) as desk, visiting(browser) as phone:
        phone.open(link_of(one))
        desk.open(link_of(one))
        desk.go("#/settings")
        expect(desk.page.locator(".rows li")).to_have_count(2)
        expect(desk.page.locator(".rows").last).to_contain_text("Chrome on Linux")
        desk.page.locator(".rows li", has_text="b1").get_by_role("button", name="Revoke").click()
        expect(desk.page.locator(".rows li")).to_have_count(1)
        phone.page.reload()

        expect(phone.page.get_by_text("This browser is not logged in")).to_be_visible()
        assert desk.errors == []


def test_an_open_page_sends_nothing_to_another_program_on_the_port(
    browser: Browser, tmp_path: Path
) -> None:
    """Issue 15, V7: cookie and proof stay here while something else answers."""
    with gateway(tmp_path / "home") as one, visiting(browser) as visit:
        _, port = one.wait_serving()
        under_way = requests_of(visit.page)
        visit.open(link_of(one))
        # Chromium itself sends a request again whose connection broke under it.
        while [each for each in under_way if "/events" not in each.url]:
            visit.page.wait_for_timeout(LOOK_EVERY_MS)
        proof = visit.page.evaluate("localStorage.getItem('koboshi.proof')")
        one.kill()
        with impostor(port) as other:
            expect(visit.page.get_by_text("This browser is not logged in")).to_be_visible()

    assert b"/api/v1/identity" in other.heard
    assert b"Cookie:" not in other.heard
    assert proof.encode() not in other.heard
    assert b"X-Koboshi-Proof" not in other.heard


def requests_of(page: Page) -> set[Request]:
    """Those that have no answer yet, from now on."""
    under_way: set[Request] = set()
    page.on("request", lambda request: under_way.add(request))
    page.on("requestfinished", lambda request: under_way.discard(request))
    page.on("requestfailed", lambda request: under_way.discard(request))
    return under_way
