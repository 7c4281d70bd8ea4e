"""The same turn on DBOS and on LangGraph, at 64 sessions, in one run with ours."""

from pathlib import Path

from benchmarks.engines import OURS, Engine, Timing, run_engine
from benchmarks.peers.environment import peers_python
from benchmarks.place import fresh_file, say
from benchmarks.report import Measure, Target, at_least
from benchmarks.steady import Measured

CLIENTS = 64


def measure_peers(folder: Path, timing: Timing) -> list[Measure]:
    peers = _peers(peers_python())
    engines = [OURS, *peers]
    runs: dict[str, list[Measured]] = {engine.name: [] for engine in engines}
    for number in range(timing.rounds):
        say(f"peers: round {number + 1} of {timing.rounds}")
        # No engine always runs first, or always after the same neighbour's flushes.
        start = number % len(engines)
        for engine in engines[start:] + engines[:start]:
            with fresh_file(folder) as file:
                runs[engine.name].append(run_engine(engine, file, timing, CLIENTS))
    measures = [_speed(engine.name, runs[engine.name]) for engine in engines]
    for engine, target in peers.items():
        measures.append(_ratio(engine.name, runs[OURS.name], runs[engine.name], target))
        measures.append(_cpu_ratio(engine.name, runs[OURS.name], runs[engine.name]))
    return measures


def _peers(python: Path) -> dict[Engine, Target | None]:
    dbos, langgraph = "benchmarks.peers.dbos_turns", "benchmarks.peers.langgraph_turns"
    return {
        Engine(name="DBOS", module=dbos, python=python): at_least(20),
        # Not its default; shown because a reader will ask.
        Engine(name="DBOS, WAL by hand", module=dbos, python=python, options=("--wal",)): None,
        Engine(name="LangGraph", module=langgraph, python=python): at_least(10),
    }


def _speed(name: str, runs: list[Measured]) -> Measure:
    return Measure(
        name=f"turns/s, {CLIENTS} sessions, {name}",
        unit="",
        values=tuple(run.turns_per_second for run in runs),
    )


def _ratio(
    name: str, ours: list[Measured], theirs: list[Measured], target: Target | None
) -> Measure:
    pairs = zip(ours, theirs, strict=True)
    return Measure(
        name=f"koboshi / {name}, {CLIENTS} sessions",
        unit="x",
        values=tuple(our.turns_per_second / their.turns_per_second for our, their in pairs),
        target=target,
    )


def _cpu_ratio(name: str, ours: list[Measured], theirs: list[Measured]) -> Measure:
    """Steadier than the time where neighbours take the processor away."""
    pairs = zip(ours, theirs, strict=True)
    return Measure(
        name=f"CPU per turn, {name} / koboshi",
        unit="x",
        values=tuple(their.cpu_ms_per_turn / our.cpu_ms_per_turn for our, their in pairs),
    )
