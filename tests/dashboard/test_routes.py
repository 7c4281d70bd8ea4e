"""What the page asks, answered by the very function that answers the command line."""

import re
from collections.abc import AsyncIterator, Mapping
from pathlib import Path

import httpx2
import pytest
from starlette.applications import Starlette
from starlette.routing import Route

from koboshi.dashboard.describe import paths
from koboshi.dashboard.files import KINDS, contents
from koboshi.dashboard.operation import BASE
from koboshi.domain.ids import DeliveryId
from koboshi.domain.outbox import DeliveryState
from tests.harness.asked_page import asked, dashboard
from tests.harness.backends import Limits, SqliteBackend
from tests.harness.homes import Home, a_world

FONT = "inter.woff2"


@pytest.fixture
async def home(tmp_path: Path) -> AsyncIterator[Home]:
    one = Home(backend=SqliteBackend(tmp_path), world=a_world(), limits=Limits())
    await one.boot()
    yield one
    await one.store.close()


async def test_sessions_are_paged_and_searched(home: Home) -> None:
    for number in range(5):
        await home.say(chat=f"chat-{number}")
    board = dashboard(home)

    _, first = await asked(board, "sessions", limit=3)
    _, second = await asked(board, "sessions", limit=3, before=first["next"])
    _, found = await asked(board, "sessions", chat="chat-3")

    chats = [session["route"]["chat"] for page in (first, second) for session in page["sessions"]]
    assert chats == [f"chat-{number}" for number in (4, 3, 2, 1, 0)]
    assert [session["route"]["chat"] for session in found["sessions"]] == ["chat-3"]
    assert found["next"] is None


async def test_a_turn_is_told_with_its_steps_calls_and_verdicts(home: Home) -> None:
    claim = await home.work_on("hello")
    await home.step(claim)
    verdict = await home.die_and_recover(claim.turn_id)

    status, told = await asked(dashboard(home), f"turns/t{claim.turn_id}")

    assert status == 200
    assert [step["kind"] for step in told["steps"]][:3] == ["message", "reply", "result"]
    assert told["calls"][0]["outcome"] == "ok"
    (decided,) = [line for line in told["lines"] if line["rule"] == verdict.rule]
    assert decided["words"] == "taken up again after the gateway had died (rule fresh)"


async def test_the_inbox_says_what_became_of_each_message(home: Home) -> None:
    claim = await home.work_on("hello")
    await home.say("behind it")
    await home.ask(claim)
    board = dashboard(home)

    _, told = await asked(board, "inbox")

    behind, first = told["messages"]
    assert (first["turn"]["state"], first["fate"]) == ("waiting", None)
    assert (behind["turn"], behind["fate"]) == (None, None)
    _, why = await asked(board, "explain/m1")
    assert why["reason"]["words"] == "it asked «which one?» and waits for the answer"
    assert [step["kind"] for step in why["steps"]] == ["message", "reply", "question"]


async def test_what_is_wrong_now_is_told_with_what_helps(home: Home) -> None:
    _, well = await asked(dashboard(home), "troubles")
    _, down = await asked(dashboard(home, troubles={"telegram:main": "no route"}), "troubles")

    assert well["troubles"] == []
    (trouble,) = down["troubles"]
    assert trouble["words"] == "telegram:main cannot be reached: no route"
    assert "koboshi doctor --online" in trouble["remedy"]


@pytest.mark.parametrize("path", ["turns/t9", "turns/s1", "sessions/s9", "inbox/m9", "outbox/d9"])
async def test_what_is_not_there_is_not_found(home: Home, path: str) -> None:
    status, told = await asked(dashboard(home), path)

    assert (status, told["error"]["type"]) == (404, "not-found")


async def test_what_is_owed_is_dropped_by_the_verb_of_the_command_line(home: Home) -> None:
    claim = await home.work_on("hello")
    await home.answer(claim, "never sent")
    board = dashboard(home)

    status, told = await asked(board, "outbox/d1/drop", "POST")
    again, refused = await asked(board, "outbox/d1/drop", "POST")

    assert (status, told["delivery"]["state"]) == (200, DeliveryState.ABANDONED)
    assert (again, refused["error"]["type"]) == (409, "refused")
    delivery = await home.store.views.delivery(DeliveryId(1))
    assert delivery is not None
    assert delivery.state == DeliveryState.ABANDONED


