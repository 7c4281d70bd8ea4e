"""The environment of the peers, `.venv-bench`: made when missing, and when its lock changes."""

import hashlib
import shutil
import subprocess
import sys
from pathlib import Path

from benchmarks.place import ROOT, BenchmarkFailed, say

REQUIREMENTS = ROOT / "requirements" / "bench.txt"
FOLDER = ROOT / ".venv-bench"
_INSTALL_SECONDS_MAX = 600


def peers_python() -> Path:
    """The interpreter that has the peers. Raises BenchmarkFailed if they cannot be installed."""
    python = FOLDER / "bin" / "python"
    stamp = FOLDER / ".installed"
    wanted = hashlib.sha256(REQUIREMENTS.read_bytes() + str(FOLDER).encode()).hexdigest()
    if not (stamp.exists() and python.exists() and stamp.read_text() == wanted):
        say("installing the peers into .venv-bench")
        for command in _commands(python):
            _run(command)
        stamp.write_text(wanted)
    return python


def _commands(python: Path) -> list[list[str]]:
    uv = shutil.which("uv")
    # The lock is complete. Older pips look for an extra that is locked beside its package.
    locked = ["--quiet", "--no-deps", "--require-hashes", "-r", str(REQUIREMENTS)]
    if uv:
        return [
            [uv, "venv", "--quiet", "--clear", "--python", sys.executable, str(FOLDER)],
            [uv, "pip", "install", "--python", str(python), *locked],
        ]
    return [
        [sys.executable, "-m", "venv", "--clear", str(FOLDER)],
        [str(python), "-m", "pip", "install", "--disable-pip-version-check", *locked],
    ]


def _run(command: list[str]) -> None:
    try:
        subprocess.run(
            command, check=True, capture_output=True, text=True, timeout=_INSTALL_SECONDS_MAX
        )
    except subprocess.CalledProcessError as error:
        said = (error.stderr or error.stdout).strip().splitlines() or ["it said nothing"]
        raise BenchmarkFailed(f"the peers could not be installed: {said[-1]}") from error
    except subprocess.TimeoutExpired as error:
        raise BenchmarkFailed("the peers could not be installed in time") from error
