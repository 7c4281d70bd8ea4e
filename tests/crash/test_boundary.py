"""Issue 15: which boundary stands around the commands of a real gateway, and what it says."""

import json
import sys
from pathlib import Path

import pytest

from koboshi.boundary.control_groups import find
from koboshi.boundary.probe import probe
from koboshi.stores.home_id import home_id
from tests.cli.process import KOBOSHI, Gateway, gateway, koboshi, starting, until
from tests.harness.insiders import living_of
from tests.harness.rows import glance

DENIED = (sys.executable, "-m", "tests.harness.denied")
NO_NAMESPACES = (*DENIED, "namespaces", KOBOSHI)
OLD_KERNEL = (*DENIED, "landlock,ends", KOBOSHI)
NO_FILTERS = (*DENIED, "filters", KOBOSHI)
NOTHING = (*DENIED, "namespaces,landlock", KOBOSHI)


def spoken(one: Gateway, command: str) -> None:
    """A turn that runs the command, to its end."""
    calls = [{"tool": "terminal", "arguments": {"command": command}}]
    items = [{"calls": calls}, {"text": "said"}]
    one.wait_state(one.say("room", f"script: {json.dumps(items)}"), "done")


def said_of(one: Gateway, event: str) -> str:
    return str(until(lambda: one.events(event), event)[0]["boundary"])


def unasked(workdir: Path) -> dict[str, str]:
    """Settings with which no person is asked about a command."""
    approval = {"KOBOSHI__TOOLS__TERMINAL__APPROVAL": "never"}
    return {"KOBOSHI__GATEWAY__WORKDIR": str(workdir), **approval}


@pytest.fixture
def workdir(tmp_path: Path) -> Path:
    (tmp_path / "workdir").mkdir()
    return tmp_path / "workdir"


def look_around(one: Gateway, workdir: Path) -> str:
    """What a command finds out about the gateway's home; it runs in the working folder."""
    secrets = f"cat {one.home}/web-token {one.home}/koboshi.db; ls -A {one.home}"
    spoken(one, f"{secrets}; echo ran > ran; exit 3")
    assert (workdir / "ran").read_text() == "ran\n"
    return koboshi("processes", "log", "p1", home=one.home).out


@pytest.mark.parametrize(
    "command, name",
    [((KOBOSHI,), "bubblewrap"), (OLD_KERNEL, "bubblewrap"), (NO_NAMESPACES, "landlock")],
)
def test_a_gateway_takes_the_boundary_that_holds_and_says_so(
    home: Path, workdir: Path, command: tuple[str, ...], name: str
) -> None:
    """Where namespaces are denied, Landlock holds. Bubblewrap needs no Landlock, and no kernel that
    tells how other processes ended."""
    if reason := getattr(probe(), name):
        pytest.skip(f"{name}: {reason}")
    with gateway(home, command=command, **unasked(workdir)) as one:
        assert f"held by {name}" in said_of(one, "boundary_holds").lower()
        token = (home / "web-token").read_text().strip()
        found = look_around(one, workdir)
        status = koboshi("status", home=home).out
        shown = koboshi("explain", "p1", home=home).out

    assert token not in found
    assert "SQLite format" not in found
    assert "koboshi.db\n" not in found
    assert name in status.lower()
    assert name in shown.lower()
    assert glance(home).one("processes")["boundary"] == name
    assert glance(home).one("processes")["exit_code"] == 3


def members(group: str) -> set[str]:
    try:
        return set(Path(group, "cgroup.procs").read_text().split())
    except FileNotFoundError:
        return set()


