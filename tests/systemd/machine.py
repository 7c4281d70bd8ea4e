"""A real systemd, booted in namespaces of its own, and a gateway under it."""

import os
import re
import shutil
import signal
import subprocess
import sys
import uuid
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from koboshi.cli.ask_owner import ask_gateway
from tests.cli.process import KOBOSHI, Gateway, ended, environment, until
from tests.harness.polling import WITHIN_S

USER = "koboshi"
UID = 59_123
UNIT = "koboshi.service"
SHARED = Path("/run/shared")
HOME = Path("/var/lib/koboshi/.koboshi")
BOOT = Path(__file__).with_name("boot.sh")
ROOT = Path(__file__).resolve().parents[2]
SYSTEMD = Path("/lib/systemd/systemd")
OUT, ERR = Path("/run/koboshi.out"), Path("/run/koboshi.err")
RUNTIME = Path(f"/run/user/{UID}")
USER_OUT, USER_ERR = RUNTIME / "koboshi.out", RUNTIME / "koboshi.err"
USER_UNITS = HOME.parent / ".config/systemd/user"

BESIDES = """\
[Service]
StandardOutput=append:{out}
StandardError=append:{err}
Environment=KOBOSHI_LOG=json KOBOSHI__CHANNELS__WEB__MAIN__PORT=0 KOBOSHI__GATEWAY__DRAIN_SECONDS=2
Environment=KOBOSHI__TOOLS__WRITABLE=/run/shared
RestartSec=200ms
"""


only_by_itself = pytest.mark.skipif(
    "KOBOSHI_TEST_SYSTEMD" not in os.environ, reason="takes long; `make test-systemd` runs it"
)


def why_not() -> str:
    """Why there can be no machine here; empty if there can."""
    if os.geteuid() != 0:
        return "needs root"
    if not SYSTEMD.exists() or shutil.which("systemctl") is None:
        return "systemd is not installed"
    missing = [name for name in ("unshare", "nsenter", "setpriv") if shutil.which(name) is None]
    if missing:
        return f"{', '.join(missing)} is not installed"
    if _cgroups() is None:
        return "no cgroup2 is mounted"
    tried = subprocess.run(
        ["unshare", "--fork", "--pid", "--mount", "--cgroup", "--mount-proc", "true"],
        capture_output=True,
        check=False,
    )
    return "" if tried.returncode == 0 else "namespaces are not allowed here"


