"""Where the time goes: samples of the store benchmark and of the Telegram benchmark.

`make profile` runs each load in a gateway of its own, with py-spy (Python, by thread) and, where
the kernel allows it, perf (everything: interpreter, SQLite, kernel) looking on. Flame graphs, the
folded stacks and a table go to `build/profile/`. Only CPU time is sampled, so a busy machine
changes the shares little.
"""

import argparse
import os
import select
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks.flames import draw, fold_perf, own_times, read_folded, shares
from benchmarks.place import ROOT, BenchmarkFailed, fresh_file, say, working_folder
from benchmarks.stages.telegram import talking

BUILD = ROOT / "build" / "profile"
SPY = ROOT / ".venv-profile" / "bin" / "py-spy"
RATE, SPY_RATE = 500, 100
"""Samples a second. Each of py-spy stops the process for a moment; of them, those count in which a
thread holds the interpreter."""
LINES = 40
"""Of each table."""
_END_SECONDS = 60


def main() -> int:
    options = argparse.ArgumentParser(prog="python -m benchmarks.profile", description=__doc__)
    options.add_argument("--only", choices=tuple(LOADS))
    options.add_argument("--seconds", type=float, default=10.0, help="of the store")
    options.add_argument("--messages", type=int, default=20, help="of each person, by Telegram")
    chosen = options.parse_args()
    BUILD.mkdir(parents=True, exist_ok=True)
    try:
        with working_folder(ROOT / ".bench") as folder:
            for name, load in LOADS.items():
                if chosen.only in (None, name):
                    load(folder, chosen)
    except BenchmarkFailed as failed:
        print(f"profile: {failed}", file=sys.stderr)
        return 1
    return 0


def profile_store(folder: Path, chosen: argparse.Namespace) -> None:
    """The turn of the store benchmark at 64 sessions."""
    with fresh_file(folder) as file:
        command = [sys.executable, "-m", "benchmarks.ours", "--file", str(file), "--clients", "64"]
        timing = ["--warm-seconds", "1", "--seconds", str(chosen.seconds)]
        process = subprocess.Popen([*command, *timing], cwd=ROOT, stdout=subprocess.DEVNULL)
        with process:
            _wait_for(file)  # what it loads before that is not looked at
            with watching("store", process.pid):
                process.wait(chosen.seconds + _END_SECONDS)
    _tell("store")


def _wait_for(file: Path) -> None:
    limit = time.monotonic() + _END_SECONDS
    while not file.exists():
        if time.monotonic() > limit:
            raise BenchmarkFailed("the store did not open")
        select.select([], [], [], 0.05)


def profile_telegram(folder: Path, chosen: argparse.Namespace) -> None:
    """The messages of the Telegram benchmark."""
    with talking(folder / "telegram") as (platform, pid), watching("telegram", pid):
        platform.load(chosen.messages)
    _tell("telegram")


LOADS: dict[str, Callable[[Path, argparse.Namespace], None]] = {
    "store": profile_store,
    "telegram": profile_telegram,
}


@contextmanager
def watching(name: str, pid: int) -> Iterator[None]:
    """Sample the process meanwhile, by what there is."""
    folded, recorded = BUILD / f"{name}.folded", BUILD / f"{name}.perf"
    watchers: list[tuple[str, subprocess.Popen[bytes]]] = []
    if SPY.exists():
        watchers.append(("py-spy", _spy(pid, folded)))
    if perf := shutil.which("perf"):
        command = [perf, "record", "-q", "-e", "cpu-clock", "-F", str(RATE), "-g"]
        watchers.append(("perf", _quiet([*command, "-p", str(pid), "-o", str(recorded)])))
    if not watchers:
        raise BenchmarkFailed("there is neither py-spy nor perf; `make profile` installs py-spy")
    try:
        yield
    finally:
        for tool, watcher in watchers:
            _end(tool, watcher)


def _spy(pid: int, folded: Path) -> subprocess.Popen[bytes]:
    command = [str(SPY), "record", "--pid", str(pid), "--rate", str(SPY_RATE), "--gil"]
    return _quiet([*command, "--duration", "600", "--format", "raw", "--output", str(folded)])


def _quiet(command: list[str]) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env=os.environ | {"RUST_LOG": "off"},
    )


def _end(tool: str, watcher: subprocess.Popen[bytes]) -> None:
    """Have it write what it saw."""
    if watcher.poll() is None:
        watcher.send_signal(signal.SIGINT)
    try:
        watcher.wait(_END_SECONDS)
    except subprocess.TimeoutExpired:
        watcher.kill()
        watcher.wait()
        say(f"{tool} did not end; its figures are missing")


def _tell(name: str) -> None:
    """The flame graphs, and what took most, on stdout."""
    folded, recorded = BUILD / f"{name}.folded", BUILD / f"{name}.perf"
    if folded.exists():
        stacks = read_folded(folded.read_text(encoding="utf-8"))
        (BUILD / f"{name}.svg").write_text(draw(stacks, f"{name}, by py-spy"), encoding="utf-8")
        _table(f"{name}: Python functions, own time (py-spy)", own_times(stacks))
        _table(f"{name}: Python functions, with all below (py-spy)", shares(stacks))
    if recorded.exists():
        command = ["perf", "script", "-i", str(recorded), "-F", "comm,ip,sym,dso"]
        script = subprocess.run(command, capture_output=True, text=True, check=False).stdout
        stacks = fold_perf(script)
        (BUILD / f"{name}-native.svg").write_text(draw(stacks, f"{name}, by perf"), "utf-8")
        _table(f"{name}: native functions, own time (perf)", own_times(stacks))
    say(f"{name}: flame graphs are in {BUILD.relative_to(ROOT)}")


def _table(title: str, lines: list[tuple[str, float]]) -> None:
    print(f"\n{title}")
    for words, share in lines[:LINES]:
        print(f"  {100 * share:5.1f} %  {words}")


if __name__ == "__main__":
    sys.exit(main())
