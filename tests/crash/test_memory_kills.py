"""Kills at random instants of a real gateway that remembers in two chats at once."""

import json
import os
import random
from pathlib import Path
from time import monotonic

import apsw
import pytest
from anyio import create_task_group

from koboshi.domain.memory import read_picture
from tests.harness.client import Client
from tests.harness.home_file import number, opened
from tests.harness.invariants import check_rows
from tests.harness.polling import until
from tests.harness.process import GatewayProcess
from tests.harness.rows import read_rows
from tests.harness.tally import ROUND, WANTS_ALL, add_to_tally

SEED = int(os.environ.get("KOBOSHI_SEED", "1")) + ROUND
CALLS, KILLS = (1_000, 60) if WANTS_ALL else (40, 2)
AT_ONCE = 10
CHATS = ("ann", "bob")
ENV = {
    "KOBOSHI__MEMORY__MEMORY_CHARS": "20000",
    # It is killed more often in a minute than any real one: that is the point here.
    "KOBOSHI__RECOVERY__BOOT_BREAKER": "false",
}
FINISHED = "SELECT count(*) FROM calls WHERE tool = 'memory' AND finished_ms IS NOT NULL"
OPEN = (
    "SELECT (SELECT count(*) FROM turns WHERE closed_ms IS NULL) "
    "+ (SELECT count(*) FROM inbox WHERE state = 'waiting')"
)
SCREEN_S = 600.0


def counted(home: Path, query: str) -> int:
    if not (home / "koboshi.db").exists():
        return 0
    try:
        with opened(home) as connection:
            return number(connection, query)
    except apsw.SQLError:  # the tables are not there yet
        return 0


async def talk(gateway: GatewayProcess, chat: str, texts: list[str]) -> None:
    """Have these remembered, some in one reply, and wait for each answer."""
    person = Client(gateway, chat)
    for begin in range(0, len(texts), AT_ONCE):
        calls = [
            {"tool": "memory", "arguments": {"action": "add", "content": text}}
            for text in texts[begin : begin + AT_ONCE]
        ]
        script = json.dumps([{"calls": calls}, {"text": f"kept {chat} {begin}"}])
        await person.say(f"script: {script}", f"{chat}-{begin}")
        is_it = f"kind = 'answer' AND body LIKE '%kept {chat} {begin}\"%'"
        answered = f"SELECT count(*) FROM steps WHERE {is_it}"
        await until(
            lambda query=answered: counted(gateway.home, query),  # type: ignore[misc]
            f"{chat} {begin} is answered",
            within_s=SCREEN_S,
            otherwise=lambda: gateway.log[-3000:],
        )


async def kill_now_and_then(gateway: GatewayProcess, chance: random.Random) -> int:
    """Some moments behind a call that was finished: so no turn dies three times at one step."""
    kills, each = 0, CALLS // (KILLS + 1)
    gateway.start()
    for place in range(1, KILLS + 1):
        wanted = min(place * each, CALLS - 1)
        await until(
            lambda: counted(gateway.home, FINISHED) >= wanted,  # noqa: B023  (waited for at once)
            "a call is finished",
            within_s=SCREEN_S,
            otherwise=lambda: gateway.log[-3000:],
        )
        limit_s = monotonic() + chance.expovariate(100)
        await until(lambda: monotonic() >= limit_s, "the moment comes")  # noqa: B023
        gateway.kill()
        kills += 1
        gateway.start()
    return kills


@pytest.mark.slow
@pytest.mark.timeout(3_600)
async def test_no_memory_is_lost_or_doubled_by_kills_at_random_instants(home: Path) -> None:
    """Issue 21, must show: 1,000 calls with random kills, in two chats at once."""
    chance = random.Random(SEED)
    print(f"KOBOSHI_SEED={SEED}")
    texts = [f"n{place:04}" for place in range(CALLS)]
    gateway = GatewayProcess(home, env=ENV)
    kills = 0

    async def kill() -> None:
        nonlocal kills
        kills = await kill_now_and_then(gateway, chance)

    try:
        async with create_task_group() as tasks:
            tasks.start_soon(kill)
            for place, chat in enumerate(CHATS):
                tasks.start_soon(talk, gateway, chat, texts[place :: len(CHATS)])
        await until(lambda: counted(home, OPEN) == 0, "it comes to rest")
        written = await until(
            lambda: next((home / "memory").glob("*/MEMORY.md"), None), "a file is there"
        )
        await until(
            lambda: len(read_picture(written.read_text(encoding="utf-8")).texts) == CALLS,
            "the file shows them all",
        )
    finally:
        gateway.bury()
    check_rows(read_rows(home))
    with opened(home) as connection:
        rows = [str(text) for (text,) in connection.execute("SELECT text FROM memories")]
        assert sorted(rows) == texts, "lost, or there twice"
        assert number(connection, "SELECT count(*) FROM memory_revisions") == CALLS
        assert number(connection, "SELECT revision FROM memory_scopes") == CALLS
    told = sorted(read_picture(written.read_text(encoding="utf-8")).texts)
    assert told == texts
    print(f"{CALLS} calls, {kills} kills")
    add_to_tally("memory kills", {"calls": CALLS, "kills": kills})
    assert kills == KILLS
