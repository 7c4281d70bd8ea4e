"""What works for a turn, and what it is worked on with: sub-agents, models and the budget."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from playwright.sync_api import Browser, expect

from tests.browser.visit import ENDLESS, link_of, visiting
from tests.cli.process import gateway
from tests.crash.stories import delegates, script

SPENT = json.dumps({"error": {"message": "no <b>credit</b>", "code": "insufficient_quota"}})


class Spent(BaseHTTPRequestHandler):
    """A provider whose credit is used up: it is left alone for minutes."""

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(429)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(SPENT)))
        self.end_headers()
        self.wfile.write(SPENT.encode())

    def log_message(self, format: str, *args: object) -> None:
        """Nothing is said of requests."""


@contextmanager
def spent_provider() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Spent)
    serving = threading.Thread(target=server.serve_forever)
    serving.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/v1"
    finally:
        server.shutdown()
        serving.join()
        server.server_close()


def test_the_page_shows_sub_agents_below_the_turn_that_they_work_for(
    browser: Browser, tmp_path: Path
) -> None:
    deeper = script(delegates(ENDLESS), {"text": "it is asked"})
    with gateway(tmp_path / "home") as one, visiting(browser) as visit:
        visit.open(link_of(one))
        visit.say(script(delegates("echo <b>one</b>", deeper), {"text": "all are asked"}))
        expect(visit.answers.filter(has_text="all are asked").first).to_be_visible()
        visit.go("#/turns/t1")
        family = visit.page.locator(".family li")
        expect(family).to_have_count(4)
        expect(family.nth(0)).to_contain_text("t1")
        expect(family.nth(1)).to_contain_text("a1 «echo <b>one</b>»")
        expect(family.nth(2)).to_contain_text("a2")
        expect(family.nth(3)).to_contain_text("a3")
        expect(family.nth(3)).to_contain_text("work")
        places = [each.evaluate("it => getComputedStyle(it).paddingLeft") for each in family.all()]
        assert places == ["0px", "24px", "24px", "48px"]
        visit.picture("family")

        family.nth(3).get_by_role("link").click()
        expect(family.locator("b")).to_have_text("a3")
        expect(visit.page.locator(".summary")).to_contain_text("never said")
        visit.picture("family-deepest")


def test_the_page_shows_the_chain_with_its_benches_and_the_budget(
    browser: Browser, tmp_path: Path
) -> None:
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    with spent_provider() as address:
        (home / "koboshi.toml").write_text(
            '[model]\nchain = ["first", "scripted"]\n'
            f'[models.first]\nmodel = "openai:one"\nbase_url = "{address}"\n'
            '[budget]\nunit = "tokens"\nday = 100000\n'
        )
        with gateway(home) as one, visiting(browser) as visit:
            visit.open(link_of(one))
            visit.say("echo hello")
            expect(visit.answers.filter(has_text="hello")).to_be_visible()
            for place in ("health", "settings"):
                visit.go(f"#/{place}")
                checks = visit.page.locator(".checks li")
                benched = checks.filter(has_text="model:first")
                expect(benched).to_have_class("bad")
                expect(benched).to_contain_text("credit")
                expect(checks.filter(has_text="model:scripted")).to_have_class("ok")
                budget = checks.filter(has_text="budget")
                expect(budget).to_have_class("ok")
                expect(budget).to_contain_text("of today's 100")
                visit.picture(f"chain-{place}")
