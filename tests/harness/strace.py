"""Faults that only the kernel can make: a program killed at a system call, a call that fails."""

import os
import re
import shutil
import signal
import subprocess
import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent


def _can_trace() -> bool:
    if shutil.which("strace") is None:
        return False
    return subprocess.run(["strace", "-qq", "-o", os.devnull, "true"], check=False).returncode == 0


needs_strace = pytest.mark.skipif(
    not _can_trace(), reason="strace is not installed or may not trace: nothing is injected"
)


@dataclass(frozen=True, slots=True)
class Traced:
    returncode: int
    said: list[str]
    calls: Counter[str]
    """How often each call was made by the thread that made it most: that is how strace counts."""

    @property
    def is_killed(self) -> bool:
        return self.returncode in (-signal.SIGKILL, 128 + signal.SIGKILL)


def run_traced(*arguments: str, calls: str, inject: str = "", seconds: float = 60) -> Traced:
    """Run the victim under strace, which looks at `calls` and does to them what `inject` says."""
    log = Path(arguments[1] + ".strace")
    injecting = [f"--inject={calls}:{inject}"] if inject else []
    ended = subprocess.run(
        [
            *("strace", "-f", "-qq", "-y", "-o", str(log)),
            *(f"--trace={calls}", *injecting),
            *(sys.executable, "-m", "tests.harness.victim", *arguments),
        ],
        capture_output=True,
        text=True,
        cwd=ROOT,
        timeout=seconds,
        check=False,
    )
    lines = re.findall(r"^(\d+) +(\w+)\(", log.read_text(errors="replace"), re.MULTILINE)
    calls_seen: Counter[str] = Counter()
    for (_thread, name), count in Counter(lines).items():
        calls_seen[name] = max(calls_seen[name], count)
    return Traced(ended.returncode, ended.stdout.splitlines(), calls_seen)
