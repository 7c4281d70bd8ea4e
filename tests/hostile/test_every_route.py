"""The rules for who may call, over every route that there is: a new one is held to them without
any person thinking of it."""

import ast
from collections.abc import AsyncIterator, Mapping
from pathlib import Path

import pytest
from anyio import fail_after
from starlette.routing import Route

import koboshi
from koboshi.channels.web.guard import FILE_PATH, SAFE_HEADERS
from koboshi.channels.web.openapi import document
from tests.channels.fakes import TOKEN
from tests.harness.backends import Limits, SqliteBackend
from tests.harness.homes import Home, a_world
from tests.hostile.whole_api import ADDRESS, WholeApi

OPEN = {"/", "/login", "/healthz", "/readyz", "/static/app.js"}
"""What may be seen without being let in. Adding to this list is a decision."""
CHALLENGED = "/api/v1/identity"
"""Proves who we are, and tells nothing else; without a challenge it answers 400."""
ENTRANCE = ("POST", "/api/v1/login")
STREAMS = ("/events",)
SAFE = {"GET", "HEAD"}
BEARER = {"Authorization": f"Bearer {TOKEN}"}


@pytest.fixture
async def whole(tmp_path: Path) -> AsyncIterator[WholeApi]:
    home = Home(backend=SqliteBackend(tmp_path), world=a_world(), limits=Limits())
    await home.boot()
    yield WholeApi(home, folder=tmp_path)
    await home.store.close()


async def statuses(
    whole: WholeApi, headers: Mapping[str, str], suffix: str = ""
) -> dict[tuple[str, str], int]:
    """How each request is answered."""
    told = {}
    async with whole.client() as client:
        for method, path in whole.requests():
            with fail_after(60):
                answer = await client.request(method, path + suffix, headers=headers)
            told[method, path] = answer.status_code
    return told


def is_open(method: str, path: str) -> bool:
    return (method in SAFE and path in OPEN | {CHALLENGED}) or (method, path) == ENTRANCE


WRONG_TOKENS: list[dict[str, str]] = [
    {},
    {"Authorization": ""},
    {"Authorization": "Bearer"},
    {"Authorization": "Bearer "},
    {"Authorization": f"Bearer {TOKEN[:-1]}"},
    {"Authorization": f"Bearer {TOKEN[:1]}"},
    {"Authorization": f"Bearer {TOKEN}x"},
    {"Authorization": f"Bearer {TOKEN.swapcase()}"},
    {"Authorization": f"Basic {TOKEN}"},
    {"Authorization": TOKEN},
    {"X-Authorization": f"Bearer {TOKEN}"},
    {"Cookie": f"token={TOKEN}"},
    {"X-Koboshi-Proof": TOKEN},
]


async def test_without_the_token_only_the_open_pages_are_seen(whole: WholeApi) -> None:
    for headers in WRONG_TOKENS:
        told = await statuses(whole, headers, suffix=f"?token={TOKEN}&access_token={TOKEN}")
        closed = {request: status for request, status in told.items() if not is_open(*request)}
        assert set(closed.values()) == {401}, (headers, closed)
        assert all(status == 200 for request, status in told.items() if request[1] in OPEN), told
    assert whole.done == []


OTHER_NAMES = [
    "evil.example",
    "localhost.evil.example:8642",
    "127.0.0.1.evil.example",
    "evil.example@localhost",
    "localhost:8642@evil.example",
    "localhost:",
    "localhost:123456",
    "localhost:8642 ",
    "0.0.0.0:8642",
    "127.1:8642",
    "2130706433",
    "[::]:8642",
    "[::ffff:127.0.0.1]",
    "",
]


async def test_no_route_answers_to_another_name(whole: WholeApi) -> None:
    """DNS rebinding: the name is theirs, the address ours, and the token may be known."""
    for host in OTHER_NAMES:
        told = await statuses(whole, BEARER | {"Host": host})
        assert set(told.values()) == {421}, (host, told)
    assert whole.done == []


OTHER_SITES = [
    "https://evil.example",
    "http://localhost:8643",
    "http://localhost",
    "http://localhost:8642.evil.example",
    "http://evil.example/http://localhost:8642",
    "chrome-extension://localhost:8642",
    "//localhost:8642",
    "localhost:8642",
    "null",
    "",
]


async def test_no_route_is_called_by_a_page_of_another_site(whole: WholeApi) -> None:
    for origin in OTHER_SITES:
        told = await statuses(whole, BEARER | {"Origin": origin})
        assert set(told.values()) == {403}, (origin, told)
    assert whole.done == []


async def test_a_browser_that_comes_from_elsewhere_sees_only_open_pages(whole: WholeApi) -> None:
    """A link to the page may be anywhere; everything else is called by the page alone."""
    for site in ("cross-site", "same-site", "other"):
        told = await statuses(whole, BEARER | {"Sec-Fetch-Site": site})
        closed = {request: status for request, status in told.items() if request[1] not in OPEN}
        assert set(closed.values()) == {403}, (site, closed)
    assert whole.done == []


