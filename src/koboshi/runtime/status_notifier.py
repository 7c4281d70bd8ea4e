"""What a serving gateway tells the service manager: that it lives, and what it does."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import structlog
from anyio import create_task_group, move_on_after, sleep

from koboshi.ports.store import Store
from koboshi.runtime.health import GatewayHealth
from koboshi.runtime.notify import Notifier

log = structlog.get_logger()

TELL_SECONDS = 5.0
LOOKS_PER_FEEDING = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class StatusNotifier:
    notifier: Notifier
    store: Store
    health: GatewayHealth

    async def keep_telling(self) -> None:
        """Feed the watchdog and tell the status while there is a listener."""
        if not self.notifier.is_heard:
            return
        async with create_task_group() as tasks:
            tasks.start_soon(self._keep_describing)
            if self.notifier.watchdog_seconds is not None:
                every = self.notifier.watchdog_seconds / 2
                tasks.start_soon(keep_feeding, self.notifier, self.health.is_alive, every)

    async def _keep_describing(self) -> None:
        """Until the stop begins: from then on, the shutdown tells its own progress."""
        while not self.health.stop_asked.is_set():
            is_recovered = self.health.has_recovered.is_set()
            words = await self._words()
            if not self.health.stop_asked.is_set():
                self.notifier.status(words)
            news = self.health.stop_asked if is_recovered else self.health.has_recovered
            with move_on_after(TELL_SECONDS):
                await news.wait()

    async def _words(self) -> str:
        if self.store.trouble is not None:
            return f"waiting: {self.store.trouble}"
        if not self.health.has_recovered.is_set():
            left = await self.store.turns.unowned(with_suspended=True)
            return recovering_words(len(left))
        status = await self.store.views.status()
        words = serving_words(status.turns.get("running", 0), status.inbox_waiting)
        return "; ".join((words, *unreached_words(self.health.channels())))


async def keep_feeding(notifier: Notifier, is_alive: Callable[[], bool], every: float) -> None:
    """Feed the watchdog every so many seconds from the event loop, and only while all is well. A
    single bad look does no harm: the next comes soon, and feeds again."""
    was_alive = True
    while True:
        alive = is_alive()
        if alive:
            notifier.alive()
        if alive != was_alive:
            say = log.info if alive else log.warning
            say("watchdog_fed" if alive else "watchdog_starved")
        was_alive = alive
        await sleep(every if alive else every / LOOKS_PER_FEEDING)


def recovering_words(turns: int) -> str:
    if not turns:
        return "looking at what the last boot left behind"
    return f"recovering {_counted(turns, 'turn')}"


def serving_words(running: int, waiting: int) -> str:
    """What a gateway that serves is doing."""
    if not running and not waiting:
        return "idle, ready for messages"
    return f"{_counted(running, 'turn')} running, {_counted(waiting, 'message')} waiting"


def unreached_words(channels: Mapping[str, str | None]) -> tuple[str, ...]:
    """Which channels are down, and why."""
    return tuple(f"{name} is down: {why}" for name, why in channels.items() if why is not None)


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
