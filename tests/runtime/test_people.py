"""People who lose and get the right to use the gateway, while it works for them."""

from pathlib import Path

import pytest

from koboshi.domain import phrases
from tests.harness.invariants import check_rows
from tests.harness.platform import CHANNEL
from tests.runtime.gateway import Life, Setting, living
from tests.runtime.scripts import calls, says, script


@pytest.fixture
def setting(home: Path) -> Setting:
    """Only ann is in the configuration."""
    return Setting(home=home, is_allowed=lambda _channel, person: person == "ann")


async def code_in(life: Life, chat: str) -> str:
    """The code that a person reads in the newest words of their chat."""
    platform = life.setting.platform
    await life.until(lambda: platform.texts(chat), "there is an answer")
    return platform.texts(chat)[-1].split("approve ")[1].rstrip("`.")


async def let_in(life: Life, person: str) -> None:
    shown = len(life.setting.platform.texts(person))
    await life.says(person, "let me in", sender=person, is_private=True)
    await life.until(lambda: len(life.setting.platform.texts(person)) > shown, "a code is shown")
    assert await life.tracked.people.approve(await code_in(life, person))
    words = phrases.paired()
    await life.until(lambda: words in life.setting.platform.texts(person)[shown:], "they are told")


async def test_a_stranger_is_let_in_and_served(setting: Setting) -> None:
    async with living(setting) as life:
        await life.says("eve", script(says("never")), sender="eve", is_private=True)
        await let_in_by_first_code(life)
        await life.says("eve", script(says("welcome")), sender="eve", is_private=True)
        await life.until(lambda: "welcome" in setting.platform.texts("eve"), "served")
        await life.rests()

    assert "never" not in setting.platform.texts("eve")
    check_rows(setting.rows())


async def let_in_by_first_code(life: Life) -> None:
    assert await life.tracked.people.approve(await code_in(life, "eve"))


async def test_work_for_a_person_stops_when_their_right_is_taken_and_goes_on_with_it(
    setting: Setting,
) -> None:
    """Also over a kill in between: the right to resume is checked at recovery."""
    setting.world.hangs = {"do_none"}
    async with living(setting) as life:
        await let_in(life, "eve")
        work = script(calls("do_none"), says("through"))
        await life.says("eve", work, sender="eve", is_private=True)
        await life.until(lambda: setting.world.ran, "it runs")
        await life.tracked.people.revoke(CHANNEL, "eve")
        await life.passes(1)
        assert life.gateway.dispatch.running == 0
    assert setting.rows().one("turns")["state"] == "suspended"

    setting.world.hangs = set()
    async with living(setting) as life:
        await life.passes(30)
        assert "through" not in setting.platform.texts("eve")
        await let_in(life, "eve")
        await life.until(lambda: "through" in setting.platform.texts("eve"), "it goes on")
        await life.rests()

    check_rows(setting.rows())
