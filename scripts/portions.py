"""The portions of the torture: what each of them runs, and how much of it is a proof. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import exp

Result = Mapping[str, object]
Tally = Mapping[str, Sequence[Result]]

CONFIDENCE = 0.95
BOUND_MAX = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Portion:
    """One run of pytest. `KOBOSHI_ROUND` tells the tests how many rounds of it this commit has
    had, so that each has seeds of its own."""

    name: str
    chosen: tuple[str, ...]
    """What pytest is given."""


RANDOM_KILLS = "tests/crash/test_random_kills.py"
PLATFORMS = (
    "tests/crash/test_all_platforms.py",
    *(f"tests/crash/test_{name}.py" for name in ("telegram_kills", "discord_kills", "slack")),
    "tests/agents/test_random_kills.py",
    *(f"tests/crash/test_{name}.py" for name in ("matrix", "matrix_encryption", "time_kills")),
    *(f"tests/crash/test_{name}.py" for name in ("children_kills", "memory_kills")),
    "tests/channels/test_catch_up_kills.py",
)
CUTS = "tests/faults/test_cuts.py"

PORTIONS = (
    Portion(
        name="points",
        chosen=(
            *("tests/crash", "tests/models", "tests/postgres", "tests/sqlite"),
            "tests/runner/test_killed.py",
            *(f"--ignore={each}" for each in (RANDOM_KILLS, *PLATFORMS)),
        ),
    ),
    Portion(name="kills", chosen=(RANDOM_KILLS,)),
    Portion(name="platforms", chosen=PLATFORMS),
    Portion(name="cuts", chosen=(CUTS,)),
    Portion(name="seeds", chosen=("tests/sim",)),
    Portion(name="faults", chosen=("tests/faults", "tests/fleet", f"--ignore={CUTS}")),
    Portion(name="hostile", chosen=("tests/hostile",)),
    Portion(name="systemd", chosen=("-m", "systemd")),
    Portion(
        name="repetitions",
        chosen=tuple(
            f"tests/{name}" for name in ("browser", "channels", "cli", "conformance", "tools")
        ),
    ),
)
"""Together they are the whole campaign: what one leaves out, another one has."""
NAMES = tuple(portion.name for portion in PORTIONS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Goal:
    """How many cases of a kind a release is to have seen, and where they are counted."""

    words: str
    portions: tuple[str, ...]
    wanted: int
    count: str
    """The field of a result that counts them."""
    sections: tuple[str, ...]
    only: str = ""
    """How the campaigns begin that count; others of the section do not."""
    but: str = ""

    def results(self, tally: Tally) -> list[Result]:
        found = [each for name in self.sections for each in tally.get(name, ())]
        named = [(each, str(each.get("campaign", ""))) for each in found]
        return [
            each
            for each, name in named
            if name.startswith(self.only) and not (self.but and name.startswith(self.but))
        ]


POWER_CUTS = "power cut"
GOALS = (
    Goal(
        words="kills at random instants",
        portions=("kills", "platforms"),
        wanted=100_000,
        count="kills",
        sections=(
            *("random kills", "all platforms", "platform kills", "kills of agents"),
            *("time kills", "children kills", "memory kills"),
        ),
    ),
    Goal(
        words="images of a disk after a power cut",
        portions=("cuts",),
        wanted=200_000,
        count="cases",
        sections=("faults",),
        only=POWER_CUTS,
    ),
    Goal(
        words="seeds of the simulation",
        portions=("seeds",),
        wanted=100_000,
        count="seeds",
        sections=("simulation", "simulation on PostgreSQL", "families"),
    ),
    Goal(
        words="faults of disk, descriptors, nodes and server",
        portions=("faults",),
        wanted=5_000,
        count="cases",
        sections=("faults",),
        but=POWER_CUTS,
    ),
)


def upper_bound(violations: int, cases: int) -> float:
    """The share of violations that so many cases exclude with 95 % confidence; 1 where nothing was
    tried. Without a violation it is three in the number of cases: the rule of three."""
    if cases <= 0:
        return BOUND_MAX
    low, high = 0.0, 10.0 + 4.0 * violations
    for _ in range(60):
        middle = (low + high) / 2
        if _at_most(violations, middle) > 1 - CONFIDENCE:
            low = middle
        else:
            high = middle
    return min(high / cases, BOUND_MAX)


def _at_most(count: int, mean: float) -> float:
    """How likely so few events are where so many are expected (Poisson)."""
    term = total = exp(-mean)
    for number in range(1, count + 1):
        term *= mean / number
        total += term
    return total
