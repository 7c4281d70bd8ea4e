"""Many sessions, and many messages in one: who waits for whom, and who does not."""

from pathlib import Path

import pytest
from anyio import create_task_group
from structlog.testing import capture_logs

from koboshi.domain.inbox import EntryState
from tests.harness.compose import Bounds
from tests.harness.invariants import answers, check_rows
from tests.runtime.gateway import Life, Setting, living
from tests.runtime.models import WatchedModel
from tests.runtime.scripts import calls, says, script

HANGING = script(calls("do_none"), says("at last"))


@pytest.fixture
def setting(home: Path) -> Setting:
    setting = Setting(home=home)
    setting.world.hangs = {"do_none"}
    return setting


async def test_a_session_that_hangs_does_not_delay_another(setting: Setting) -> None:
    """S52: the other is answered while the first is in its tool."""
    async with living(setting) as life:
        await _hang(life, "slow")
        await life.says("quick", "echo hello")
        await life.shows("quick", "hello")
        assert setting.platform.texts("slow") == []
        setting.world.released.set()
        await life.shows("slow", "at last")

    check_rows(setting.rows())


async def test_a_turn_that_hangs_in_a_tool_can_be_stopped(setting: Setting) -> None:
    """S2, S13, S52, S80, S83, S84: the command is answered at once, the tool is left, the session
    is free, and the next boot finds nothing to resume."""
    async with living(setting) as life:
        await _hang(life, "room")
        await life.says("room", "/stop")
        await life.until(lambda: setting.platform.shown, "the reply")
        await life.until(lambda: life.gateway.dispatch.running == 0, "the tool is left")
        await life.says("room", "echo hello")
        await life.until(lambda: len(setting.platform.shown) == 2, "the next turn")
    async with living(setting) as life:
        await life.passes(100)

    (stopped, hello) = setting.platform.texts("room")
    assert stopped.startswith("Stopped: ")
    assert hello == "hello"
    rows = setting.rows()
    check_rows(rows)
    assert not rows.of("journal", event="resumed")


async def test_what_a_stopped_turn_still_says_is_dropped(setting: Setting) -> None:
    """S86, S87: the model's reply comes when the turn is not ours any more. It is neither stored
    nor delivered, and does not disturb the turn that runs now."""
    slow = script({"text": "too late", "sleep_ms": 5_000})
    async with living(setting) as life:
        await life.says("room", slow)
        await life.until(lambda: life.gateway.dispatch.running == 1, "it runs")
        await life.says("room", "/stop")
        await life.says("room", script({"text": "current", "sleep_ms": 20_000}))
        await life.until(lambda: "current" in setting.platform.texts("room"), "the second answer")
        await life.passes(100)

    assert "too late" not in setting.platform.texts("room")
    rows = setting.rows()
    check_rows(rows)
    assert answers(rows, "room") == ["current"]
    assert [turn["generation"] for turn in rows.turns] == [1, 2]


async def test_a_tool_that_comes_back_when_the_turn_was_stopped_is_no_bug(
    setting: Setting,
) -> None:
    """S87, S162: its result is refused, and that is what the log says: nothing broke."""

    def come_back(verb: str) -> None:
        if verb == "inbox.accept":
            setting.world.released.set()

    async with living(setting) as life:
        await _hang(life, "room")
        life.tracked.on_verb = come_back
        with capture_logs() as logs:
            await life.says("room", "/stop")
            await life.until(lambda: life.gateway.dispatch.running == 0, "the turn is left")

    events = [line["event"] for line in logs]
    assert "turn_fenced" in events
    assert "turn_broke" not in events
    (result,) = setting.rows().of("steps", kind="result")
    assert "stopped by the person" in result["body"]


async def test_a_turn_that_has_not_begun_can_be_stopped(setting: Setting) -> None:
    """S13, S81: it was only queued behind others; nothing of it ever runs."""
    setting.bounds = Bounds(turns_max=1)
    model = setting.model = WatchedModel()
    async with living(setting) as life:
        await _hang(life, "slow")
        await life.says("room", "echo never")
        await life.says("room", "/stop")
        await life.until(lambda: setting.platform.texts("room"), "the reply")
        setting.world.released.set()
        await life.shows("slow", "at last")
        await life.passes(100)

    assert len(setting.platform.texts("room")) == 1
    assert {request.session_id for request in model.requests} == {1}
    check_rows(setting.rows())


