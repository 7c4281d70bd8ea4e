"""`koboshi update` with real gateways: a new version serves, or the one before does, and no message
is lost on the way."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import apsw
import pytest

from koboshi.cli.doctor.update_check import check_update
from koboshi.cli.update.installation import Installation, own_installation
from koboshi.cli.update.updating import prune
from koboshi.stores.sqlite.migrate import newest_version
from tests.cli.process import Ended, Gateway, ended, environment, starting, until
from tests.cli.update.made_versions import add_fake, add_real, begin, installation
from tests.harness.polling import WITHIN_S
from tests.harness.tally import WANTS_ALL

NEWER = """
import koboshi.stores.migration_scripts as scripts
import koboshi.stores.sqlite.migrate as migrate
real = migrate.migration_scripts
migrate.migration_scripts = lambda: {**real(), 999: "CREATE TABLE later (what TEXT)"}
"""
BROKEN = """
import koboshi.app.serve as serving
def unbuilt(*given):
    raise RuntimeError("this version cannot be built")
serving.build = unbuilt
"""
HANGS = """
import threading
import koboshi.app.serve as serving
def endless(*given):
    threading.Event().wait()
serving.build = endless
"""
FAULTS = [BROKEN, HANGS] if WANTS_ALL else [BROKEN]
ONLY_RUNNING = "import sys\nif 'run' in sys.argv:\n"


def while_running(change: str) -> str:
    """The change counts for a gateway alone, and not for the check on a copy."""
    return ONLY_RUNNING + "".join(f"    {line}\n" for line in change.splitlines())


@pytest.fixture
def ours(tmp_path: Path) -> Installation:
    found = installation(tmp_path / "root")
    add_real(found, "1.0")
    found.switch("1.0")
    return found


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


@contextmanager
def served_by(ours: Installation, home: Path) -> Iterator[Gateway]:
    """A gateway as a service manager runs it: started again whenever it asks for it."""
    command = (str(ours.launcher),)
    arguments = ("--home", str(home), "--port", "0", "--supervise")
    with starting(home, *arguments, command=command) as one:
        one.wait_serving()
        yield one
        one.signal(signal.SIGTERM)
        one.wait_end()


def update(ours: Installation, home: Path, version: str, **more: str) -> Ended:
    command = [str(ours.launcher), "update", version, "--home", str(home)]
    return ended(command, environment(home, **more))


def version_of(gateway: Gateway) -> str:
    worker: dict[str, str] = gateway.asked(ask="status")["worker"]
    return worker["version"]


def schema_of(home: Path) -> int:
    connection = apsw.Connection(str(home / "koboshi.db"), flags=apsw.SQLITE_OPEN_READONLY)
    try:
        found: int = connection.pragma("user_version")
    finally:
        connection.close()
    return found


@pytest.mark.crash
def test_a_new_version_with_a_newer_schema_takes_over(ours: Installation, home: Path) -> None:
    add_real(ours, "2.0", NEWER)
    with served_by(ours, home) as gateway:
        before = gateway.say("cli", "before the update")
        gateway.wait_state(before, "done")

        done = update(ours, home, "2.0")

        assert done.code == 0, done.err
        assert "2.0 serves" in done.out
        assert ours.current == "2.0"
        assert ours.trial() is None
        gateway.wait_serving(2)
        assert version_of(gateway) == "2.0"
        assert schema_of(home) == 999
        after = gateway.say("cli", "after it")
        gateway.wait_state(after, "done")
        assert gateway.explained(before)["turn"]["state"] == "done"


@pytest.mark.crash
@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: "hangs" if fault == HANGS else "broken")
def test_a_version_that_changed_the_schema_and_was_not_ready_is_undone(
    ours: Installation, home: Path, fault: str
) -> None:
    add_real(ours, "2.0", NEWER + while_running(fault))
    with served_by(ours, home) as gateway:
        before = gateway.say("cli", "before the update")
        gateway.wait_state(before, "done")
        # Only one that hangs is given up by its time, which must not be over before the other ends.
        ready_seconds = 8.0 if fault == HANGS else 4 * WITHIN_S
        begin(ours, "2.0", home, starts_max=1, ready_seconds=ready_seconds)

        gateway.asked(ask="restart")
        gateway.wait_serving(2)

        until(lambda: ours.trial() is None, "the trial is over")
        assert version_of(gateway) == "1.0"
        assert ours.current == "1.0"
        assert schema_of(home) == newest_version()
        assert ours.last()["outcome"] == "went-back"
        assert gateway.explained(before)["turn"]["state"] == "done"
        after = gateway.say("cli", "after it")
        gateway.wait_state(after, "done")
        (found,) = check_update(ours)
        assert "2.0 ended with code 1; 1.0 serves" in found.words or fault == HANGS


@pytest.mark.crash
def test_a_version_that_fails_the_check_is_never_started(ours: Installation, home: Path) -> None:
    add_real(ours, "0.9", NEWER)
    with served_by(ours, home) as gateway:
        assert update(ours, home, "0.9").code == 0
        gateway.wait_serving(2)

        done = update(ours, home, "1.0")

        assert done.code == 1
        assert "newer koboshi" in done.err
        assert "nothing was changed" in done.err
        assert ours.trial() is None
        assert version_of(gateway) == "0.9"
        assert not (ours.root / "rehearsal").exists()


def test_a_version_on_trial_is_not_started_past_its_launcher(
    ours: Installation, home: Path
) -> None:
    add_real(ours, "2.0")
    begin(ours, "2.0", home)
    program = str(ours.folder("2.0") / "bin" / "koboshi")

    done = ended([program, "run", "--home", str(home)], environment(home))

    assert done.code == 78
    assert str(ours.launcher) in done.err


@pytest.mark.parametrize("place", ["update.built", "update.checked", "update.begun"])
def test_a_killed_command_leaves_one_that_serves_and_can_be_repeated(
    ours: Installation, home: Path, place: str
) -> None:
    add_real(ours, "2.0")
    died = update(ours, home, "2.0", KOBOSHI_CRASH_AT=f"{place}:after")
    assert died.code == -9
    assert ours.current == "1.0"

    done = update(ours, home, "2.0")

    assert done.code == 0, done.err
    assert "is tried when it is started next" in done.out
    trial = ours.trial()
    assert trial is not None
    assert (trial.version, trial.starts) == ("2.0", 0)


@pytest.mark.skipif(not WANTS_ALL, reason="makes an environment; runs with KOBOSHI_TESTS=all")
def test_a_build_that_died_does_not_count(ours: Installation, home: Path) -> None:
    add_fake(ours, "3.0", "serves")
    (ours.folder("3.0") / "koboshi-whole.json").unlink()
    done = update(ours, home, "3.0", PIP_NO_INDEX="1", PIP_FIND_LINKS=str(home))
    assert done.code == 1
    assert ours.current == "1.0"
    assert not ours.is_whole("3.0")


def test_versions_that_a_process_uses_stay(ours: Installation, home: Path) -> None:
    for version in ("0.1", "0.2"):
        add_fake(ours, version, "hangs")
    command = str(ours.folder("0.1") / "bin" / "python")
    with subprocess.Popen([command, "-c", "input()"], stdin=subprocess.PIPE) as runner:
        until(lambda: "0.1" in ours.in_use(), "the process is seen")
        prune(ours)
        assert ours.versions() == ("0.1", "1.0")
        runner.kill()
    prune(ours)
    assert ours.versions() == ("1.0",)


def test_an_installation_of_others_is_told_what_to_do(home: Path) -> None:
    done = ended([sys.executable, "-m", "koboshi", "update"], environment(home))
    assert done.code == 1
    assert "does not update itself" in done.err
    assert own_installation() is None


@pytest.mark.slow
def test_a_wheel_becomes_an_installation_that_starts(tmp_path: Path) -> None:
    """The one test with a real environment. What koboshi needs is lent by our own."""
    wheels, root = tmp_path / "wheels", tmp_path / "its own"
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(wheels)]
    subprocess.run(build, check=True, capture_output=True, cwd=Path(__file__).parents[3])
    (wheel,) = wheels.glob("*.whl")
    lent = next(path for path in sys.path if path.endswith("site-packages"))
    lending = {"PIP_NO_DEPS": "1", "PIP_NO_INDEX": "1", "PYTHONPATH": lent}
    command = [sys.executable, "-m", "koboshi", "update", str(wheel), "--into", str(root), "--json"]

    done = ended(command, environment(tmp_path / "home", **lending), within_s=250)

    assert done.code == 0, done.out + done.err
    said = json.loads(done.out)
    shown = ended([said["program"], "version"], {**os.environ, **lending})
    assert said["version"] in shown.out
    ours = Installation(root)
    assert ours.current == said["version"]
    plan = ended([said["program"], "service", "show", "--user"], {**os.environ, **lending})
    assert f'ExecStart=":{ours.launcher}"' in plan.out
