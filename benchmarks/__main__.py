"""Run the benchmarks and print one table: `make bench`, or `python -m benchmarks --help`."""

import argparse
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from benchmarks.engines import Timing
from benchmarks.place import ROOT, BenchmarkFailed, warn_if_busy, working_folder
from benchmarks.report import Measure, carry_out, table, write_json
from benchmarks.stages.adoption import measure_adoption
from benchmarks.stages.agents import measure_agents
from benchmarks.stages.boot import measure_boot
from benchmarks.stages.chats import measure_chats
from benchmarks.stages.leaving import measure_leaving
from benchmarks.stages.peers import measure_peers
from benchmarks.stages.platforms import measure_platform
from benchmarks.stages.postgres import measure_postgres
from benchmarks.stages.runners import measure_runners
from benchmarks.stages.scale import Size, measure_scale
from benchmarks.stages.store import measure_store
from benchmarks.stages.telegram import measure_telegram


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """How long everything takes."""

    store: Timing
    peers: Timing
    postgres: Timing
    scale: Timing
    size: Size
    starts: int
    chats: int
    crowds: int


FULL = Plan(
    store=Timing(warm_seconds=0.7, seconds=1.5, rounds=5),
    peers=Timing(warm_seconds=2.0, seconds=4.0, rounds=3),
    postgres=Timing(warm_seconds=3.0, seconds=3.0, rounds=4),
    scale=Timing(warm_seconds=0.7, seconds=1.5, rounds=5),
    size=Size(sessions=100_000, turns=1_000_000),
    starts=5,
    chats=10_000,
    crowds=5,
)
QUICK = Plan(
    store=Timing(warm_seconds=0.4, seconds=0.8, rounds=2),
    peers=Timing(warm_seconds=1.5, seconds=2.0, rounds=1),
    postgres=Timing(warm_seconds=2.0, seconds=2.0, rounds=1),
    scale=Timing(warm_seconds=0.4, seconds=0.8, rounds=2),
    size=Size(sessions=10_000, turns=50_000),
    starts=3,
    chats=500,
    crowds=2,
)


STAGES = (
    "store",
    "peers",
    "postgres",
    "scale",
    "boot",
    "chats",
    "leaving",
    "runners",
    "adoption",
    "agents",
    "telegram",
    "discord",
    "slack",
    "matrix",
)


def main() -> int:
    chosen = _options().parse_args()
    plan = QUICK if chosen.quick else FULL
    measures: list[Measure] = []
    warn_if_busy()
    try:
        with working_folder(chosen.dir) as folder:
            for name, stage in _stages(plan, folder, measures).items():
                if chosen.only in (None, name):
                    measures += carry_out(name, stage)
    except BenchmarkFailed as failed:
        print(f"bench: {failed}", file=sys.stderr)
        return 1
    print(table(measures))
    if chosen.json:
        write_json(measures, chosen.json)
    return 0 if _is_good(measures) else 1


def _options() -> argparse.ArgumentParser:
    options = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    options.add_argument("--quick", action="store_true", help="fewer rounds, a smaller file")
    options.add_argument("--only", choices=STAGES)
    options.add_argument("--json", type=Path, metavar="FILE", help="write the figures there, too")
    options.add_argument(
        "--dir",
        type=Path,
        default=ROOT / ".bench",
        help="work below this folder, on a real disk (default: .bench in the project)",
    )
    return options


def _stages(
    plan: Plan, folder: Path, before: Sequence[Measure]
) -> dict[str, Callable[[], list[Measure]]]:
    """What is measured; `before` holds what was measured by then."""
    return {
        "store": lambda: measure_store(folder, plan.store),
        "peers": lambda: measure_peers(folder, plan.peers),
        "postgres": lambda: measure_postgres(folder, plan.postgres),
        "scale": lambda: measure_scale(folder, plan.scale, plan.size),
        "boot": lambda: measure_boot(folder, plan.starts),
        "chats": lambda: measure_chats(folder, plan.chats),
        "leaving": lambda: measure_leaving(folder, plan.crowds),
        "runners": lambda: measure_runners(folder, plan.starts),
        "adoption": lambda: measure_adoption(folder, plan.starts),
        "agents": lambda: measure_agents(folder, plan.crowds),
        "telegram": lambda: measure_telegram(folder),
        **{
            name: partial(_measure_platform, name, folder, before)
            for name in ("discord", "slack", "matrix")
        },
    }


def _measure_platform(name: str, folder: Path, before: Sequence[Measure]) -> list[Measure]:
    return measure_platform(name, folder, _telegram_ms(before))


def _telegram_ms(measures: Sequence[Measure]) -> float | None:
    """What a message by Telegram costs; None if it was not measured."""
    found = [each for each in measures if each.name.startswith("telegram") and "CPU" in each.name]
    return found[0].value if found and not found[0].missing else None


def _is_good(measures: Sequence[Measure]) -> bool:
    return all(measure.verdict in ("", "ok") for measure in measures)


if __name__ == "__main__":
    sys.exit(main())
