"""Messages through the whole by Discord: what one costs us, beside what it costs by Telegram.

Every person writes in private, waits for the answer and writes again (a closed loop). The platform,
the model and the people run in this process, the gateway in its own.
"""

import asyncio
import sys
import threading
import time
from pathlib import Path
from typing import Any

from anyio import fail_after

from benchmarks.echo_model import echoing
from benchmarks.gateway import cpu_seconds, serving
from benchmarks.place import ROOT, BenchmarkFailed
from benchmarks.report import Measure, at_most

CHATS = 100
MESSAGES = 5
_SECONDS_MAX = 300
_SECTION = "KOBOSHI__CHANNELS__DISCORD__MAIN__"


def measure_discord(folder: Path, telegram_ms: float | None) -> list[Measure]:
    """`telegram_ms` is what a message by Telegram costs in the same run, if it was measured."""
    cpu_s, seconds = _run(folder / "discord")
    total, name = CHATS * MESSAGES, f"discord, {CHATS} chats"
    ours_ms = 1000 * cpu_s / total
    measures = [
        Measure(name=f"{name}: messages per second", unit="/s", values=(total / seconds,)),
        Measure(name=f"{name}: CPU per message", unit="ms", values=(ours_ms,)),
    ]
    if telegram_ms is not None:
        beside = (ours_ms / telegram_ms,)
        line = f"{name}: CPU per message / Telegram's"
        measures.append(Measure(name=line, unit="x", values=beside, target=at_most(2)))
    return measures


def _run(home: Path) -> tuple[float, float]:
    """The processor time of the gateway and the seconds for all messages."""
    ready = threading.Event()
    platform = _DiscordPlatform(ready)
    thread = threading.Thread(target=platform.run)
    thread.start()
    try:
        if not ready.wait(30):
            raise BenchmarkFailed("the platform did not start")
        with serving(home, **platform.settings) as talk:
            talk.wait_until_ready()
            platform.load(1)  # the libraries of the model are loaded with the first message
            pid = talk.process.pid
            used, began = cpu_seconds(pid), time.monotonic()
            platform.load(MESSAGES)
            return cpu_seconds(pid) - used, time.monotonic() - began
    finally:
        platform.end()
        thread.join()


class _DiscordPlatform:
    """The platform, the model and the people, in a thread with a loop of its own."""

    def __init__(self, ready: threading.Event) -> None:
        self._ready = ready
        self._loop = asyncio.new_event_loop()
        self._is_over = asyncio.Event()
        self.settings: dict[str, str] = {}
        self._world: Any = None

    def run(self) -> None:
        self._loop.run_until_complete(self._serve())

    def end(self) -> None:
        self._loop.call_soon_threadsafe(self._is_over.set)

    def load(self, messages: int) -> None:
        asyncio.run_coroutine_threadsafe(self._load(messages), self._loop).result(_SECONDS_MAX)

    async def _serve(self) -> None:
        # The platform is a fake of the tests: it is not part of any installation.
        sys.path.insert(0, str(ROOT))
        from tests.fakes.discord.server import serving_discord

        async with serving_discord() as fake, echoing() as model:
            self._world = fake.world
            people = [fake.world.user(f"P{number}") for number in range(CHATS)]
            self._chats = [(fake.world.dm(person), person) for person in people]
            self.settings = {
                f"{_SECTION}API_BASE": fake.api_url,
                f"{_SECTION}ALLOW": '["*"]',
                f"{_SECTION}RATE_PER_SECOND": "0",
                "DISCORD_BOT_TOKEN": fake.token,
                "KOBOSHI__MODEL__NAME": "openai:echo",
                "KOBOSHI__MODEL__BASE_URL": model,
                "OPENAI_API_KEY": "none-needed",
                "KOBOSHI__GATEWAY__MAX_TURNS": "64",
            }
            self._ready.set()
            await self._is_over.wait()

    async def _load(self, messages: int) -> None:
        done, left = asyncio.Event(), {chat.channel_id: messages for chat, _ in self._chats}
        hear = self._world.add_message

        def heard(message: Any) -> None:
            hear(message)
            if message.author is not self._world.bot:
                return
            chat = message.channel
            left[chat.channel_id] -= 1
            if left[chat.channel_id]:
                self._loop.call_soon(self._world.say, chat, chat.recipient, "words of a person")
            elif not any(left.values()):
                done.set()

        self._world.add_message = heard
        try:
            for chat, person in self._chats:
                self._world.say(chat, person, "words of a person")
            with fail_after(_SECONDS_MAX):
                await done.wait()
        except TimeoutError:
            raise BenchmarkFailed(f"{sum(left.values())} messages were not answered") from None
        finally:
            self._world.add_message = hear