async def test_what_waits_is_dropped_and_asked_again_by_the_verbs_of_the_command_line(
    home: Home,
) -> None:
    await home.work_on("hello")
    await home.say("and this")
    board = dashboard(home)

    status, told = await asked(board, "inbox/m2/drop", "POST")
    again, refused = await asked(board, "inbox/m2/drop", "POST")
    asked_again, new = await asked(board, "inbox/m2/retry", "POST")
    _, listed = await asked(board, "inbox")

    assert (status, told["message"]["reason"]) == (200, "by-hand")
    assert (again, refused["error"]["type"]) == (409, "refused")
    assert (asked_again, new["message"]["state"]) == (200, "waiting")
    fate = listed["messages"][1]["fate"]
    assert fate["words"] == "dropped: the operator dropped it while it waited (by-hand)"
    assert "`koboshi inbox retry m2`" in fate["remedy"]


async def test_questions_chats_and_boots_are_told(home: Home) -> None:
    claim = await home.work_on("hello")
    await home.ask(claim)
    board = dashboard(home)

    assert (await asked(board, "questions"))[1]["questions"][0]["text"] == "which one?"
    assert (await asked(board, "chats"))[1]["chats"][0]["chat"] == "ann"
    assert (await asked(board, "workers"))[1]["workers"][0]["ended_how"] is None
    assert (await asked(board, "journal", open=1))[1]["lines"][0]["subject"] == "worker"


async def test_a_program_with_the_token_gives_no_person_access(home: Home) -> None:
    """Only an owner does, at a browser that the operator let in, or in a terminal."""
    board = dashboard(home)
    whole = {"code": "ABCD2345", "role": "owner", "channel": "telegram:main", "person": "1"}
    transport = httpx2.ASGITransport(app=Starlette(routes=board.routes()))
    bearer = {"Authorization": "Bearer some"}
    for word in ("approve", "deny", "role", "revoke"):
        async with httpx2.AsyncClient(transport=transport, base_url="http://page") as client:
            told = await client.post(f"{BASE}/people/{word}", params=whole, headers=bearer)
        assert (told.status_code, told.json()["error"]["type"]) == (403, "owner-needed"), word
        # A code that no person has; nothing changes for a person who was never let in.
        browser, _ = await asked(board, f"people/{word}", "POST", **whole)
        assert browser == (404 if word in ("approve", "deny") else 200), word

    status, refused = await asked(board, "people/role", "POST", **whole | {"role": "king"})
    assert (status, refused["error"]["message"]) == (
        409,
        '"king" is not a role; use member or owner',
    )


async def test_killing_is_offered_only_where_a_person_starts_it_again(home: Home) -> None:
    killed: list[bool] = []
    alone, supervised = dashboard(home), dashboard(home, kill=lambda: killed.append(True))

    assert (await asked(alone, "page"))[1]["can_kill"] is False
    assert f"{BASE}/try/kill" not in [getattr(route, "path", "") for route in alone.routes()]
    assert (await asked(supervised, "page"))[1]["can_kill"] is True
    assert (await asked(supervised, "try/kill", "POST"))[0] == 202
    assert killed == [True]


async def test_a_bug_behind_the_page_is_an_answer(home: Home) -> None:
    async def broken(_request: Mapping[str, object]) -> Mapping[str, object]:
        raise RuntimeError("oops")

    status, told = await asked(dashboard(home, ask=broken), "sessions")

    assert (status, told["error"]["type"]) == (500, "bug")
    assert "oops" not in told["error"]["message"]


async def test_everything_that_can_be_asked_is_described(home: Home) -> None:
    routes = dashboard(home, kill=lambda: None).routes()
    served = {
        (route.path_format, method.lower())
        for route in routes
        if isinstance(route, Route) and route.path.startswith(BASE)
        for method in (route.methods or set()) - {"HEAD"}
    }

    assert served == {(path, method) for path, methods in paths().items() for method in methods}


@pytest.mark.parametrize("name", sorted(name for name in contents() if name != FONT))
def test_every_file_that_a_file_of_the_page_names_is_there(name: str) -> None:
    words = contents()[name].decode()
    named = re.findall(r'(?:from|import) "\./([^"]+)"|/static/([\w.-]+)', words)

    assert {one or other for one, other in named} <= set(contents())
    assert name.rpartition(".")[2] in KINDS


async def test_only_files_of_the_page_are_served(home: Home) -> None:
    app = Starlette(routes=dashboard(home).routes())
    transport = httpx2.ASGITransport(app=app)
    async with httpx2.AsyncClient(transport=transport, base_url="http://page") as client:
        page = await client.get("/")
        outside = [
            await client.get(f"/static/{name}")
            for name in ("../app.py", "..%2fapp.py", "", "nothing.js")
        ]

    policy = page.headers["content-security-policy"]
    assert "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'" in policy
    assert "unsafe" not in policy
    assert "frame-ancestors 'none'" in policy
    assert [answer.status_code for answer in outside] == [404] * 4
