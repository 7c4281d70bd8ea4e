"""A gateway whose turns wait for commands: which messages are served meanwhile."""

from operator import itemgetter
from pathlib import Path

import pytest

from tests.harness.compose import Bounds
from tests.harness.invariants import check_rows
from tests.runtime.gateway import Life, Setting, living
from tests.runtime.models import WatchedModel
from tests.runtime.scripts import calls, says, script

COMMAND = script(calls("command"), says("it ran"))
SLOW = script({"text": "slow", "sleep_ms": 100_000})


@pytest.fixture
def setting(home: Path) -> Setting:
    setting = Setting(home=home)
    setting.world.hangs = {"command"}
    return setting


async def _runs(life: Life, chat: str) -> None:
    """A command runs for the chat, and does not come back."""
    before = len(life.setting.world.ran)
    await life.says(chat, COMMAND)
    await life.until(lambda: len(life.setting.world.ran) > before, f"a command of {chat} runs")


@pytest.mark.parametrize(
    "waiting",
    [COMMAND, script(calls("pause", seconds=50), says("it ran"))],
    ids=["command", "pause"],
)
async def test_a_turn_that_only_waits_leaves_its_slot_to_others(
    setting: Setting, waiting: str
) -> None:
    """Issue 12, B10: also where there is one slot only."""
    setting.bounds = Bounds(turns_max=1)
    async with living(setting) as life:
        await life.says("slow", waiting)
        await life.until(lambda: life.gateway.dispatch.running == 1, "it is worked on")
        await life.passes(1)
        began = life.clock.monotonic()
        for number in range(3):
            await life.says(f"quick-{number}", "echo hello")
            await life.shows(f"quick-{number}", "hello")
        assert life.clock.monotonic() - began < 1
        setting.world.released.set()
        await life.shows("slow", "it ran")
        await life.until(lambda: life.gateway.dispatch.slots.held == 0, "the slot is free")

    check_rows(setting.rows())


async def test_a_turn_waits_for_a_slot_before_it_asks_the_model_again(setting: Setting) -> None:
    """Issue 12, B10: `max_turns` counts those that compute."""
    setting.bounds = Bounds(turns_max=1)
    model = setting.model = WatchedModel()
    async with living(setting) as life:
        await _runs(life, "first")
        await life.says("slow", SLOW)
        await life.until(lambda: len(model.requests) == 2, "the slot is held")
        setting.world.released.set()
        await life.until(lambda: life.gateway.dispatch.slots.line, "the first waits for a slot")
        await life.passes(50)
        assert len(model.requests) == 2
        await life.shows("slow", "slow")
        await life.shows("first", "it ran")

    check_rows(setting.rows())


@pytest.mark.parametrize("how", ["/stop", "stopped"])
async def test_a_turn_that_waits_for_a_slot_can_be_ended(setting: Setting, how: str) -> None:
    """Issue 12, B10: by its person, and by a gateway that leaves, which is not held up by it."""
    setting.bounds = Bounds(turns_max=1, drain_seconds=60)
    async with living(setting) as life:
        await _runs(life, "first")
        await life.says("slow", SLOW)
        setting.world.released.set()
        await life.until(lambda: life.gateway.dispatch.slots.line, "the first waits for a slot")
        began = life.clock.monotonic()
        if how == "/stop":
            await life.says("first", "/stop")
            await life.until(lambda: setting.platform.texts("first"), "the reply")
        else:
            life.stop()
        await life.until(lambda: life.gateway.dispatch.running == 1, "the turn is left")
        assert life.clock.monotonic() - began < 1
        assert not life.gateway.dispatch.slots.line
        assert life.gateway.dispatch.slots.held == 1

    rows = setting.rows()
    (turn,) = rows.of("turns", session_id=rows.session("first"))
    assert turn["event"] == ("cut" if how == "/stop" else "released")


async def test_no_more_turns_are_open_than_may_be(setting: Setting) -> None:
    """Issue 12, B10: the others wait in the queue, `/why` says so, and they begin in order."""
    setting.bounds = Bounds(turns_max=2, open_turns_max=3)
    async with living(setting) as life:
        for number in range(3):
            await _runs(life, f"room-{number}")
        await life.says("late", "echo late")
        await life.says("later", "echo later")
        await life.passes(20)
        assert life.gateway.dispatch.running == 3
        await life.says("late", "/why")
        await life.until(lambda: setting.platform.texts("late"), "the reason")
        assert (
            "3 turns are worked on, as many as may be at once" in setting.platform.texts("late")[0]
        )
        setting.world.released.set()
        await life.until(lambda: "later" in setting.platform.texts("later"), "the last one")

    order = [each.text for each in setting.platform.shown if each.text in ("late", "later")]
    assert order == ["late", "later"]
    check_rows(setting.rows())


async def test_recovered_turns_do_not_fill_all_that_may_be_open(setting: Setting) -> None:
    """Issue 12, B10: more commands are taken up again than turns may be open, and none of them
    comes back. A message is answered, and its own command runs."""
    chats = [f"room-{number}" for number in range(8)]
    async with living(setting) as life:
        for chat in chats:
            await _runs(life, chat)
    setting.bounds = Bounds(turns_max=4, open_turns_max=8)
    async with living(setting) as life:
        await life.until(lambda: setting.world.ran.count("command:resumed") == 6, "they are back")
        await life.passes(60)
        assert (life.gateway.dispatch.running, life.gateway.dispatch.recovered) == (6, 6)
        await life.says("quick", "echo hello")
        await life.shows("quick", "hello")
        await _runs(life, "other")
        setting.world.released.set()
        for chat in chats:
            await life.shows(chat, "it ran")

    check_rows(setting.rows())


