"""The launcher: whatever a version on trial does, and wherever a kill hits, one version serves."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from koboshi.cli.update.installation import Installation
from koboshi.cli.update.launcher import home_of, next_step
from tests.cli.update.made_versions import add_fake, begin, installation, served, start

DYING = """
import importlib.util, os, signal, sys
spec = importlib.util.spec_from_file_location("launch", sys.argv[2] + "/launch.py")
launcher = importlib.util.module_from_spec(spec)
spec.loader.exec_module(launcher)
left = int(sys.argv.pop(1))
def step():
    global left
    left -= 1
    if left == 0:
        os.kill(os.getpid(), signal.SIGKILL)
def dying(real):
    def done(*given):
        step()
        real(*given)
        step()
    return done
os.replace, os.execve = dying(os.replace), dying(os.execve)
sys.exit(launcher.main(sys.argv[1:]))
"""


@pytest.fixture
def ours(tmp_path: Path) -> Installation:
    found = installation(tmp_path / "root")
    add_fake(found, "1", "serves")
    found.switch("1")
    return found


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


def test_without_a_trial_the_current_version_serves(ours: Installation, home: Path) -> None:
    assert start(ours, home) == 0
    assert served(ours) == ["1 started", "1 serves"]


def test_a_version_that_becomes_ready_serves_from_then_on(ours: Installation, home: Path) -> None:
    add_fake(ours, "2", "confirms")
    begin(ours, "2", home)

    assert start(ours, home) == 0

    assert ours.current == "2"
    assert ours.trial() is None
    assert served(ours) == ["2 started", "2 serves"]


@pytest.mark.parametrize("behaviour, starts", [("dies", 2), ("ends", 2), ("refuses", 1)])
def test_a_version_that_ends_before_it_is_ready_gives_way(
    ours: Installation, home: Path, behaviour: str, starts: int
) -> None:
    """Also one that ends with a code after which a service manager would not start it again."""
    add_fake(ours, "2", behaviour)
    begin(ours, "2", home, starts_max=2)

    assert start(ours, home) == 0

    assert served(ours) == ["2 started"] * starts + ["1 started", "1 serves"]
    assert ours.current == "1"
    trial = ours.trial()
    assert trial is not None
    assert trial.goes_back, "the version before finishes it, when its database is as it was"


def test_a_version_that_is_never_ready_is_killed(ours: Installation, home: Path) -> None:
    add_fake(ours, "2", "hangs")
    begin(ours, "2", home, starts_max=1, ready_seconds=4.0)

    assert start(ours, home) == 0

    assert served(ours) == ["2 started", "1 started", "1 serves"]
    trial = ours.trial()
    assert trial is not None
    assert trial.why == "took too long"


def test_a_version_that_cannot_even_be_started_gives_way(ours: Installation, home: Path) -> None:
    add_fake(ours, "2", "serves")
    (ours.folder("2") / "bin" / "koboshi").unlink()
    begin(ours, "2", home, starts_max=2)

    assert start(ours, home) == 0
    assert served(ours) == ["1 started", "1 serves"]


def test_a_kill_behind_the_switch_leaves_the_new_version(ours: Installation, home: Path) -> None:
    """It was ready, and died before the trial was forgotten."""
    add_fake(ours, "2", "dies-confirmed")
    begin(ours, "2", home)
    assert start(ours, home) == 128 + 9
    assert ours.trial() is not None

    (ours.folder("2") / "bin" / "koboshi").write_text(
        f'#!/bin/sh\necho 2 >> "{ours.root}/served"\n'
    )
    assert start(ours, home) == 0

    assert served(ours)[-1] == "2"
    assert ours.trial() is None


def test_another_home_of_the_installation_is_left_alone(ours: Installation, home: Path) -> None:
    add_fake(ours, "2", "dies")
    begin(ours, "2", home)

    assert start(ours, home.with_name("other")) == 0

    assert served(ours) == ["1 started", "1 serves"]
    trial = ours.trial()
    assert trial is not None
    assert trial.starts == 0


@pytest.mark.parametrize(
    "behaviour, serves, step",
    [("confirms", "2", 1), ("confirms", "2", 2), *(("dies", "1", step) for step in range(1, 12))],
)
def test_killed_at_each_step_one_version_serves(
    ours: Installation, home: Path, behaviour: str, serves: str, step: int
) -> None:
    """Before and behind every durable step of the launcher, and before it becomes a version."""
    add_fake(ours, "2", behaviour)
    begin(ours, "2", home, starts_max=2)
    told = [str(step), str(ours.root), "run", "--home", str(home)]
    quick = [sys.executable, "-I", "-S", "-c", DYING]
    died = subprocess.run([*quick, *told], capture_output=True, timeout=100, check=False)
    assert died.returncode == -9, died.stderr

    assert start(ours, home) == 0

    assert served(ours)[-1] == f"{serves} serves"
    assert ours.current == serves


@pytest.mark.parametrize("lacks", ["all", "before", "starts", "starts_max", "ready_seconds", "odd"])
def test_a_trial_that_cannot_be_read_is_none(ours: Installation, home: Path, lacks: str) -> None:
    """Written by hand, or by a version that is not known here: never a launcher that fails."""
    begin(ours, "2", home)
    trial = json.loads((ours.root / "trial.json").read_bytes())
    trial.pop(lacks, None)
    if lacks == "odd":
        trial["ready_seconds"] = "soon"
    (ours.root / "trial.json").write_text("{ torn" if lacks == "all" else json.dumps(trial))
    assert start(ours, home) == 0
    assert served(ours) == ["1 started", "1 serves"]


def test_the_home_is_found_as_koboshi_finds_it(tmp_path: Path) -> None:
    given = {"KOBOSHI_HOME": "/there", "HOME": str(tmp_path)}
    assert home_of(["run"], given) == "/there"
    assert home_of(["run", "--home", "/a/../b"], given) == "/b"
    assert home_of(["run", "--home=/c", "--port", "0"], given) == "/c"


def test_no_state_of_the_disk_leaves_the_launcher_without_a_step() -> None:
    for phase in ("trial", "back", "nonsense"):
        for starts in (0, 1, 3, "x"):
            for current in ("1", "2", ""):
                trial = {"version": "2", "home": "/h", "phase": phase, "starts": starts}
                step = next_step({**trial, "starts_max": 3}, current, "/h")
                assert step in ("serve", "try", "give-up", "forget")
                assert (step == "forget") == (current == "2")
