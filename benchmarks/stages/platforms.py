"""Messages through the whole by Discord, Slack and Matrix: what one costs us, beside Telegram's.

Every person writes in private, waits for the answer and writes again (a closed loop). The platform,
the model and the people run in this process, the gateway in its own.
"""

import asyncio
import sys
import threading
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from anyio import fail_after

from benchmarks.echo_model import echoing
from benchmarks.gateway import cpu_seconds, serving
from benchmarks.homeserver import BOT, TOKEN, Homeserver, a_quick_homeserver
from benchmarks.place import ROOT, BenchmarkFailed
from benchmarks.report import Measure, at_most

CHATS = 100
MESSAGES = 5
WORDS = "words of a person"
_SECONDS_MAX = 300


class People(Protocol):
    """Those who write, on one platform."""

    settings: dict[str, str]
    chats: int

    async def load(self, messages: int) -> None:
        """Each writes so often, and waits for each answer."""
        ...


def measure_platform(name: str, folder: Path, telegram_ms: float | None) -> list[Measure]:
    """`telegram_ms` is what a message by Telegram costs in the same run, if it was measured."""
    chats, cpu_s, seconds = _run(folder / name, PEOPLE[name])
    total, line = chats * MESSAGES, f"{name}, {chats} chats"
    ours_ms = 1000 * cpu_s / total
    measures = [
        Measure(name=f"{line}: messages per second", unit="/s", values=(total / seconds,)),
        Measure(name=f"{line}: CPU per message", unit="ms", values=(ours_ms,)),
    ]
    if telegram_ms is not None:
        beside = (ours_ms / telegram_ms,)
        line = f"{line}: CPU per message / Telegram's"
        measures.append(Measure(name=line, unit="x", values=beside, target=at_most(2)))
    return measures


def _run(home: Path, people: "Gathering") -> tuple[int, float, float]:
    """How many chats there are, the processor time of the gateway and the seconds for all."""
    platform = _Platform(people)
    thread = threading.Thread(target=platform.run)
    thread.start()
    try:
        if not platform.ready.wait(60) or platform.people is None:
            raise BenchmarkFailed("the platform did not start")
        with serving(home, **platform.settings) as talk:
            talk.wait_until_ready()
            platform.load(1)  # the libraries of the model are loaded with the first message
            pid = talk.process.pid
            used, began = cpu_seconds(pid), time.monotonic()
            platform.load(MESSAGES)
            used = cpu_seconds(pid) - used
            return platform.people.chats, used, time.monotonic() - began
    finally:
        platform.end()
        thread.join()


class _Platform:
    """The platform, the model and the people, in a thread with a loop of its own."""

    def __init__(self, gathering: "Gathering") -> None:
        self.ready = threading.Event()
        self._gathering = gathering
        self._loop = asyncio.new_event_loop()
        self._is_over = asyncio.Event()
        self.settings: dict[str, str] = {}
        self.people: People | None = None

    def run(self) -> None:
        try:
            self._loop.run_until_complete(self._serve())
        finally:
            self.ready.set()

    def end(self) -> None:
        self._loop.call_soon_threadsafe(self._is_over.set)

    def load(self, messages: int) -> None:
        asyncio.run_coroutine_threadsafe(self._load(messages), self._loop).result(_SECONDS_MAX)

    async def _serve(self) -> None:
        # The platform is a fake of the tests: it is not part of any installation.
        sys.path.insert(0, str(ROOT))
        async with self._gathering() as people, echoing() as model:
            self.people = people
            self.settings = {
                **people.settings,
                "KOBOSHI__MODEL__NAME": "openai:echo",
                "KOBOSHI__MODEL__BASE_URL": model,
                "OPENAI_API_KEY": "none-needed",
                "KOBOSHI__GATEWAY__MAX_TURNS": "64",
            }
            self.ready.set()
            await self._is_over.wait()

    async def _load(self, messages: int) -> None:
        assert self.people is not None
        try:
            with fail_after(_SECONDS_MAX):
                await self.people.load(messages)
        except TimeoutError:
            raise BenchmarkFailed("not all messages were answered") from None


