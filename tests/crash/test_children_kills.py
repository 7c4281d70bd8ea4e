"""Kills at random instants of a real gateway whose turns give work to sub-agents."""

import os
import random
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from time import monotonic

import apsw
import pytest

from tests.crash.stories import delegates, script
from tests.harness.client import Client
from tests.harness.invariants import check_rows
from tests.harness.polling import until
from tests.harness.process import GatewayProcess
from tests.harness.rows import read_rows
from tests.harness.tally import ROUND, WANTS_ALL, add_to_tally

SEED = int(os.environ.get("KOBOSHI_SEED", "1")) + ROUND
KILLS = 50 if WANTS_ALL else 4
MESSAGES = 20 if WANTS_ALL else 2
CHILDREN = 5
"""Of each message: four of its own, and one of one of them."""
LIFE_S_MAX = 4.0
"""A life in which nothing is left to do but to wait is ended as well."""
ENV = {
    # It is killed more often in a minute than any real one: that is the point here.
    "KOBOSHI__RECOVERY__BOOT_BREAKER": "false",
    # Some have to wait until others have ended.
    "KOBOSHI__LIMITS__CHILDREN_AT_ONCE_MAX": "3",
}


@contextmanager
def opened(home: Path, flags: int = apsw.SQLITE_OPEN_READONLY) -> Iterator[apsw.Connection]:
    connection = apsw.Connection(str(home / "koboshi.db"), flags=flags)
    connection.set_busy_timeout(10_000)
    try:
        yield connection
    finally:
        connection.close()


def asked(home: Path, query: str) -> int:
    with opened(home) as connection:
        ((found,),) = connection.execute(query).fetchall()
        return int(str(found or 0))


def forget_waits(home: Path) -> None:
    """Turns that died are tried again at once: how long they wait is not looked at here."""
    with opened(home, apsw.SQLITE_OPEN_READWRITE) as connection:
        connection.execute(
            "UPDATE turns SET not_before_ms = 0, crash_streak = 0 WHERE closed_ms IS NULL"
        )


def lines(home: Path) -> int:
    return asked(home, "SELECT max(seq) FROM journal")


def a_message(number: int) -> str:
    """Four sub-agents. One works in steps, one gives a part of its work away."""
    steps = script({"calls": [{"tool": "pause", "arguments": {"seconds": 0.2}}]}, {"text": "slow"})
    deeper = script(delegates(f"echo the deepest word of {number}"), {"text": "it is asked"})
    tasks = (f"echo first {number}", steps, deeper, f"echo last {number}")
    return script(delegates(*tasks), {"text": "all are asked"})


async def live(gateway: GatewayProcess, chance: random.Random, messages: list[int]) -> None:
    """One life. It hears a message, if one is left, and is killed at some moment of its work; now
    and then while it starts."""
    gateway.start()
    limit_s = monotonic() + chance.uniform(0, 0.5)
    if chance.random() > 0.2:
        await gateway.wait_ready()
        if messages and chance.random() < 0.7:
            number = messages.pop()
            await Client(gateway, f"chat-{number % 4}").say(a_message(number), f"key-{number}")
        wanted, until_s = lines(gateway.home) + chance.randint(1, 60), monotonic() + LIFE_S_MAX
        await until(
            lambda: lines(gateway.home) >= wanted or monotonic() > until_s,
            "it works",
            otherwise=lambda: gateway.log[-3000:],
        )
        limit_s = monotonic() + chance.expovariate(20)
    await until(lambda: monotonic() >= limit_s, "the moment comes")
    assert gateway.is_running, gateway.log[-3000:]
    gateway.kill()


async def come_to_rest(gateway: GatewayProcess, messages: list[int]) -> None:
    """A last life hears what is left, and finishes everything."""
    forget_waits(gateway.home)
    gateway.start()
    await gateway.wait_ready()
    for number in messages:
        await Client(gateway, f"chat-{number % 4}").say(a_message(number), f"key-{number}")
    left = (
        "SELECT (SELECT count(*) FROM turns WHERE closed_ms IS NULL) "
        "+ (SELECT count(*) FROM inbox WHERE state = 'waiting') "
        "+ (SELECT count(*) FROM children WHERE ended_ms IS NULL) "
        "+ (SELECT count(*) FROM outbox WHERE settled_ms IS NULL)"
    )
    await until(
        lambda: asked(gateway.home, left) == 0,
        "it comes to rest",
        within_s=120,
        otherwise=lambda: gateway.log[-3000:],
    )
    gateway.kill()


@pytest.mark.slow
@pytest.mark.timeout(1_800)
async def test_each_parent_hears_each_child_once_over_kills_at_random_instants(home: Path) -> None:
    """Issue 21, must show: 100 children over 50 kills."""
    chance = random.Random(SEED)
    print(f"KOBOSHI_SEED={SEED}")
    gateway = GatewayProcess(home, env=ENV)
    messages = list(range(MESSAGES))
    try:
        gateway.start()
        await gateway.wait_ready()
        gateway.kill()
        for _ in range(KILLS):
            await live(gateway, chance, messages)
            if chance.random() < 0.5:
                forget_waits(home)
        await come_to_rest(gateway, messages)
    finally:
        gateway.bury()
    rows = read_rows(home)
    check_rows(rows)
    heard = len(rows.of("inbox", kind="child", state="attached"))
    deaths = sum(turn["recoveries"] for turn in rows.turns)
    print(f"{KILLS} kills, {len(rows.children)} children, {heard} heard of, {deaths} turns resumed")
    counts = {"kills": KILLS, "children": len(rows.children), "resumed": deaths}
    add_to_tally("children kills", counts)
    # A turn that died three times in a row without a step is given up: then it asks for none.
    gave_up = len(rows.of("turns", state="failed"))
    assert len(rows.children) + CHILDREN * gave_up >= MESSAGES * CHILDREN
    assert heard == len(rows.children), "no one of them was stopped"
