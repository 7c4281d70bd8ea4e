"""A bot of which one node is the owner: it alone receives and sends, and another follows it."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tests.fakes.telegram.server import FakeTelegram, serving
from tests.fakes.telegram.state import Chat, User
from tests.harness.fleet import Fleet, a_fleet
from tests.harness.polling import until
from tests.harness.postgres_backend import Database
from tests.harness.telegram import SECTION

pytestmark = pytest.mark.crash

SLOWLY = "script: " + json.dumps([{"text": "done", "sleep_ms": 2_500}])


@asynccontextmanager
async def with_a_bot(
    folder: Path, database: Database, *names: str
) -> AsyncIterator[tuple[Fleet, FakeTelegram, User, Chat]]:
    async with serving() as fake:
        ann = fake.world.user("Ann", "ann")
        settings = {
            f"{SECTION}ALLOW": f"[{ann.user_id}]",
            f"{SECTION}RATE_PER_SECOND": "0",
            f"{SECTION}API_BASE": fake.url,
            "TELEGRAM_BOT_TOKEN": fake.token,
        }
        with a_fleet(folder, database, *names, env=settings) as fleet:
            yield fleet, fake, ann, fake.world.private_chat(ann)


def said(fake: FakeTelegram, chat: Chat) -> list[str]:
    return [each.text for each in fake.world.messages_seen(chat) if each.is_by_bot]


async def owner_of(fleet: Fleet) -> str:
    query = (
        "SELECT node FROM accounts JOIN workers ON worker_id = owner "
        "WHERE channel = 'telegram:main' AND ended_ms IS NULL"
    )

    def look() -> str | None:
        found = fleet.rows(query)
        return str(found[0][0]) if found else None

    return await until(look, "a node has the account", otherwise=lambda: fleet.log)


async def test_another_node_receives_and_sends_when_the_owner_is_killed(
    tmp_path: Path, database: Database
) -> None:
    async with with_a_bot(tmp_path, database, "a", "b") as (fleet, fake, ann, chat):
        for name in ("a", "b"):
            fleet[name].start()
        await fleet.ready()
        first = await owner_of(fleet)
        for number in range(3):
            fake.world.say(chat, ann, f"echo before {number}")
        await until(lambda: len(said(fake, chat)) == 3, "answers", otherwise=lambda: fleet.log)
        fleet[first].gateway.kill()
        fake.world.say(chat, ann, "echo after")
        await until(lambda: len(said(fake, chat)) == 4, "answers", otherwise=lambda: fleet.log)
        await fleet.comes_to_rest()

        assert said(fake, chat) == ["before 0", "before 1", "before 2", "after"]
        assert await owner_of(fleet) != first
        assert fleet.written_after_burial() == []


async def test_a_drain_hands_the_account_over_and_tells_no_person_of_a_restart(
    tmp_path: Path, database: Database
) -> None:
    async with with_a_bot(tmp_path, database, "a", "b") as (fleet, fake, ann, chat):
        fleet["a"].start()
        await fleet.ready("a")
        assert await owner_of(fleet) == "a"
        fleet["b"].start()
        await fleet.ready("b")
        fake.world.say(chat, ann, SLOWLY)
        await fleet.node_of(1)
        fleet["a"].gateway.terminate()
        fake.world.say(chat, ann, "echo second")
        assert await fleet["a"].gateway.wait_exit() == 0
        assert await owner_of(fleet) == "b"
        await until(lambda: len(said(fake, chat)) == 2, "answers", otherwise=lambda: fleet.log)
        await fleet.comes_to_rest()

        assert said(fake, chat) == ["done", "second"]
