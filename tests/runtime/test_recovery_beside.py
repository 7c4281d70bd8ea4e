"""Recovery beside new messages: what has to wait while interrupted turns are taken up."""

from asyncio import all_tasks
from pathlib import Path
from typing import Any, cast

import pytest
from anyio import Event
from anyio.lowlevel import checkpoint

from koboshi.domain.ids import TurnId, WorkerId
from koboshi.runtime.rescue import Rescue
from tests.harness.compose import Bounds
from tests.harness.invariants import check_rows
from tests.runtime.gateway import Life, Setting, living
from tests.runtime.models import WatchedModel
from tests.runtime.scripts import script

SLOW = script({"text": "slow", "sleep_ms": 600_000})


@pytest.fixture
def setting(home: Path) -> Setting:
    return Setting(home=home, model=WatchedModel())


async def test_a_slow_recovery_delays_neither_a_message_nor_a_stop_elsewhere(
    setting: Setting,
) -> None:
    """S52, S164: both are answered while the first is still in its model call."""
    async with living(setting) as life:
        await life.says("slow", SLOW)
        await life.says("other", SLOW)
        await _asked(life, 2)
    async with living(setting) as life:
        await _asked(life, 4)
        began = life.clock.monotonic()
        await life.says("quick", "echo hello")
        await life.shows("quick", "hello")
        await life.says("other", "/stop")
        await life.until(lambda: setting.platform.texts("other"), "the reply")
        await life.says("other", "echo free")
        await life.until(lambda: len(setting.platform.texts("other")) == 2, "the next turn")
        assert life.clock.monotonic() - began < 5
        assert life.gateway.dispatch.running == 1
        assert setting.platform.texts("slow") == []
        await life.shows("slow", "slow")

    stopped, free = setting.platform.texts("other")
    assert stopped.startswith("Stopped: ")
    assert free == "free"
    check_rows(setting.rows())


async def test_the_session_that_recovers_slowly_can_itself_be_stopped(setting: Setting) -> None:
    """S13, S52: the command does not wait for the model call either."""
    async with living(setting) as life:
        await life.says("slow", SLOW)
        await _asked(life, 1)
    async with living(setting) as life:
        await _asked(life, 2)
        began = life.clock.monotonic()
        await life.says("slow", "/stop")
        await life.until(lambda: setting.platform.texts("slow"), "the reply")
        assert life.clock.monotonic() - began < 1
        await life.passes(1_000)

    (reply,) = setting.platform.texts("slow")
    assert reply.startswith("Stopped: ")


async def test_recovery_takes_its_share_of_the_places_and_people_come_first(
    setting: Setting,
) -> None:
    """S52, S164: interrupted turns go on a few at a time, and a message that arrives meanwhile is
    answered at once, however many are left."""
    working = [f"room-{number}" for number in range(8)]
    async with living(setting) as life:
        for chat in working:
            await life.says(chat, script({"text": chat, "sleep_ms": 10_000}))
        await _asked(life, 8)
    setting.bounds = Bounds(turns_max=4)
    async with living(setting) as life:
        # No turn waits for the back-off of others.
        await life.says("early", "echo early")
        await life.shows("early", "early")
        await life.until(lambda: life.gateway.dispatch.running == 3, "their places are taken")
        await life.says("late", "echo late")
        while len(setting.platform.shown) < 10:
            assert life.gateway.dispatch.recovered <= 3
            await life.passes(0.5)

    order = [each.text for each in setting.platform.shown]
    assert order[:2] == ["early", "late"]
    assert sorted(order) == sorted(["early", "late", *working])
    check_rows(setting.rows())


@pytest.mark.parametrize("how", ["stopped", "killed"])
async def test_as_many_slow_recoveries_as_there_are_places_delay_no_message(
    setting: Setting, how: str
) -> None:
    """S52, S164: sixteen turns were at work when the gateway was stopped or killed, and each is
    slow to go on. A new message, a message behind it and a `/stop` are served meanwhile."""
    chats = [f"slow-{number}" for number in range(16)]
    async with living(setting) as life:
        for chat in chats:
            await life.says(chat, SLOW)
        await _asked(life, 16)
        if how == "stopped":
            life.stop()
            life.stop()
            await life.is_over.wait()
    async with living(setting) as life:
        await _asked(life, 16 + 12)
        assert (life.gateway.dispatch.running, life.gateway.dispatch.recovered) == (12, 12)
        began = life.clock.monotonic()
        await life.says("quick", "echo hello")
        await life.says("quick", "echo again")
        await life.shows("quick", "hello", "again")
        await life.says("slow-3", "/stop")
        await life.until(lambda: _stopped(setting, "slow-3"), "the reply")
        assert life.clock.monotonic() - began < 5
        await _asked(life, 16 + 12 + 2 + 1)  # the place that was freed goes to the next of them
        assert life.gateway.dispatch.recovered == 12


class Crowd:
    """The store of a boot that was killed over many turns; each was dropped meanwhile."""

    def __init__(self, turns: int) -> None:
        self.turns = self
        self.left = tuple(map(TurnId, range(turns)))
        self.judged: list[TurnId] = []
        self.tasks_max = 0

    async def unowned(self, *, with_suspended: bool) -> tuple[TurnId, ...]:
        return self.left

    async def recover(self, turn_id: TurnId) -> None:
        self.tasks_max = max(self.tasks_max, len(all_tasks()))
        await checkpoint()
        self.judged.append(turn_id)

    async def expire(self, limit: int) -> int:
        return 0


async def test_a_crowd_is_judged_by_as_many_tasks_as_work_at_once() -> None:
    """Issue 20, point 2: red before, ten thousand tasks were begun before a channel could open."""
    crowd = Crowd(1_000)
    before = len(all_tasks())
    rescue = Rescue(
        store=cast(Any, crowd),
        worker_id=WorkerId(1),
        at_once=8,
        every_seconds=60,
        has_looked=Event(),
    )

    assert await rescue.rescue(is_boot=True) == []
    assert crowd.judged == list(crowd.left)
    assert crowd.tasks_max <= before + 8


def _stopped(setting: Setting, chat: str) -> bool:
    return any(text.startswith("Stopped: ") for text in setting.platform.texts(chat))


async def _asked(life: Life, times: int) -> None:
    """Wait until the model was asked so often, over all lives."""
    model = life.setting.model
    assert isinstance(model, WatchedModel)
    await life.until(lambda: len(model.requests) >= times, f"{times} requests")
