"""Kills at random instants of a real gateway with schedules each second and a goal under way."""

import os
import random
from functools import partial
from pathlib import Path
from time import monotonic

import apsw
import pytest

from koboshi.clock import SystemClock
from tests.harness.client import Client
from tests.harness.home_file import number, numbers, opened
from tests.harness.invariants import check_rows
from tests.harness.polling import until
from tests.harness.process import GatewayProcess
from tests.harness.rows import read_rows
from tests.harness.tally import ROUND, WANTS_ALL, add_to_tally

SEED = int(os.environ.get("KOBOSHI_SEED", "1")) + ROUND
KILLS = 200 if WANTS_ALL else 8
SECOND_MS = 1_000
GOALS = ("bob", "cat", "dan")
PLACES = (("here", "skip"), ("fresh", "skip"), ("fresh", "queue"))
ORDER = """
INSERT INTO schedules (session_id, person, name, kind, expression, zone, prompt, command, place,
                       late, overlap, quiet, state, due_ms, created_by, created_ms, changed_ms,
                       plain)
VALUES ((SELECT min(session_id) FROM sessions), (SELECT person FROM turns LIMIT 1), :name, 'every',
        '1', '', :name, '', :place, 'skip', :overlap, 0, 'armed', :due, :name, :now, :now, :plain)
"""
ENV = {
    # It is killed more often in a minute than any real one: that is the point here.
    "KOBOSHI__RECOVERY__BOOT_BREAKER": "false",
}


def decided(home: Path) -> int:
    with opened(home) as connection:
        return number(connection, "SELECT sum(count) FROM occasions")


def check(home: Path) -> None:
    """Each due time is accounted for once, and each entry of time has one row that made it."""
    with opened(home) as connection:
        ask, count = partial(numbers, connection), partial(number, connection)
        armed = "SELECT schedule_id, created_ms, due_ms FROM schedules WHERE state = 'armed'"
        for schedule, made_ms, due_ms in ask(armed):
            told = count("SELECT sum(count) FROM occasions WHERE schedule_id = ?", schedule)
            passed = (due_ms - made_ms) // SECOND_MS - 1
            assert told == passed, f"{told} of {passed} due times of c{schedule} are told"
        fired = count("SELECT count(DISTINCT entry_id) FROM occasions")
        entries = count("SELECT count(*) FROM inbox WHERE kind = 'occasion'")
        assert fired == entries, f"{fired} occasions have {entries} entries"
        twice = ask(
            "SELECT turn_id FROM inbox WHERE kind IN ('occasion', 'goal') AND turn_id IS NOT NULL "
            "GROUP BY turn_id HAVING count(*) > 1"
        )
        assert not twice, f"turns of two occasions: {twice}"
        told = count("SELECT count(*) FROM outbox WHERE cause LIKE 'reminder:%'")
        handled = count("SELECT count(*) FROM inbox WHERE kind = 'occasion' AND state = 'handled'")
        assert told == handled, f"{handled} reminders and {told} deliveries of them"
        steps = count("SELECT sum(step) FROM goals")
        begun = count("SELECT count(*) FROM inbox WHERE kind = 'goal'")
        assert steps == begun, f"{steps} steps of goals and {begun} entries of them"


async def set_up(gateway: GatewayProcess) -> None:
    """Chats with goals that go on for ever, and schedules each second in every place."""
    gateway.start()
    await gateway.wait_ready()
    await Client(gateway, "ann").say("hello", "hello")
    for chat in GOALS:
        await Client(gateway, chat).say("/goal echo MORE", f"goal of {chat}")
    await until(lambda: _goes_on(gateway.home), "the goal goes on")
    gateway.kill()
    with opened(gateway.home, apsw.SQLITE_OPEN_READWRITE) as connection:
        connection.execute("UPDATE goals SET steps_max = 1000000, tokens_max = 1000000000000")
        now_ms = SystemClock().now_ms()
        values = {"now": now_ms, "due": now_ms + SECOND_MS}
        for number, (place, overlap) in enumerate(PLACES):
            more = {"name": f"echo {number}", "place": place, "overlap": overlap, "plain": 0}
            connection.execute(ORDER, values | more)
        more = {"name": "a reminder", "place": "here", "overlap": "skip", "plain": 1}
        connection.execute(ORDER, values | more)


def _goes_on(home: Path) -> bool:
    with opened(home) as connection:
        return number(connection, "SELECT min(step) FROM goals") > 1


async def live(gateway: GatewayProcess, chance: random.Random) -> None:
    """One life: it is killed while it starts, or some moments behind an occasion."""
    begun_s, before = monotonic(), decided(gateway.home)
    gateway.start()
    if chance.random() < 0.2:
        limit_s = begun_s + chance.uniform(0, 0.5)
    else:
        wanted = before + chance.randint(1, 4)
        await until(
            lambda: decided(gateway.home) >= wanted,
            "an occasion is decided",
            otherwise=lambda: gateway.log[-3000:],
        )
        limit_s = monotonic() + chance.expovariate(20)
    await until(lambda: monotonic() >= limit_s, "the moment comes")
    assert gateway.is_running, gateway.log[-3000:]
    gateway.kill()


async def come_to_rest(gateway: GatewayProcess) -> None:
    """Nothing new comes, and a last life finishes what is left."""
    with opened(gateway.home, apsw.SQLITE_OPEN_READWRITE) as connection:
        connection.execute("UPDATE schedules SET state = 'paused', due_ms = NULL")
        connection.execute("UPDATE goals SET state = 'cleared', worker_id = NULL")
    gateway.start()
    left = (
        "SELECT (SELECT count(*) FROM turns WHERE closed_ms IS NULL) "
        "+ (SELECT count(*) FROM inbox WHERE state = 'waiting') "
        "+ (SELECT count(*) FROM outbox WHERE settled_ms IS NULL)"
    )

    def is_quiet() -> bool:
        with opened(gateway.home) as connection:
            return number(connection, left) == 0

    await until(is_quiet, "it comes to rest", otherwise=lambda: gateway.log[-3000:])
    gateway.kill()


@pytest.mark.slow
@pytest.mark.timeout(1_800)
async def test_no_occasion_is_lost_or_doubled_by_kills_at_random_instants(home: Path) -> None:
    """Issue 18, must show: 200 random kills with schedules each second and goals under way."""
    chance = random.Random(SEED)
    print(f"KOBOSHI_SEED={SEED}")
    gateway = GatewayProcess(home, env=ENV)
    try:
        await set_up(gateway)
        for _ in range(KILLS):
            await live(gateway, chance)
            check(home)
        await come_to_rest(gateway)
    finally:
        gateway.bury()
    check_rows(read_rows(home))
    with opened(home) as connection:
        verdicts = "SELECT verdict, sum(count) FROM occasions GROUP BY verdict"
        counts = {str(name): int(str(found)) for name, found in connection.execute(verdicts)}
        steps = number(connection, "SELECT sum(step) FROM goals")
    print(f"{KILLS} kills, {counts}, {steps} steps")
    add_to_tally("time kills", {"kills": KILLS, "steps": steps, **counts})
    assert counts["fired"] >= KILLS // 2
