"""Where the benchmarks work: a folder on a real disk, removed afterwards."""

import os
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

DATABASE_NAME = "koboshi.db"
"""The store wants its own name; the peers take any."""

ROOT = Path(__file__).resolve().parent.parent
_started = time.monotonic()


class BenchmarkFailed(Exception):
    """A measure could not be taken; the message says why."""


@contextmanager
def working_folder(parent: Path) -> Iterator[Path]:
    """A new folder below `parent`. Raises BenchmarkFailed where a flush would cost nothing."""
    parent.mkdir(parents=True, exist_ok=True)
    kind = _filesystem_of(parent)
    if kind in {"tmpfs", "ramfs"}:
        raise BenchmarkFailed(f"{parent} is in memory ({kind}), where a flush is free; use --dir")
    folder = Path(tempfile.mkdtemp(prefix="run-", dir=parent))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        if not any(parent.iterdir()):
            parent.rmdir()


def say(line: str) -> None:
    """One line of progress on stderr."""
    print(f"bench: {time.monotonic() - _started:5.0f} s  {line}", file=sys.stderr, flush=True)


@contextmanager
def fresh_file(folder: Path) -> Iterator[Path]:
    """Where a run may make its database; gone afterwards with all that it kept beside it."""
    home = Path(tempfile.mkdtemp(prefix="home-", dir=folder))
    try:
        yield home / DATABASE_NAME
    finally:
        shutil.rmtree(home)


def warn_if_busy() -> None:
    """Ratios survive neighbours, but they scatter."""
    load, processors = os.getloadavg()[0], os.cpu_count() or 1
    if load > processors / 2:
        say(f"the machine is busy (load {load:.1f}, {processors} processors): expect scatter")


def _filesystem_of(folder: Path) -> str:
    """The type of the file system; empty where the system does not tell (macOS has no /proc)."""
    mounts = Path("/proc/mounts")
    if not mounts.exists():
        return ""
    resolved, best, kind = folder.resolve(), Path(), ""
    for line in mounts.read_text().splitlines():
        _, point, found, *_ = line.split()
        mounted = Path(point.replace("\\040", " "))
        if resolved.is_relative_to(mounted) and len(mounted.parts) >= len(best.parts):
            best, kind = mounted, found
    return kind
