"""A clock that only the test moves, and hints that are only written down."""

START_MS = 1_800_000_000_000
SECOND_MS, HOUR_MS, DAY_MS = 1_000, 3_600_000, 86_400_000


class FakeClock:
    """Stands still unless the test moves it."""

    def __init__(self) -> None:
        self.wall_ms = START_MS
        self.seconds = 0.0

    def now_ms(self) -> int:
        return self.wall_ms

    def monotonic(self) -> float:
        return self.seconds

    def move(self, ms: int) -> None:
        self.wall_ms += ms
        self.seconds += max(0, ms) / 1000


class RecordingWakeups:
    def __init__(self) -> None:
        self.hints: list[str] = []

    def hint(self, topic: str) -> None:
        self.hints.append(topic)

    def hint_all(self) -> None:
        self.hints.append("*")

    def count(self, topic: str) -> int:
        return self.hints.count(topic)

    async def wait(self, topic: str, at_most_s: float, since: int | None = None) -> None:
        raise AssertionError("a store never waits for hints")

    def forget(self, topic: str) -> None:
        self.hints = [hint for hint in self.hints if hint != topic]
