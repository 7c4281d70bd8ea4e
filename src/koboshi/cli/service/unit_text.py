"""The service descriptions that Koboshi recommends: systemd units and a launchd property list.

Pure: what goes in are values, what comes out is text. `koboshi doctor` compares what is loaded with
the same table.
"""

import math
import plistlib
from dataclasses import dataclass
from pathlib import Path

from koboshi.cli.service.hardening import hardening
from koboshi.runtime.host import GRACE_VARIABLE

STOP_MARGIN_SECONDS = 45
"""What a stop may take beyond the drain: 10 s to set turns down, 5 s to end by force, and 30 s for
a machine that is busy."""
WATCHDOG_SECONDS = 60
STEPS_SINCE_VERSION = 254
"""The systemd that can let the pause between restarts grow."""
NO_RESTART_CODE = 78
RESTART_CODE = 75
LABEL = "koboshi.gateway"
SYSTEM_FOLDER = Path("/var/lib/koboshi")
"""The folder of the user that a system service has of its own."""

_HOMES = ("/home", "/root", "/run/user")


@dataclass(frozen=True, slots=True, kw_only=True)
class Service:
    """What is to be run, and for whom."""

    command: tuple[str, ...]
    """The program by its full path, and what precedes `run`."""
    interpreter: Path
    """The Python behind it, where links lead to."""
    home: Path
    config_file: Path | None
    workdir: Path
    drain_seconds: float
    is_system: bool
    user: str = ""
    """Whose rights a system service has."""
    path: str = ""
    """The search path of commands; empty for that of the manager."""
    log_file: Path = Path("/Library/Logs/koboshi.log")
    """Where launchd writes what we say."""
    version: int = 0
    """The version of systemd; 0 if it is not known."""

    @property
    def arguments(self) -> tuple[str, ...]:
        named = () if self.config_file is None else ("--config", str(self.config_file))
        return (*self.command, "run", "--home", str(self.home), *named)

    @property
    def stop_seconds(self) -> int:
        return stop_seconds(self.drain_seconds)


def stop_seconds(drain_seconds: float) -> int:
    """How long the manager should wait for a stop."""
    return math.ceil(drain_seconds) + STOP_MARGIN_SECONDS


def systemd_unit(service: Service) -> str:
    """The unit file. Raises ValueError for a path that cannot be written in one."""
    return "\n".join(
        (
            _unit_section(service),
            "[Service]",
            *_life(service),
            "",
            "# Commands of the agent run on over a restart and are taken up again: only the",
            "# gateway itself is stopped. Helpers that must not outlive it see to that themselves.",
            "KillMode=process",
            "Delegate=yes",
            "# A command that takes too much memory is no reason to stop the gateway.",
            "OOMPolicy=continue",
            "LimitNOFILE=65536",
            "# A core would hold every secret of the gateway; commands may allow theirs.",
            "LimitCORE=0:infinity",
            "",
            *_surroundings(service),
            "",
            *hardening(is_system=service.is_system),
            *_protected_homes(service),
            "",
            "[Install]",
            f"WantedBy={'multi-user' if service.is_system else 'default'}.target",
            "",
        )
    )


def launchd_plist(service: Service) -> str:
    """The property list. launchd does not tell its limit: it is put into the environment, too."""
    described: dict[str, object] = {
        "Label": LABEL,
        "ProgramArguments": [_one_line(word) for word in service.arguments],
        "RunAtLoad": True,
        "KeepAlive": {"SuccessfulExit": False},
        "ExitTimeOut": service.stop_seconds,
        "ThrottleInterval": 10,
        "ProcessType": "Background",
        # Commands of the agent run on; their runners have groups of their own as well.
        "AbandonProcessGroup": True,
        "SoftResourceLimits": {"NumberOfFiles": 65_536, "Core": 0},
        "StandardErrorPath": str(service.log_file),
        "EnvironmentVariables": {GRACE_VARIABLE: str(service.stop_seconds)}
        | ({"PATH": service.path} if service.path else {}),
    }
    if service.is_system:
        described["UserName"] = service.user
    return plistlib.dumps(described, sort_keys=False).decode()


def _unit_section(service: Service) -> str:
    network = "After=network-online.target\nWants=network-online.target\n"
    return (
        "[Unit]\n"
        "Description=Koboshi, a crash-safe gateway between people and AI agents\n"
        f"{network if service.is_system else ''}"
        "# It gets up again for as long as it takes, and what it resumes is bounded by itself.\n"
        "StartLimitIntervalSec=0\n"
    )


def _life(service: Service) -> list[str]:
    grows = service.version >= STEPS_SINCE_VERSION
    pause = (
        ["RestartSec=1", "RestartSteps=6", "RestartMaxDelaySec=60"] if grows else ["RestartSec=5"]
    )
    return [
        "Type=notify",
        "NotifyAccess=main",
        "# It keeps the listening socket over a restart: no other program can take the port.",
        "FileDescriptorStoreMax=8",
        # The colon keeps systemd from looking for variables in paths.
        f"ExecStart={quoted(':' + service.arguments[0])} "
        + " ".join(quoted(word) for word in service.arguments[1:]),
        *([f"User={service.user}"] if service.is_system else []),
        "Restart=on-failure",
        *pause,
        f"RestartForceExitStatus={RESTART_CODE}",
        f"SuccessExitStatus={RESTART_CODE}",
        "# The configuration or the home is wrong: no restart mends that.",
        f"RestartPreventExitStatus={NO_RESTART_CODE}",
        "TimeoutStartSec=120",
        f"TimeoutStopSec={service.stop_seconds}",
        f"WatchdogSec={WATCHDOG_SECONDS}",
        "WatchdogSignal=SIGABRT",
    ]


def _surroundings(service: Service) -> list[str]:
    path = [f"Environment={quoted(f'PATH={service.path}')}"] if service.path else []
    return [
        *(["UMask=0077"] if service.is_system else []),
        *path,
        "# A place for keys, NAME=value, readable by its owner alone.",
        f"EnvironmentFile=-{_raw(service.home / 'environment')}",
        *_state_folder(service),
    ]


def _state_folder(service: Service) -> list[str]:
    """The usual place is made by systemd, with the right owner."""
    if not service.is_system or not service.home.is_relative_to(SYSTEM_FOLDER):
        return []
    return [f"StateDirectory={SYSTEM_FOLDER.name}", "StateDirectoryMode=0700"]


def _protected_homes(service: Service) -> list[str]:
    """The homes of people are closed to a system service that has nothing to do there."""
    if not service.is_system:
        return []
    programs = (Path(service.command[0]), service.interpreter)
    places = (service.home, service.workdir, *programs, service.config_file)
    is_there = any(place.is_relative_to(home) for place in places if place for home in _HOMES)
    return [] if is_there else ["ProtectHome=yes"]


def quoted(word: str) -> str:
    """One word of a setting that takes several."""
    escaped = _raw(word).replace("\\", "\\\\").replace('"', '\\"')
    plain = all(letter.isalnum() or letter in "/._:=@+,-%" for letter in escaped)
    return escaped if plain and escaped else f'"{escaped}"'


def _raw(word: str | Path) -> str:
    """A setting that takes the rest of its line."""
    return _one_line(str(word)).replace("%", "%%")


def _one_line(word: str) -> str:
    """Raises ValueError for what no file of this kind can hold."""
    if not word.isprintable() or word != word.strip():
        raise ValueError(f"{word!a} cannot be written in a service description")
    return word
