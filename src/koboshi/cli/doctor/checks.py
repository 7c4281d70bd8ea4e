"""What `koboshi doctor` looks at: pure functions from facts to findings.

A new check is a function here and a line in CHECKS. What it needs to know is a field of `Facts`,
gathered in `doctor_facts.py`.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TypeAlias

from koboshi.cli.doctor.fixes import Fix, RewriteUnit, RunStep, SetMode
from koboshi.cli.options import FAILED, OK, WRONG_SETUP
from koboshi.cli.service.unit_text import stop_seconds
from koboshi.domain.durations import duration
from koboshi.runtime.host import drain_seconds
from koboshi.runtime.time_spans import parse_span

MEGABYTE = 1_000_000
DISK_BYTES_MIN = 200 * MEGABYTE
DISK_BYTES_ENOUGH = 1_000 * MEGABYTE
DISK_PART_ENOUGH = 0.05
SQLITE_MIN = (3, 51, 3)
"""Earlier ones can corrupt a write-ahead log."""
FILES_MIN = 1_024
DAY_MS = 86_400_000
AHEAD_MS_MAX = 300_000


class Severity(StrEnum):
    OK = "ok"
    NOTE = "note"
    WARNING = "warning"
    """It works, and something will be worse than it could be."""
    ERROR = "error"
    """It does not work, or not for long."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DoctorFinding:
    severity: Severity
    words: str
    remedy: str = ""
    """What to do about it, for a person."""
    fix: Fix | None = None
    """The same, where it is mechanical and safe."""
    code: int = FAILED
    """The exit code of an error."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadedUnit:
    """A unit as systemd has loaded it, which may differ from its file."""

    is_user: bool
    properties: Mapping[str, str]
    renewal: RewriteUnit | None = None
    """Its file, if an earlier koboshi wrote it and this one would write another."""

    def __getitem__(self, name: str) -> str:
        return self.properties.get(name, "")

    @property
    def is_active(self) -> bool:
        return self["ActiveState"] in ("active", "activating", "reloading", "deactivating")

    @property
    def systemctl(self) -> tuple[str, ...]:
        return ("systemctl", "--user") if self.is_user else ("systemctl",)


@dataclass(frozen=True, slots=True, kw_only=True)
class HomeFacts:
    mode: int
    uid: int
    is_folder: bool
    is_writable: bool
    trouble: str = ""
    """Why it cannot even be looked at."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    home: Path
    uid: int
    now_ms: int
    installed_ms: int
    """When this koboshi was installed, by the files it consists of."""
    sqlite: tuple[int, ...]
    files_max: int
    """How many files a process may have open."""
    config_error: str = ""
    config_warnings: tuple[str, ...] = ()
    start_refusals: tuple[str, ...] = ()
    """Why a start on a configuration that can be read would end at once."""
    drain_seconds: float = 45.0
    home_facts: HomeFacts | None = None
    open_secrets: tuple[Path, ...] = ()
    """Files of ours with secrets that others can read."""
    secrets_aside: tuple[Path, ...] = ()
    """Damaged secrets of ours that a start has replaced."""
    disk_free: int | None = None
    disk_size: int = 0
    written_ms: int | None = None
    """When the database was written last; None if there is none."""
    units: tuple[LoadedUnit, ...] = ()
    is_clock_kept: bool | None = None
    """Whether something keeps the machine's clock right; None if the kernel does not tell."""
    lingers: bool = False
    holders: tuple[int, ...] = ()
    """The processes that have the home's lock open: its owner, and those that wait for it."""
    silence: str = ""
    """Why the gateway that runs here does not answer; empty if it does, or none runs."""
    restart: str = ""
    """Why it wants to be restarted."""


Check: TypeAlias = Callable[[Facts], Iterator[DoctorFinding]]


def examine(facts: Facts) -> tuple[tuple[str, DoctorFinding], ...]:
    """Every finding with the name of its check, in the order of CHECKS."""
    return tuple((name, finding) for name, check in CHECKS.items() for finding in check(facts))


def exit_code(findings: tuple[tuple[str, DoctorFinding], ...]) -> int:
    """0 if there are no errors; 78 if one of them is about configuration or home."""
    codes = {found.code for _, found in findings if found.severity is Severity.ERROR}
    if WRONG_SETUP in codes:
        return WRONG_SETUP
    return FAILED if codes else OK


def check_configuration(facts: Facts) -> Iterator[DoctorFinding]:
    if facts.config_error:
        yield _error(facts.config_error, "`koboshi config check` says the same", WRONG_SETUP)
        return
    for refusal in facts.start_refusals:
        yield _error(refusal, "`koboshi config check` says the same, as a start would", WRONG_SETUP)
    for warning in facts.config_warnings:
        yield _warning(warning, "`koboshi config show` says where each key was set")
    if not facts.config_warnings and not facts.start_refusals:
        yield _ok("can be used")