async def test_no_more_turns_run_at_once_than_are_allowed(setting: Setting) -> None:
    """S164: the others wait, in order, and none is forgotten."""
    setting.bounds = Bounds(turns_max=3)
    async with living(setting) as life:
        for number in range(8):
            await life.says(f"room-{number}", HANGING)
        await life.until(lambda: len(setting.world.ran) == 3, "three run")
        await life.passes(100)
        assert life.gateway.dispatch.running == len(setting.world.ran) == 3
        setting.world.released.set()
        for number in range(8):
            await life.shows(f"room-{number}", "at last")

    check_rows(setting.rows())


async def test_messages_behind_a_turn_get_turns_of_their_own_in_order(setting: Setting) -> None:
    """S92, S93, S97, S163: the answer of the first comes first; no two turns at once."""
    async with living(setting) as life:
        await _hang(life, "room")
        for text in ("two", "three", "four"):
            receipt = await life.says("room", f"echo {text}")
            assert receipt.state is EntryState.WAITING
        assert life.gateway.dispatch.running == 1
        setting.world.released.set()
        await life.shows("room", "at last", "two", "three", "four")

    rows = setting.rows()
    check_rows(rows)
    assert answers(rows, "room") == ["at last", "two", "three", "four"]


async def test_messages_that_wait_survive_a_death_and_run_once(setting: Setting) -> None:
    """S97: in order, each once, behind the turn that goes on. They are a backlog by then."""
    async with living(setting) as life:
        await _hang(life, "room")
        for text in ("two", "three"):
            await life.says("room", f"echo {text}", key=text)
    setting.world.hangs = set()
    async with living(setting) as life:
        # The platform did not hear us: it sends them again.
        for text in ("two", "three"):
            assert (await life.says("room", f"echo {text}", key=text)).is_duplicate
        await life.shows("room", "at last", "two\n\nthree")
        await life.passes(100)

    rows = setting.rows()
    check_rows(rows)
    assert len(rows.turns) == 2


async def test_a_message_that_steers_joins_the_turn_at_its_next_step(setting: Setting) -> None:
    """S158: never between a call and its result."""
    setting.busy = "steer"
    model = setting.model = WatchedModel()
    async with living(setting) as life:
        await _hang(life, "room")
        await life.says("room", "and be quick")
        setting.world.released.set()
        await life.shows("room", "at last")

    rows = setting.rows()
    check_rows(rows)
    assert len(rows.turns) == 1
    kinds = [step["kind"] for step in rows.steps]
    assert kinds == ["message", "reply", "result", "message", "answer"]
    assert len(model.requests) == 2


async def test_a_message_that_interrupts_ends_the_turn_and_opens_the_next(
    setting: Setting,
) -> None:
    """S87, S93: the reply of the interrupted turn is discarded; the generation stays."""
    setting.busy = "interrupt"
    async with living(setting) as life:
        await _hang(life, "room")
        await life.says("room", "echo instead")
        await life.shows("room", "instead")
        setting.world.released.set()
        await life.passes(100)

    assert setting.platform.texts("room") == ["instead"]
    rows = setting.rows()
    check_rows(rows)
    assert [turn["state"] for turn in rows.turns] == ["stopped", "done"]
    assert {turn["generation"] for turn in rows.turns} == {1}


async def test_threads_of_one_chat_are_sessions_of_their_own(setting: Setting) -> None:
    """S52, S95: one hangs, the other is answered in its own place."""
    async with living(setting) as life:
        await _hang(life, "room")
        await life.says("room", "echo here", thread="topic")
        await life.until(lambda: setting.platform.texts("room", "topic"), "the answer")

    assert setting.platform.texts("room", "topic") == ["here"]
    assert setting.platform.texts("room") == []


async def test_a_message_that_comes_twice_is_one(setting: Setting) -> None:
    """S162: also when both come at the same moment."""
    receipts = []
    async with living(setting) as life:

        async def bring() -> None:
            receipts.append(await life.says("room", "echo hello", key="same"))

        async with create_task_group() as tasks:
            for _ in range(5):
                tasks.start_soon(bring)
        await life.shows("room", "hello")
        await life.passes(100)

    assert sorted(receipt.is_duplicate for receipt in receipts) == [False, True, True, True, True]
    assert len({receipt.entry_id for receipt in receipts}) == 1
    assert setting.platform.texts("room") == ["hello"]


async def _hang(life: Life, chat: str) -> None:
    """A turn that is in its tool, and stays there."""
    before = len(life.setting.world.ran)
    await life.says(chat, HANGING)
    await life.until(lambda: len(life.setting.world.ran) > before, "it hangs")
