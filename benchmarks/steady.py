"""Drive many clients at once and measure them in a steady state.

Standard library only: ours and the peers are driven by this same file, each in its own environment.
"""

import argparse
import asyncio
import json
import time
from collections.abc import Awaitable, Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TypeAlias

TEXT_BYTES = 2048
"""Size of a message, a reply, a result, and of each of the two parts of an answer."""

Turn: TypeAlias = Callable[[int, int], Awaitable[None]]
"""Carries out turn `number` of client `client`; it has returned when all of it is on disk."""

Span: TypeAlias = tuple[float, float]
"""When something began and when it ended."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """What to do, from the command line: every engine takes the same options."""

    file: Path
    clients: int
    turns_per_session: int
    warm_seconds: float
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """What happened inside the window."""

    turns: float
    """Each turn counts by the part of its time that lies inside: clients tend to march in step, and
    whole turns would make the figure depend on where the window happens to end."""
    seconds: float
    cpu_seconds: float
    p50_ms: float
    p99_ms: float
    commits: int = 0

    @property
    def turns_per_second(self) -> float:
        return self.turns / self.seconds

    @property
    def cpu_ms_per_turn(self) -> float:
        return 1_000 * self.cpu_seconds / self.turns

    @property
    def commits_per_turn(self) -> float:
        return self.commits / self.turns


def parser(about: str) -> argparse.ArgumentParser:
    options = argparse.ArgumentParser(description=about)
    options.add_argument("--file", type=Path, required=True, help="the database; made if missing")
    options.add_argument("--clients", type=int, default=64, help="sessions at once")
    options.add_argument("--turns-per-session", type=int, default=4)
    options.add_argument("--warm-seconds", type=float, default=1.0)
    options.add_argument("--seconds", type=float, default=2.0)
    return options


def load_of(chosen: argparse.Namespace) -> Load:
    return Load(
        file=chosen.file,
        clients=chosen.clients,
        turns_per_session=chosen.turns_per_session,
        warm_seconds=chosen.warm_seconds,
        seconds=chosen.seconds,
    )


async def measure(turn: Turn, load: Load, commits: Callable[[], int] = lambda: 0) -> Measured:
    """Run turns on every client without a pause, and measure from `warm_seconds` on."""
    spans: list[Span] = []
    is_over = False

    async def client(number: int) -> None:
        done = 0
        while not is_over:
            began = time.perf_counter()
            await turn(number, done)
            spans.append((began, time.perf_counter()))
            done += 1

    async with asyncio.TaskGroup() as clients:
        for number in range(load.clients):
            clients.create_task(client(number))
        await asyncio.sleep(load.warm_seconds)
        before = (time.perf_counter(), time.process_time(), commits())
        await asyncio.sleep(load.seconds)
        after = (time.perf_counter(), time.process_time(), commits())
        is_over = True

    window = (before[0], after[0])
    shares = [(_share(span, window), span[1] - span[0]) for span in spans]
    waits = sorted(wait for share, wait in shares if share > 0)
    return Measured(
        turns=sum(share for share, _ in shares),
        seconds=after[0] - before[0],
        cpu_seconds=after[1] - before[1],
        p50_ms=_quantile_ms(waits, 0.50),
        p99_ms=_quantile_ms(waits, 0.99),
        commits=after[2] - before[2],
    )


def print_line(measured: Measured) -> None:
    print(json.dumps(asdict(measured)), flush=True)


def words(client: int, number: int, what: str, size: int = TEXT_BYTES) -> str:
    """`size` characters of text, different each time, so that nothing is stored only once."""
    line = f"{what} of turn {number} for client {client}: the quick brown fox jumps. "
    return (line * (size // len(line) + 1))[:size]


def _share(span: Span, window: Span) -> float:
    """How much of the span lies in the window, from 0 to 1."""
    inside = min(span[1], window[1]) - max(span[0], window[0])
    return max(inside, 0.0) / max(span[1] - span[0], 1e-9)


def _quantile_ms(waits: list[float], share: float) -> float:
    return waits[min(int(len(waits) * share), len(waits) - 1)] * 1_000 if waits else 0.0
