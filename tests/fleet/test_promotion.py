"""The server is lost, and its standby takes over: one that was waited for has everything; after one
that was behind, no copy is said without a label, and nothing is silently taken for done."""

import json
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import psycopg
import pytest

from koboshi.cli.options import RESTART, STORAGE_FAILED
from koboshi.domain.phrases import DUPLICATE_LABEL
from tests.cli.process import koboshi
from tests.fakes.telegram.server import FakeTelegram, serving
from tests.fakes.telegram.state import Chat, User
from tests.harness.fleet import Fleet, a_fleet
from tests.harness.polling import until
from tests.harness.postgres import Cluster, NoPostgres, a_cluster, a_standby, refuse_or_skip
from tests.harness.postgres_backend import Database
from tests.harness.process import KILLED
from tests.harness.telegram import SECTION

pytestmark = [pytest.mark.crash, pytest.mark.timeout(600)]

SLOWLY = "script: " + json.dumps([{"text": "done {}", "sleep_ms": 2_500}])
LABEL = DUPLICATE_LABEL.strip()[:20]
TRIES = 6


@pytest.fixture
def primary() -> Iterator[Cluster]:
    try:
        made = a_cluster()
    except NoPostgres as error:
        refuse_or_skip(str(error))
    yield made
    made.remove()


@pytest.fixture
def standby(primary: Cluster) -> Iterator[Cluster]:
    made = a_standby(primary)
    yield made
    made.remove()


class Bot:
    """Two gateways with a bot, whose server is one of two."""

    def __init__(self, fleet: Fleet, fake: FakeTelegram, ann: User, chat: Chat) -> None:
        self.fleet, self.fake, self.ann, self.chat = fleet, fake, ann, chat

    def say(self, text: str) -> None:
        self.fake.world.say(self.chat, self.ann, text)

    def said(self, words: str) -> list[str]:
        seen = self.fake.world.messages_seen(self.chat)
        return [each.text for each in seen if each.is_by_bot and words in each.text]

    async def hears(self, words: str, times: int = 1) -> None:
        await until(lambda: len(self.said(words)) >= times, words, otherwise=self.fleet.told)

    def fail_over(self, primary: Cluster, standby: Cluster) -> None:
        primary.stop()
        if standby.server is None:
            standby.start()
        standby.promote()
        self.fleet.database.close()
        self.fleet.database.url = standby.url("promoted")
        for node in self.fleet.nodes.values():
            node.proxy.lead_to(standby.socket)

    def start_what_ended(self) -> set[int]:
        """As a service manager does. Returns how they ended."""
        codes = set()
        for node in self.fleet.nodes.values():
            if not node.gateway.is_running:
                code = node.gateway.exit_code
                assert code in (STORAGE_FAILED, RESTART, KILLED), node.gateway.log[-3000:]
                codes.add(code)
                node.start()
        return codes


@asynccontextmanager
async def a_bot(folder: Path, server: Cluster) -> AsyncIterator[Bot]:
    database = Database("promoted", server.url())
    async with serving() as fake:
        ann = fake.world.user("Ann", "ann")
        settings = {
            f"{SECTION}ALLOW": f"[{ann.user_id}]",
            f"{SECTION}RATE_PER_SECOND": "0",
            f"{SECTION}API_BASE": fake.url,
            "TELEGRAM_BOT_TOKEN": fake.token,
        }
        with a_fleet(folder, database, "a", "b", server=server.socket, env=settings) as fleet:
            for node in fleet.nodes.values():
                node.start()
            await fleet.ready()
            yield Bot(fleet, fake, ann, fake.world.private_chat(ann))
    database.close()


async def is_followed(primary: Cluster, standby: Cluster) -> None:
    """The standby has all that is committed now."""
    upto = primary.ask("SELECT pg_current_wal_lsn()::text")
    query = f"SELECT pg_last_wal_replay_lsn() >= '{upto}'::pg_lsn"

    def look() -> bool:
        with suppress(psycopg.OperationalError):
            return bool(standby.ask(query))
        return False

    await until(look, "the standby follows")


async def left_behind(bot: Bot, primary: Cluster, standby: Cluster) -> str:
    """A message that the standby has, and an answer that it never gets: the words of it."""
    for number in range(TRIES):
        before = bot.fleet.number("SELECT count(*) FROM turns")
        bot.say(SLOWLY.replace("{}", str(number)))
        await bot.fleet.node_of(before + 1)
        await is_followed(primary, standby)
        standby.stop()
        if not bot.said(f"done {number}"):
            await bot.hears(f"done {number}")
            await bot.fleet.comes_to_rest()
            return f"done {number}"
        standby.start()  # this machine is slow: the answer was quicker than the end of the standby
    raise AssertionError("no answer was slower than the end of the standby")


async def test_after_a_standby_that_was_behind_no_copy_is_said_without_a_label(
    tmp_path: Path, primary: Cluster, standby: Cluster
) -> None:
    async with a_bot(tmp_path, primary) as bot:
        bot.say("echo before")
        await bot.hears("before")
        words = await left_behind(bot, primary, standby)
        bot.say("echo lost")
        await bot.hears("lost")
        bot.fail_over(primary, standby)

        codes: set[int] = set()

        def all_are_new() -> bool:
            codes.update(bot.start_what_ended())
            nodes = bot.fleet.nodes.values()
            return all(node.gateway.lives >= 2 and node.gateway.address for node in nodes)

        await until(all_are_new, "both have ended and are back", otherwise=lambda: bot.fleet.log)
        assert STORAGE_FAILED in codes
        bot.say("echo after")
        await bot.hears("after")
        await bot.hears(words, times=2)
        first, *copies = bot.said(words)

        assert first == words
        assert copies
        assert all(each.startswith(LABEL) for each in copies)
        assert len(bot.said("before")) == len(bot.said("after")) == 1
        status = koboshi("status", home=bot.fleet["a"].gateway.home)
        assert "may have gone back" in status.out


async def test_a_standby_that_was_waited_for_takes_over_and_nothing_is_held(
    tmp_path: Path, primary: Cluster, standby: Cluster
) -> None:
    primary.ask("ALTER SYSTEM SET synchronous_standby_names = 'standby'")
    primary.ask("SELECT pg_reload_conf()")
    async with a_bot(tmp_path, primary) as bot:
        bot.say("echo before")
        await bot.hears("before")
        bot.say(SLOWLY)
        await bot.fleet.node_of(2)
        bot.fail_over(primary, standby)
        bot.say("echo after")
        await bot.hears("after")
        await bot.hears("done")
        await bot.fleet.comes_to_rest()

        assert bot.said("done") == ["done {}"]
        assert not bot.fleet.number("SELECT count(*) FROM holds")
        assert all(node.gateway.lives == 1 for node in bot.fleet.nodes.values()), bot.fleet.log
