"""More of what `koboshi doctor` looks at: the file system, backups, what is held, and how fast the
disk confirms. Each check looks for itself and changes nothing that stays."""

import os
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from koboshi.app.boundary import boundary_words, is_held, limit_words
from koboshi.app.reserve import reserve_in
from koboshi.cli.ask_owner import ask_owner
from koboshi.cli.doctor.checks import DoctorFinding, Facts, Severity
from koboshi.cli.options import WRONG_SETUP, CommandFailure
from koboshi.clock import SystemClock
from koboshi.config import Config
from koboshi.control.requests import CountHeld, GetStatus, ListRows
from koboshi.domain.durations import duration
from koboshi.ports.room import Reserve

MEGABYTE = 1_000_000
BACKUP_OLD_MS = 26 * 3_600_000
SYNC_SLOW_S = 0.1
SYNC_SAMPLES = 5
LISTED = 500
SHARED = frozenset(
    "nfs nfs4 cifs smb3 smbfs 9p fuse fuse.sshfs fuse.s3fs fuse.glusterfs fuse.grpcfuse "
    "virtiofs afs ceph lustre".split()
)
"""File systems on which the locks that keep a database whole do not hold, or may not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MoreFacts:
    home: Path
    now_ms: int
    file_system: str = ""
    """Its type; empty if unknown."""
    sync_s: float | None = None
    """How long the disk takes to confirm, the slower half of some tries; None: not tried."""
    backup_ms: int | None = None
    has_database: bool = False
    held: int | None = None
    """Deliveries that wait for the operator; None if the database could not be asked."""
    gap: str = ""
    """What the database had stored and does not hold any more, until the operator settles it."""
    dead: int | None = None
    """Of the newest deliveries, those that did not arrive."""
    unreached: Mapping[str, str] | None = None
    """Channels of the gateway that are down, and why; None: none runs, or it was not asked."""
    trouble: CommandFailure | None = None
    """Why the database cannot be asked."""
    reserve: Reserve | None = None
    """What is kept back for a full disk; None where no gateway has run, or it cannot be read."""
    sandbox: tuple[bool, str] | None = None
    """Whether anything stands around the agent's programs, and what; None: it is unknown."""
    agents: tuple[tuple[str, str], ...] = ()
    """The foreign agents, and what is wrong with each."""
    writable_code: Path | None = None
    """A folder of the program that every user may write to."""


def examine_more(facts: Facts, config: Config | None) -> tuple[tuple[str, DoctorFinding], ...]:
    """Every further finding with the name of its check; without a configuration that can be used,
    the database is left alone."""
    more = gather_more(facts, config)
    return tuple((name, found) for name, check in CHECKS.items() for found in check(more))


def check_file_system(more: MoreFacts) -> Iterator[DoctorFinding]:
    if not more.file_system:
        yield DoctorFinding(
            severity=Severity.NOTE, words=f"the file system of {more.home} is unknown"
        )
    elif more.file_system in SHARED:
        yield DoctorFinding(
            severity=Severity.ERROR,
            words=f"{more.home} is on {more.file_system}: a database there gets damaged",
            remedy="give a home on a disk of this machine",
            code=WRONG_SETUP,
        )
    else:
        yield _ok(more.file_system)


def check_sync(more: MoreFacts) -> Iterator[DoctorFinding]:
    if more.sync_s is None:
        return
    words = f"the disk confirms within {more.sync_s * 1000:.0f} ms"
    if more.sync_s > SYNC_SLOW_S:
        remedy = "every message waits for it; a disk of this machine is faster than a network's"
        yield DoctorFinding(severity=Severity.WARNING, words=words, remedy=remedy)
    else:
        yield _ok(words)


def check_sandbox(more: MoreFacts) -> Iterator[DoctorFinding]:
    """What keeps the agent inside. A start refuses a mode that is written down and does not hold;
    that is told with its other refusals."""
    if more.sandbox is None:
        return
    is_held, words = more.sandbox
    if is_held:
        yield _ok(words)
    else:
        remedy = "see docs/sandbox.md"
        yield DoctorFinding(severity=Severity.WARNING, words=words, remedy=remedy)


