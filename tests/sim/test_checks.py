"""A check that excuses too much proves nothing: what the boot breaker excuses, and what not."""

import random
from pathlib import Path

import pytest

from koboshi.domain.recovery import Policy
from tests.harness.rows import Row, Rows
from tests.sim.crowd import Update
from tests.sim.effects import Effects
from tests.sim.life import Setting
from tests.sim.outside import no_one_waits_for_the_banned
from tests.sim.platform import ABILITIES, SimPlatform
from tests.sim.power import History
from tests.sim.weather import Weather

DIED, NOW = 4, 5
"""The worker that held the turn when it died, and the one of now."""


def a_setting(*, has_breaker: bool) -> Setting:
    dice, history, weather = random.Random(0), History(), Weather()
    updates = [Update(at_s=1.0, key="k2", chat="room", text="and me?")]
    return Setting(
        home=Path(),
        dice=dice,
        history=history,
        platform=SimPlatform(
            dice=dice, history=history, weather=weather, abilities=ABILITIES[0], updates=updates
        ),
        effects=Effects(),
        weather=weather,
        policy=Policy(has_breaker=has_breaker),
        busy="queue",
    )


def some_rows(*, unclean: int, asked_by: str, accepted_by: int) -> Rows:
    """A turn that died at work, and ann's message behind it."""
    workers: list[Row] = [
        {"worker_id": number, "found_dead": int(number > NOW - unclean)}
        for number in range(1, NOW + 1)
    ]
    turn: Row = {"turn_id": 1, "session_id": 1, "state": "running"}
    turn |= {"worker_id": DIED, "newest_entry": 1}
    message: Row = {"session_id": 1, "kind": "message"}
    asked = message | {"entry_id": 1, "external_id": "k1", "sender": asked_by, "turn_id": 1}
    asked |= {"state": "attached", "accepted_by": 1}
    waits = message | {"entry_id": 2, "external_id": "k2", "sender": "ann", "turn_id": None}
    waits |= {"state": "waiting", "accepted_by": accepted_by}
    none: list[Row] = []
    return Rows(
        workers=workers,
        sessions=none,
        turns=[turn],
        inbox=[asked, waits],
        steps=none,
        calls=none,
        outbox=none,
        processes=none,
        watchers=none,
        journal=none,
        cursors=none,
        watermarks=none,
        accounts=none,
        damage=[],
    )


@pytest.mark.parametrize(
    "has_breaker, unclean, asked_by, accepted_by, is_excused",
    [
        pytest.param(True, 5, "ann", DIED, True, id="held, and was written before its death"),
        pytest.param(True, 5, "eve", DIED, False, id="held, and eve is not allowed"),
        pytest.param(True, 5, "ann", NOW, False, id="held, and was written since"),
        pytest.param(True, 2, "ann", DIED, False, id="two boots do not open the breaker"),
        pytest.param(False, 5, "ann", DIED, False, id="there is no breaker"),
    ],
)
def test_only_what_the_boot_breaker_holds_may_be_in_the_way(
    has_breaker: bool, unclean: int, asked_by: str, accepted_by: int, is_excused: bool
) -> None:
    setting = a_setting(has_breaker=has_breaker)
    rows = some_rows(unclean=unclean, asked_by=asked_by, accepted_by=accepted_by)

    no_one_waits_for_the_banned(setting, rows)

    assert len(setting.kept_waiting) == int(not is_excused)
