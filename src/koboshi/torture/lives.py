"""The lives of one gateway: started from a fork server, killed, started again.

A fork server is a process that has loaded the program and forks a life on request, so that a life
costs what a start does and not what loading a program does. It speaks JSON, a line each.
"""

import json
import os
import subprocess
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from anyio import (
    CancelScope,
    ClosedResourceError,
    Condition,
    EndOfStream,
    IncompleteRead,
    create_task_group,
    fail_after,
    move_on_after,
    open_process,
)
from anyio.abc import Process
from anyio.streams.buffered import BufferedByteReceiveStream

from koboshi.stores.faults import VARIABLE as CRASH_AT
from koboshi.torture.platform import TOKEN
from koboshi.torture.strain import NONE, Strain

LINE_BYTES_MAX = 65_536
NOT_OURS = ("KOBOSHI", "INVOCATION_ID", "NOTIFY_SOCKET", "WATCHDOG_")
"""Beginnings of variables that say how another gateway is run."""
END_SECONDS = 10.0
DIE_SECONDS = 60.0
"""Who is killed while it waits for a busy disk ends when the disk has answered."""


class ForkServerFailed(Exception):
    """The process that starts the gateways has ended, or does not answer."""


FRESH_SECONDS = "0"
"""Nothing is ever stale."""
TELEGRAM = "KOBOSHI__CHANNELS__TELEGRAM__MAIN__"


def environment_of(environ: Mapping[str, str], workdir: Path, platform: str) -> dict[str, str]:
    """The variables of a throw-away gateway: nothing of another one's configuration is left.
    `platform` is where its bot finds what it takes for Telegram."""
    kept = {name: text for name, text in environ.items() if not name.startswith(NOT_OURS)}
    settings = {
        "KOBOSHI__MODEL__NAME": "scripted",
        "KOBOSHI__CHANNELS__WEB__MAIN__PORT": "0",
        "KOBOSHI__GATEWAY__WORKDIR": str(workdir),
        "KOBOSHI__GATEWAY__DRAIN_SECONDS": "1",
        "KOBOSHI__GATEWAY__PROGRESS_SECONDS": "0.5",
        "KOBOSHI__TOOLS__PLUGINS": "false",
        # It is meant to die more often than one that is well.
        "KOBOSHI__RECOVERY__BOOT_BREAKER": "false",
        # A clock that is hours ahead looks like a downtime of hours, and these people still want
        # what they have asked for.
        "KOBOSHI__RECOVERY__FRESH_SECONDS": FRESH_SECONDS,
        "KOBOSHI_LOG": "json",
        f"{TELEGRAM}API_BASE": platform,
        f"{TELEGRAM}TOKEN_ENV": "TORTURE_BOT_TOKEN",
        f"{TELEGRAM}RATE_PER_SECOND": "0",
        "TORTURE_BOT_TOKEN": TOKEN,
    }
    return kept | settings


@dataclass(slots=True, kw_only=True)
class Lives:
    """One home, and at most one life in it at a time."""

    home: Path
    process: Process
    address: str | None = None
    """Where the present life serves; None if it does not, or not yet."""
    code: int | None = None
    """How the last life ended; None while one goes on."""
    is_broken: bool = False
    changed: Condition = field(default_factory=Condition)

    @property
    def log(self) -> Path:
        """What all lives have written, and those that are still to come."""
        return self.home.with_name("log")

    @property
    def token(self) -> str:
        return (self.home / "web-token").read_text(encoding="ascii").strip()

    async def start(
        self,
        crash_at: str = "",
        *,
        allowed: Sequence[int] = (),
        is_cold: bool = False,
        strain: Strain = NONE,
    ) -> None:
        """Begin a life, which ends at the crash point, and whose bot heeds these people. A cold one
        loads the program by itself, and bears no strain."""
        self.code = None
        environment = {f"{TELEGRAM}ALLOW": json.dumps(list(allowed))}
        if crash_at:
            environment[CRASH_AT] = crash_at
        start = {"do": "start", "environment": environment, "is_cold": is_cold}
        await self._ask(start | {"ahead_ms": strain.ahead_ms, "files_max": strain.files_max})

    async def set_clock(self, ahead_ms: int) -> None:
        """From now on the clock of the life is ahead by so much."""
        await self._ask({"do": "set_clock", "ahead_ms": ahead_ms})

    async def leave_files(self, files: int) -> None:
        """From now on the life can open only so many files more."""
        await self._ask({"do": "leave_files", "files": files})

    async def kill(self) -> None:
        """End the life with SIGKILL, at whatever instruction it is."""
        # No client is sent to a gateway that is about to be gone.
        self.address = None
        await self._ask({"do": "kill"})
        if not await self.ends(DIE_SECONDS):
            raise ForkServerFailed(f"the gateway of {self.home} was killed, and does not end")

    async def stop(self) -> None:
        """Ask the life to stop."""
        await self._ask({"do": "stop"})

    async def serves(self, within_s: float) -> str | None:
        """Wait until it serves. Returns where; None if it ends instead, or takes longer."""
        with move_on_after(within_s):
            async with self.changed:
                while self.address is None and self.code is None and not self.is_broken:
                    await self.changed.wait()
        self._check()
        return self.address

    async def ends(self, within_s: float) -> bool:
        """Wait until the life is over. False if it takes longer."""
        with move_on_after(within_s):
            async with self.changed:
                while self.code is None and not self.is_broken:
                    await self.changed.wait()
        self._check()
        return self.code is not None

    async def listen(self) -> None:
        """Hear what the fork server tells, until it is gone."""
        assert self.process.stdout is not None
        lines = BufferedByteReceiveStream(self.process.stdout)
        try:
            while True:
                told = json.loads(await lines.receive_until(b"\n", LINE_BYTES_MAX))
                self.address = told.get("address")
                self.code = told.get("code", self.code)
                await self._tell_all()
        except (EndOfStream, IncompleteRead, ClosedResourceError, ValueError):
            self.is_broken = True
            self.address = None
            await self._tell_all()

    async def _tell_all(self) -> None:
        async with self.changed:
            self.changed.notify_all()

    async def _ask(self, request: Mapping[str, object]) -> None:
        self._check()
        assert self.process.stdin is not None
        await self.process.stdin.send(json.dumps(request).encode() + b"\n")

    def _check(self) -> None:
        if self.is_broken:
            raise ForkServerFailed(f"the process that starts the gateway of {self.home} has ended")


@asynccontextmanager
async def lives_of(
    home: Path, workdir: Path, fork_server: Sequence[str], platform: str
) -> AsyncIterator[Lives]:
    """The lives of a home. Nothing of them is left after the block."""
    log = home.with_name("log")
    # Shielded: a start given up halfway would leave the process and its pipes without an owner.
    with log.open("ab") as errors, CancelScope(shield=True):
        process = await open_process(
            [*fork_server, str(home)],
            env=environment_of(os.environ, workdir, platform),
            # The model that fails looks here whether it is to answer again.
            cwd=workdir,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            # A Ctrl-C is for the torture itself.
            start_new_session=True,
        )
    try:
        async with create_task_group() as tasks:
            lives = Lives(home=home, process=process)
            tasks.start_soon(lives.listen)
            yield lives
            tasks.cancel_scope.cancel()
    finally:
        # It kills its life when it hears no more from us.
        with fail_after(END_SECONDS, shield=True):
            assert process.stdin is not None
            await process.stdin.aclose()
            await process.wait()
            await process.aclose()
