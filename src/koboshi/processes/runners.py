"""Commands on this machine, each under a runner that outlives us.

Whether a runner lives is told by its lock alone, and only the process that was born is ever
signalled: pid, start and boot have to agree.
"""

import contextlib
import errno
import fcntl
import math
import os
import secrets
import shutil
import signal
import sys
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import KW_ONLY, dataclass, field
from functools import partial
from pathlib import Path

from anyio import move_on_after, sleep, to_thread, wait_readable, wait_writable

from koboshi.boundary.port_guard import PortGuard
from koboshi.domain.ids import ProcessId
from koboshi.domain.process import Birth, is_same
from koboshi.domain.sandbox import Boundary
from koboshi.ports.runners import CommandSpec, Confinement, Life, LogSlice, Seen
from koboshi.processes.births import Begun, Births
from koboshi.processes.files import ProcessFiles
from koboshi.processes.installed import INSTALLED
from koboshi.processes.pinned import pinned_program
from koboshi.processes.wires import make_wires
from koboshi.runner.tree import START, find_tree, send_all, stat_of

BORN_WITHIN_S = 30.0
KILL_ROUNDS_MAX = 100
PAUSE_S_MIN, PAUSE_S_MAX = 0.005, 0.25
LOOK_AGAIN_S = 60.0
LOOK_AT_REMAINS_S = 0.05
LISTINGS_MAX = 100

HAS_DESCRIPTORS = hasattr(os, "pidfd_open")
"""Whether the system has descriptors of processes. Linux does; on macOS we poll."""

PROGRAM = pinned_program()
"""The program of the runners as it was when this process began: files that change on the disk
change no runner of ours."""
SHELLS = ("/bin/bash", "/usr/bin/bash", "/usr/local/bin/bash", "/bin/sh")
"""The first that is there runs the commands: models write for bash, and every system has sh."""


async def _at_once() -> None:
    """Nothing has to be waited for."""


