"""Where this gateway runs, and how long its stop may take there."""

import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from koboshi.runtime.notify import SOCKET
from koboshi.runtime.time_spans import parse_span

GRACE_VARIABLE = "KOBOSHI_GRACE_SECONDS"
"""The time between the request to stop and the kill, where only the manager's configuration knows
it: `terminationGracePeriodSeconds`, `stop_grace_period`, `ExitTimeOut`."""

SYSTEMD_SECONDS = 90.0
"""DefaultTimeoutStopSec, unless it is configured."""
SYSTEMD_SESSION_SECONDS = 120.0
"""The limit of a user's own systemd at the end of their session; a service cannot extend it."""
LAUNCHD_SECONDS = 20.0
KUBERNETES_SECONDS = 30.0
CONTAINER_SECONDS = 10.0
TERMINAL_DRAIN_SECONDS = 10.0
"""A person who pressed Ctrl-C waits."""

RESERVE_PART = 0.4
RESERVE_SECONDS_MAX = 30.0
"""10 s to release turns, 5 s to end by force, 15 s for a slow machine."""
ASK_SECONDS = 2.0


class Supervisor(StrEnum):
    SYSTEMD = "systemd"
    LAUNCHD = "launchd"
    KUBERNETES = "kubernetes"
    CONTAINER = "container"
    TERMINAL = "terminal"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    place: Supervisor = Supervisor.UNKNOWN
    stop_limit_seconds: float | None = None
    """After how long a stop ends in a SIGKILL, always; None if there is no such limit."""
    can_extend: bool = False
    """Whether more time is given to a drain that asks for it every few seconds, by
    `Notifier.extend`. It has to: the manager's own limit may be short."""
    unit: str = ""
    """The name of our systemd unit."""

    def drain_seconds(self, configured: float) -> float:
        """How long a drain may take here."""
        seconds = drain_seconds(configured, self.stop_limit_seconds)
        is_watched = self.place is Supervisor.TERMINAL
        return min(seconds, TERMINAL_DRAIN_SECONDS) if is_watched else seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class Signs:
    """What can be seen from inside a process."""

    environ: Mapping[str, str]
    pid: int
    cgroup: str = ""
    """The content of /proc/self/cgroup."""
    has_container_file: bool = False
    is_terminal: bool = False
    """Whether stderr is one."""


def drain_seconds(configured: float, stop_limit: float | None) -> float:
    """How long a drain may take when the manager kills after `stop_limit` seconds.

    Leaves time to set down what is still running and to end: 30 s, or two fifths of a limit that is
    shorter than 75 s. Without a limit, what is configured.
    """
    if stop_limit is None:
        return max(0.0, configured)
    reserve = min(RESERVE_SECONDS_MAX, RESERVE_PART * stop_limit)
    return max(0.0, min(configured, stop_limit - reserve))


def look_around(signs: Signs) -> Surroundings:
    """Where this process runs. Asks systemctl only where there is no other way to know."""
    found = recognised(signs)
    if found.place is not Supervisor.SYSTEMD or found.can_extend or not found.unit:
        return found
    asked = ask_stop_limit(found.unit, is_user=unit_is_users(signs.cgroup))
    limit = found.stop_limit_seconds if asked is None else asked
    return Surroundings(place=found.place, unit=found.unit, stop_limit_seconds=limit)


def recognised(signs: Signs) -> Surroundings:
    """What the signs say. A terminal within a desktop session inherits variables of its service,
    so they count only beside a unit of our own."""
    environ, unit = signs.environ, unit_of(signs.cgroup)
    told = _grace(environ)
    if SOCKET in environ:
        # A service can extend the limit of its unit, but not that of the whole session.
        limit = SYSTEMD_SESSION_SECONDS if unit_is_users(signs.cgroup) else None
        place = Supervisor.SYSTEMD
        return Surroundings(place=place, unit=unit, stop_limit_seconds=limit, can_extend=True)
    if unit and "INVOCATION_ID" in environ and not signs.is_terminal:
        limit = told or SYSTEMD_SECONDS
        return Surroundings(place=Supervisor.SYSTEMD, unit=unit, stop_limit_seconds=limit)
    if environ.get("XPC_SERVICE_NAME", "0") != "0" and not signs.is_terminal:
        return Surroundings(place=Supervisor.LAUNCHD, stop_limit_seconds=told or LAUNCHD_SECONDS)
    if "KUBERNETES_SERVICE_HOST" in environ:
        return Surroundings(
            place=Supervisor.KUBERNETES, stop_limit_seconds=told or KUBERNETES_SECONDS
        )
    if signs.pid == 1 or signs.has_container_file or _is_container(signs.cgroup):
        return Surroundings(
            place=Supervisor.CONTAINER, stop_limit_seconds=told or CONTAINER_SECONDS
        )
    place = Supervisor.TERMINAL if signs.is_terminal else Supervisor.UNKNOWN
    return Surroundings(place=place, stop_limit_seconds=told)


def signs_here(environ: Mapping[str, str], pid: int, *, is_terminal: bool) -> Signs:
    """The signs of this process."""
    files = (Path("/.dockerenv"), Path("/run/.containerenv"))
    return Signs(
        environ=dict(environ),
        pid=pid,
        cgroup=_read(Path("/proc/self/cgroup")),
        has_container_file=any(file.exists() for file in files),
        is_terminal=is_terminal,
    )


def unit_of(cgroup: str) -> str:
    """The systemd service that a process with this /proc/self/cgroup belongs to; "" if none."""
    for path in _groups(cgroup):
        names = path.split("/")
        services = [name for name in names if name.endswith(".service")]
        is_scope = any(name.endswith(".scope") for name in names)
        if services and not is_scope and not services[-1].startswith("user@"):
            return services[-1]
    return ""


def unit_is_users(cgroup: str) -> bool:
    """Whether the unit is one of a user's own systemd."""
    return any("/user@" in path for path in _groups(cgroup))


def ask_stop_limit(unit: str, *, is_user: bool) -> float | None:
    """TimeoutStopSec of the loaded unit in seconds; None if it cannot be queried, as by a system
    service without rights where there is no bus."""
    scope = ["--user"] if is_user else []
    command = ["systemctl", *scope, "show", "--property=TimeoutStopUSec", "--value", "--", unit]
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=ASK_SECONDS,
            check=False,
        )
    except (OSError, ValueError, subprocess.TimeoutExpired):
        return None
    return parse_span(done.stdout.strip()) if done.returncode == 0 else None


def _groups(cgroup: str) -> list[str]:
    """The paths in the hierarchies that systemd keeps: the unified one and its own."""
    lines = [line.split(":", 2) for line in cgroup.splitlines()]
    return [parts[2] for parts in lines if len(parts) == 3 and parts[1] in ("", "name=systemd")]


def _is_container(cgroup: str) -> bool:
    marks = ("/docker/", "/docker-", "/kubepods", "/libpod-", "/lxc/", "/containerd")
    return any(mark in line for line in cgroup.splitlines() for mark in marks)


def _grace(environ: Mapping[str, str]) -> float | None:
    told = environ.get(GRACE_VARIABLE, "")
    return float(told) if told.isascii() and told.isdigit() and int(told) > 0 else None


def _read(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
