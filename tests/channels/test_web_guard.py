"""Who may talk to the web channel."""

import pytest

from koboshi.channels.web.channel import WebChannel
from koboshi.channels.web.guard import SAFE_HEADERS
from koboshi.channels.web.names import Names
from tests.channels.fakes import (
    TOKEN,
    WEB,
    FakeBrowsers,
    FakeClock,
    FakeGateway,
    FakeHealth,
    client_of,
    serving,
    web_channel,
)

STATUS = "/api/v1/status"
PATHS = ["/", "/healthz", "/readyz", STATUS, "/api/v1/openapi.json"]


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example", "localhost:x", "[::2]"])
async def test_another_name_is_refused_on_every_path(path: str, host: str) -> None:
    """A foreign name that points here (DNS rebinding) must not reach anything."""
    gateway = FakeGateway()
    async with serving(web_channel(gateway), gateway.accept) as url, client_of(url) as client:
        response = await client.get(path, headers={"Host": host})

    assert response.status_code == 421
    assert response.json()["error"]["type"] == "wrong-host"


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:8642", "127.0.0.1:1", "[::1]:8642"])
async def test_the_names_of_this_machine_are_served(host: str) -> None:
    gateway = FakeGateway()
    async with serving(web_channel(gateway), gateway.accept) as url, client_of(url) as client:
        response = await client.get(STATUS, headers={"Host": host})

    assert response.status_code == 200


@pytest.mark.parametrize(
    "headers,status",
    [
        ({"Origin": "http://localhost:8642"}, 200),
        ({"Origin": "http://localhost:8643"}, 403),
        ({"Origin": "https://evil.example"}, 403),
        ({"Origin": "null"}, 403),
        ({"Origin": ""}, 403),
        ({"Sec-Fetch-Site": "same-origin"}, 200),
        ({"Sec-Fetch-Site": "none"}, 200),
        ({"Sec-Fetch-Site": "same-site"}, 403),
        ({"Sec-Fetch-Site": "cross-site"}, 403),
    ],
)
async def test_pages_of_other_sites_may_not_call(headers: dict[str, str], status: int) -> None:
    gateway = FakeGateway()
    async with serving(web_channel(gateway), gateway.accept) as url, client_of(url) as client:
        response = await client.get(STATUS, headers={"Host": "localhost:8642"} | headers)

    assert response.status_code == status
    assert "access-control-allow-origin" not in response.headers


@pytest.mark.parametrize(
    "authorization",
    ["", "Bearer", f"Basic {TOKEN}", f"Bearer {TOKEN}x", f"Bearer {TOKEN[:-1]}", TOKEN],
)
async def test_everything_but_health_and_the_front_page_needs_the_token(authorization: str) -> None:
    gateway = FakeGateway()
    async with serving(web_channel(gateway), gateway.accept) as url, client_of(url) as client:
        client.headers["Authorization"] = authorization
        answers = {path: (await client.get(path)).status_code for path in [*PATHS, "/nowhere"]}
        post = await client.post("/api/v1/sessions/a/messages", json={"text": "hi"})
        events = await client.get("/api/v1/sessions/a/events")

    assert [answers[path] for path in PATHS] == [200, 200, 200, 401, 401]
    assert (answers["/nowhere"], post.status_code, events.status_code) == (401, 401, 401)
    assert post.headers["www-authenticate"] == "Bearer"
    assert TOKEN not in post.text


def test_a_channel_without_a_token_cannot_be_made() -> None:
    gateway = FakeGateway()
    with pytest.raises(ValueError, match="needs a token"):
        WebChannel(
            name=WEB,
            names=Names(),
            port=0,
            token="",
            browsers=FakeBrowsers(FakeClock()),
            views=gateway,
            wakeups=gateway.wakeups,
            health=FakeHealth(),
            clock=FakeClock(),
        )


async def test_every_answer_carries_the_careful_headers() -> None:
    gateway = FakeGateway()
    async with serving(web_channel(gateway), gateway.accept) as url, client_of(url) as client:
        answers = [await client.get(path) for path in [*PATHS, "/nowhere"]]
        answers.append(await client.get("/", headers={"Host": "evil.example"}))

    for answer in answers:
        assert {name.lower() for name in SAFE_HEADERS} <= set(answer.headers)
        assert "server" not in answer.headers


@pytest.mark.parametrize("is_alive,status", [(True, 200), (False, 503)])
async def test_healthz_tells_whether_the_process_makes_progress(
    is_alive: bool, status: int
) -> None:
    gateway = FakeGateway()
    channel = web_channel(gateway, health=FakeHealth(alive=is_alive))
    async with serving(channel, gateway.accept) as url, client_of(url, token="") as client:
        response = await client.get("/healthz")

    assert (response.status_code, response.json()) == (status, {"ok": is_alive})


async def test_readyz_gives_its_reasons_only_to_those_with_the_token() -> None:
    gateway = FakeGateway()
    health = FakeHealth(checks=(("store", True, ""), ("drain", False, "draining")))
    channel = web_channel(gateway, health=health)
    async with serving(channel, gateway.accept) as url, client_of(url) as client:
        told = await client.get("/readyz")
        client.headers["Authorization"] = ""
        hidden = await client.get("/readyz")

    assert (told.status_code, hidden.status_code) == (503, 503)
    assert hidden.json() == {"ok": False}
    assert told.json()["checks"][1] == {"name": "drain", "ok": False, "reason": "draining"}