@dataclass(slots=True)
class LocalRunners:
    """The runners of this machine, one folder each below `folder`."""

    folder: Path
    _: KW_ONLY
    log_head_bytes: int = 1_000_000
    log_tail_bytes: int = 4_000_000
    timeout_grace_s: float = 5.0
    reacts_within_s: float = 4.0
    """How much longer than the grace a runner may take; it gives up killing after two seconds."""
    input_within_s: float = 5.0
    python: str = sys.executable
    boot_id_file: Path = Path("/proc/sys/kernel/random/boot_id")
    guard: PortGuard = field(default_factory=lambda: PortGuard(frozenset()))
    """What keeps confined commands off the gateway's own ports."""
    until_trusted: Callable[[], Awaitable[None]] = _at_once
    """Returns when a program may be started."""
    _children: dict[ProcessId, int] = field(default_factory=dict, init=False)
    """Runners that we started alone and have not buried: their pids have no other owner."""
    _births: Births = field(default_factory=lambda: Births(program=PROGRAM), init=False)

    async def start(self, process_id: ProcessId, spec: CommandSpec) -> Birth | None:
        """None only if a look came too early, and so settled that it never begins."""
        if math.isnan(spec.timeout_seconds):
            raise OSError(errno.EINVAL, "the time limit is not a number")
        # It is given our own program, whatever is installed by now; people are told of that.
        INSTALLED.look()
        for each in list(self._children):
            self._bury(each)
        files = self._files(process_id)
        spawn = partial(self._spawn, process_id, files, spec)
        if spec.confinement.boundary is not Boundary.NONE:
            spawn = partial(self.guard.run, spawn)
        await self.until_trusted()
        birth_pipe, begun = await to_thread.run_sync(spawn)
        try:
            with move_on_after(BORN_WITHIN_S) as waiting:
                await wait_readable(birth_pipe)
            if waiting.cancelled_caught:
                begun.kill()
        finally:
            os.close(birth_pipe)
            begun.close()
        if (birth := files.read_birth()) is not None or files.is_void():
            return birth
        await self.wait(process_id, self.reacts_within_s)
        why = files.last_complaint() or "it was killed, or did not begin in time"
        raise ChildProcessError(f"the runner of process {process_id} was not born: {why}")

    def look(self, process_id: ProcessId) -> Seen:
        self._bury(process_id)
        files = self._files(process_id)
        if (ending := files.read_ending()) is not None:
            return Seen(life=Life.ENDED, birth=files.read_birth(), ending=ending)
        # Made if it is missing: who comes to begin later finds that it is too late.
        with contextlib.suppress(FileExistsError):
            files.make()
        lock = files.open_lock()
        try:
            # Shared, so that two who look at the same time do not take each other for the runner.
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
            return self._settle(files)
        except BlockingIOError:
            return Seen(life=Life.ALIVE, birth=files.read_birth())
        finally:
            os.close(lock)

    async def wait(self, process_id: ProcessId, at_most_s: float | None = None) -> Seen:
        pause_s = PAUSE_S_MIN
        with move_on_after(at_most_s):
            while (seen := self.look(process_id)).life is Life.ALIVE:
                await self._wait_once(seen.birth, pause_s)
                pause_s = min(pause_s * 2, PAUSE_S_MAX)
        return self.look(process_id)

    async def end(self, process_id: ProcessId, *, grace_s: float) -> Seen:
        """What lives on of a process that was LOST in this boot is ended as well. What one that has
        ENDED left behind is not: it may be meant to live."""
        seen = self.look(process_id)
        if seen.life is Life.ALIVE:
            seen = await self._ask_to_end(process_id, max(0.0, grace_s))
        if seen.life is Life.LOST and not seen.is_other_boot:
            await self._ask_remains(process_id, max(0.0, grace_s))
        if seen.life is Life.ALIVE or (seen.life is Life.LOST and not seen.is_other_boot):
            await self._kill(process_id)
        return self.look(process_id)

    def read_log(self, process_id: ProcessId, offset: int, limit: int) -> LogSlice:
        files = self._files(process_id)
        for _ in range(LISTINGS_MAX):
            with contextlib.suppress(FileNotFoundError):
                return files.read_log(offset, limit)
        raise TimeoutError(errno.ETIMEDOUT, f"process {process_id} writes faster than we read")

    def log_size(self, process_id: ProcessId) -> int:
        try:
            return self.read_log(process_id, 0, 0).total
        except OSError:
            return 0

    async def write(self, process_id: ProcessId, content: bytes) -> bool:
        """False also if it did not read all of it in time; then it may have got a part."""
        files = self._files(process_id)
        # A runner that has written its record still holds the input for a moment.
        file = None if files.read_ending() is not None else files.open_input()
        if file is None:
            return False
        rest = memoryview(content)
        try:
            with move_on_after(self.input_within_s):
                while rest:
                    await wait_writable(file)
                    with contextlib.suppress(BlockingIOError):
                        rest = rest[os.write(file, rest) :]
        except BrokenPipeError:
            return False
        finally:
            os.close(file)
        return not rest

    def remove(self, process_id: ProcessId) -> None:
        """Raises ValueError for one that is alive."""
        folder, removed = self._files(process_id).folder, self.folder / ".removed"
        if folder.exists():
            if self.look(process_id).life is Life.ALIVE:
                raise ValueError(f"process {process_id} is alive; end it before its files go")
            # A crash in the middle must not leave a folder that tells half of the story.
            removed.mkdir(mode=0o700, exist_ok=True)
            folder.replace(removed / secrets.token_hex(8))
        shutil.rmtree(removed, ignore_errors=True)

    def _files(self, process_id: ProcessId) -> ProcessFiles:
        return ProcessFiles(self.folder.absolute() / str(process_id))

    def _spawn(
        self, process_id: ProcessId, files: ProcessFiles, spec: CommandSpec
    ) -> tuple[int, Begun]:
        """Begin a runner, in a thread. Returns a pipe that ends when it is born, or dead."""
        files.make()
        if spec.unread_max:
            make_wires(files.folder)
        files.write_spec(self._settings_of(spec), spec.environment)
        reading, writing = os.pipe()
        held = [writing]
        try:
            held.append(lock := files.open_lock())
            fcntl.flock(lock, fcntl.LOCK_EX)
            appending = os.O_WRONLY | os.O_CREAT | os.O_APPEND
            held.append(errors := os.open(files.complaints, appending, 0o600))
            is_guarded = spec.confinement.boundary is not Boundary.NONE
            folder, ends = str(files.folder), (lock, writing, errors)
            begun = self._births.begin(self.python, folder, ends, is_guarded=is_guarded)
        except OSError:
            os.close(reading)
            raise
        finally:
            for file in held:
                os.close(file)
        if begun.child:
            self._children[process_id] = begun.child
        return reading, begun

    def _settings_of(self, spec: CommandSpec) -> dict[str, str]:
        return {
            "shell": next(each for each in SHELLS if each == SHELLS[-1] or Path(each).exists()),
            "command": spec.command,
            "workdir": spec.workdir,
            "timeout": str(spec.timeout_seconds),
            "grace": str(self.timeout_grace_s),
            "takes_input": str(int(spec.takes_input)),
            "unread_max": str(spec.unread_max),
            "head_max": str(self.log_head_bytes),
            "tail_max": str(self.log_tail_bytes),
            "marker": secrets.token_hex(16),
            **_settings_of_boundary(spec.confinement),
        }

    def _bury(self, process_id: ProcessId) -> None:
        """Let go of a dead child of ours: as a zombie it would keep its pid for ever."""
        if (pid := self._children.get(process_id)) is None:
            return
        try:
            is_dead = os.waitpid(pid, os.WNOHANG)[0] != 0
        except ChildProcessError:
            is_dead = True  # another caller was faster
        if is_dead:
            del self._children[process_id]

    def _settle(self, files: ProcessFiles) -> Seen:
        """What is true for good, now that the lock is ours and no runner lives."""
        if not files.has_begun():
            files.make_void()
            return Seen(life=Life.UNBORN)
        birth = files.read_birth()
        if (ending := files.read_ending()) is not None:
            return Seen(life=Life.ENDED, birth=birth, ending=ending)
        is_other_boot = birth is not None and birth.boot_id != self._boot_id()
        return Seen(life=Life.LOST, birth=birth, is_other_boot=is_other_boot)

    def _boot_id(self) -> str:
        try:
            return self.boot_id_file.read_text(encoding="ascii").strip()
        except FileNotFoundError:
            return ""  # macOS has none

    async def _wait_once(self, birth: Birth | None, pause_s: float) -> None:
        """Return when the runner has ended, or something else may have changed."""
        process = None if birth is None else self._open_process(birth)
        if process is None:
            await sleep(pause_s)
            return
        try:
            with move_on_after(LOOK_AGAIN_S):
                await wait_readable(process)
        finally:
            os.close(process)

    def _open_process(self, birth: Birth) -> int | None:
        """The runner that was born; None if it does not live, even if its pid was given anew."""
        if not HAS_DESCRIPTORS:
            return None
        try:
            process = os.pidfd_open(birth.pid)
        except OSError:
            return None
        # The descriptor belongs to one process for ever, so what is checked now stays true of it.
        is_alive = False
        try:
            is_alive = self._is_alive(birth)
        finally:
            if not is_alive:
                os.close(process)
        return process if is_alive else None

    def _is_alive(self, birth: Birth) -> bool:
        if not (stat := stat_of(birth.pid)):
            return False
        seen = Birth(boot_id=self._boot_id(), pid=birth.pid, start_ticks=int(stat[START]))
        return is_same(birth, seen)

    def _signal(self, birth: Birth, *numbers: int) -> bool:
        if (process := self._open_process(birth)) is None:
            return not HAS_DESCRIPTORS and _signal_by_pid(birth.pid, numbers)
        try:
            for number in numbers:
                signal.pidfd_send_signal(process, number)
        except ProcessLookupError:
            return False
        finally:
            os.close(process)
        return True

    async def _ask_to_end(self, process_id: ProcessId, grace_s: float) -> Seen:
        # On a full disk the signal alone has to do; the runner then takes its own grace.
        with contextlib.suppress(OSError):
            self._files(process_id).ask_to_end(grace_s)
        is_told = False
        with move_on_after(grace_s + self.reacts_within_s):
            while (seen := self.look(process_id)).life is Life.ALIVE:
                if seen.birth is not None and not is_told:
                    is_told = self._signal(seen.birth, signal.SIGTERM, signal.SIGCONT)
                await self._wait_once(seen.birth, PAUSE_S_MIN)
        return self.look(process_id)

    async def _ask_remains(self, process_id: ProcessId, grace_s: float) -> None:
        """TERM to what lives on of a process without a runner; return when it has ended, or after
        the grace."""
        remains = await self._remains(process_id)
        for number in (signal.SIGSTOP, signal.SIGTERM, signal.SIGCONT):
            send_all(remains.tree, number)
        with move_on_after(grace_s):
            while True:
                await sleep(LOOK_AT_REMAINS_S)
                if not (await self._remains(process_id)).tree:
                    return

    async def _kill(self, process_id: ProcessId) -> None:
        """KILL to the tree, to the runner and to its keeper, which had their chance, until none
        is left. The keeper goes last: as long as it lives, nothing of the tree can escape it."""
        for _ in range(KILL_ROUNDS_MAX):
            is_held = self.look(process_id).life is Life.ALIVE
            remains = await self._remains(process_id, is_held=is_held)
            send_all(remains.tree, signal.SIGKILL)
            if not remains.tree and not is_held:
                return
            if is_held and remains.runner is not None:
                self._signal(remains.runner, signal.SIGKILL)
            if is_held and remains.keeper is not None and not remains.tree:
                self._signal(remains.keeper, signal.SIGKILL)
            await sleep(PAUSE_S_MIN)

    async def _remains(self, process_id: ProcessId, *, is_held: bool = False) -> "_Remains":
        """What lives of a process, with a runner or without. While the lock is free, neither its
        runner nor its keeper lives, whatever processes have their pids now."""
        files = self._files(process_id)
        runner, keeper = files.read_birth(), files.read_keeper()
        both = [each for each in (runner, keeper) if each is not None and is_held]
        alive = tuple(each.pid for each in both if self._is_alive(each))
        gone = runner.pid if runner and runner.pid not in alive else -1
        find = partial(find_tree, session=gone, child=files.read_child())
        tree = await to_thread.run_sync(find, files.read_marker(), alive)
        return _Remains(tree=tree, runner=runner, keeper=keeper)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Remains:
    tree: dict[int, bytes]
    """Pids and start ticks."""
    runner: Birth | None
    keeper: Birth | None


def _settings_of_boundary(confinement: Confinement) -> dict[str, str]:
    """In the form that the runner reads (`runner/spec.py`)."""
    grants = [f"{rights} {path}" for path, rights in confinement.grants]
    return {
        "boundary": confinement.boundary,
        "network": str(int(confinement.has_network)),
        "memory_max": str(confinement.memory_bytes_max),
        "processes_max": str(confinement.processes_max),
        **{f"launcher.{n}": each for n, each in enumerate(confinement.launcher)},
        **{f"group.{n}": each for n, each in enumerate(confinement.groups)},
        **{f"grant.{n}": each for n, each in enumerate(grants)},
    }


def _signal_by_pid(pid: int, numbers: Sequence[int]) -> bool:
    """For systems where a process has no descriptor: its lock, held a moment ago, has to vouch."""
    with contextlib.suppress(ProcessLookupError):
        for number in numbers:
            os.kill(pid, number)
        return True
    return False
