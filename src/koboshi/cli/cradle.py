"""A process that has loaded the gateway, and starts lives of it by fork. Only `torture` uses it.

`python -m koboshi.cli.cradle HOME` is told what to do on stdin and tells on stdout, a JSON object a
line. There is one life at a time. It has a lifeline to this process, as it has to a parent that
supervises it, and this process ends it and itself when nobody is left to talk to.
"""

import gc
import json
import os
import re
import select
import signal
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib import import_module
from typing import NoReturn

from koboshi.cli.main import main as run_command
from koboshi.cli.supervise import LIFELINE

LOADED = (
    "anyio._backends._asyncio",
    "encodings.ascii",
    "httptools",
    "uvicorn.lifespan.off",
    "uvicorn.protocols.http.httptools_impl",
    "uvloop",
    "koboshi.app.telegram",
    "koboshi.channels.telegram.render",
    "httpx2",
    "koboshi.app.serve",
    "koboshi.cli.run",
    "koboshi.logs",
    "koboshi.runtime.notify",
    "koboshi.runtime.surroundings",
)
"""All that a gateway loads when it starts."""

_ADDRESS = re.compile(rb"koboshi is at (http://[0-9.:]+)")
CHUNK_BYTES = 65_536


def cradle_command() -> list[str]:
    """The command that runs a cradle, without the home."""
    return [sys.executable, "-m", "koboshi.cli.cradle"]


@dataclass(slots=True, kw_only=True)
class Cradle:
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

    def rock(self) -> None:
        """Do as told until nobody tells any more."""
        asked = bytearray()
        while True:
            watched = [0, self.deaths, *([self.output] if self.output >= 0 else [])]
            readable, _, _ = select.select(watched, [], [])
            if self.output in readable:
                self._hear()
            if self.deaths in readable:
                os.read(self.deaths, CHUNK_BYTES)
                self._bury()
            if 0 in readable:
                chunk = os.read(0, CHUNK_BYTES)
                if not chunk:
                    return
                asked += chunk
                *lines, rest = bytes(asked).split(b"\n")
                asked = bytearray(rest)
                for line in lines:
                    self._obey(json.loads(line))

    def end(self) -> None:
        """Leave nothing behind."""
        if self.child:
            os.kill(self.child, signal.SIGKILL)
            os.waitpid(self.child, 0)

    def _obey(self, request: dict[str, object]) -> None:
        match request:
            case {
                "do": "start",
                "environment": dict() as environment,
                "is_cold": bool() as is_cold,
            }:
                self._start(environment, is_cold)
            case {"do": "kill"} if self.child:
                os.kill(self.child, signal.SIGKILL)
            case {"do": "stop"} if self.child:
                os.kill(self.child, signal.SIGTERM)
            case _:
                # It has ended in the meantime, and that was told.
                return

    def _start(self, environment: dict[str, str], is_cold: bool) -> None:
        assert not self.child, "this home has a gateway already"
        self.output, output = os.pipe()
        theirs, self.lifeline = os.pipe()
        self.printed.clear()
        self.child = os.fork()
        if not self.child:
            os.environ.update(environment | {LIFELINE: str(theirs)})
            ours = (self.deaths, self.wakeup, self.output, self.lifeline)
            _live(self.home, output, theirs, ours, is_cold)
        os.close(output)
        os.close(theirs)

    def _hear(self) -> None:
        chunk = os.read(self.output, CHUNK_BYTES)
        had_address = _ADDRESS.search(self.printed)
        self.printed += chunk
        found = _ADDRESS.search(self.printed)
        if found and not had_address:
            _tell({"address": found[1].decode()})
        if not chunk:
            os.close(self.output)
            self.output = -1

    def _bury(self) -> None:
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


def _tell(told: dict[str, object]) -> None:
    os.write(1, json.dumps(told).encode() + b"\n")


def _live(home: str, output: int, lifeline: int, ours: Sequence[int], is_cold: bool) -> NoReturn:
    """In a new process: be `koboshi run`. `ours` are the cradle's own files."""
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    os.setsid()
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(output, 1)
    for descriptor in (output, *ours):
        os.close(descriptor)
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
        # Whatever happened, a life does not become a second cradle.
        kind, error, trace = sys.exc_info()
        if kind is not None and error is not None:
            sys.excepthook(kind, error, trace)
        sys.stdout.flush()
        os._exit(code)


def _load() -> None:
    for name in LOADED:
        import_module(name)
    gc.collect()
    gc.freeze()


def main() -> None:
    deaths, writer = os.pipe()
    for descriptor in (deaths, writer):
        os.set_blocking(descriptor, False)
    signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda _number, _frame: None)
    _load()
    cradle = Cradle(home=sys.argv[1], deaths=deaths, wakeup=writer)
    try:
        cradle.rock()
    finally:
        cradle.end()


if __name__ == "__main__":
    main()
