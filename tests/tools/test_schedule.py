"""`schedule`: what the agent can do with standing orders, and what a person is asked first."""

import json
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, tzinfo
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from koboshi.domain.ids import CallId
from koboshi.domain.schedule import ScheduleState
from koboshi.domain.transcript import Effect, Need
from koboshi.ports.tool import ToolContext, ToolFailed
from koboshi.tools.schedule import ScheduleTool
from tests.harness.backends import SqliteBackend
from tests.harness.homes import Home, a_world
from tests.harness.timed import Clockwork, a_clockwork, an_order, types
from tests.harness.tool_context import CONTEXT

NEWS = {"action": "create", "name": "news", "when": "every day at 7:00", "prompt": "tell the news"}


def zone_named(name: str) -> tzinfo:
    return ZoneInfo(name) if name else UTC


@pytest.fixture
async def clock(tmp_path: Path) -> AsyncIterator[Clockwork]:
    """A chat whose person lives in Vienna."""
    home = Home(backend=SqliteBackend(tmp_path / "home"), world=a_world())
    await home.boot()
    clock = await a_clockwork(home)
    await types(home, "/cron zone Europe/Vienna")
    yield clock
    await home.store.close()


def tool_of(home: Home) -> ScheduleTool:
    return ScheduleTool(schedules=home.store.schedules, clock=home.clock, zone_named=zone_named)


async def working(clock: Clockwork, call_id: str = "1.0") -> ToolContext:
    """A turn of the person, and a call of its model."""
    claim = await clock.home.work_on("order something")
    return replace(CONTEXT, claim=claim, call_id=CallId(call_id))


async def asks(clock: Clockwork, context: ToolContext, **asked: object) -> dict[str, object]:
    answer = await tool_of(clock.home).run(json.dumps(asked), context)
    found = json.loads(answer.text)
    assert isinstance(found, dict)
    return found


async def test_what_is_made_is_told_with_its_next_three_times_and_once(clock: Clockwork) -> None:
    """In the zone of the person. A kill behind the commit makes no second one."""
    context = await working(clock)
    said = await asks(clock, context, **NEWS)
    assert (said["status"], said["id"]) == ("done", "c1")
    days = [f"{day} 07:00 CET" for day in ("Sat 16 Jan", "Sun 17 Jan", "Mon 18 Jan")]
    assert said["next"] == days
    again = await asks(clock, context, **NEWS)
    assert (again["status"], again["id"]) == ("same", "c1")
    told = [words for words in await clock.told() if "c1 «news»" in words]
    assert len(told) == 1
    assert "Next: Sat 16 Jan 07:00 CET. /cron remove c1 takes it away." in told[0]


async def test_an_order_is_listed_changed_paused_resumed_and_removed(clock: Clockwork) -> None:
    context = await working(clock)
    await asks(clock, context, **NEWS)
    listed = await asks(clock, context, action="list")
    assert "c1 «news»" in str(listed["schedules"])
    assert listed["now"] == "Fri 15 Jan 09:00 CET"
    changed = await asks(clock, context, action="change", id="c1", when="every monday at 8:00")
    assert changed["next"] == [f"Mon {day} 08:00 CET" for day in ("18 Jan", "25 Jan", "1 Feb")]
    order = (await clock.get_only()).order
    assert (order.name, order.prompt) == ("news", "tell the news"), "the rest is as it was"
    states = []
    for action in ("pause", "resume", "remove"):
        await asks(clock, context, action=action, id="c1")
        views = await clock.home.store.schedules.views(limit=2)
        states.append([view.schedule.state for view in views])
    assert states == [[ScheduleState.PAUSED], [ScheduleState.ARMED], []]


@pytest.mark.parametrize(
    "asked",
    [
        {"action": "create", "when": "tomorrow 9:00", "prompt": ""},
        {"action": "create", "when": "tomorrow 24:00", "prompt": "x"},
        {"action": "create", "when": "2026-02-31 9:00", "prompt": "x"},
        {"action": "create", "when": "tomorrow 9:00 and at noon", "prompt": "x"},
        {"action": "create", "when": "every 5 seconds", "prompt": "x"},
        {"action": "change", "id": "c77", "name": "x"},
        {"action": "remove", "id": "the news"},
        {"action": "dance"},
    ],
)
async def test_what_cannot_be_ordered_is_refused_in_words(
    clock: Clockwork, asked: dict[str, object]
) -> None:
    context = await working(clock)
    with pytest.raises(ToolFailed) as refused:
        await asks(clock, context, **asked)
    assert str(refused.value)
    assert await clock.home.store.schedules.views(limit=1) == ()


async def test_the_agent_does_not_change_what_a_command_runs(clock: Clockwork) -> None:
    made = await clock.make(an_order(command="date"))
    context = await working(clock)
    with pytest.raises(ToolFailed, match="only the person can change that"):
        await asks(clock, context, action="change", id=made.shown, prompt="rm -rf /")
    assert (await clock.get(made)).order.command == "date"


async def test_a_turn_of_a_schedule_needs_approval_for_each_change(clock: Clockwork) -> None:
    own = tool_of(clock.home)
    scheduled = replace(own, is_scheduled=True)
    for action in ("create", "change", "pause", "resume", "remove", "dance"):
        arguments = json.dumps({"action": action})
        assert scheduled.need_of(arguments) is Need.APPROVAL
        assert own.need_of(arguments) is Need.NOBODY
        assert own.effect_of(arguments) is Effect.REPEATABLE
    assert scheduled.need_of("not JSON") is Need.APPROVAL
    listing = json.dumps({"action": "list"})
    assert scheduled.need_of(listing) is Need.NOBODY
    assert own.effect_of(listing) is Effect.NONE
