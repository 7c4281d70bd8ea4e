"""Where a gateway runs, and how long its drain may take there."""

import os
import stat
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from koboshi.runtime.host import (
    Signs,
    Supervisor,
    Surroundings,
    ask_stop_limit,
    drain_seconds,
    look_around,
    recognised,
    unit_of,
)
from koboshi.runtime.time_spans import parse_span

OWN_UNIT = "0::/system.slice/koboshi.service\n"
USER_UNIT = "0::/user.slice/user-1000.slice/user@1000.service/app.slice/koboshi.service\n"
DESKTOP = (
    "0::/user.slice/user-1000.slice/user@1000.service/app.slice/app-org.gnome.Terminal.slice/"
    "vte-spawn-9f.scope\n"
)
SSH = "1:name=systemd:/user.slice/user-1000.slice/session-4.scope\n0::/user.slice\n"


def signs(cgroup: str = "0::/\n", *, pid: int = 77, is_terminal: bool = False, **env: str) -> Signs:
    return Signs(environ=env, pid=pid, cgroup=cgroup, is_terminal=is_terminal)


@pytest.mark.parametrize(
    "limit, drain",
    [
        (None, 45.0),
        (90.0, 45.0),
        (75.0, 45.0),
        (60.0, 36.0),
        (30.0, 18.0),
        (20.0, 12.0),
        (10.0, 6.0),
        (0.0, 0.0),
        (float("inf"), 45.0),
    ],
)
def test_the_drain_of_45_seconds_is_cut_to_what_the_manager_gives(
    limit: float | None, drain: float
) -> None:
    assert drain_seconds(45, limit) == pytest.approx(drain)


@given(st.floats(0, 1e9), st.floats(0, 1e9))
def test_a_drain_always_leaves_time_to_set_things_down(configured: float, limit: float) -> None:
    seconds = drain_seconds(configured, limit)

    assert 0 <= seconds <= configured
    assert seconds <= max(0.6 * limit, limit - 30) * 1.000_001


@pytest.mark.parametrize(
    "seen, place, limit",
    [
        (signs(OWN_UNIT, NOTIFY_SOCKET="/run/n", INVOCATION_ID="x"), Supervisor.SYSTEMD, None),
        (signs(USER_UNIT, NOTIFY_SOCKET="/run/n"), Supervisor.SYSTEMD, 120),
        (signs(OWN_UNIT, INVOCATION_ID="x"), Supervisor.SYSTEMD, 90),
        (signs(DESKTOP, INVOCATION_ID="x", is_terminal=True), Supervisor.TERMINAL, None),
        (signs(DESKTOP, INVOCATION_ID="x"), Supervisor.UNKNOWN, None),
        (signs(SSH, is_terminal=True), Supervisor.TERMINAL, None),
        (signs(XPC_SERVICE_NAME="koboshi.gateway"), Supervisor.LAUNCHD, 20),
        (
            signs(XPC_SERVICE_NAME="koboshi.gateway", KOBOSHI_GRACE_SECONDS="75"),
            Supervisor.LAUNCHD,
            75,
        ),
        (signs(XPC_SERVICE_NAME="0", is_terminal=True), Supervisor.TERMINAL, None),
        (signs(KUBERNETES_SERVICE_HOST="10.0.0.1", pid=1), Supervisor.KUBERNETES, 30),
        (
            signs(KUBERNETES_SERVICE_HOST="10.0.0.1", KOBOSHI_GRACE_SECONDS="90"),
            Supervisor.KUBERNETES,
            90,
        ),
        (signs(pid=1), Supervisor.CONTAINER, 10),
        (signs(pid=1, is_terminal=True), Supervisor.CONTAINER, 10),
        (signs("0::/docker/8a7f\n"), Supervisor.CONTAINER, 10),
        (signs(pid=1, KOBOSHI_GRACE_SECONDS="75"), Supervisor.CONTAINER, 75),
        (signs(pid=1, KOBOSHI_GRACE_SECONDS="soon"), Supervisor.CONTAINER, 10),
        (signs(""), Supervisor.UNKNOWN, None),
        (signs("nonsense\n::\n"), Supervisor.UNKNOWN, None),
    ],
)
def test_the_place_and_its_limit(seen: Signs, place: Supervisor, limit: float | None) -> None:
    found = recognised(seen)

    assert (found.place, found.stop_limit_seconds) == (place, limit)
    assert found.can_extend is ("NOTIFY_SOCKET" in seen.environ)


def test_a_person_at_a_terminal_does_not_wait_for_45_seconds() -> None:
    assert Surroundings(place=Supervisor.TERMINAL).drain_seconds(45) == 10
    assert Surroundings(place=Supervisor.TERMINAL).drain_seconds(3) == 3
    assert Surroundings().drain_seconds(45) == 45
    assert Surroundings(place=Supervisor.CONTAINER, stop_limit_seconds=10).drain_seconds(45) == 6


@pytest.mark.parametrize(
    "cgroup, unit",
    [
        (OWN_UNIT, "koboshi.service"),
        (USER_UNIT, "koboshi.service"),
        ("0::/system.slice/koboshi.service/inner\n", "koboshi.service"),
        ("9:cpu:/x.service\n1:name=systemd:/system.slice/old.service\n", "old.service"),
        ("9:cpu:/x.service\n", ""),
        (DESKTOP, ""),
        (SSH, ""),
        ("0::/user.slice/user-1000.slice/user@1000.service/init.scope\n", ""),
        ("", ""),
    ],
)
def test_our_unit_is_the_service_we_are_in(cgroup: str, unit: str) -> None:
    assert unit_of(cgroup) == unit


@pytest.mark.parametrize(
    "text, seconds",
    [
        ("1min 30s", 90),
        ("500ms", 0.5),
        ("1h 2min 3s 4ms", 3723.004),
        ("2d", 172_800),
        ("1.5s", 1.5),
        ("infinity", float("inf")),
        ("0", 0),
        ("", None),
        ("soon", None),
        ("90", None),
        ("1min thirty", None),
        ("1s" * 60, None),
    ],
)
def test_spans_of_time(text: str, seconds: float | None) -> None:
    found = parse_span(text)

    assert found == (None if seconds is None else pytest.approx(seconds))


# ── asking systemctl ────────────────────────────────────────────────────────────────────────────


def fake_systemctl(folder: Path, program: str) -> str:
    folder.mkdir()
    file = folder / "systemctl"
    file.write_text(f"#!/bin/sh\n{program}\n")
    file.chmod(file.stat().st_mode | stat.S_IXUSR)
    return str(folder)


def test_a_simple_unit_is_asked_for_its_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", fake_systemctl(tmp_path / "bin", "echo 20s"), prepend=os.pathsep)

    assert look_around(signs(OWN_UNIT, INVOCATION_ID="x")).drain_seconds(45) == 12


@pytest.mark.parametrize(
    "program", ["echo Failed to connect to bus >&2; exit 1", "echo nonsense", "exec sleep 60"]
)
def test_a_systemctl_that_does_not_know_is_not_believed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, program: str
) -> None:
    monkeypatch.setenv("PATH", fake_systemctl(tmp_path / "bin", program), prepend=os.pathsep)

    assert ask_stop_limit("koboshi.service", is_user=False) is None
    assert look_around(signs(OWN_UNIT, INVOCATION_ID="x")).stop_limit_seconds == 90


def test_without_systemctl_the_default_is_assumed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))

    assert look_around(signs(OWN_UNIT, INVOCATION_ID="x")).stop_limit_seconds == 90
