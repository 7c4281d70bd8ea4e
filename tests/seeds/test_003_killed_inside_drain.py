"""Source 003: the service manager kills the gateway while it is still stopping, before anything was
written about it; the session's last message is hours old."""

from pathlib import Path

import pytest

from tests.crash.stories import CHAT, pauses, script
from tests.crash.telling import checked
from tests.harness.client import Event
from tests.harness.compose import Bounds
from tests.harness.invariants import check_rows
from tests.harness.lives import lives
from tests.runtime.gateway import Setting, living
from tests.runtime.scripts import script as script_of
from tests.seeds.dying import WORK


@pytest.mark.crash
@pytest.mark.parametrize(
    "moment", ["turns.release:before", "turns.release:after", "workers.end:before"]
)
async def test_killed_while_it_stops_the_turn_goes_on_in_the_next_life(
    tmp_path: Path, moment: str
) -> None:
    """S23, S24: nothing that is written on the way out is needed: the fact was written when the
    turn was claimed."""
    async with lives(tmp_path / "home", [moment]) as life:
        person = life.person(CHAT)
        await person.say(script(pauses(0.5), {"text": "through"}), "1")
        await person.sees(_proposes, "it is at work")
        life.gateway.terminate()
        await person.hears("through")
        rows = await checked(life)

    assert person.answered() == ["through"]
    assert len(rows.turns) == 1


@pytest.mark.parametrize("writes", [False, True], ids=["waits", "writes"])
async def test_a_task_of_many_hours_killed_while_stopping_is_resumed(
    setting: Setting, writes: bool
) -> None:
    """S4, S24, S36: the steps of the report, in a topic. However long ago the person wrote, it was
    worked on until the kill. It goes on by itself, and the one who writes there meanwhile finds the
    session at work and not a new one."""
    setting.bounds = Bounds(drain_seconds=60)
    setting.world.hangs = {"do_none"}
    async with living(setting) as life:
        await life.says("room", WORK, thread="topic")
        await life.until(lambda: setting.world.ran, "it is at work")
        await life.works_on(minutes=8 * 60)
        life.stop()
        await life.until(lambda: setting.platform.texts("room", "topic"), "it waits for the task")
        life.tracked.is_dead = True
        await life.is_over.wait()
    assert setting.rows().one("turns")["state"] == "running", "nothing was written at the end"
    setting.world.hangs = set()
    async with living(setting) as life:
        if writes:
            await life.says("room", "echo are you there", thread="topic")
        await life.rests()

    rows = setting.rows()
    check_rows(rows)
    answers = ["through", "are you there"] if writes else ["through"]
    assert setting.platform.texts("room", "topic")[1:] == answers
    assert rows.of("journal", event="resumed")[0]["rule"] == "fresh"
    assert len(rows.sessions) == 1


async def test_a_task_that_ends_within_the_drain_leaves_nothing_to_resume(setting: Setting) -> None:
    """S25: nothing that was said about the stop outlives it."""
    setting.bounds = Bounds(drain_seconds=60)
    async with living(setting) as life:
        await life.says("room", script_of({"text": "through", "sleep_ms": 5_000}))
        await life.until(lambda: life.gateway.dispatch.running == 1, "it is at work")
        life.stop()
        await life.is_over.wait()
    before = setting.rows()
    assert (before.one("turns")["state"], before.one("turns")["recoveries"]) == ("done", 0)
    async with living(setting) as life:
        await life.passes(100)

    rows = setting.rows()
    assert (rows.turns, rows.steps, rows.outbox) == (before.turns, before.steps, before.outbox)


def _proposes(event: Event) -> bool:
    return bool(event.fields.get("calls"))
