"""Hints within one process."""

from anyio import Event, move_on_after


class LocalWakeups:
    """Counts the hints for every topic whose count was asked for, and wakes the waiters."""

    def __init__(self) -> None:
        self._counts: dict[str, int] = {}
        self._events: dict[str, Event] = {}

    def hint(self, topic: str) -> None:
        if topic in self._counts:
            self._counts[topic] += 1
        event = self._events.pop(topic, None)
        if event is not None:
            event.set()

    def hint_all(self) -> None:
        for topic in [*self._counts, *self._events]:
            self.hint(topic)

    def count(self, topic: str) -> int:
        return self._counts.setdefault(topic, 0)

    async def wait(self, topic: str, at_most_s: float, since: int | None = None) -> None:
        if since is not None and self.count(topic) != since:
            return
        event = self._events.setdefault(topic, Event())
        with move_on_after(at_most_s):
            await event.wait()

    def forget(self, topic: str) -> None:
        self._counts.pop(topic, None)
        self._events.pop(topic, None)
