"""What happened, and when the power goes off: from then on nothing has any effect."""

import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

from anyio import sleep, sleep_forever

from koboshi.domain.errors import StoreFailed


@dataclass(slots=True)
class History:
    """What happened in one run, with virtual times, to be read by people."""

    now: Callable[[], float] = lambda: 0.0
    lines: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    """What the gateway called an error of its own while it had power."""
    counts: Counter[str] = field(default_factory=Counter)

    def tell(self, what: str) -> None:
        self.lines.append(f"{self.now():11.4f}  {what}")

    def count(self, what: str, how_many: int = 1) -> None:
        self.counts[what] += how_many


@dataclass(slots=True, kw_only=True)
class Power:
    """The power of one life. The world asks it before each effect, so that whatever a dead
    gateway still does while its tasks are cleared away has none."""

    history: History
    dice: random.Random
    crash_at: str = ""
    """`<verb>:before:<n>` or `<verb>:after:<n>`, or `:before:<n>` for any verb: the n-th commit."""
    is_second: bool = False
    """It begins while another life goes on."""
    is_off: bool = False
    is_cut_off: bool = False
    """It reaches its store, and nothing else in the world."""
    on_off: list[Callable[[], None]] = field(default_factory=list)
    _reached: Counter[str] = field(default_factory=Counter)

    def go_off(self, why: str) -> None:
        if self.is_off:
            return
        self.is_off = True
        self.history.tell(f"‡ the power goes off: {why}")
        self.history.count("crashes")
        for call in self.on_off:
            call()

    def check_on(self) -> None:
        """Raise if this life is over."""
        if self.is_off:
            raise StoreFailed("the power is off")

    def check(self) -> None:
        """Raise if this life does not reach the world any more."""
        self.check_on()
        if self.is_cut_off:
            raise OSError("it is cut off")

    def reach(self, verb: str, moment: str) -> None:
        """A commit comes to this moment; this may be where the life ends."""
        for name in (verb, ""):
            place = f"{name}:{moment}"
            self._reached[place] += 1
            if self.crash_at == f"{place}:{self._reached[place]}":
                self.go_off(f"{moment} the commit of {verb}")

    async def takes(self, least_s: float, most_s: float) -> None:
        """Time passes in the world, and the power may go off meanwhile. Who is cut off waits for
        an answer that never comes."""
        self.check_on()
        await sleep(self.dice.uniform(least_s, most_s))
        self.check_on()
        if self.is_cut_off:
            await sleep_forever()
