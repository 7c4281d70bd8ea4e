"""Our store alone: how fast at 1 to 512 sessions, and what sharing a commit is worth."""

from pathlib import Path

from benchmarks.engines import OURS, Engine, Timing, run_engine
from benchmarks.place import fresh_file, say
from benchmarks.report import Measure, at_least
from benchmarks.steady import Measured
from benchmarks.yardstick import Yardstick

CLIENTS = (1, 8, 64, 512)
COMPARED = 64
ONE_COMMIT_EACH = Engine(name="one commit each", module=OURS.module, options=("--batch-max", "1"))


def measure_store(folder: Path, timing: Timing) -> list[Measure]:
    runs: dict[int, list[Measured]] = {clients: [] for clients in CLIENTS}
    alone: list[Measured] = []
    speeds: list[float] = []
    for number in range(timing.rounds):
        say(f"store: round {number + 1} of {timing.rounds}")
        for clients in CLIENTS:
            with Yardstick() as yardstick:
                runs[clients].append(_run(OURS, folder, timing, clients))
            if clients == COMPARED:
                speeds.append(yardstick.scaled(runs[clients][-1].cpu_ms_per_turn))
        alone.append(_run(ONE_COMMIT_EACH, folder, timing, COMPARED))
    measures = [measure for clients in CLIENTS for measure in _of(clients, runs[clients])]
    ratios = (
        shared.turns_per_second / single.turns_per_second
        for shared, single in zip(runs[COMPARED], alone, strict=True)
    )
    measures.append(
        Measure(
            name=f"turns per second of CPU, {COMPARED} sessions, scaled",
            unit="/s",
            values=tuple(1_000 / each for each in speeds),
            target=at_least(4_000),
        )
    )
    measures.append(
        Measure(
            name=f"shared commits / one commit each, {COMPARED} sessions",
            unit="x",
            values=tuple(ratios),
            target=at_least(4),
        )
    )
    return measures


def _run(engine: Engine, folder: Path, timing: Timing, clients: int) -> Measured:
    with fresh_file(folder) as file:
        return run_engine(engine, file, timing, clients)


def _of(clients: int, runs: list[Measured]) -> list[Measure]:
    name = f"{clients} session{'s' if clients > 1 else ''}"
    return [
        Measure(
            name=f"turns/s, {name}",
            unit="",
            values=tuple(run.turns_per_second for run in runs),
        ),
        Measure(name=f"turn p50, {name}", unit="ms", values=tuple(run.p50_ms for run in runs)),
        Measure(name=f"turn p99, {name}", unit="ms", values=tuple(run.p99_ms for run in runs)),
        Measure(
            name=f"CPU per turn, {name}",
            unit="ms",
            values=tuple(run.cpu_ms_per_turn for run in runs),
        ),
        Measure(
            name=f"commits per turn, {name}",
            unit="",
            values=tuple(run.commits_per_turn for run in runs),
        ),
    ]
