"""`koboshi update` under a real systemd: the unit starts the launcher, which tries the new version
and goes back by itself."""

import json
import signal
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.process import Ended, until
from tests.systemd.machine import HOME, ROOT, UID, UNIT, Machine, UnitGateway, only_by_itself

Install = Callable[..., UnitGateway]

pytestmark = [pytest.mark.systemd, pytest.mark.timeout(180)]

APP = Path("/var/lib/app")
PROGRAM = str(APP / "bin" / "koboshi")
MAKE = """
import sys
from pathlib import Path
sys.path.insert(0, {code!r})
from tests.cli.update.made_versions import add_real, installation
ours = installation(Path({app!r}))
for version, before in {versions!r}.items():
    add_real(ours, version, before)
if not ours.current:
    ours.switch("1.0")
"""
BROKEN = """
import sys
if "run" in sys.argv:
    import koboshi.app.serve as serving
    def unbuilt(*given):
        raise RuntimeError("this version cannot be built")
    serving.build = unbuilt
"""


@pytest.fixture
def app(machine: Machine) -> Path:
    """An installation that updates itself, of the user of the unit."""
    assert machine.run("rm", "-rf", str(APP)).code == 0
    add(machine, **{"1.0": "", "2.0": ""})
    return machine.inside(APP)


def add(machine: Machine, **versions: str) -> None:
    """Have versions built, each with what is changed in it."""
    making = MAKE.format(code=str(ROOT), app=str(APP), versions=versions)
    done = machine.run(sys.executable, "-B", "-c", making)
    assert done.code == 0, done.err
    assert machine.run("chown", "-R", f"{UID}:{UID}", str(APP)).code == 0


def update(machine: Machine, version: str) -> Ended:
    done: Ended = machine.run_as_user(PROGRAM, "update", version, "--home", str(HOME))
    return done


def version_of(one: UnitGateway) -> str:
    told = until(lambda: one.ask(ask="status"), "it answers", otherwise=one.why)
    version: str = told["worker"]["version"]
    return version


def main_program(machine: Machine, one: UnitGateway) -> bytes:
    return machine.inside(Path(f"/proc/{one.pid}/cmdline")).read_bytes()


def answers(one: UnitGateway, words: str) -> None:
    assert one.wait_state(one.say("a", words), "done")


@only_by_itself
def test_an_update_of_a_service_is_tried_and_one_that_fails_goes_back(
    machine: Machine, install: Install, app: Path
) -> None:
    one = install("", program=PROGRAM)
    one.start()
    answers(one, "before")
    assert version_of(one) == "1.0"

    done = update(machine, "2.0")

    assert done.code == 0, done.err + one.why()
    assert version_of(one) == "2.0"
    assert b"launch.py" in main_program(machine, one), "the launcher tells systemd of its child"
    assert one.shown("ActiveState") == "active"
    answers(one, "while the launcher is the main process")

    assert machine.systemctl("restart", UNIT).code == 0
    assert version_of(one) == "2.0"
    assert b"launch.py" not in main_program(machine, one)
    answers(one, "behind a restart")

    add(machine, **{"3.0": BROKEN})
    gone_back = update(machine, "3.0")

    assert gone_back.code == 1, gone_back.out
    until(lambda: one.shown("ActiveState") == "active", "it serves", otherwise=one.why)
    assert version_of(one) == "2.0"
    assert json.loads((app / "last-update.json").read_bytes())["outcome"] == "went-back"
    answers(one, "with the version before")


@only_by_itself
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP], ids=["killed", "frozen"])
def test_a_new_version_that_dies_or_freezes_under_its_launcher_is_started_again(
    machine: Machine, install: Install, app: Path, number: signal.Signals
) -> None:
    """The launcher is what systemd watches: a frozen gateway must not outlive it."""
    one = install("WatchdogSec=3\n", program=PROGRAM)
    one.start()
    assert update(machine, "2.0").code == 0
    child = until(lambda: one.ask(ask="status"), "it answers")["worker"]["pid"]
    assert child != one.pid
    before = one.restarts

    machine.run("kill", f"-{number.value}", str(child))

    until(lambda: one.restarts > before, "it was restarted", otherwise=one.why)
    until(lambda: one.shown("ActiveState") == "active", "it serves", otherwise=one.why)
    assert version_of(one) == "2.0"
    assert (app / "current").readlink().name == "2.0"
    answers(one, "afterwards")
