"""Messages a second through the whole: Telegram, a model that takes no time, and back.

Every person writes, waits for the answer and writes again (a closed loop). The platform, the model
and the people run in this process, the gateway in its own.
"""

import asyncio
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from statistics import quantiles

from anyio import fail_after

from benchmarks.echo_model import echoing
from benchmarks.gateway import cpu_seconds, resident_mb, serving
from benchmarks.place import ROOT, BenchmarkFailed, say
from benchmarks.report import Measure, at_least, at_most
from benchmarks.yardstick import Yardstick

CHATS = 200
MESSAGES = 5
"""Of each, as the well-known gateway was measured with; and then more, to see the memory."""
ROUNDS_OF_MEMORY = 4
_SECONDS_MAX = 300
_SECTION = "KOBOSHI__CHANNELS__TELEGRAM__MAIN__"


@dataclass(slots=True)
class Load:
    """What the people wrote and heard."""

    latencies: list[float] = field(default_factory=list)
    answered: int = 0
    wrong: int = 0
    began: float = 0.0
    ended: float = 0.0


def measure_telegram(folder: Path, messages: int = MESSAGES) -> list[Measure]:
    loads, cpu, before, after, yardstick = _run(folder / "telegram", messages)
    first = loads[0]
    total = CHATS * messages
    seconds = first.ended - first.began
    cuts = quantiles(first.latencies, n=20)
    name = f"telegram, {CHATS} chats"
    return [
        Measure(name=f"{name}: messages per second", unit="/s", values=(total / seconds,)),
        Measure(name=f"{name}: CPU per message", unit="ms", values=(1000 * cpu / total,)),
        yardstick.measure(name),
        Measure(
            name=f"{name}: CPU per message, scaled",
            unit="ms",
            values=(yardstick.scaled(1000 * cpu / total),),
            target=at_most(1.6),
        ),
        Measure(
            name=f"{name}: messages per second of CPU, scaled",
            unit="/s",
            values=(total / yardstick.scaled(cpu),),
            target=at_least(500),
        ),
        Measure(name=f"{name}: latency, half", unit="ms", values=(1000 * cuts[9],)),
        Measure(name=f"{name}: latency, 95 of 100", unit="ms", values=(1000 * cuts[18],)),
        Measure(name=f"{name}: resident before", unit="MB", values=(before,)),
        Measure(
            name=f"{name}: resident, 4 more rounds / 1",
            unit="x",
            values=(after[-1] / after[0],),
            target=at_most(1.15),
        ),
    ]


def _run(home: Path, messages: int) -> tuple[list[Load], float, float, list[float], Yardstick]:
    """The loads, the processor time of the first, the memory before and after each, and the speed
    of the machine during the first."""
    with talking(home) as (platform, pid):
        say("telegram: first load")
        before, used = resident_mb(pid), cpu_seconds(pid)
        with Yardstick() as yardstick:
            loads = [platform.load(messages)]
        used = cpu_seconds(pid) - used
        after = [resident_mb(pid)]
        for _ in range(ROUNDS_OF_MEMORY):
            loads.append(platform.load(messages))
            after.append(resident_mb(pid))
        return loads, used, before, after, yardstick


@contextmanager
def talking(home: Path) -> Iterator[tuple["CrowdOnTelegram", int]]:
    """A gateway that has answered every person once, and the id of its process."""
    ready, over = threading.Event(), threading.Event()
    platform = CrowdOnTelegram(ready, over)
    thread = threading.Thread(target=platform.run)
    thread.start()
    try:
        if not ready.wait(30):
            raise BenchmarkFailed("the platform did not start")
        with serving(home, **platform.settings) as talk:
            talk.wait_until_ready()
            platform.load(1)  # the libraries of the model are loaded with the first message
            yield platform, talk.process.pid
    finally:
        over.set()
        platform.wake()
        thread.join()


class CrowdOnTelegram:
    """The platform, the model and the people, in a thread with a loop of its own."""

    def __init__(self, ready: threading.Event, over: threading.Event) -> None:
        self._ready = ready
        self._over = over
        self._loop = asyncio.new_event_loop()
        self._is_over = asyncio.Event()
        self.settings: dict[str, str] = {}

    def run(self) -> None:
        self._loop.run_until_complete(self._serve())

    def wake(self) -> None:
        self._loop.call_soon_threadsafe(self._is_over.set)

    def load(self, messages: int) -> Load:
        future = asyncio.run_coroutine_threadsafe(self._load(messages), self._loop)
        return future.result(_SECONDS_MAX)

    async def _serve(self) -> None:
        # The platform is a fake of the tests: it is not part of any installation.
        sys.path.insert(0, str(ROOT))
        from tests.fakes.telegram.server import serving as platform

        async with platform() as fake, echoing() as model:
            self._world = fake.world
            people = [fake.world.user(f"P{number}") for number in range(CHATS)]
            self._people = [(fake.world.private_chat(person), person) for person in people]
            self.settings = {
                f"{_SECTION}API_BASE": fake.url,
                f"{_SECTION}ALLOW": '["*"]',
                f"{_SECTION}RATE_PER_SECOND": "0",
                "TELEGRAM_BOT_TOKEN": fake.token,
                "KOBOSHI__MODEL__NAME": "openai:echo",
                "KOBOSHI__MODEL__BASE_URL": model,
                "OPENAI_API_KEY": "none-needed",
                "KOBOSHI__GATEWAY__MAX_TURNS": "64",
            }
            self._ready.set()
            await self._is_over.wait()

    async def _load(self, messages: int) -> Load:
        load = Load(began=time.monotonic())
        done = asyncio.Event()
        waiting: dict[int, tuple[str, float, int]] = {}
        hear = self._world.add_message

        def say_next(chat: object, person: object, left: int) -> None:
            text = f"words {left} of a person"
            waiting[chat.chat_id] = (text, time.monotonic(), left)  # type: ignore[attr-defined]
            self._world.say(chat, person, text)  # type: ignore[arg-type]

        def heard(chat: object, sender: object, date: int, content: dict[str, object]) -> object:
            message = hear(chat, sender, date, content)  # type: ignore[arg-type]
            if message.is_by_bot:
                text, began, left = waiting.pop(message.chat.chat_id)
                load.latencies.append(time.monotonic() - began)
                load.answered += 1
                load.wrong += text not in message.text
                if left > 1:
                    self._loop.call_soon(say_next, message.chat, message.chat.user, left - 1)
                elif load.answered == CHATS * messages:
                    done.set()
            return message

        self._world.add_message = heard  # type: ignore[assignment]
        try:
            for chat, person in self._people:
                say_next(chat, person, messages)
            with fail_after(_SECONDS_MAX):
                await done.wait()
        except TimeoutError:
            raise BenchmarkFailed(f"{load.answered} of {CHATS * messages} answered") from None
        finally:
            self._world.add_message = hear  # type: ignore[method-assign]
        load.ended = time.monotonic()
        if load.wrong:
            raise BenchmarkFailed(f"{load.wrong} answers are not what was said")
        return load
