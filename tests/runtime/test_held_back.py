"""What the boot breaker holds back comes back when the breaker closes, without another boot."""

from functools import partial
from pathlib import Path

from koboshi.domain.recovery import Policy
from tests.harness.invariants import check_rows
from tests.runtime.gateway import Setting, living
from tests.runtime.scripts import calls, says, script

TEN_MINUTES_S = 600


def _has_run_since(setting: Setting, ran: int) -> bool:
    return len(setting.world.ran) > ran


async def test_a_turn_set_aside_comes_back_when_the_breaker_closes(home: Path) -> None:
    """Issue 12, C17: found by seed 3582 of the simulation. Its channel was unknown for one boot and
    is back in the next, but the breaker is open there. Nothing looked at the turn again."""
    setting = Setting(home=home, policy=Policy(deaths_max=100, has_breaker=True))
    setting.world.hangs = {"do_none"}
    async with living(setting) as life:
        await life.says("room", script(calls("do_none"), says("through")))
        await life.until(lambda: setting.world.ran, "it runs")
    for _ in range(2):
        ran = len(setting.world.ran)
        async with living(setting) as life:
            await life.until(partial(_has_run_since, setting, ran), "it runs again")
    setting.is_known = False
    async with living(setting) as life:
        await life.passes(1)
    assert setting.rows().one("turns")["rule"] == "channel-unknown"

    setting.is_known, setting.world.hangs = True, set()
    async with living(setting) as life:
        await life.passes(60)
        assert setting.platform.texts("room") == [], "the breaker holds it"
        await life.passes(TEN_MINUTES_S)
        await life.shows("room", "through")
        await life.rests()
    check_rows(setting.rows())