async def test_half_of_what_a_page_must_show_is_worth_nothing(whole: WholeApi) -> None:
    """Issue 13, B15: but for a file that was sent or uploaded, where a good cookie is enough."""
    both = await whole.let_in()
    other = await whole.let_in()
    halves: list[dict[str, str]] = [
        {"Cookie": both["Cookie"]},
        {"X-Koboshi-Proof": both["X-Koboshi-Proof"]},
        {"Cookie": both["Cookie"], "X-Koboshi-Proof": other["X-Koboshi-Proof"]},
        {"Cookie": both["Cookie"][:-1], "X-Koboshi-Proof": both["X-Koboshi-Proof"]},
    ]
    for headers in halves:
        told = await statuses(whole, headers | {"Origin": ADDRESS})
        closed = {request: status for request, status in told.items() if not is_open(*request)}
        files = [
            request for request in closed if request[0] in SAFE and FILE_PATH.fullmatch(request[1])
        ]
        by_cookie = {closed.pop(request) for request in files}
        assert files
        assert by_cookie == ({404} if headers.get("Cookie") == both["Cookie"] else {401})
        assert set(closed.values()) == {401}, (headers, closed)
    assert whole.done == []


async def test_a_page_changes_nothing_without_saying_where_it_is_from(whole: WholeApi) -> None:
    """What a form of another site, or an old browser, can send is never enough."""
    async with whole.client() as client:
        told = {
            (method, path): (
                await client.request(method, path, headers=(await whole.let_in()))
            ).status_code
            for method, path in whole.requests()
            if method not in SAFE
        }

    assert told.pop(ENTRANCE) == 400, "it has no body here"
    assert set(told.values()) == {401}, told
    assert whole.done == []


async def test_a_page_that_was_let_in_is_let_in_everywhere(whole: WholeApi) -> None:
    """So that none of the refusals above is for lack of a route."""
    shown = {"Origin": ADDRESS, "Sec-Fetch-Site": "same-origin"}
    async with whole.client() as client:
        for method, path in whole.requests():
            # Logging out is among them.
            headers = (await whole.let_in()) | shown
            if path.endswith(STREAMS):
                method = "HEAD"  # it would not end
            answer = await client.request(method, path, headers=headers)
            assert answer.status_code not in (401, 403, 405, 421, 500), (method, path)
    assert "kill" in whole.done


async def test_every_answer_is_careful(whole: WholeApi) -> None:
    """Those that refuse as well. A page may load nothing that is not ours and run nothing that is
    written into it."""
    strange = [("GET", "/nowhere"), ("TRACE", "/"), ("OPTIONS", "/api/v1/status"), ("PUT", "/")]
    async with whole.client() as client:
        for method, path in [*whole.requests(), *strange]:
            for headers in ({}, BEARER, BEARER | {"Host": "evil.example"}):
                if headers == BEARER and path.endswith(STREAMS):
                    continue  # it would not end
                answer = await client.request(method, path, headers=headers)
                assert {name.lower() for name in SAFE_HEADERS} <= set(answer.headers), path
                assert "access-control-allow-origin" not in answer.headers
                policy = answer.headers["content-security-policy"]
                assert policy.startswith("default-src 'none'")
                assert "frame-ancestors 'none'" in policy
                assert "unsafe" not in policy
                assert "*" not in policy
                assert TOKEN not in answer.text


async def test_a_cookie_is_only_for_the_api_and_never_for_scripts(whole: WholeApi) -> None:
    async with whole.client() as client:
        body = {"code": whole.logins.make_code()}
        answer = await client.post("/api/v1/login", json=body)
        left = await client.post("/api/v1/logout", headers=BEARER)

    assert answer.status_code == 200
    for cookie in (answer.headers["set-cookie"], left.headers["set-cookie"]):
        assert {"HttpOnly", "SameSite=Strict", "Path=/api/"} <= set(cookie.split("; ")[1:])
        assert "Domain" not in cookie
        assert TOKEN not in cookie
    assert "Max-Age=0" in left.headers["set-cookie"]


async def test_everything_that_is_served_is_described(whole: WholeApi) -> None:
    """But for the page itself, which is for people."""
    api = whole.api()
    described = document(api.pages, "cookie")["paths"]
    told = {(path, method.upper()) for path, methods in described.items() for method in methods}
    pages = ("/", "/login", "/static/{name:path}")
    served = {
        (route.path.replace(":path}", "}"), method)
        for route in api.routes()
        if isinstance(route, Route) and route.path not in pages
        for method in (route.methods or set()) - {"HEAD"}
    }

    assert told == served


def test_secrets_are_never_compared_letter_by_letter() -> None:
    """An answer that comes a little sooner tells how much of a guess was right."""
    telling = {"token", "secret", "proof", "mac", "cookie", "given", "shown"}
    root = Path(koboshi.__file__).parent / "channels"
    offences = []
    for path in (*root.glob("web/*.py"), *root.glob("telegram/webhook.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            is_equality = isinstance(node, ast.Compare) and any(
                isinstance(how, ast.Eq | ast.NotEq) for how in node.ops
            )
            names = {each.id for each in ast.walk(node) if isinstance(each, ast.Name)}
            names |= {each.attr for each in ast.walk(node) if isinstance(each, ast.Attribute)}
            if is_equality and names & telling:
                offences.append(f"{path.name}: {ast.unparse(node)}")

    assert offences == []
