"""The boundary as an ordinary user: the same tests, run by another user where we are root."""

import os
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from tests.harness.tally import WANTS_ALL

ROOT = Path(__file__).resolve().parents[2]
NOBODY = "65534"
PYTHON = Path("/usr/bin/python3")


TESTS = [
    "tests/runner/test_inside.py",
    "tests/runner/test_limits.py",
    "tests/runner/test_start.py::test_death_by_a_signal_is_not_an_exit_code",
    "tests/runner/test_end.py::test_term_ends_a_polite_command_at_once "
    "tests/runner/test_end.py::test_a_time_limit_ends_the_whole_tree "
    "tests/runner/test_orphans.py::test_a_command_does_not_outlive_its_killed_runner",
    "tests/runner/test_killed.py::test_an_adopted_command_can_be_ended",
]


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """Every user may enter and write it. Those of pytest are closed anew whenever another run of it
    begins on this machine."""
    with TemporaryDirectory() as folder:
        Path(folder).chmod(0o777)
        yield Path(folder)


@pytest.mark.skipif(os.geteuid() != 0, reason="these tests run as an ordinary user anyway")
@pytest.mark.parametrize("tests", TESTS if WANTS_ALL else TESTS[:1])
def test_it_holds_for_an_ordinary_user(tests: str, open_folder: Path) -> None:
    """Issue 15: bubblewrap and Landlock need no special rights."""
    become = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"]
    packages = sysconfig.get_path("purelib")
    environment = {
        "PATH": "/usr/bin:/bin",
        "HOME": str(open_folder),
        "PYTHONPATH": f"{ROOT / 'src'}:{packages}:{ROOT}",
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    python = [str(PYTHON), "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist"]
    if shutil.which("setpriv") is None or not _can_run(
        [*become, *python, "--version"], environment
    ):
        pytest.skip("no other user can run these tests with the interpreter of the system")

    ended = subprocess.run(
        [*become, *python, f"--basetemp={open_folder / 'as-nobody'}", *tests.split()],
        cwd=ROOT, env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip

    assert ended.returncode == 0, ended.stdout[-4_000:] + ended.stderr[-2_000:]
    assert " passed" in ended.stdout


def _can_run(command: list[str], environment: dict[str, str]) -> bool:
    found = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, check=False)
    version = subprocess.run([PYTHON, "-V"], capture_output=True, text=True, check=False).stdout
    return found.returncode == 0 and version.split()[1:2] != [] and _is_ours(version.split()[1])


def _is_ours(version: str) -> bool:
    """Whether packages with compiled parts can be shared."""
    return version.startswith(f"{sys.version_info.major}.{sys.version_info.minor}.")
