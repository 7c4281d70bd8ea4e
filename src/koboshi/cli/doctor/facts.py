"""Gathering what `koboshi doctor` judges. Nothing is changed, and the database is not opened."""

import ctypes
import getpass
import os
import resource
import shutil
import stat
import subprocess
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import apsw

import koboshi
from koboshi.app.tokens import secrets_set_aside
from koboshi.cli.ask_owner import ask_gateway
from koboshi.cli.doctor.checks import ASKED, Facts, HomeFacts, LoadedUnit
from koboshi.cli.doctor.fixes import RewriteUnit
from koboshi.cli.holders import lock_holders
from koboshi.cli.inspect import restart_wanted
from koboshi.cli.options import CommandFailure
from koboshi.cli.service.plan import UNIT, unit_file
from koboshi.cli.service.renewal import renewed
from koboshi.clock import SystemClock
from koboshi.config import Config, ConfigError, load
from koboshi.config.home_paths import find_places
from koboshi.control.requests import GetStatus

ASK_SECONDS = 5.0
TIME_ERROR = 5
"""What adjtimex(2) answers where the clock is not synchronised."""
TIMEX_BYTES = 512
LINGERING = Path("/var/lib/systemd/linger")
SECRETS = ("environment", "koboshi.env", "web-token")
"""Files in the home that only its owner should read."""


def gather(home: Path | None, config_file: Path | None, environ: Mapping[str, str]) -> Facts:
    """Raises ConfigError if it is not known where the home is."""
    place = find_places(home, config_file, environ).home
    config, error = _configuration(home, config_file, environ)
    home_facts = _home(place)
    free, size = _disk(place)
    holders = lock_holders(place / "koboshi.lock")
    is_home = home_facts is not None and home_facts.is_folder
    silence, restart = _asked(place) if is_home else ("", "")
    return Facts(
        home=place,
        uid=os.geteuid(),
        now_ms=SystemClock().now_ms(),
        installed_ms=_changed_ms(Path(koboshi.__file__)) or 0,
        sqlite=tuple(int(part) for part in apsw.sqlite_lib_version().split(".")),
        files_max=_files_max(),
        config_error=error,
        start_refusals=() if config is None else _refusals(config, holders),
        config_warnings=() if config is None else config.warnings,
        drain_seconds=45.0 if config is None else config.gateway.drain_seconds,
        home_facts=home_facts,
        disk_free=free,
        disk_size=size,
        written_ms=_changed_ms(place / "koboshi.db-wal") or _changed_ms(place / "koboshi.db"),
        open_secrets=tuple(file for name in SECRETS if _is_open(file := place / name)),
        secrets_aside=secrets_set_aside(place),
        units=tuple(
            unit for is_user in (False, True) if (unit := loaded_unit(is_user, environ)) is not None
        ),
        is_clock_kept=_is_clock_kept(),
        lingers=_lingers(),
        holders=holders,
        silence=silence,
        restart=restart,
    )


def loaded_unit(is_user: bool, environ: Mapping[str, str]) -> LoadedUnit | None:
    """Our unit as systemd has loaded it; None if it has not, or there is no systemd to ask."""
    scope = ["--user"] if is_user else []
    command = ["systemctl", *scope, "show", f"--property={','.join(ASKED)}", UNIT]
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=ASK_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    properties = parse_properties(done.stdout)
    if done.returncode != 0 or properties.get("LoadState") != "loaded":
        return None
    unit = LoadedUnit(is_user=is_user, properties=properties)
    return replace(unit, renewal=_renewal(unit, environ))


def _renewal(unit: LoadedUnit, environ: Mapping[str, str]) -> RewriteUnit | None:
    """The unit's file as it should be; None if it is, or is not ours."""
    try:
        file = unit_file(is_system=not unit.is_user, environ=environ)
        found = file.read_text(encoding="utf-8", errors="replace")
    except (OSError, CommandFailure):
        return None
    if unit["FragmentPath"] != str(file) or file.is_symlink():
        return None
    text = renewed(found, is_system=not unit.is_user, environ=environ)
    if text is None or text == found:
        return None
    return RewriteUnit(file=file, text=text, reload=(*unit.systemctl, "daemon-reload"))


def parse_properties(shown: str) -> dict[str, str]:
    """What `systemctl show` prints, by name."""
    pairs = (line.partition("=") for line in shown.splitlines())
    return {name: value for name, equals, value in pairs if equals}


def _configuration(
    home: Path | None, config_file: Path | None, environ: Mapping[str, str]
) -> tuple[Config | None, str]:
    try:
        return load(home, config_file, environ, needs_secrets=False), ""
    except ConfigError as error:
        return None, str(error)


def _refusals(config: Config, holders: tuple[int, ...]) -> tuple[str, ...]:
    """What a start would refuse. The keys of the gateway may be there for it alone."""
    from koboshi.app.start_check import verdict_on

    return verdict_on(config, ours=frozenset(holders), needs_secrets=False).refusals


def _home(place: Path) -> HomeFacts | None:
    try:
        found = place.stat()
    except FileNotFoundError:
        return None
    except OSError as error:
        said = (error.strerror or str(error)).lower()
        return HomeFacts(mode=0, uid=0, is_folder=False, is_writable=False, trouble=said)
    return HomeFacts(
        mode=found.st_mode & 0o7777,
        uid=found.st_uid,
        is_folder=place.is_dir(),
        is_writable=os.access(place, os.R_OK | os.W_OK | os.X_OK),
    )


def _is_open(file: Path) -> bool:
    """Whether others can read or write a plain file that we may close."""
    try:
        found = file.lstat()
    except OSError:
        return False
    is_ours = os.geteuid() in (0, found.st_uid)
    return is_ours and stat.S_ISREG(found.st_mode) and bool(found.st_mode & 0o077)


def _disk(place: Path) -> tuple[int | None, int]:
    """Free and whole size, where the home is or will be."""
    for folder in (place, *place.parents):
        try:
            usage = shutil.disk_usage(folder)
        except OSError:
            continue
        return usage.free, usage.total
    return None, 0


def _changed_ms(file: Path) -> int | None:
    try:
        return file.stat().st_mtime_ns // 1_000_000
    except OSError:
        return None


def _files_max() -> int:
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return 1_000_000_000 if soft == resource.RLIM_INFINITY else soft


def _is_clock_kept() -> bool | None:
    """What the kernel says; nothing is set by asking."""
    try:
        adjtimex = ctypes.CDLL(None).adjtimex
    except (OSError, AttributeError):
        return None
    state = adjtimex(ctypes.create_string_buffer(TIMEX_BYTES))
    return None if state < 0 else state != TIME_ERROR


def _lingers() -> bool:
    try:
        return (LINGERING / getpass.getuser()).exists()
    except (OSError, KeyError):
        return False


def _asked(place: Path) -> tuple[str, str]:
    """Why the gateway does not answer, and why it wants to be restarted."""
    try:
        answer = ask_gateway(place, GetStatus())
    except CommandFailure as failure:
        return failure.message, ""
    return "", restart_wanted(answer) or "" if answer is not None else ""
