"""A real `koboshi run`, started, killed and started again on one home."""

import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import httpx2

from koboshi.stores.faults import VARIABLE as CRASH_AT
from tests.harness import nursery
from tests.harness.http import connection
from tests.harness.polling import WITHIN_S, until, until_asked

KILLED = -signal.SIGKILL
_ADDRESS = re.compile(r"koboshi is at (http://[0-9.:]+)")


class GatewayProcess:
    """One home, and at most one gateway process on it at a time. Each process is a life."""

    def __init__(
        self,
        home: Path,
        *,
        env: Mapping[str, str] | None = None,
        command: Sequence[str] = (),
        log: Path | None = None,
        loads: Sequence[str] = (),
    ) -> None:
        self.home = home
        self._loads = loads
        self.lives = 0
        # Commands of the agent run here, and never in the home of the developer.
        self.workdir = home.with_name(f"{home.name}.workdir")
        self.environment = dict(env or {})
        self._env = {"KOBOSHI__GATEWAY__WORKDIR": str(self.workdir), **(env or {})}
        self._command = list(command)
        self._log = log or home.parent / f"{home.name}.log"
        self._log_begin = 0
        self._process: subprocess.Popen[bytes] | nursery.Forked | None = None

    def start(
        self,
        *,
        crash_at: str = "",
        env: Mapping[str, str] | None = None,
        arguments: Sequence[str] = (),
        prefix: Sequence[str] = (),
    ) -> None:
        """Begin a life. `crash_at` names the crash point where it ends; `prefix` is a program
        that runs it, like strace."""
        assert not self.is_running, "this home has a gateway already"
        self.home.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._log_begin = self._log.stat().st_size if self._log.exists() else 0
        environment = {**_clean_environment(), **self._env, **(env or {})}
        if crash_at:
            environment[CRASH_AT] = crash_at
        command = self._command or [
            sys.executable,
            "-m",
            "koboshi",
            "run",
            "--home",
            str(self.home),
        ]
        is_module = command[:2] == [sys.executable, "-m"]
        if is_module and not prefix and not _is_of_python(environment):
            module, told = command[2], [*command[3:], *arguments]
            self._process = nursery.start(
                module, told, environment, self._log, self._log, loads=self._loads
            )
            self.lives += 1
            return
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                [*_dying_with_us(), *prefix, *command, *arguments],
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        self.lives += 1

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    @property
    def is_running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    @property
    def exit_code(self) -> int | None:
        """How the last life ended, negative for a signal; None while it goes on."""
        return None if self._process is None else self._process.poll()

    @property
    def address(self) -> str | None:
        """The address of this life; None if it has not announced one, or is over. A gateway that
        restarts itself announces a new one."""
        found = _ADDRESS.findall(self.log) if self.is_running else []
        return found[-1] if found else None

    @property
    def token(self) -> str:
        return (self.home / "web-token").read_text(encoding="ascii").strip()

    @property
    def log(self) -> str:
        """What this life has printed."""
        if not self._log.exists():
            return ""
        with self._log.open("rb") as log:
            log.seek(self._log_begin)
            return log.read().decode(errors="replace")

    async def wait_listening(self, within_s: float = WITHIN_S) -> str:
        """Wait until it takes requests. Returns the address."""
        return await until(self._listening, "the gateway listens", within_s=within_s)

    async def wait_ready(self, within_s: float = WITHIN_S) -> str:
        """Wait until it says that it is ready, recovery included. Returns the address."""
        address = await self.wait_listening(within_s)
        async with connection(address) as client:

            async def ask() -> bool:
                try:
                    return (await client.get("/readyz")).status_code == 200
                except httpx2.TransportError:
                    assert self.is_running, self._obituary()
                    return False

            await until_asked(ask, "the gateway is ready", within_s=within_s)
        return address

    async def wait_exit(self, within_s: float = WITHIN_S) -> int:
        """Wait until this life is over. Returns its exit code."""
        await until(
            lambda: not self.is_running,
            "the gateway ends",
            within_s=within_s,
            otherwise=lambda: self.log[-2000:],
        )
        assert self.exit_code is not None
        return self.exit_code

    def kill(self) -> None:
        """End this life with SIGKILL, at any instruction."""
        self._signal(signal.SIGKILL)
        assert self._process is not None
        self._process.wait(WITHIN_S)

    def terminate(self) -> None:
        """Ask it to stop."""
        self._signal(signal.SIGTERM)

    def bury(self) -> None:
        """Leave nothing behind, in any state."""
        if self._process is not None:
            self._signal(signal.SIGKILL)
            self._process.wait(WITHIN_S)

    def _signal(self, number: int) -> None:
        if self.is_running:
            with suppress(ProcessLookupError):  # over since it was looked at
                os.killpg(self.pid, number)

    def _listening(self) -> str | None:
        address = self.address
        assert address or self.is_running, self._obituary()
        return address

    def _obituary(self) -> str:
        return f"the gateway ended with {self.exit_code}:\n{self.log[-4000:]}"


def koboshi() -> Path:
    """The command, as it is installed beside this Python."""
    return Path(sys.executable).with_name("koboshi")


def _is_of_python(environment: Mapping[str, str]) -> bool:
    """Whether the test sets a variable of the interpreter, which is read when that starts."""
    given = {name: text for name, text in environment.items() if name.startswith("PYTHON")}
    given.pop("PYTHONPATH", None)  # the nursery sees to that
    return any(os.environ.get(name) != text for name, text in given.items())


def _dying_with_us() -> list[str]:
    """A program that execs what follows so that it is killed when the tests are."""
    return ["setpriv", "--pdeathsig", "KILL"] if shutil.which("setpriv") else []


def _clean_environment() -> dict[str, str]:
    """The defaults, without the developer's own settings; and any free port."""
    dropped = ("KOBOSHI", "PYTHONDONTWRITEBYTECODE")  # compiling it all takes longer than a start
    kept = {name: text for name, text in os.environ.items() if not name.startswith(dropped)}
    settings = {
        "KOBOSHI__CHANNELS__WEB__MAIN__PORT": "0",
        "KOBOSHI__GATEWAY__DRAIN_SECONDS": "1",
        # Most tests kill more often than a healthy gateway should die.
        "KOBOSHI__RECOVERY__BOOT_BREAKER": "false",
        "KOBOSHI_LOG": "json",
    }
    return kept | settings
