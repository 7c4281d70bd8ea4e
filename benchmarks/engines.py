"""Start one engine in a process of its own, on a database of its own, and take its one line."""

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from benchmarks.place import ROOT, BenchmarkFailed
from benchmarks.steady import Measured

_SPARE_SECONDS = 60
"""How much longer than its own time a run may take to start, finish its last turns and end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Engine:
    """A script that takes the options of `steady.parser()`, and the Python that has its needs."""

    name: str
    module: str
    python: Path = Path(sys.executable)
    options: tuple[str, ...] = ()


OURS = Engine(name="koboshi", module="benchmarks.ours")


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    """How long one run warms up and is measured, and how many rounds of runs there are."""

    warm_seconds: float
    seconds: float
    rounds: int


def run_engine(engine: Engine, file: Path, timing: Timing, clients: int, *more: str) -> Measured:
    """One run. Raises BenchmarkFailed if the engine fails, with the last thing it said."""
    command = [
        *(str(engine.python), "-m", engine.module, "--file", str(file)),
        *("--clients", str(clients), "--seconds", str(timing.seconds)),
        *("--warm-seconds", str(timing.warm_seconds)),
        *engine.options,
        *more,
    ]
    limit = timing.warm_seconds + timing.seconds + _SPARE_SECONDS
    try:
        ended = subprocess.run(
            command, cwd=ROOT, env=_environment(), capture_output=True, text=True, timeout=limit
        )
    except subprocess.TimeoutExpired as error:
        raise BenchmarkFailed(f"{engine.name} did not end within {limit:.0f} s") from error
    lines = ended.stdout.strip().splitlines()
    if ended.returncode != 0 or not lines:
        said = ended.stderr.strip().splitlines() or ["it said nothing"]
        raise BenchmarkFailed(f"{engine.name} failed: {said[-1]}")
    measured = Measured(**json.loads(lines[-1]))
    if not measured.turns:
        raise BenchmarkFailed(f"{engine.name} ended no turn in {timing.seconds:g} s")
    return measured


def _environment() -> dict[str, str]:
    """Ours, without what would change how an engine works or make it call out."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("DBOS")}
    return kept | {"LANGSMITH_TRACING": "false", "PYTHONDONTWRITEBYTECODE": ""}
