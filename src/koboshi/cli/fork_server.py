"""A process that has loaded the gateway, and starts lives of it by fork. Only `torture` uses it.

`python -m koboshi.cli.fork_server HOME` is told what to do on stdin and tells on stdout, one JSON
object a line. There is one life at a time. It has a lifeline to this process, as it has to a parent
that supervises it, and this process ends it and itself when its stdin ends.
"""

import gc
import json
import mmap
import os
import re
import resource
import select
import signal
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib import import_module
from typing import NoReturn

from koboshi.cli.main import main as run_command
from koboshi.cli.supervise import LIFELINE
from koboshi.clock import SystemClock
from koboshi.http_pool import certificates

LOADED = (
    "anyio._backends._asyncio",
    "ctypes",
    "encodings.ascii",
    "h2",
    "httpcore2",
    "httptools",
    "truststore",
    "uvicorn.lifespan.off",
    "uvicorn.protocols.http.httptools_impl",
    "uvloop",
    "koboshi.app.platforms.telegram",
    "koboshi.channels.telegram.channel",
    "httpx2",
    "koboshi.app.privacy",
    "koboshi.app.serve",
    "koboshi.cli.run",
    "koboshi.cli.update.starting",
    "koboshi.logs",
    "koboshi.models.scripted",
    "koboshi.runtime.notify",
    "koboshi.runtime.host",
)
"""All that a gateway loads when it starts, and when it works for the first time."""

_ADDRESS = re.compile(rb"koboshi is at (http://[0-9.:]+)")
CHUNK_BYTES = 65_536
MOMENT_BYTES = 8


def fork_server_command() -> list[str]:
    """The command that runs a fork server, without the home."""
    return [sys.executable, "-m", "koboshi.cli.fork_server"]


class ShiftedClock:
    """The wall clock of the lives: ahead of the real one by what the fork server says.

    It is a page of memory that only a fork shares. Any other gateway has none, and no file or
    variable could move its clock.
    """

    def __init__(self) -> None:
        self._page = mmap.mmap(-1, mmap.PAGESIZE)

    @property
    def ahead_ms(self) -> int:
        return int.from_bytes(self._page[:MOMENT_BYTES], "little", signed=True)

    def move(self, ahead_ms: int) -> None:
        """From now on, for the life that looks."""
        self._page[:MOMENT_BYTES] = ahead_ms.to_bytes(MOMENT_BYTES, "little", signed=True)

    def follow(self) -> None:
        """In a life: the clock of this process is this one."""
        real_ms = SystemClock.now_ms

        def now_ms(clock: SystemClock) -> int:
            return real_ms(clock) + self.ahead_ms

        SystemClock.now_ms = now_ms  # type: ignore[method-assign, assignment]