@dataclass(slots=True)
class _Counted:
    """How many answers each chat still waits for."""

    say: Callable[[str], object]
    left: dict[str, int]
    done: asyncio.Event = field(default_factory=asyncio.Event)

    def begin(self) -> None:
        for chat in self.left:
            self.say(chat)

    def heard(self, chat: str) -> None:
        self.left[chat] -= 1
        if self.left[chat]:
            asyncio.get_running_loop().call_soon(self.say, chat)
        elif not any(self.left.values()):
            self.done.set()


@dataclass(slots=True)
class _DiscordPeople:
    world: Any
    places: dict[str, Any]
    settings: dict[str, str]
    chats: int = CHATS

    async def load(self, messages: int) -> None:
        world, hear = self.world, self.world.add_message
        counted = _Counted(
            lambda chat: world.say(self.places[chat], self.places[chat].recipient, WORDS),
            dict.fromkeys(self.places, messages),
        )

        def heard(message: Any) -> None:
            hear(message)
            if message.author is world.bot:
                counted.heard(str(message.channel.channel_id))

        world.add_message = heard
        try:
            counted.begin()
            await counted.done.wait()
        finally:
            world.add_message = hear


@asynccontextmanager
async def _on_discord() -> AsyncIterator[People]:
    from tests.fakes.discord.server import serving_discord

    section = "KOBOSHI__CHANNELS__DISCORD__MAIN__"
    async with serving_discord() as fake:
        people = [fake.world.user(f"P{number}") for number in range(CHATS)]
        places = {str((place := fake.world.dm(user)).channel_id): place for user in people}
        settings = {
            f"{section}API_BASE": fake.api_url,
            f"{section}ALLOW": '["*"]',
            f"{section}RATE_PER_SECOND": "0",
            "DISCORD_BOT_TOKEN": fake.token,
        }
        yield _DiscordPeople(fake.world, places, settings)


@dataclass(slots=True)
class _SlackPeople:
    world: Any
    places: dict[str, tuple[Any, Any]]
    settings: dict[str, str]
    chats: int = CHATS

    async def load(self, messages: int) -> None:
        world, put = self.world, self.world.put
        counted = _Counted(
            lambda chat: world.say(*self.places[chat], WORDS), dict.fromkeys(self.places, messages)
        )

        def heard(place: Any, user: str, body: Any, **how: Any) -> Any:
            post = put(place, user, body, **how)
            if user == world.bot.user_id:
                counted.heard(place.channel_id)
            return post

        world.put = heard
        try:
            counted.begin()
            await counted.done.wait()
        finally:
            world.put = put


@asynccontextmanager
async def _on_slack() -> AsyncIterator[People]:
    from tests.fakes.slack.server import serving as serving_slack

    section = "KOBOSHI__CHANNELS__SLACK__MAIN__"
    async with serving_slack() as fake:
        people = [fake.world.user(f"P{number}") for number in range(CHATS)]
        places = {(place := fake.world.im(user)).channel_id: (place, user) for user in people}
        settings = {
            f"{section}API_BASE": fake.api,
            f"{section}ALLOW": '["*"]',
            f"{section}RATE_PER_SECOND": "0",
            "SLACK_BOT_TOKEN": fake.bot_token,
            "SLACK_APP_TOKEN": fake.app_token,
        }
        yield _SlackPeople(fake.world, places, settings)


@dataclass(slots=True)
class _MatrixPeople:
    server: Homeserver
    settings: dict[str, str]
    chats: int = CHATS

    async def load(self, messages: int) -> None:
        counted = _Counted(
            lambda room: self.server.say(room, WORDS), dict.fromkeys(self.server.people, messages)
        )
        self.server.on_answer = counted.heard
        counted.begin()
        await counted.done.wait()


@asynccontextmanager
async def _on_matrix() -> AsyncIterator[People]:
    section = "KOBOSHI__CHANNELS__MATRIX__MAIN__"
    async with a_quick_homeserver(CHATS) as server:
        settings = {
            f"{section}HOMESERVER": server.url,
            f"{section}USER": BOT,
            f"{section}TOKEN": TOKEN,
            f"{section}ALLOW": '["*"]',
            f"{section}RATE_PER_SECOND": "0",
        }
        yield _MatrixPeople(server, settings)


Gathering = Callable[[], AbstractAsyncContextManager[People]]
PEOPLE: dict[str, Gathering] = {"discord": _on_discord, "slack": _on_slack, "matrix": _on_matrix}
