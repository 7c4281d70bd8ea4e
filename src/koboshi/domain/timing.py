"""How long things took: how many of them up to each bound, and all of it together."""

from bisect import bisect_left
from dataclasses import dataclass, field

BOUNDS_S: tuple[float, ...] = (
    *(0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5),
    *(1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 300.0, 1_800.0),
)
"""Whole milliseconds: what is stored knows no others."""


@dataclass(slots=True)
class Timing:
    """Counts that grow. The last one is of whatever was above all bounds."""

    counts: list[int] = field(default_factory=lambda: [0] * (len(BOUNDS_S) + 1))
    seconds: float = 0.0

    def note(self, seconds: float) -> None:
        """Something took so long."""
        self.counts[bisect_left(BOUNDS_S, seconds)] += 1
        self.seconds += seconds

    def add(self, bound_s: float | None, count: int, seconds: float) -> None:
        """Several things took up to a bound each, and so long together. None is above all."""
        place = len(BOUNDS_S) if bound_s is None else bisect_left(BOUNDS_S, bound_s)
        self.counts[place] += count
        self.seconds += seconds

    @property
    def count(self) -> int:
        return sum(self.counts)
