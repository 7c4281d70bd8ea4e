"""Where runners play: a folder of processes, and what a test wants to know about them."""

import os
import select
import signal
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TypedDict, Unpack

from koboshi.domain.ids import ProcessId
from koboshi.ports.runners import UNCONFINED, CommandSpec, Confinement, Life, LogSlice, Seen
from koboshi.processes.files import ProcessFiles
from koboshi.processes.runners import LocalRunners
from koboshi.runner.tree import START, find_tree, send, stat_of
from tests.harness.polling import WITHIN_S, until


class Options(TypedDict, total=False):
    workdir: str
    environment: Mapping[str, str]
    timeout_seconds: float
    takes_input: bool


class Yard:
    def __init__(
        self,
        folder: Path,
        *,
        workdir: Path,
        confine: Callable[[str], Confinement] = lambda _: UNCONFINED,
    ) -> None:
        self.folder = folder
        self.workdir = workdir
        self.confine = confine
        self.runners = LocalRunners(folder)
        self._last = 0

    def spec(self, command: str, **options: Unpack[Options]) -> CommandSpec:
        workdir = options.get("workdir", str(self.workdir))
        return CommandSpec(
            command=command,
            workdir=workdir,
            environment={"PATH": os.environ["PATH"], **options.get("environment", {})},
            timeout_seconds=options.get("timeout_seconds", 60.0),
            takes_input=options.get("takes_input", False),
            confinement=self.confine(workdir),
        )

    def next_id(self) -> ProcessId:
        self._last += 1
        return ProcessId(self._last)

    async def start(self, command: str, **options: Unpack[Options]) -> ProcessId:
        """Start the command. Returns its id once it is born."""
        process_id = self.next_id()
        await self.runners.start(process_id, self.spec(command, **options))
        return process_id

    async def run(self, command: str, **options: Unpack[Options]) -> tuple[Seen, bytes]:
        """How it ended, and all of its output that was kept without a gap."""
        process_id = await self.start(command, **options)
        seen = await self.runners.wait(process_id, 30)
        return seen, self.output(process_id)

    def output(self, process_id: ProcessId) -> bytes:
        return self.slice(process_id).content

    def slice(self, process_id: ProcessId, offset: int = 0, limit: int = 1 << 30) -> LogSlice:
        return self.runners.read_log(process_id, offset, limit)

    async def until_said(self, process_id: ProcessId, words: bytes) -> bytes:
        """Its output, once it holds the words."""

        def look() -> bytes | None:
            found = self.output(process_id)
            return found if words in found else None

        return await until(
            look, f"it says {words!r}", otherwise=lambda: repr(self.runners.look(process_id))
        )

    def files(self, process_id: ProcessId) -> ProcessFiles:
        return ProcessFiles(self.folder / str(process_id))

    def runner_pid(self, process_id: ProcessId) -> int:
        birth = self.files(process_id).read_birth()
        assert birth is not None
        return birth.pid

    def tree(self, process_id: ProcessId) -> dict[int, bytes]:
        """The living processes of the command."""
        runner = self._runner(process_id)
        return find_tree(self.files(process_id).read_marker(), (runner,) if runner > 0 else ())

    def kill_runner(self, process_id: ProcessId) -> None:
        os.kill(self.runner_pid(process_id), signal.SIGKILL)

    def keeper_pid(self, process_id: ProcessId) -> int:
        keeper = self.files(process_id).read_keeper()
        assert keeper is not None
        return keeper.pid

    def kill_runner_and_keeper(self, process_id: ProcessId) -> None:
        """The keeper first: it would end the tree. It is waited for: a keeper that is in the middle
        of a wait when it is killed still buries a runner that dies meanwhile."""
        keeper = os.pidfd_open(self.keeper_pid(process_id))
        try:
            signal.pidfd_send_signal(keeper, signal.SIGKILL)
            assert select.select([keeper], [], [], WITHIN_S)[0], "the keeper does not die"
        finally:
            os.close(keeper)
        self.kill_runner(process_id)

    async def until_free(self, process_id: ProcessId) -> Seen:
        """What is seen once the lock is free."""
        seen = await self.runners.wait(process_id, 30)
        assert seen.life is not Life.ALIVE
        return seen

    async def clear(self) -> None:
        """Leave nothing behind."""
        for folder in sorted(self.folder.glob("[0-9]*")):
            process_id = ProcessId(int(folder.name))
            runner = self._runner(process_id)
            for pid, start in self.tree(process_id).items():
                send(pid, start, signal.SIGKILL)
            if runner > 0 and (stat := stat_of(runner)):
                send(runner, stat[START], signal.SIGKILL)
            for pid, start in self.tree(process_id).items():
                send(pid, start, signal.SIGKILL)
            await self.runners.wait(process_id, 5)

    def _runner(self, process_id: ProcessId) -> int:
        """The pid of the living runner; -1 if there is none."""
        birth = self.files(process_id).read_birth()
        stat = stat_of(birth.pid) if birth else []
        return birth.pid if birth and stat and int(stat[START]) == birth.start_ticks else -1


def command_line(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""