class Machine:
    """One systemd as the first process of its namespaces."""

    def __init__(self) -> None:
        base = _cgroups()
        assert base is not None
        self._cgroup = base / f"koboshi-tests-{os.getpid()}-{uuid.uuid4().hex[:6]}"
        self._cgroup.mkdir()
        names = ("pid", "mount", "cgroup", "uts", "ipc")
        command = ["unshare", "--fork", *(f"--{name}" for name in names)]
        command += ["--mount-proc", "--kill-child", "--", str(BOOT), USER, str(UID)]
        enter = f'echo $$ > "{self._cgroup}/cgroup.procs" && exec "$@"'
        self._outer = subprocess.Popen(
            ["/bin/sh", "-c", enter, "sh", *command, *closed_folders()],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        self.pid = until(self._first_process, "the machine has a first process")
        until(lambda: self.systemctl("is-system-running").code == 0, "the machine is up")

    def _first_process(self) -> int | None:
        if self._outer.poll() is not None:
            said = self._outer.communicate()[0].decode()
            raise AssertionError(f"the machine did not boot:\n{said}")
        children = Path(f"/proc/{self._outer.pid}/task/{self._outer.pid}/children").read_text()
        for child in map(int, children.split()):
            if os.readlink(f"/proc/{child}/exe").endswith("/systemd"):
                return child
        return None

    def inside(self, path: Path) -> Path:
        """A path of the machine, as it is reached from outside."""
        return Path(f"/proc/{self.pid}/root") / path.relative_to("/")

    def run(self, *command: str) -> Any:
        """Run a command in the machine, as root."""
        return ended(["nsenter", "--target", str(self.pid), "--all", *command], os.environ)

    def run_as_user(self, *command: str) -> Any:
        who = ["setpriv", f"--reuid={UID}", f"--regid={UID}", "--clear-groups"]
        env = environment(HOME, HOME=str(HOME.parent), XDG_RUNTIME_DIR=str(RUNTIME))
        return ended(["nsenter", "--target", str(self.pid), "--all", *who, *command], env)

    def systemctl(self, *arguments: str) -> Any:
        return self.run("systemctl", *arguments)

    def shown(self, *properties: str) -> dict[str, str]:
        told = self.systemctl("show", f"--property={','.join(properties)}", UNIT).out
        return dict(line.split("=", 1) for line in told.splitlines())

    def shared_folder(self) -> Path:
        """A new folder that every person and every command may use, as the machine names it."""
        folder = SHARED / uuid.uuid4().hex[:8]
        self.inside(folder).mkdir(parents=True)
        self.inside(folder).chmod(0o777)
        return folder

    def command_lines(self) -> list[bytes]:
        """With what each living process of the machine was started; a dead one shows nothing."""
        found = []
        for file in self.inside(Path("/proc")).glob("[0-9]*/cmdline"):
            with suppress(OSError):  # gone since the list was made
                found.append(file.read_bytes())
        return found

    def switch_off(self) -> None:
        """Kill the first process; the kernel ends all others in there."""
        if self._outer.poll() is None:
            os.kill(self.pid, signal.SIGKILL)
        self._outer.wait(WITHIN_S)
        if self._outer.stdout is not None:
            self._outer.stdout.close()
        folders = [*self._cgroup.rglob("*/"), self._cgroup]
        for folder in sorted(folders, key=lambda each: -len(each.parts)):
            until(partial(_removed, folder), f"{folder} is empty")


class UnitGateway(Gateway):
    """The gateway that runs as koboshi.service, used as one that the tests started themselves."""

    def __init__(self, machine: Machine, out: Path = OUT, err: Path = ERR) -> None:
        self.machine = machine
        self.home = machine.inside(HOME)
        self.out_file, self.err_file = machine.inside(out), machine.inside(err)

    def systemctl(self, *arguments: str) -> Any:
        """Asked of the systemd that has our unit."""
        return self.machine.systemctl(*arguments)

    def start(self) -> None:
        """`systemctl start` returns when READY=1 was said."""
        done = self.systemctl("start", UNIT)
        assert done.code == 0, done.err + self.why()

    def shown(self, name: str) -> str:
        told: str = self.systemctl("show", "--value", f"--property={name}", UNIT).out
        return told.strip()

    @property
    def pid(self) -> int:
        """As the machine counts; 0 if it does not run."""
        return int(self.shown("MainPID"))

    @property
    def restarts(self) -> int:
        return int(self.shown("NRestarts"))

    def ask(self, **request: str) -> Any:
        """Asked over the control socket, without a process for each look."""
        return ask_gateway(self.home, request)

    def wait_serving(self, times: int = 1) -> tuple[str, int]:
        def look() -> tuple[str, int] | None:
            text = self.out if self.out_file.exists() else ""
            found = re.findall(r"koboshi is at http://([0-9.]+):([0-9]+)", text)
            return (found[-1][0], int(found[-1][1])) if len(found) >= times else None

        return until(look, "the gateway serves", otherwise=self.why)

    def wait_state(self, message: str, *states: str) -> Any:
        def look() -> Any:
            told = self.ask(ask="explain", what=message)
            is_turn = told is not None and told["kind"] == "turn"
            return told if is_turn and told["turn"]["state"] in states else None

        return until(look, f"{message} is {' or '.join(states)}", otherwise=self.why)

    def signal(self, number: signal.Signals) -> None:
        self.systemctl("kill", "--kill-whom=main", f"--signal={number.name}", UNIT)

    def why(self) -> str:
        status = self.systemctl("status", "--no-pager", "--full", UNIT).out
        return f"{status}\n{self.err if self.err_file.exists() else ''}"

    def bury(self) -> None:
        """Leave the machine as it was."""
        self.systemctl("kill", "--signal=SIGKILL", UNIT)
        self.systemctl("stop", UNIT)
        self.systemctl("reset-failed", UNIT)
        for file in (self.out_file, self.err_file):
            file.unlink(missing_ok=True)
        for folder in (HOME.parent, Path(f"/etc/systemd/system/{UNIT}.d")):
            shutil.rmtree(self.machine.inside(folder), ignore_errors=True)


def installed(
    machine: Machine, besides: str = "", *arguments: str, program: str = KOBOSHI
) -> UnitGateway:
    """A gateway from our own unit, with what the tests need and `besides` as a drop-in."""
    shown = machine.run(program, "service", "show", "--system", *arguments)
    assert shown.code == 0, shown.err
    folder = machine.inside(Path("/etc/systemd/system"))
    (folder / UNIT).write_text(shown.out)
    more = folder / f"{UNIT}.d"
    more.mkdir(exist_ok=True)
    (more / "tests.conf").write_text(BESIDES.format(out=OUT, err=ERR) + besides)
    assert machine.systemctl("daemon-reload").code == 0
    return UnitGateway(machine)


class UserUnitGateway(UnitGateway):
    """The same as a unit of a user's own systemd, which is started for it and ended with it."""

    def __init__(self, machine: Machine) -> None:
        super().__init__(machine, USER_OUT, USER_ERR)
        started = machine.systemctl("start", f"user@{UID}.service")
        assert started.code == 0, started.err

    def systemctl(self, *arguments: str) -> Any:
        return self.machine.run_as_user("systemctl", "--user", *arguments)

    def bury(self) -> None:
        super().bury()
        self.machine.systemctl("kill", "--signal=SIGKILL", f"user@{UID}.service")
        self.machine.systemctl("stop", f"user@{UID}.service")


def installed_for_user(machine: Machine, besides: str = "") -> UserUnitGateway:
    """By `koboshi service install --user`, with what the tests need as a drop-in. There is no
    logind in the machine, so the file that it would write is written in its stead."""
    one = UserUnitGateway(machine)
    tools = machine.shared_folder()
    loginctl = machine.inside(tools / "loginctl")
    loginctl.write_text(f"#!/bin/sh\necho $* > {tools}/asked\n")
    loginctl.chmod(0o755)
    drop_in = USER_UNITS / f"{UNIT}.d" / "tests.conf"
    machine.run_as_user("mkdir", "--parents", str(drop_in.parent))
    machine.inside(drop_in).write_text(BESIDES.format(out=USER_OUT, err=USER_ERR) + besides)
    path = f"PATH={tools}:/usr/local/bin:/usr/bin:/bin"
    done = machine.run_as_user("env", path, KOBOSHI, "service", "install", "--user")
    assert done.code == 0, done.out + done.err + one.why()
    assert machine.inside(tools / "asked").read_text() == "enable-linger\n"
    return one


def closed_folders() -> list[str]:
    """The folders on the way to Python and to this code that only root may pass."""
    files = [Path(sys.executable), Path(sys.executable).resolve(), ROOT / "src"]
    above = {folder for file in files for folder in file.parents}
    return sorted(str(folder) for folder in above if not folder.stat().st_mode & 0o001)


def _cgroups() -> Path | None:
    """Where the unified hierarchy is mounted."""
    for place in (Path("/sys/fs/cgroup"), Path("/sys/fs/cgroup/unified")):
        if (place / "cgroup.procs").exists() and (place / "cgroup.controllers").exists():
            return place
    return None


def _removed(folder: Path) -> bool:
    try:
        folder.rmdir()
    except FileNotFoundError:
        return True
    except OSError:
        return False
    return True