def check_reserve(more: MoreFacts) -> Iterator[DoctorFinding]:
    reserve = more.reserve
    if reserve is None:
        return
    wanted = reserve.wanted_bytes / MEGABYTE
    if reserve.kept_bytes:
        yield _ok(f"{reserve.kept_bytes / MEGABYTE:.1f} MB are kept back for a full disk")
    elif reserve.has_room:
        words = f"{wanted:.1f} MB are to be kept back for a full disk, and are not yet"
        remedy = "the gateway makes the reserve while it runs"
        yield DoctorFinding(severity=Severity.NOTE, words=words, remedy=remedy)
    else:
        needed = reserve.made_from_bytes / MEGABYTE
        yield DoctorFinding(
            severity=Severity.WARNING,
            words=f"nothing is kept back for a full disk: the reserve of {wanted:.1f} MB was given "
            "up, or there was never room for it",
            remedy=f"make space; it is made again when {needed:.1f} MB are free",
        )


def check_backups(more: MoreFacts) -> Iterator[DoctorFinding]:
    remedy = "koboshi backup create, once a day by a timer; docs/operating.md has one"
    if not more.has_database:
        return
    if more.backup_ms is None:
        words = "there is none: a damaged disk would take everything"
        yield DoctorFinding(severity=Severity.NOTE, words=words, remedy=remedy)
        return
    age_ms = max(0, more.now_ms - more.backup_ms)
    words = f"the newest is {duration(age_ms)} old"
    if age_ms > BACKUP_OLD_MS:
        yield DoctorFinding(severity=Severity.WARNING, words=words, remedy=remedy)
    else:
        yield _ok(words)


def check_outbox(more: MoreFacts) -> Iterator[DoctorFinding]:
    if more.held:
        yield DoctorFinding(
            severity=Severity.WARNING,
            words=f"{more.held} held until you decide",
            remedy="koboshi outbox list --open, then release or drop them",
        )
    if more.dead:
        yield DoctorFinding(
            severity=Severity.NOTE,
            words=f"{more.dead} of the newest {LISTED} deliveries did not arrive",
            remedy="koboshi outbox list shows them with the reason; retry sends one again",
        )
    if more.held == 0 and more.dead == 0:
        yield _ok("nothing is held, nothing was given up lately")


def check_channels(more: MoreFacts) -> Iterator[DoctorFinding]:
    if more.unreached is None:
        return
    for name, why in more.unreached.items():
        yield DoctorFinding(
            severity=Severity.ERROR,
            words=f"{name} cannot be reached: {why}",
            remedy="the gateway tries again by itself; after a change of koboshi.toml or a token: "
            "koboshi restart",
        )
    if not more.unreached:
        yield _ok("all are connected")


def check_database(more: MoreFacts) -> Iterator[DoctorFinding]:
    if more.trouble is not None:
        remedy = "koboshi backup list; `koboshi restore FILE` puts one in its place"
        yield DoctorFinding(
            severity=Severity.ERROR,
            words=more.trouble.message,
            remedy=remedy,
            code=more.trouble.code,
        )
    elif more.gap:
        remedy = "koboshi outbox list --open, then `koboshi outbox release --all` settles it"
        yield DoctorFinding(severity=Severity.WARNING, words=more.gap, remedy=remedy)
    elif more.held is not None:
        yield _ok("it can be read")


def check_program(more: MoreFacts) -> Iterator[DoctorFinding]:
    if more.writable_code is not None:
        yield DoctorFinding(
            severity=Severity.WARNING,
            words=f"every user may write to {more.writable_code}, and so change what we run",
            remedy=f"chmod o-w {more.writable_code}",
        )


def check_agents(more: MoreFacts) -> Iterator[DoctorFinding]:
    """Programs of foreign agents that are not there. Without agents there is nothing to say."""
    for name, words in more.agents:
        if words:
            remedy = f"install it, or try it with `koboshi agents try {name}`"
            yield DoctorFinding(severity=Severity.WARNING, words=words, remedy=remedy)
        else:
            said = f"the program of the agent {name} is there"
            yield DoctorFinding(severity=Severity.OK, words=said)


CHECKS: dict[str, Callable[[MoreFacts], Iterator[DoctorFinding]]] = {
    "file system": check_file_system,
    "disk speed": check_sync,
    "database": check_database,
    "reserve": check_reserve,
    "backups": check_backups,
    "outbox": check_outbox,
    "channels": check_channels,
    "program": check_program,
    "sandbox": check_sandbox,
    "agents": check_agents,
}


