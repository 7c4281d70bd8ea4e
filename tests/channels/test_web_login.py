"""How a browser is let in, and what it may not do without that."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from http.cookies import SimpleCookie

import httpx2
import pytest

from koboshi.channels.web.channel import WebChannel
from koboshi.channels.web.login import CODE_SECONDS, CODES_MAX, PROOF
from koboshi.domain.browser import IDLE_MS, LIFE_MS, USE_NOTED_MS
from tests.channels.fakes import (
    FakeBrowsers,
    FakeClock,
    FakeGateway,
    client_of,
    serving,
    web_channel,
)

STATUS = "/api/v1/status"
LOGIN = "/api/v1/login"
MESSAGES = "/api/v1/sessions/a/messages"
KEY = {"Idempotency-Key": "k1"}


@asynccontextmanager
async def a_visit(
    channel: WebChannel, gateway: FakeGateway
) -> AsyncIterator[tuple[httpx2.AsyncClient, dict[str, str]]]:
    """A client without the token, and the headers of a page that was let in."""
    async with serving(channel, gateway.accept) as url, client_of(url, token="") as client:
        answer = await client.post(LOGIN, json={"code": code_of(channel)})
        assert answer.status_code == 200, answer.text
        client.cookies.clear()
        cookie = answer.headers["set-cookie"].partition(";")[0]
        shown = {"Cookie": cookie, PROOF: answer.json()["proof"], "Origin": url}
        yield client, shown


def code_of(channel: WebChannel) -> str:
    link = channel.login_link()
    assert link is not None
    return link.partition("#")[2]


def without(headers: dict[str, str], name: str) -> dict[str, str]:
    return {each: value for each, value in headers.items() if each != name}


async def test_the_link_holds_its_code_where_browsers_do_not_send_it() -> None:
    gateway = FakeGateway()
    channel = web_channel(gateway)
    assert channel.login_link() is None
    async with serving(channel, gateway.accept) as url:
        link = channel.login_link()

    assert link is not None
    assert link.startswith(f"{url}/login#")


async def test_a_browser_that_was_let_in_may_look_and_write() -> None:
    gateway = FakeGateway()
    async with a_visit(web_channel(gateway), gateway) as (client, shown):
        looked = await client.get(STATUS, headers=without(shown, "Origin"))
        wrote = await client.post(MESSAGES, json={"text": "hi"}, headers=shown | KEY)

    assert (looked.status_code, wrote.status_code) == (200, 202)


async def test_the_cookie_is_out_of_reach_of_scripts_and_other_sites() -> None:
    gateway = FakeGateway()
    channel = web_channel(gateway)
    async with serving(channel, gateway.accept) as url, client_of(url, token="") as client:
        answer = await client.post(LOGIN, json={"code": code_of(channel)})

    (cookie,) = SimpleCookie(answer.headers["set-cookie"]).values()
    assert (cookie["httponly"], cookie["samesite"], cookie["path"]) == (True, "Strict", "/api/")
    assert int(cookie["max-age"]) == IDLE_MS // 1000
    assert answer.json()["proof"] not in answer.headers["set-cookie"]


async def test_a_code_works_once() -> None:
    gateway = FakeGateway()
    channel = web_channel(gateway)
    async with serving(channel, gateway.accept) as url, client_of(url, token="") as client:
        code = code_of(channel)
        answers = [await client.post(LOGIN, json={"code": code}) for _ in range(2)]

    assert [answer.status_code for answer in answers] == [200, 403]
    assert answers[1].json()["error"]["type"] == "no-login"
    assert "set-cookie" not in answers[1].headers


@pytest.mark.parametrize("passed_s,status", [(CODE_SECONDS - 1, 200), (CODE_SECONDS, 403)])
async def test_a_code_is_good_for_a_while(passed_s: float, status: int) -> None:
    gateway, clock = FakeGateway(), FakeClock()
    channel = web_channel(gateway, clock=clock)
    async with serving(channel, gateway.accept) as url, client_of(url, token="") as client:
        code = code_of(channel)
        clock.passed_s = passed_s
        answer = await client.post(LOGIN, json={"code": code})

    assert answer.status_code == status


async def test_only_the_newest_codes_are_good() -> None:
    gateway = FakeGateway()
    channel = web_channel(gateway)
    async with serving(channel, gateway.accept) as url, client_of(url, token="") as client:
        codes = [code_of(channel) for _ in range(CODES_MAX + 1)]
        answers = [await client.post(LOGIN, json={"code": code}) for code in codes[:2]]

    assert [answer.status_code for answer in answers] == [403, 200]


@pytest.mark.parametrize("body", [b"", b"{}", b'{"code": 1}', b"\xff", b'{"code": "' + b"x" * 2000])
async def test_what_is_no_login_is_refused(body: bytes) -> None:
    gateway = FakeGateway()
    async with (
        serving(web_channel(gateway), gateway.accept) as url,
        client_of(url, token="") as client,
    ):
        answer = await client.post(LOGIN, content=body)

    assert answer.status_code in (400, 413)


@pytest.mark.parametrize("missing", ["Cookie", PROOF])
async def test_neither_half_is_enough(missing: str) -> None:
    """Another port of this machine is sent the cookie, and could replay it; it has no proof."""
    gateway = FakeGateway()
    async with a_visit(web_channel(gateway), gateway) as (client, shown):
        looked = await client.get(STATUS, headers=without(shown, missing))
        wrote = await client.post(
            MESSAGES, json={"text": "hi"}, headers=without(shown, missing) | KEY
        )

    assert (looked.status_code, wrote.status_code) == (401, 401)
    assert gateway.stored == {}


async def test_halves_of_two_visits_do_not_fit() -> None:
    gateway = FakeGateway()
    channel = web_channel(gateway)
    async with a_visit(channel, gateway) as (client, shown):
        other = await client.post(LOGIN, json={"code": code_of(channel)})
        client.cookies.clear()
        answer = await client.get(STATUS, headers=shown | {PROOF: other.json()["proof"]})

    assert answer.status_code == 401


async def test_a_cookie_that_was_changed_is_worth_nothing() -> None:
    gateway = FakeGateway()
    async with a_visit(web_channel(gateway), gateway) as (client, shown):
        name, _, value = shown["Cookie"].partition("=")
        forged = [f"{value}x", value[:-1], value.swapcase(), ""]
        answers = [
            await client.get(STATUS, headers=shown | {"Cookie": f"{name}={each}"})
            for each in forged
        ]

    assert [answer.status_code for answer in answers] == [401] * 4


async def test_a_page_that_changes_something_must_say_where_it_comes_from() -> None:
    gateway = FakeGateway()
    async with a_visit(web_channel(gateway), gateway) as (client, shown):
        answer = await client.post(
            MESSAGES, json={"text": "hi"}, headers=without(shown, "Origin") | KEY
        )

    assert answer.status_code == 401
    assert gateway.stored == {}


@pytest.mark.parametrize(
    "header,value,status",
    [
        ("Origin", "https://evil.example", 403),
        ("Origin", "http://127.0.0.1:1", 403),
        ("Origin", "null", 403),
        ("Sec-Fetch-Site", "cross-site", 403),
        ("Sec-Fetch-Site", "same-site", 403),
        ("Host", "evil.example", 421),
    ],
)
async def test_a_cookie_does_not_help_another_site(header: str, value: str, status: int) -> None:
    gateway = FakeGateway()
    async with a_visit(web_channel(gateway), gateway) as (client, shown):
        looked = await client.get(STATUS, headers=shown | {header: value})
        wrote = await client.post(
            MESSAGES, json={"text": "hi"}, headers=shown | KEY | {header: value}
        )
        entered = await client.post(LOGIN, json={"code": "x"}, headers={header: value})

    assert [each.status_code for each in (looked, wrote, entered)] == [status] * 3
    assert gateway.stored == {}


async def test_a_cookie_outlives_the_gateway_and_not_the_token() -> None:
    gateway, kept = FakeGateway(), FakeBrowsers(FakeClock())
    async with a_visit(web_channel(gateway, browsers=kept), gateway) as (_, shown):
        pass
    second = web_channel(gateway, browsers=kept)
    async with serving(second, gateway.accept) as url, client_of(url, token="") as client:
        again = await client.get(STATUS, headers=without(shown, "Origin"))
    changed = web_channel(gateway, token="another-token", browsers=kept)
    async with serving(changed, gateway.accept) as url, client_of(url, token="") as client:
        over = await client.get(STATUS, headers=without(shown, "Origin"))

    assert (again.status_code, over.status_code) == (200, 401)


async def test_a_cookie_that_is_used_is_renewed_and_one_that_is_not_ends() -> None:
    gateway, clock = FakeGateway(), FakeClock()
    async with a_visit(web_channel(gateway, clock=clock), gateway) as (client, shown):
        fresh = await client.get(STATUS, headers=shown)
        clock.passed_s = USE_NOTED_MS // 1000 + 1
        used = await client.get(STATUS, headers=shown)
        client.cookies.clear()
        clock.passed_s += IDLE_MS // 1000 - 1
        goes_on = await client.get(STATUS, headers=shown)
        client.cookies.clear()
        clock.passed_s += IDLE_MS // 1000
        over = await client.get(STATUS, headers=shown)

    assert "set-cookie" not in fresh.headers
    assert used.headers["set-cookie"].startswith(shown["Cookie"])
    assert (goes_on.status_code, over.status_code) == (200, 401)


async def test_a_browser_is_out_after_thirty_days_however_much_it_is_used() -> None:
    """Issue 15, V10."""
    gateway, clock = FakeGateway(), FakeClock()
    statuses = []
    async with a_visit(web_channel(gateway, clock=clock), gateway) as (client, shown):
        while clock.passed_s <= LIFE_MS // 1000:
            statuses.append((await client.get(STATUS, headers=shown)).status_code)
            client.cookies.clear()
            clock.passed_s += IDLE_MS // 1000 // 2

    assert statuses == [200] * (len(statuses) - 1) + [401]


async def test_a_browser_that_logs_out_is_out_and_told_to_forget_the_cookie() -> None:
    """Issue 15, V10: a copy of cookie and proof is worth nothing afterwards."""
    gateway = FakeGateway()
    async with a_visit(web_channel(gateway), gateway) as (client, shown):
        answer = await client.post("/api/v1/logout", headers=shown)
        stranger = await client.post("/api/v1/logout", headers={"Origin": shown["Origin"]})
        copied = await client.get(STATUS, headers=shown)

    assert copied.status_code == 401
    assert "Max-Age=0" in answer.headers["set-cookie"]
    assert stranger.status_code == 401
