"""A fake platform in a process of its own, on which a crowd talks: `python -m tests.fakes.flooding
slack`. It writes one line with the settings that a gateway needs, and then does what it is told by
lines: `flood` has the crowd talk until `end`, `state` tells how many events were said and wait."""

import asyncio
import json
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass

from benchmarks.homeserver import BOT, TOKEN, a_quick_homeserver
from tests.fakes.discord.server import serving_discord
from tests.fakes.slack.server import serving as serving_slack
from tests.fakes.telegram.server import serving as serving_telegram

WAITING_MAX = 500
AT_ONCE = 20


@dataclass(slots=True, kw_only=True)
class Crowd:
    settings: dict[str, str]
    murmur: Callable[[int], object]
    """One more event that is not for us."""
    waiting: Callable[[], int]
    """How many were not taken in yet; at least about."""
    said: int = 0
    is_talking: bool = False

    async def keep_talking(self) -> None:
        while True:
            if not self.is_talking or self.waiting() > WAITING_MAX:
                await asyncio.sleep(0.002)
                continue
            for _ in range(AT_ONCE):
                self.murmur(self.said)
                self.said += 1
            await asyncio.sleep(0)


@asynccontextmanager
async def on_discord() -> AsyncIterator[Crowd]:
    async with serving_discord() as fake:
        section, eve = "KOBOSHI__CHANNELS__DISCORD__MAIN__", fake.world.user("Eve")
        place = fake.world.text_channel(fake.world.guild())
        yield Crowd(
            settings={
                f"{section}ALLOW": f'["{eve.user_id + 1}"]',
                f"{section}API_BASE": fake.api_url,
                "DISCORD_BOT_TOKEN": fake.token,
            },
            murmur=lambda number: fake.world.say(place, eve, f"number {number}"),
            waiting=lambda: sum(link.outgoing.qsize() for link in fake.gateway.links),
        )


@asynccontextmanager
async def on_slack() -> AsyncIterator[Crowd]:
    async with serving_slack() as fake:
        section, eve = "KOBOSHI__CHANNELS__SLACK__MAIN__", fake.world.user("Eve")
        place = fake.world.im(eve)
        yield Crowd(
            settings={
                f"{section}ALLOW": '["U0NOBODY"]',
                f"{section}API_BASE": fake.api,
                "SLACK_BOT_TOKEN": fake.bot_token,
                "SLACK_APP_TOKEN": fake.app_token,
            },
            murmur=lambda number: fake.world.say(place, eve, f"number {number}"),
            waiting=lambda: len(fake.world.happenings.unsettled),
        )


@asynccontextmanager
async def on_telegram() -> AsyncIterator[Crowd]:
    async with serving_telegram() as fake:
        section, eve = "KOBOSHI__CHANNELS__TELEGRAM__MAIN__", fake.world.user("Eve")
        place = fake.world.supergroup()
        yield Crowd(
            settings={
                f"{section}ALLOW": f"[{eve.user_id + 1}]",
                f"{section}API_BASE": fake.url,
                "TELEGRAM_BOT_TOKEN": fake.token,
            },
            murmur=lambda number: fake.world.say(place, eve, f"number {number}"),
            waiting=lambda: len(fake.world.updates),
        )


@asynccontextmanager
async def on_matrix() -> AsyncIterator[Crowd]:
    async with a_quick_homeserver(1) as server:
        section, (room,) = "KOBOSHI__CHANNELS__MATRIX__MAIN__", server.people
        yield Crowd(
            settings={
                f"{section}ALLOW": '["@other:localhost"]',
                f"{section}HOMESERVER": server.url,
                f"{section}USER": BOT,
                f"{section}TOKEN": TOKEN,
            },
            murmur=lambda number: server.say(room, f"number {number}"),
            waiting=lambda: len(server.events) - server.asked_from,
        )


CROWDS = {
    "discord": on_discord,
    "matrix": on_matrix,
    "slack": on_slack,
    "telegram": on_telegram,
}


async def serve(platform: str) -> None:
    reader = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(reader), sys.stdin
    )
    async with CROWDS[platform]() as crowd:
        talking = asyncio.get_running_loop().create_task(crowd.keep_talking())
        print(json.dumps(crowd.settings), flush=True)
        while line := (await reader.readline()).decode().strip():
            if line != "state":
                crowd.is_talking = line == "flood"
            print(json.dumps({"said": crowd.said, "waiting": crowd.waiting()}), flush=True)
        talking.cancel()


if __name__ == "__main__":
    asyncio.run(serve(sys.argv[1]))