@pytest.mark.parametrize("command, name", [((KOBOSHI,), "bubblewrap"), (NO_NAMESPACES, "landlock")])
def test_commands_of_a_chat_are_bounded_together_and_the_doctor_says_so(
    home: Path, workdir: Path, command: tuple[str, ...], name: str
) -> None:
    """Issue 15, item 4: by a control group where there is one, else by limits of each process."""
    if reason := getattr(probe(), name):
        pytest.skip(f"{name}: {reason}")
    with gateway(home, command=command, **unasked(workdir), KOBOSHI__TOOLS__PROCESSES="777") as one:
        left = {"command": "sleep 1000", "background": True}
        items = [{"calls": [{"tool": "terminal", "arguments": left}]}, {"text": "said"}]
        one.wait_state(one.say("room", f"script: {json.dumps(items)}"), "done")
        pids = until(lambda: living_of(home / "processes" / "1"), "it lives")
        groups = find(f"koboshi-{home_id(home)[:12]}").of("s1")
        # A program joins its groups by itself, as the last thing before it becomes the command.
        until(lambda: all({*map(str, pids)} <= members(each) for each in groups), "it has joined")
        limits = [Path(f"/proc/{pid}/limits").read_text() for pid in pids]
        seen = koboshi("doctor", home=home, KOBOSHI__TOOLS__PROCESSES="777").out
        koboshi("processes", "kill", "p1", home=home)
        until(lambda: not living_of(home / "processes" / "1"), "it has ended")
        until(lambda: not any(Path(each).exists() for each in groups), "its group is gone")

    if groups:
        assert "limits per chat by cgroup" in seen
        assert "777 processes" in seen
    else:
        assert all("Max processes             777" in each for each in limits)
        assert "limits per command by rlimits" in seen


@pytest.mark.parametrize("command, why", [(NOTHING, "Landlock"), (NO_FILTERS, "seccomp")])
def test_without_any_boundary_it_serves_without_tools_and_says_the_remedy(
    home: Path, workdir: Path, command: tuple[str, ...], why: str
) -> None:
    """It never runs a command outside by itself. Which boundary holds is found out once."""
    with gateway(home, command=command, KOBOSHI__GATEWAY__WORKDIR=str(workdir)) as one:
        words = said_of(one, "boundary_missing")
        spoken(one, "echo ran > ran")

    assert "no command, file and MCP tools" in words
    assert why in words
    assert "install bubblewrap" in words
    assert not (workdir / "ran").exists()
    assert glance(home).of("processes") == []


@pytest.mark.parametrize("sandbox", ["workspace", "locked"])
def test_a_boundary_that_is_written_down_and_cannot_hold_refuses_the_start(
    home: Path, sandbox: str
) -> None:
    with starting(home, command=NOTHING, KOBOSHI__TOOLS__SANDBOX=sandbox) as one:
        assert one.wait_end() == 78

    assert f'tools.sandbox = "{sandbox}": no sandbox holds on this machine' in one.err
    assert "install bubblewrap" in one.err
    assert "Traceback" not in one.err


def test_locked_holds_where_only_landlock_does(home: Path, workdir: Path) -> None:
    """Not even the gateway's own port is reached, and other work goes on."""
    if reason := probe().landlock:
        pytest.skip(reason)
    locked = {**unasked(workdir), "KOBOSHI__TOOLS__SANDBOX": "locked"}
    with gateway(home, command=NO_NAMESPACES, **locked) as one:
        words = said_of(one, "boundary_holds")
        _, port = one.wait_serving()
        spoken(one, f"(exec 3<>/dev/tcp/127.0.0.1/{port}) || echo none; git --version")
        said = koboshi("processes", "log", "p1", home=home).out

    assert 'sandbox = "locked", held by Landlock' in words
    assert "none" in said
    assert "git version" in said


def test_locked_is_refused_where_only_landlock_holds_and_sockets_are_named(home: Path) -> None:
    """Landlock cannot leave single sockets; half a promise is none."""
    if reason := probe().landlock:
        pytest.skip(reason)
    keys = {"KOBOSHI__TOOLS__SANDBOX": "locked", "KOBOSHI__TOOLS__SOCKETS": '["/run/one.sock"]'}
    with starting(home, command=NO_NAMESPACES, **keys) as one:
        assert one.wait_end() == 78

    assert "without network Landlock leaves no sockets" in one.err


def test_host_is_said_at_every_start_and_by_the_doctor(home: Path, workdir: Path) -> None:
    chosen = {"KOBOSHI__TOOLS__SANDBOX": "host", "KOBOSHI__GATEWAY__WORKDIR": str(workdir)}
    with gateway(home, **chosen) as one:
        words = said_of(one, "boundary_missing")
        spoken(one, "echo ran > ran")
        seen = koboshi("doctor", home=home, **chosen).out

    assert "everything that the gateway's own user may" in words
    assert 'sandbox: sandbox = "host"' in seen
    assert (workdir / "ran").exists()
    assert glance(home).one("processes")["boundary"] == "none"
