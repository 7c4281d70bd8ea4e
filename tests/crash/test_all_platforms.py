"""One gateway on all platforms at once, killed at random: nothing lost, nothing twice unsaid."""

import random
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import ParamSpec, TypeVar

import pytest
from anyio import move_on_after, sleep_forever

from tests.harness.discord import a_discord_bot
from tests.harness.invariants import check_rows
from tests.harness.matrix import a_matrix_bot
from tests.harness.polling import until, until_asked
from tests.harness.process import GatewayProcess
from tests.harness.rows import Rows, glance, read_rows
from tests.harness.slack import a_slack_app
from tests.harness.synapse import shared_homeserver
from tests.harness.tally import ROUND, WANTS_ALL, add_to_tally
from tests.harness.telegram import a_bot
from tests.harness.telegram_words import LABEL

P = ParamSpec("P")
T = TypeVar("T")

SEED = 20_261_117 + 1_000 * ROUND
KILLS = 4
PORTIONS = range(50)
"""All portions together are two hundred kills."""
KILLED_WITHIN_S = 2.0
"""From the messages on: a gateway starts, connects, takes them in, answers and settles in this."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Talk:
    """A person's private chat with the agent, on one platform."""

    say: Callable[[str], Awaitable[object]]
    said: Callable[[], Awaitable[Sequence[str]]]
    is_connected: Callable[[], bool]


@dataclass(frozen=True, slots=True)
class Everywhere:
    gateway: GatewayProcess
    talks: dict[str, Talk]

    async def say(self, text: str) -> None:
        for talk in self.talks.values():
            await talk.say(text)

    async def hears(self, words: list[str]) -> None:
        """Wait until every platform has each of these words."""

        async def look() -> bool:
            everywhere = ["\n".join(await talk.said()) for talk in self.talks.values()]
            return all(word in said for said in everywhere for word in words)

        try:
            await until_asked(look, f"{words} are said everywhere")
        except AssertionError as error:
            said = {name: await talk.said() for name, talk in self.talks.items()}
            raise AssertionError(f"{error}\n{said}\n{self.gateway.log[-3000:]}") from None

    async def is_connected(self) -> None:
        for name, talk in self.talks.items():
            log = lambda: self.gateway.log[-3000:]  # noqa: E731
            await until(talk.is_connected, f"{name} is connected", otherwise=log)

    async def comes_to_rest(self) -> Rows:
        def look() -> Rows | None:
            rows = glance(self.gateway.home)
            is_over = all(turn["closed_ms"] is not None for turn in rows.turns)
            is_settled = all(row["settled_ms"] is not None for row in rows.outbox)
            waits = any(row["state"] == "waiting" for row in rows.inbox)
            return read_rows(self.gateway.home) if is_over and is_settled and not waits else None

        return await until(look, "it comes to rest", otherwise=lambda: self.gateway.log[-3000:])


@asynccontextmanager
async def everywhere(home: Path) -> AsyncIterator[Everywhere]:
    """Each platform as its own tests have it, and one gateway for all of them."""
    async with AsyncExitStack() as stack:
        telegram = await stack.enter_async_context(a_bot(home.with_name("telegram")))
        discord = await stack.enter_async_context(a_discord_bot(home.with_name("discord")))
        slack = await stack.enter_async_context(a_slack_app(home.with_name("slack")))
        matrix = await stack.enter_async_context(
            a_matrix_bot(home.with_name("matrix"), shared_homeserver())
        )
        bots = (telegram, discord, slack, matrix)
        env = {name: value for bot in bots for name, value in bot.gateway.environment.items()}
        gateway = GatewayProcess(home, env=env)
        stack.callback(gateway.bury)

        def has_cursor(platform: str) -> bool:
            return any(row["channel"].startswith(platform) for row in glance(home).cursors)

        talks = {
            "telegram": Talk(
                say=_soon(telegram.say), said=_soon(telegram.said), is_connected=lambda: True
            ),
            "discord": Talk(
                say=_soon(discord.say),
                said=_soon(discord.said),
                is_connected=lambda: has_cursor("discord"),
            ),
            "slack": Talk(
                say=_soon(slack.say),
                said=_soon(slack.said),
                is_connected=lambda: bool(slack.fake.sockets.connections),
            ),
            "matrix": Talk(
                say=matrix.say, said=matrix.said, is_connected=lambda: has_cursor("matrix")
            ),
        }
        yield Everywhere(gateway, talks)


def _soon(do: Callable[P, T]) -> Callable[P, Awaitable[T]]:
    """The same for those who wait."""

    async def done(*arguments: P.args, **named: P.kwargs) -> T:
        return do(*arguments, **named)

    return done


@pytest.mark.parametrize("portion", PORTIONS if WANTS_ALL else PORTIONS[:1])
async def test_killed_at_random_with_all_platforms_at_once(home: Path, portion: int) -> None:
    """Issue 17: 0 lost, 0 doubles without a label."""
    print(f"seed {SEED + portion}")
    chance = random.Random(SEED + portion)
    async with everywhere(home) as all_of_them:
        gateway = all_of_them.gateway
        gateway.start()
        await all_of_them.is_connected()
        await all_of_them.say("echo hello")
        await all_of_them.hears(["hello"])
        words = [f"word{number}." for number in range(KILLS)]
        for word in words:
            await all_of_them.say(f"echo {word}")
            with move_on_after(chance.random() * KILLED_WITHIN_S):
                await sleep_forever()
            gateway.kill()
            gateway.start()
        await all_of_them.hears(words)
        rows = await all_of_them.comes_to_rest()

        labelled = 0
        for name, talk in all_of_them.talks.items():
            said = await talk.said()
            for word in words:
                copies = [each for each in said if word in each]
                marked = [each for each in copies if LABEL in each]
                labelled += len(marked)
                assert len(copies) - len(marked) <= 1, f"{name} says {word} twice: {said}"
        check_rows(rows)
        add_to_tally(
            "all platforms", {"seed": SEED + portion, "kills": KILLS, "labelled": labelled}
        )