@dataclass(slots=True, kw_only=True)
class ForkServer:
    home: str
    deaths: int
    """Readable when a life may have ended."""
    wakeup: int
    """The other end of that."""
    child: int = 0
    output: int = -1
    """What the life prints; -1 if there is none."""
    lifeline: int = -1
    """Our end; a life whose lifeline is closed stops by itself."""
    printed: bytearray = field(default_factory=bytearray)
    clock: ShiftedClock = field(default_factory=ShiftedClock)

    def serve(self) -> None:
        """Carry out requests until stdin ends."""
        asked = bytearray()
        while True:
            watched = [0, self.deaths, *([self.output] if self.output >= 0 else [])]
            readable, _, _ = select.select(watched, [], [])
            if self.output in readable:
                self._read_output()
            if self.deaths in readable:
                os.read(self.deaths, CHUNK_BYTES)
                self._reap()
            if 0 in readable:
                chunk = os.read(0, CHUNK_BYTES)
                if not chunk:
                    return
                asked += chunk
                *lines, rest = bytes(asked).split(b"\n")
                asked = bytearray(rest)
                for line in lines:
                    self._carry_out(json.loads(line))

    def end(self) -> None:
        """Leave nothing behind."""
        if self.child:
            os.kill(self.child, signal.SIGKILL)
            os.waitpid(self.child, 0)

    def _carry_out(self, request: dict[str, object]) -> None:
        match request:
            case {
                "do": "start",
                "environment": dict() as environment,
                "is_cold": bool() as is_cold,
                "ahead_ms": int() as ahead_ms,
                "files_max": int() | None as files_max,
            }:
                self.clock.move(ahead_ms)
                self._start(environment, is_cold, files_max)
            case {"do": "set_clock", "ahead_ms": int() as ahead_ms} if self.child:
                self.clock.move(ahead_ms)
            case {"do": "leave_files", "files": int() as files} if self.child:
                leave_files(self.child, files)
            case {"do": "kill"} if self.child:
                os.kill(self.child, signal.SIGKILL)
            case {"do": "stop"} if self.child:
                os.kill(self.child, signal.SIGTERM)
            case _:
                # It has ended in the meantime, and that was told.
                return

    def _start(self, environment: dict[str, str], is_cold: bool, files_max: int | None) -> None:
        assert not self.child, "this home has a gateway already"
        self.output, output = os.pipe()
        theirs, self.lifeline = os.pipe()
        self.printed.clear()
        self.child = os.fork()
        if not self.child:
            os.environ.update(environment | {LIFELINE: str(theirs)})
            ours = (self.deaths, self.wakeup, self.output, self.lifeline)
            self.clock.follow()
            _live(self.home, output, theirs, ours, is_cold, files_max)
        os.close(output)
        os.close(theirs)

    def _read_output(self) -> None:
        chunk = os.read(self.output, CHUNK_BYTES)
        had_address = _ADDRESS.search(self.printed)
        self.printed += chunk
        found = _ADDRESS.search(self.printed)
        if found and not had_address:
            _tell({"address": found[1].decode()})
        if not chunk:
            os.close(self.output)
            self.output = -1

    def _reap(self) -> None:
        if not self.child:
            return
        pid, status = os.waitpid(self.child, os.WNOHANG)
        if pid:
            self.child = 0
            for descriptor in (self.output, self.lifeline):
                if descriptor >= 0:
                    os.close(descriptor)
            self.output = self.lifeline = -1
            _tell({"code": os.waitstatus_to_exitcode(status)})


def limit_files(pid: int, files_max: int) -> None:
    """The soft limit only: it can be raised again."""
    _, hard = resource.prlimit(pid, resource.RLIMIT_NOFILE)
    resource.prlimit(pid, resource.RLIMIT_NOFILE, (files_max, hard))


def leave_files(pid: int, files: int) -> None:
    """A life that runs can open so many files more, beside those that it closes."""
    try:
        used = {int(name) for name in os.listdir(f"/proc/{pid}/fd")}
        free = sorted(set(range(len(used) + files + 1)) - used)
        limit_files(pid, free[files])
    except OSError:
        # It has died in the meantime, or this system does not tell.
        return


def _tell(told: dict[str, object]) -> None:
    os.write(1, json.dumps(told).encode() + b"\n")


def _live(
    home: str,
    output: int,
    lifeline: int,
    ours: Sequence[int],
    is_cold: bool,
    files_max: int | None,
) -> NoReturn:
    """In a new process: be `koboshi run`. `ours` are the fork server's own files."""
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    os.setsid()
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(output, 1)
    for descriptor in (output, *ours):
        os.close(descriptor)
    if files_max is not None:
        limit_files(os.getpid(), files_max)
    arguments = ["run", "--home", home]
    if is_cold:
        os.set_inheritable(lifeline, True)
        os.execv(sys.executable, [sys.executable, "-m", "koboshi", *arguments])
    code = 1
    try:
        run_command(arguments)
    except SystemExit as ended:
        code = ended.code if isinstance(ended.code, int) else 1
    finally:
        # Whatever happened, a life does not become a second fork server.
        kind, error, trace = sys.exc_info()
        if kind is not None and error is not None:
            sys.excepthook(kind, error, trace)
        sys.stdout.flush()
        os._exit(code)


def _load() -> None:
    for name in LOADED:
        import_module(name)
    certificates()
    gc.collect()
    gc.freeze()


def main() -> None:
    deaths, writer = os.pipe()
    for descriptor in (deaths, writer):
        os.set_blocking(descriptor, False)
    signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda _number, _frame: None)
    _load()
    server = ForkServer(home=sys.argv[1], deaths=deaths, wakeup=writer)
    try:
        server.serve()
    finally:
        server.end()


if __name__ == "__main__":
    main()