def check_home(facts: Facts) -> Iterator[DoctorFinding]:
    home, found = facts.home, facts.home_facts
    if found is None:
        yield DoctorFinding(
            severity=Severity.NOTE, words=f"there is no {home} yet; a start makes it"
        )
    elif found.trouble:
        yield _error(f"{home} cannot be used: {found.trouble}", "give another home", WRONG_SETUP)
    elif not found.is_folder:
        yield _error(f"{home} is a file, not a folder", "give another home", WRONG_SETUP)
    elif found.uid != facts.uid and facts.uid != 0:
        words = f"{home} belongs to another user"
        yield _error(words, "run as its owner, or give another home", WRONG_SETUP)
    elif not found.is_writable:
        fix = SetMode(path=home, mode=0o700)
        yield _error(f"{home} cannot be written", fix.words, WRONG_SETUP, fix)
    elif found.mode & 0o077:
        fix = SetMode(path=home, mode=0o700)
        yield _warning(f"{home} is open to others (mode {found.mode:04o})", fix.words, fix)
    else:
        yield _ok(f"{home} is private")


def check_secrets(facts: Facts) -> Iterator[DoctorFinding]:
    for file in facts.open_secrets:
        fix = SetMode(path=file, mode=0o600)
        yield _warning(f"{file} holds a secret and is open to others", fix.words, fix)
    for file in facts.secrets_aside:
        words = f"a damaged {file.name} was replaced by a new one; the old one is {file}"
        remedy = "give the new one to programs that had the old one, then remove that file"
        yield _warning(words, remedy)


def check_disk(facts: Facts) -> Iterator[DoctorFinding]:
    free = facts.disk_free
    if free is None:
        words = f"the free space for {facts.home} is unknown"
        yield _warning(words, "give a home that can be looked at")
        return
    words = f"{free // MEGABYTE} MB are free at {facts.home}"
    is_low = free < DISK_BYTES_ENOUGH or free < DISK_PART_ENOUGH * facts.disk_size
    remedy = "make space; when it is full, messages wait with their platforms"
    if free < DISK_BYTES_MIN:
        yield _error(words, remedy)
    else:
        yield _warning(words, remedy) if is_low else _ok(words)


def check_clock(facts: Facts) -> Iterator[DoctorFinding]:
    remedy = "set the clock, and let it be kept: timedatectl set-ntp true"
    if facts.now_ms < facts.installed_ms - DAY_MS:
        yield _error("the clock is before the day on which koboshi was installed", remedy)
        return
    ahead_ms = (facts.written_ms or 0) - facts.now_ms
    if ahead_ms > AHEAD_MS_MAX:
        words = f"the database was written {duration(ahead_ms)} in the future: the clock went back"
        yield _warning(words, remedy)
        return
    if facts.is_clock_kept is False:
        words = "plausible, but nothing keeps it right: times in lists and logs may be wrong"
        yield DoctorFinding(severity=Severity.NOTE, words=words, remedy=remedy)
        return
    yield _ok("plausible" if facts.is_clock_kept is None else "plausible, and kept right")


def check_sqlite(facts: Facts) -> Iterator[DoctorFinding]:
    version = ".".join(map(str, facts.sqlite))
    if facts.sqlite < SQLITE_MIN:
        needed = ".".join(map(str, SQLITE_MIN))
        words = f"SQLite {version} can damage a database; {needed} is the first that does not"
        yield _error(words, "pip install --upgrade apsw")
    else:
        yield _ok(version)


def check_open_files(facts: Facts) -> Iterator[DoctorFinding]:
    words = f"a process may have {facts.files_max} open here"
    if facts.files_max < FILES_MIN:
        yield _warning(words, f"ulimit -n {FILES_MIN}; a service of ours asks for 65536")
    else:
        yield _ok(words)


def check_gateways(facts: Facts) -> Iterator[DoctorFinding]:
    pids = ", ".join(map(str, facts.holders))
    if facts.silence:
        yield _error(facts.silence, "its log may say why; killing it is safe")
    if len(facts.holders) > 1:
        words = f"{len(facts.holders)} gateways want {facts.home} (pids {pids}); one only waits"
        yield _warning(words, "stop one of them, or give it a home of its own")
    if len([unit for unit in facts.units if unit.is_active]) > 1:
        words = "the user's service and the system's both run"
        yield _warning(words, "keep one: koboshi service uninstall --user")
    if facts.restart:
        yield _warning(facts.restart, "koboshi restart")
    if not facts.silence and len(facts.holders) <= 1:
        yield _ok(f"one runs (pid {pids})" if pids else "none runs, and nothing holds the lock")


