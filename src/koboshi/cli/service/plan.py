"""What `koboshi service` is going to do: the file, its text, and the commands around it."""

import os
import pwd
import re
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from koboshi import __version__
from koboshi.cli.options import FAILED, WRONG_USE, CommandFailure
from koboshi.cli.service.files import signed
from koboshi.cli.service.unit_text import LABEL, SYSTEM_FOLDER, Service, launchd_plist, systemd_unit
from koboshi.cli.update.installation import own_installation
from koboshi.config import ConfigError, GatewayConfig, load
from koboshi.config.home_paths import find_places

UNIT = "koboshi.service"
SYSTEM_USER = "koboshi"
SYSTEMD, LAUNCHD = "systemd", "launchd"
ASK_SECONDS = 5.0

Steps = tuple[tuple[str, ...], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """What was asked for on the command line."""

    kind: str
    is_system: bool
    run_as: str
    home: Path | None
    config_file: Path | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ServicePlan:
    file: Path
    text: str
    install: Steps
    replace: Steps
    """Instead of `install`, where the service was there before."""
    before_removal: Steps
    after_removal: Steps
    notes: tuple[str, ...] = ()
    """What the person should know."""


def plan(wish: Wish, environ: Mapping[str, str]) -> ServicePlan:
    """Raises CommandFailure if there is no such service."""
    described, notes = describe(wish, environ)
    try:
        text = (launchd_plist if wish.kind == LAUNCHD else systemd_unit)(described)
    except ValueError as error:
        raise CommandFailure(WRONG_USE, "path", str(error)) from error
    text = signed(text, __version__)
    return (_on_launchd if wish.kind == LAUNCHD else _on_systemd)(wish, environ, text, notes)


def describe(wish: Wish, environ: Mapping[str, str]) -> tuple[Service, tuple[str, ...]]:
    """The service, and what there is to say about it."""
    if wish.is_system:
        own = ("KOBOSHI_HOME", "KOBOSHI_CONFIG")
        environ = {name: value for name, value in environ.items() if name not in own}
        environ["HOME"] = str(_home_of(wish.run_as))
    try:
        places = find_places(wish.home, wish.config_file, environ)
    except ConfigError as error:
        raise CommandFailure(WRONG_USE, "home", str(error)) from error
    notes: tuple[str, ...] = ()
    try:
        gateway = load(places.home, wish.config_file, environ, needs_secrets=False).gateway
    except ConfigError as error:
        gateway = GatewayConfig(workdir=places.home)
        notes = (f"the configuration cannot be used as it is seen from here: {error}",)
    folder = Path("/") if wish.is_system else _own_home(environ)
    described = Service(
        command=program(),
        interpreter=Path(sys.executable).resolve(),
        home=places.home,
        config_file=places.file if places.is_file_named else None,
        workdir=gateway.workdir,
        drain_seconds=gateway.drain_seconds,
        is_system=wish.is_system,
        user=wish.run_as,
        path="" if wish.is_system else environ.get("PATH", ""),
        version=systemd_version(),
        log_file=folder / "Library/Logs/koboshi.log",
    )
    return described, (*notes, *_out_of_reach(wish, described))


def systemd_version() -> int:
    """0 if there is no systemd here."""
    try:
        done = subprocess.run(
            ["systemctl", "--version"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=ASK_SECONDS,
            check=False,
        )
    except (OSError, ValueError, subprocess.TimeoutExpired):
        return 0
    found = re.match(r"systemd ([0-9]+)", done.stdout)
    return int(found[1]) if found else 0


def unit_file(*, is_system: bool, environ: Mapping[str, str]) -> Path:
    if is_system:
        return Path("/etc/systemd/system") / UNIT
    base = environ.get("XDG_CONFIG_HOME", "")
    folder = Path(base) if Path(base).is_absolute() else _own_home(environ) / ".config"
    return folder / "systemd" / "user" / UNIT


def _on_systemd(
    wish: Wish, environ: Mapping[str, str], text: str, notes: tuple[str, ...]
) -> ServicePlan:
    systemctl = ("systemctl",) if wish.is_system else ("systemctl", "--user")
    linger: Steps = () if wish.is_system else (("loginctl", "enable-linger"),)
    reload = (*systemctl, "daemon-reload")
    return ServicePlan(
        file=unit_file(is_system=wish.is_system, environ=environ),
        text=text,
        install=(reload, (*systemctl, "enable", "--now", UNIT), *linger),
        replace=(reload, (*systemctl, "enable", UNIT), (*systemctl, "restart", UNIT), *linger),
        before_removal=((*systemctl, "disable", "--now", UNIT),),
        after_removal=(reload,),
        notes=notes,
    )


def _on_launchd(
    wish: Wish, environ: Mapping[str, str], text: str, notes: tuple[str, ...]
) -> ServicePlan:
    folder = Path("/Library/LaunchDaemons")
    if not wish.is_system:
        folder = _own_home(environ) / "Library" / "LaunchAgents"
    domain = "system" if wish.is_system else f"gui/{os.getuid()}"
    file = folder / f"{LABEL}.plist"
    load_it = ("launchctl", "bootstrap", domain, str(file))
    drop_it = ("launchctl", "bootout", f"{domain}/{LABEL}")
    return ServicePlan(
        file=file,
        text=text,
        install=(load_it,),
        replace=(drop_it, load_it),
        before_removal=(drop_it,),
        after_removal=(),
        notes=notes,
    )


def program() -> tuple[str, ...]:
    """This very koboshi, by its full path; in an installation of ours, what starts the version that
    serves."""
    ours = own_installation()
    if ours is not None:
        return (str(ours.launcher),)
    script = Path(sys.executable).with_name("koboshi")
    return (str(script),) if os.access(script, os.X_OK) else (sys.executable, "-m", "koboshi")


def _own_home(environ: Mapping[str, str]) -> Path:
    try:
        return Path(environ.get("HOME") or Path.home())
    except RuntimeError as error:
        raise CommandFailure(WRONG_USE, "home", "cannot tell where ~ is; set HOME") from error


def _home_of(user: str) -> Path:
    """Raises CommandFailure for a user who is not there; our own may still have to be made."""
    try:
        return Path(pwd.getpwnam(user).pw_dir)
    except KeyError:
        if user == SYSTEM_USER:
            return SYSTEM_FOLDER
        raise CommandFailure(FAILED, "user", _no_user(user)) from None


def _out_of_reach(wish: Wish, described: Service) -> tuple[str, ...]:
    """Where the user of a system service cannot get to the program."""
    if not wish.is_system:
        return ()
    try:
        uid = pwd.getpwnam(wish.run_as).pw_uid
    except KeyError:
        return (_no_user(wish.run_as),)
    if uid == 0:
        return ("as root, every command of the agent has the rights of root",)
    programs = (Path(described.command[0]), described.interpreter)
    for program, folder in ((each, folder) for each in programs for folder in each.parents):
        found = folder.stat()
        if uid != found.st_uid and not found.st_mode & 0o011:
            return (
                f"{wish.run_as} cannot reach {program}, because {folder} is closed "
                "to others; install koboshi in a place for all, such as /opt/koboshi",
            )
    return ()


def check_user(wish: Wish) -> None:
    """Raises CommandFailure if the user of a system service is not there."""
    if not wish.is_system:
        return
    try:
        pwd.getpwnam(wish.run_as)
    except KeyError:
        raise CommandFailure(FAILED, "user", _no_user(wish.run_as)) from None


def _no_user(user: str) -> str:
    return (
        f"there is no user {user} yet; make one: useradd --system --user-group --create-home "
        f"--home-dir {SYSTEM_FOLDER} {user}"
    )