def gather_more(facts: Facts, config: Config | None) -> MoreFacts:
    home = facts.home
    more = MoreFacts(
        home=home,
        now_ms=facts.now_ms,
        file_system=file_system_of(home),
        has_database=(home / "koboshi.db").exists(),
        backup_ms=_newest_ms(home / "backups"),
        writable_code=_writable_code(),
        sandbox=None if config is None else _sandbox(config, facts.holders),
        agents=() if config is None else tuple(_agents(config)),
    )
    if facts.home_facts is None or not facts.home_facts.is_writable:
        return more
    more = replace(more, sync_s=_sync_seconds(home))
    if more.has_database:
        more = replace(more, reserve=reserve_in(home))
    if config is not None and config.store.url:
        # The rows are at the server, if a gateway of this home has run.
        more = replace(more, has_database=(home / "home-id").exists())
    if config is None or facts.silence or not more.has_database:
        return more
    return _with_outbox(more, config)


def _agents(config: Config) -> Iterator[tuple[str, str]]:
    """Each foreign agent, and what is wrong with it."""
    for name, agent in config.enabled_agents.items():
        if config.tools.sandbox == "locked":
            yield name, f'the agent {name} cannot be used: sandbox = "locked" has no network'
        elif shutil.which(agent.command[0]) is None:
            yield name, f"the program of the agent {name} is not there: {agent.command[0]}"
        else:
            yield name, ""


def _sandbox(config: Config, holders: tuple[int, ...]) -> tuple[bool, str]:
    """Whether anything stands around the agent's programs, and what, with its limits: those of the
    gateway that runs, which may have been started elsewhere than this."""
    holds, words = is_held(config), boundary_words(config)
    process = str(holders[0]) if len(holders) == 1 else "self"
    return holds, f"{words}; {limit_words(config, process)}" if holds else words


def file_system_of(place: Path, mounts: str | None = None) -> str:
    """The type of the file system that holds the place, or will."""
    try:
        listed = Path("/proc/self/mounts").read_text() if mounts is None else mounts
    except OSError:
        return ""
    best = ("", "")
    for line in listed.splitlines():
        _, point, kind, *_ = line.split(" ")
        where = point.replace("\\040", " ")
        if Path(where) in (place, *place.parents) and len(where) >= len(best[0]):
            best = (where, kind)
    return best[1]


def _sync_seconds(home: Path) -> float | None:
    """Written beside the database, and removed."""
    clock, path, took = SystemClock(), home / f".doctor-{os.getpid()}", []
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        try:
            for _ in range(SYNC_SAMPLES):
                began = clock.monotonic()
                os.pwrite(descriptor, b"x" * 4096, 0)
                os.fsync(descriptor)
                took.append(clock.monotonic() - began)
        finally:
            os.close(descriptor)
            path.unlink()
    except OSError:
        return None
    return sorted(took)[SYNC_SAMPLES // 2]


def _newest_ms(folder: Path) -> int | None:
    try:
        made = [path.stat().st_mtime_ns // 1_000_000 for path in folder.glob("*.db")]
    except OSError:
        return None
    return max(made, default=None)


def _writable_code() -> Path | None:
    folders = (Path(__file__).parent.parent, Path(sys.prefix))
    return next((folder for folder in folders if _mode(folder) & 0o002), None)


def _mode(path: Path) -> int:
    try:
        return path.stat().st_mode
    except OSError:
        return 0


def _with_outbox(more: MoreFacts, config: Config) -> MoreFacts:
    """Asked of the gateway that runs; without one, this command is the owner for a moment."""
    try:
        held = ask_owner(config, CountHeld()).get("held")
        gap = ask_owner(config, GetStatus()).get("gap")
        newest = ask_owner(config, ListRows(kind="delivery", limit=LISTED))
        status = ask_owner(config, GetStatus())
    except CommandFailure as failure:
        return replace(more, trouble=failure)
    more = replace(more, unreached=_unreached(status))
    rows = newest.get("deliveries")
    if not isinstance(held, int) or not isinstance(rows, list):
        return more
    states = [row.get("state") for row in rows if isinstance(row, dict)]
    told = gap if isinstance(gap, str) else ""
    return replace(more, held=held, gap=told, dead=states.count("rejected"))


def _unreached(status: Mapping[str, object]) -> dict[str, str] | None:
    found = status.get("unreached")
    if not status.get("is_running") or not isinstance(found, dict):
        return None
    return {str(name): str(why) for name, why in found.items()}


def _ok(words: str) -> DoctorFinding:
    return DoctorFinding(severity=Severity.OK, words=words)