def check_service(facts: Facts) -> Iterator[DoctorFinding]:
    if not facts.units:
        yield DoctorFinding(
            severity=Severity.NOTE,
            words="no systemd unit koboshi.service is loaded",
            remedy="koboshi service install starts the gateway with the machine",
        )
    for unit in facts.units:
        problems = [*_unit_problems(unit, facts.drain_seconds)]
        yield from problems
        if not problems:
            yield _ok(f"the {_whose(unit)} unit is as recommended")


def check_user(facts: Facts) -> Iterator[DoctorFinding]:
    if facts.uid == 0:
        words = "this is root: what leaves the boundary has the rights of root"
        yield _warning(words, "give the gateway a user: koboshi service install --system --run-as")


def check_lingering(facts: Facts) -> Iterator[DoctorFinding]:
    if any(unit.is_user for unit in facts.units) and not facts.lingers:
        words = "the user's service ends when you log out"
        fix = RunStep(step=("loginctl", "enable-linger"))
        yield _warning(words, fix.words, fix)


CHECKS: dict[str, Check] = {
    "configuration": check_configuration,
    "home": check_home,
    "secrets": check_secrets,
    "disk": check_disk,
    "clock": check_clock,
    "sqlite": check_sqlite,
    "open files": check_open_files,
    "gateways": check_gateways,
    "service": check_service,
    "lingering": check_lingering,
    "user": check_user,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Advice:
    """One property of a unit: which values are right, and what any other means."""

    name: str
    right: tuple[str, ...]
    otherwise: str


ADVICE = (
    Advice(
        name="Type",
        right=("notify", "notify-reload"),
        otherwise="systemd cannot know when "
        "the gateway is ready, and a drain cannot ask for more time",
    ),
    Advice(
        name="KillMode",
        right=("process",),
        otherwise="commands of the agent are killed with every restart",
    ),
    Advice(
        name="Delegate",
        right=("yes",),
        otherwise="systemd may rearrange the processes of commands that run on",
    ),
    Advice(
        name="OOMPolicy",
        right=("continue",),
        otherwise="a command that takes too much memory stops the gateway",
    ),
    Advice(
        name="Restart",
        right=("on-failure", "on-abnormal", "always"),
        otherwise="a gateway that was killed stays down",
    ),
)

ASKED = (
    *(advice.name for advice in ADVICE),
    *("LoadState", "ActiveState", "NeedDaemonReload", "TimeoutStopUSec", "WatchdogUSec"),
    "FragmentPath",
)
"""The properties that the checks want to know."""


def _unit_problems(unit: LoadedUnit, drain: float) -> Iterator[DoctorFinding]:
    remedy = f"koboshi service install --force {'--user' if unit.is_user else '--system'}"
    if unit.renewal is not None:
        words = f"the {_whose(unit)} unit is not as this koboshi would write it"
        yield _warning(words, remedy.replace(" --force", ""), unit.renewal)
    elif unit["NeedDaemonReload"] == "yes":
        words = f"the {_whose(unit)} unit was changed since it was loaded"
        fix = RunStep(step=(*unit.systemctl, "daemon-reload"))
        yield _warning(words, f"{fix.words}, then restart", fix)
    for advice in ADVICE:
        if unit[advice.name] not in advice.right:
            said = f"{advice.name}={unit[advice.name]} in the {_whose(unit)} unit"
            yield _warning(f"{said}: {advice.otherwise}", remedy)
    limit = parse_span(unit["TimeoutStopUSec"])
    if limit is not None and drain_seconds(drain, limit) < drain:
        said = f"TimeoutStopSec={unit['TimeoutStopUSec']} in the {_whose(unit)} unit"
        words = f"{said}: too short for a drain of {drain:g} s"
        yield _warning(words, f"{remedy}, or TimeoutStopSec={stop_seconds(drain)}")
    # systemd tells it only of a unit that has been started.
    if unit.is_active and parse_span(unit["WatchdogUSec"]) in (None, 0.0, float("inf")):
        words = f"no WatchdogSec in the {_whose(unit)} unit: a gateway that hangs is left hanging"
        yield _warning(words, remedy)


def _whose(unit: LoadedUnit) -> str:
    return "user's" if unit.is_user else "system's"


def _ok(words: str) -> DoctorFinding:
    return DoctorFinding(severity=Severity.OK, words=words)


def _warning(words: str, remedy: str, fix: Fix | None = None) -> DoctorFinding:
    return DoctorFinding(severity=Severity.WARNING, words=words, remedy=remedy, fix=fix)


def _error(words: str, remedy: str, code: int = FAILED, fix: Fix | None = None) -> DoctorFinding:
    return DoctorFinding(severity=Severity.ERROR, words=words, remedy=remedy, code=code, fix=fix)