async def test_a_command_beyond_the_limit_is_not_started(setting: Setting) -> None:
    """Issue 12, B10: its start is not committed, so a crash means that it has certainly not run;
    in the next life it runs."""
    setting.bounds = Bounds(commands_max=1)
    async with living(setting) as life:
        await _runs(life, "first")
        await life.says("second", COMMAND)
        await life.until(lambda: life.gateway.dispatch.running == 2, "both are open")
        await life.passes(60)
        assert setting.world.ran == ["command"]
        await life.says("third", "echo hello")
        await life.shows("third", "hello")
    rows = setting.rows()
    started = {call["turn_id"]: call["started_ms"] for call in rows.calls}
    assert [at_ms is None for _, at_ms in sorted(started.items())] == [False, True]
    setting.world.released.set()
    async with living(setting) as life:
        await life.shows("first", "it ran")
        await life.shows("second", "it ran")

    assert sorted(setting.world.ran) == ["command", "command", "command:resumed"]
    rows = setting.rows()
    check_rows(rows)
    assert [call["outcome"] for call in rows.calls] == ["ok", "ok"]


async def test_commands_get_their_slots_in_the_order_in_which_they_asked(setting: Setting) -> None:
    """Issue 12, B10: and each slot goes to the next when a command ends."""
    setting.bounds = Bounds(commands_max=1)
    async with living(setting) as life:
        await _runs(life, "room-0")
        for number in range(1, 5):
            await life.says(f"room-{number}", COMMAND)
            await life.passes(1)
        setting.world.released.set()
        for number in range(5):
            await life.shows(f"room-{number}", "it ran")

    order = [each.route.chat for each in setting.platform.shown]
    assert order == [f"room-{number}" for number in range(5)]


@pytest.mark.parametrize("how", ["/stop", "stopped"])
async def test_a_turn_that_waits_for_a_command_slot_can_be_ended(
    setting: Setting, how: str
) -> None:
    """Issue 12, B10: its command never ran, and after a stop it is as it was."""
    setting.bounds = Bounds(commands_max=1, drain_seconds=60)
    async with living(setting) as life:
        await _runs(life, "first")
        await life.says("second", COMMAND)
        await life.until(lambda: life.gateway.dispatch.running == 2, "both are open")
        await life.passes(1)
        began = life.clock.monotonic()
        if how == "/stop":
            await life.says("second", "/stop")
            await life.until(lambda: setting.platform.texts("second"), "the reply")
        else:
            life.stop()
        await life.until(lambda: life.gateway.dispatch.running == 1, "the turn is left")
        assert life.clock.monotonic() - began < 1

    assert setting.world.ran == ["command"]
    rows = setting.rows()
    (call,) = rows.of("calls", turn_id=2)
    assert call["started_ms"] is None
    assert (call["outcome"] is None) == (how == "stopped")


# ── what one reply may start ────────────────────────────────────────────────────────────────────


def reply_with(*arguments: dict[str, object], tool: str = "do_none") -> dict[str, object]:
    return {"calls": [{"tool": tool, "arguments": each} for each in arguments]}


async def test_calls_of_one_reply_run_side_by_side_up_to_a_limit(setting: Setting) -> None:
    """Issue 12, B16: sixteen at once, and the others in their order."""
    setting.world.hangs = {"do_none"}
    numbered = reply_with(*[{}] * 20)
    async with living(setting) as life:
        await life.says("room", script(numbered, says("through")))
        await life.until(lambda: len(setting.world.ran) == 16, "sixteen run")
        await life.passes(50)
        assert len(setting.world.ran) == 16
        setting.world.released.set()
        await life.shows("room", "through")

    rows = setting.rows()
    check_rows(rows)
    assert len(setting.world.ran) == len(rows.of("calls", outcome="ok")) == 20


async def test_calls_beyond_the_limit_run_in_their_order(setting: Setting) -> None:
    """Issue 12, B16: with room for one, each begins when the one before it has its result."""
    setting.bounds = Bounds(side_by_side_max=1)
    async with living(setting) as life:
        await life.says("room", script(reply_with({}, {}, {}, {}), says("through")))
        await life.shows("room", "through")

    rows = setting.rows()
    check_rows(rows)
    results = [rows.body(step)["call_id"] for step in rows.of("steps", kind="result")]
    assert results == [call["call_id"] for call in sorted(rows.calls, key=itemgetter("place"))]
    assert len(results) == 4


async def test_a_call_behind_the_first_ones_takes_the_slot_that_they_do_not_need(
    setting: Setting,
) -> None:
    """Issue 12, B10, B16: sixteen commands give the slot back; the call behind them computes, so
    it waits until the turn has a slot again."""
    setting.bounds = Bounds(turns_max=1, side_by_side_max=2)
    wanted = reply_with({}, {}, tool="command")
    work = reply_with({})
    mixed: dict[str, object] = {"calls": [*_calls_in(wanted), *_calls_in(work)]}
    async with living(setting) as life:
        await life.says("room", script(mixed, says("through")))
        await life.until(lambda: len(setting.world.ran) == 2, "the commands run")
        assert life.gateway.dispatch.slots.held == 0
        setting.world.released.set()
        await life.shows("room", "through")

    assert setting.world.ran == ["command", "command", "do_none"]


def _calls_in(reply: dict[str, object]) -> list[object]:
    found = reply["calls"]
    assert isinstance(found, list)
    return found
