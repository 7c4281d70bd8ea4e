"""What the world around the gateway is like in one run: when it fails, and how much."""

import random
from dataclasses import dataclass, field
from typing import TypeAlias

from tests.sim.plots import Plot

Span: TypeAlias = tuple[float, float]
"""From one moment to another, on the clock that no one sets."""

FOR_GOOD_S = 1_000_000.0
MINUTE_MS, DAY_MS = 60_000, 86_400_000
JUMPS_MS = (-90_000, -5_000, 5_000, 50 * MINUTE_MS)
FAR_JUMPS_MS = (-DAY_MS, -DAY_MS, -2 * 60 * MINUTE_MS, -20 * MINUTE_MS, 20 * MINUTE_MS, DAY_MS)


@dataclass(slots=True, kw_only=True)
class Weather:
    plot: Plot = Plot.COMMON
    model_down: list[Span] = field(default_factory=list)
    platform_down: list[Span] = field(default_factory=list)
    hangs: list[Span] = field(default_factory=list)
    """When nothing comes back from the other channel."""
    jumps: list[tuple[float, int]] = field(default_factory=list)
    """When the clock is set while a gateway runs, and by how much."""
    is_calm: bool = False
    """From now on nothing fails any more, so that everything can come to an end."""

    def is_model_down(self, now_s: float) -> bool:
        return not self.is_calm and _is_in(self.model_down, now_s)

    def is_platform_down(self, now_s: float) -> bool:
        return not self.is_calm and _is_in(self.platform_down, now_s)

    def is_hanging(self, now_s: float) -> bool:
        return not self.is_calm and _is_in(self.hangs, now_s)

    @property
    def busy_share(self) -> float:
        """How often the model wants to be asked again."""
        return {Plot.OUTAGE: 0.0, Plot.SIDE: 0.0, Plot.CLOCK: 0.3}.get(self.plot, 0.06)

    @property
    def starves(self) -> bool:
        """Whether descriptors run out and runners are killed."""
        return self.plot is Plot.STARVED and not self.is_calm


def weather_of(dice: random.Random, plot: Plot) -> Weather:
    weather = Weather(plot=plot)
    match plot:
        case Plot.ROUGH:
            weather.platform_down = _spans(dice, 2, 5.0, 90.0)
        case Plot.OUTAGE:
            weather.model_down = _spans(dice, 2, 10.0, 240.0)
            if dice.random() < 0.2:
                weather.model_down.append((dice.uniform(0.0, 40.0), FOR_GOOD_S))
        case Plot.SIDE:
            weather.hangs = [(0.0, dice.uniform(60.0, 300.0))]
        case Plot.CLOCK:
            moments = (dice.uniform(1.0, 60.0) for _ in range(dice.randint(2, 5)))
            weather.jumps = sorted((at_s, dice.choice(FAR_JUMPS_MS)) for at_s in moments)
        case _:
            pass
    return weather


def _spans(dice: random.Random, how_many: int, least_s: float, most_s: float) -> list[Span]:
    begins = sorted(dice.uniform(0.0, 80.0) for _ in range(dice.randint(1, how_many)))
    return [(begin, begin + dice.uniform(least_s, most_s)) for begin in begins]


def _is_in(spans: list[Span], now_s: float) -> bool:
    return any(begin <= now_s < end for begin, end in spans)
