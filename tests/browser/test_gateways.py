"""All gateways of one database on the page of any of them."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from tests.browser.visit import Visit, visiting
from tests.cli.process import koboshi, until
from tests.harness.fleet import Fleet, a_fleet
from tests.harness.postgres_backend import DATABASES

SLOWLY = 'script: [{"text":"done slowly","sleep_ms":5000}]'
CHATS_MAX = 20


@pytest.fixture
def fleet(tmp_path: Path) -> Iterator[Fleet]:
    database = DATABASES.take()
    with a_fleet(tmp_path, database, "a", "b", lease_s=2) as found:
        yield found
    database.opened()
    DATABASES.give_back(database)


def start(fleet: Fleet, name: str, **env: str) -> None:
    gateway = fleet[name].gateway
    gateway.start(arguments=("--accept-data-loss",), env=env)
    until(lambda: gateway.address, f"{name} listens")


def command(fleet: Fleet, name: str, *words: str) -> str:
    gateway = fleet[name].gateway
    said = koboshi(*words, home=gateway.home, **gateway.environment)
    assert said.code == 0, said.err
    return said.out


def talk_until_at_b(fleet: Fleet, there: Visit) -> str:
    """The place of a chat that belongs to B."""
    for number in range(CHATS_MAX):
        if number:
            there.press("New chat")
        there.say("echo hello")
        expect(there.answers.filter(has_text="hello")).to_have_count(1)
        if fleet.rows("SELECT node FROM sessions ORDER BY session_id DESC LIMIT 1") == [("b",)]:
            place: str = there.page.evaluate("location.hash")
            return place
    raise AssertionError("every chat was taken by A")


def test_the_page_of_one_gateway_shows_all_of_them_and_one_that_died_is_gone(
    browser: Browser, fleet: Fleet
) -> None:
    """Issue 16: which gateways there are, their last sign of life, what each holds, and where they
    are configured differently. The one that works is killed, and the answer arrives on the page of
    the other, once."""
    start(fleet, "a")
    start(fleet, "b", KOBOSHI__GATEWAY__MAX_TURNS="5")
    with visiting(browser) as visit, visiting(browser) as there:
        visit.open(command(fleet, "a", "open").strip())
        there.open(command(fleet, "b", "open").strip())
        chat = talk_until_at_b(fleet, there)
        visit.go(chat)
        visit.say(SLOWLY)
        expect(visit.mine.filter(has_text="done slowly")).to_be_visible()
        visit.place("Health")
        rows = visit.page.locator(".gateways > li")
        expect(rows).to_have_count(2)
        expect(rows.nth(0)).to_contain_text("this page")
        expect(rows.nth(0)).to_contain_text("last heard of")
        expect(rows.nth(1)).to_contain_text("Configured otherwise than a: gateway")
        expect(rows.nth(1)).to_contain_text("1 turn")
        expect(visit.page.locator(".aside", has_text="ms away")).to_contain_text("PostgreSQL")
        visit.picture("gateways")

        told = command(fleet, "a", "status")
        assert "node       a: boot 1" in told
        assert "node       b: boot 2" in told
        assert "configured otherwise: gateway" in told

        fleet["b"].gateway.kill()
        expect(rows).to_have_count(1)
        expect(rows.nth(0)).to_contain_text("1 turn")
        visit.go(chat)
        expect(visit.answers.filter(has_text="done slowly")).to_have_count(1)
        visit.picture("gateways-taken-over")
        there.errors.clear()  # its gateway is dead
