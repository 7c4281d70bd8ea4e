"""A machine for `koboshi doctor`: systemctl and loginctl that say what a test wants, and note what
they are asked for."""

import os
import re
from dataclasses import dataclass
from pathlib import Path

from koboshi.cli.service.files import signed
from tests.cli.process import Ended, environment, forked

RECOMMENDED = """\
Type=notify
Restart=on-failure
TimeoutStopUSec=1min 30s
WatchdogUSec=1min
OOMPolicy=continue
Delegate=yes
KillMode=process
LoadState=loaded
ActiveState=active
NeedDaemonReload=no
"""


def doctor(home: Path, *arguments: str, systemctl: str = "exit 1", **more: str) -> Ended:
    """Run it with a systemctl that does as told."""
    path = tools_in(home.parent, systemctl=systemctl)
    return forked(["doctor", *arguments], environment(home, PATH=path, **more))


def tools_in(folder: Path, before: str = "", **programs: str) -> str:
    """A search path on which these shell programs come first."""
    tools = folder / "tools"
    tools.mkdir(exist_ok=True)
    for name, program in programs.items():
        (tools / name).write_text(f"#!/bin/sh\n{program}\n")
        (tools / name).chmod(0o755)
    return f"{tools}:{before or os.environ['PATH']}"


@dataclass
class Desk:
    """A home, a user's unit, and a systemctl and loginctl that note what they are asked for."""

    folder: Path
    home_name: str = "home"
    is_reload_due: bool = False
    fails: bool = False

    @property
    def home(self) -> Path:
        return self.folder / self.home_name

    @property
    def unit(self) -> Path:
        return self.folder / "config/systemd/user/koboshi.service"

    @property
    def asked(self) -> list[str]:
        """What was asked for beside showing."""
        log = self.folder / "asked"
        return log.read_text().splitlines() if log.exists() else []

    def run(self, *arguments: str, path: str = "") -> Ended:
        due = "yes" if self.is_reload_due else "no"
        shown = RECOMMENDED.replace("Reload=no", f"Reload={due}") + f"FragmentPath={self.unit}\n"
        (self.folder / "shown").write_text(shown)
        answer = "exit 1" if self.fails else ":"
        note = f"echo ${{0##*/}} $* >> {self.folder}/asked; {answer}"
        show = f'case "$*" in *--version) exit 1;; "--user show "*) cat {self.folder}/shown;;'
        systemctl = f"{show} show*) exit 1;; *) {note};; esac"
        more = {
            "PATH": tools_in(self.folder, path, systemctl=systemctl, loginctl=note),
            "XDG_CONFIG_HOME": str(self.folder / "config"),
            "HOME": str(self.folder),
        }
        return forked(arguments, environment(self.home, **more))

    def fix(self, *arguments: str) -> Ended:
        return self.run("doctor", "--fix", "--json", *arguments)

    def write_unit(self, change: str = "", into: str = "", *, is_signed: bool = True) -> str:
        """The recommended unit with a change, as an earlier koboshi may have written it."""
        shown = self.run("service", "show", "--user", "--kind", "systemd").out
        body = shown.split("\n", 1)[1]
        assert re.search(change, body)
        text = re.sub(change, into, body, count=1)
        self.unit.parent.mkdir(parents=True, exist_ok=True)
        self.unit.write_text(signed(text, "0.0.9") if is_signed else shown.replace(body, text))
        return shown
