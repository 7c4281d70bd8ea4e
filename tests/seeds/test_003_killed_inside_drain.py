"""Source 003: the service manager kills the gateway while it is still stopping, before anything was
written about it; the session's last message is hours old."""

from pathlib import Path

import pytest

from tests.crash.stories import CHAT, pauses, script
from tests.crash.telling import checked
from tests.harness.client import Event
from tests.harness.lives import lives
from tests.runtime.gateway import Setting, living
from tests.seeds.dying import at_work


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


async def test_a_task_of_many_hours_killed_while_stopping_is_resumed(setting: Setting) -> None:
    """S4, S24: however long ago the person wrote: it was worked on until the kill."""
    setting.world.hangs = {"do_none"}
    async with living(setting) as life:
        await at_work(life, "room")
        await life.works_on(minutes=8 * 60)
        life.tracked.is_dead = True
        life.stop()
        await life.is_over.wait()
    assert setting.rows().one("turns")["state"] == "running", "nothing was written at the end"
    setting.world.hangs = set()
    async with living(setting) as life:
        await life.shows("room", "through")

    assert setting.rows().of("journal", event="resumed")[0]["rule"] == "fresh"


def _proposes(event: Event) -> bool:
    return bool(event.fields.get("calls"))
