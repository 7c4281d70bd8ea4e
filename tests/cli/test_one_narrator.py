"""For the same facts the chat, the command line, its JSON and the page say the same sentences."""

from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import UTC
from pathlib import Path

import pytest

from koboshi.cli.explain import render
from koboshi.cli.rows.cells import turn_cells
from koboshi.cli.rows.row_text import turn_line
from koboshi.commands.parse import parse_command
from koboshi.commands.run import respond
from koboshi.control.handle import reply_to
from koboshi.control.requests import ListRows
from koboshi.domain.ids import TurnId
from koboshi.domain.recovery import Policy, RecoveryPolicy
from koboshi.ports.store import Arrival
from koboshi.ports.views import Page
from tests.harness.asked_owner import asked, jobs
from tests.harness.asked_page import asked as asked_of_page
from tests.harness.asked_page import dashboard
from tests.harness.backends import SqliteBackend
from tests.harness.fake_time import FakeClock, RecordingWakeups
from tests.harness.homes import Home, a_world

ALL = Page(limit=10, before=1 << 62)


@pytest.fixture
async def home(tmp_path: Path) -> AsyncIterator[Home]:
    one = Home(
        backend=SqliteBackend(tmp_path),
        clock=FakeClock(),
        wakeups=RecordingWakeups(),
        world=a_world(),
    )
    await one.boot()
    yield one
    await one.store.close()


async def asks(home: Home) -> TurnId:
    claim = await home.work_on("build it")
    await home.ask(claim)
    return claim.turn_id


async def failed(home: Home) -> TurnId:
    claim = await home.work_on("build it")
    await home.store.turns.fail(claim, "too-many-steps")
    return claim.turn_id


async def stopped(home: Home) -> TurnId:
    claim = await home.work_on("build it")
    await home.stop()
    return claim.turn_id


async def died(home: Home) -> TurnId:
    claim = await home.work_on("build it")
    await home.step(claim)
    await home.reopen()
    return claim.turn_id


async def taken_up_again(home: Home) -> TurnId:
    claim = await home.work_on("build it")
    await home.step(claim)
    await home.die_and_recover(claim.turn_id)
    return claim.turn_id


async def set_aside(home: Home) -> TurnId:
    claim = await home.work_on("build it")
    await home.step(claim)
    off = a_world(policy=Policy(recovery=RecoveryPolicy.OFF))
    await home.die_and_recover(claim.turn_id, world=off)
    return claim.turn_id


async def given_up(home: Home) -> TurnId:
    claim = await home.work_on("build it")
    world = a_world(policy=Policy(deaths_max=1))
    await home.die_and_recover(claim.turn_id, world=world)
    return claim.turn_id


Scene = Callable[[Home], Awaitable[TurnId]]
SCENES: list[Scene] = [asks, failed, stopped, died, taken_up_again, set_aside, given_up]


async def said(home: Home, command: str) -> str:
    arrival = Arrival(inbound=home.inbound(command), command=parse_command(command))
    before = {each.delivery_id for each in await home.store.views.deliveries(ALL)}
    await home.accept(arrival, respond=respond)
    new = [e for e in await home.store.views.deliveries(ALL) if e.delivery_id not in before]
    return new[0].text


@pytest.mark.parametrize("scene", SCENES, ids=lambda scene: scene.__name__)
async def test_everyone_is_told_the_same(home: Home, scene: Scene) -> None:
    """Issue 14, point 4: `/why`, `explain`, its JSON, the lists and the page's API."""
    turn_id = await scene(home)
    now_ms, name = home.clock.now_ms(), f"t{turn_id}"
    document = await asked(home, name)
    reason, stands = document["reason"]["words"], document["turn"]["stands"]
    board = dashboard(home)
    _, of_page = await asked_of_page(board, f"turns/{name}")
    _, listed = await asked_of_page(board, "turns")
    _, inbox = await asked_of_page(board, "inbox")
    explained = render(document, now_ms, UTC).splitlines()
    rows = await reply_to(jobs(home), ListRows(kind="turn"))
    chat_why, chat_status = await said(home, "/why"), await said(home, "/status")

    # Why.
    assert of_page["reason"] == document["reason"]
    assert any(line.startswith(f"why       {reason}") for line in explained)
    assert reason in chat_why
    fates = [each["fate"]["words"] for each in inbox["messages"] if each["turn"] and each["fate"]]
    assert set(fates) <= {reason}
    # Where.
    assert listed["turns"][0]["stands"] == of_page["turn"]["stands"] == stands
    assert any(line.startswith(f"stands    {stands}") for line in explained)
    (turn,) = rows.turns  # type: ignore[attr-defined]
    assert stands in turn_line(turn, now_ms)
    assert stands in turn_cells(turn, now_ms)
    assert chat_why.lower().startswith(stands.lower())
    assert stands.lower() in chat_status.lower()


@pytest.mark.parametrize("scene", SCENES, ids=lambda scene: scene.__name__)
async def test_what_happened_is_told_alike(home: Home, scene: Scene) -> None:
    """Issue 14, point 4: red before, `/why` had words of its own for each event."""
    turn_id = await scene(home)
    lines = render(await asked(home, f"t{turn_id}"), home.clock.now_ms(), UTC).splitlines()
    begin = lines.index("what happened") + 1
    end = lines.index("", begin) if "" in lines[begin:] else len(lines)
    happened = [line.split("  ", 2)[2] for line in lines[begin:end]]

    in_chat = (await said(home, "/why")).splitlines()

    told = [line.split("UTC ")[1] for line in in_chat if line.startswith("• ")]
    assert told == happened
