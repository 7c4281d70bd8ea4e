"""Gateways by fork: one process of each test worker has loaded the program, and every life begins
as a copy of it. It is a process like any other from there on, to be killed at any instruction;
only the second of loading is spared. A gateway that loads a large library later can begin as a
copy of a process that has that, too. A test that needs a cold start (another interpreter's
settings, a program around it) starts one.
"""

import atexit
import ctypes
import gc
import json
import os
import runpy
import select
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any, NoReturn

LOADED = (
    "anyio._backends._asyncio",
    "encodings.ascii",
    "encodings.idna",
    "httptools",
    "uvicorn.lifespan.off",
    "uvicorn.protocols.http.httptools_impl",
    "uvloop",
    "koboshi.app.serve",
    "koboshi.app.platforms.telegram",
    "koboshi.channels.telegram.channel",
    "markdown_it",
    "koboshi.cli.main",
    "koboshi.cli.run",
    "koboshi.cli.torture",
    "koboshi.logs",
    "koboshi.models.scripted",
    "koboshi.runtime.notify",
    "koboshi.runtime.host",
)
ROOT = Path(__file__).resolve().parents[2]
_PR_SET_PDEATHSIG = 1
_READY_S = 100.0


class Forked:
    """A life, with what the tests use of `subprocess.Popen`."""

    def __init__(self, request: Mapping[str, Any], loads: Sequence[str] = ()) -> None:
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.connect(_nursery(tuple(loads)))
        self._socket.sendall(json.dumps(request).encode() + b"\n")
        self._told = b""
        self.returncode: int | None = None
        self._hear(_READY_S, lines=1)
        self.pid = int(self._told.split(b"\n")[0])

    def poll(self) -> int | None:
        return self._ended(0)

    def wait(self, timeout: float | None = None) -> int:
        code = self._ended(timeout)
        if code is None:
            raise subprocess.TimeoutExpired("a forked gateway", timeout or 0)
        return code

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            with suppress(ProcessLookupError):  # over since it was looked at
                os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def _ended(self, within_s: float | None) -> int | None:
        if self.returncode is None and self._hear(within_s, lines=2):
            self.returncode = int(self._told.split(b"\n")[1])
            self._socket.close()
        return self.returncode

    def _hear(self, within_s: float | None, lines: int) -> bool:
        """Whether so many lines were told, waiting for them."""
        limit = None if within_s is None else time.monotonic() + within_s
        while self._told.count(b"\n") < lines:
            left = None if limit is None else max(0.0, limit - time.monotonic())
            if not select.select([self._socket], [], [], left)[0]:
                return False
            chunk = self._socket.recv(4096)
            assert chunk, "the nursery is gone"
            self._told += chunk
        return True


def start(
    module: str,
    arguments: Sequence[str],
    environment: Mapping[str, str],
    out: Path,
    err: Path,
    *,
    loads: Sequence[str] = (),
) -> Forked:
    """Run a module as `python -m` does, in a session of its own, with its output in files. The
    modules in `loads` have been imported already."""
    for file in (out, err):
        file.touch(mode=0o600)
    return Forked(
        {
            "module": module,
            "arguments": list(arguments),
            "environment": dict(environment),
            "out": str(out),
            "err": str(err),
            "folder": str(Path.cwd()),
        },
        loads,
    )


@cache
def _nursery(loads: tuple[str, ...]) -> str:
    """The address of this process's nursery, which ends when its input has no holder any more."""
    name = f"koboshi-nursery-{os.getpid()}-{os.urandom(4).hex()}"
    command = [sys.executable, "-m", "tests.harness.nursery", name, *loads]
    process = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=ROOT, start_new_session=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == b"ready\n"
    atexit.register(process.communicate)  # closes its input
    return f"\0{name}"


def _compile_addresses() -> None:
    """Every gateway compiles the addresses of its page; a copy finds them compiled."""
    operations = import_module("koboshi.dashboard.operations").OPERATIONS
    compile_path = import_module("starlette.routing").compile_path
    for each in operations:
        compile_path(
            each.path.replace("{what}", "{what:path}") if each.takes_slashes else each.path
        )


def main() -> None:
    for name in (*LOADED, *sys.argv[2:]):
        import_module(name)
    _compile_addresses()
    gc.collect()
    gc.freeze()
    deaths, writer = os.pipe()
    os.set_blocking(writer, False)
    signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda _number, _frame: None)
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(f"\0{sys.argv[1]}")
    listener.listen(64)
    os.write(1, b"ready\n")
    _rock(listener, deaths, writer)


def _rock(listener: socket.socket, deaths: int, writer: int) -> None:
    lives: dict[int, socket.socket] = {}
    while True:
        watched: list[Any] = [0, listener, deaths]
        readable, _, _ = select.select(watched, [], [])
        if 0 in readable and not os.read(0, 4096):
            return
        if deaths in readable:
            os.read(deaths, 4096)
            _tell_deaths(lives)
        if listener in readable:
            asker, _ = listener.accept()
            request = json.loads(asker.makefile("rb").readline())
            is_apart, apart = os.pipe()
            child = os.fork()
            if not child:
                signal.set_wakeup_fd(-1)
                for each in (listener, asker, *lives.values()):
                    each.close()
                for descriptor in (deaths, writer, is_apart):
                    os.close(descriptor)
                os.setsid()
                os.close(apart)
                _live(request)
            # Its number is told when it leads a group of its own: a signal to the group before that
            # would reach no process, and the life would outlive its kill.
            os.close(apart)
            os.read(is_apart, 1)
            os.close(is_apart)
            lives[child] = asker
            asker.sendall(b"%d\n" % child)


def _tell_deaths(lives: dict[int, socket.socket]) -> None:
    for pid in list(lives):
        ended, status = os.waitpid(pid, os.WNOHANG)
        if not ended:
            continue
        asker = lives.pop(pid)
        with suppress(OSError):  # the test that asked for it may be over
            asker.sendall(b"%d\n" % os.waitstatus_to_exitcode(status))
        asker.close()


def _live(request: dict[str, Any]) -> NoReturn:
    """In the new process: be that program."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    _die_with_parent()
    os.environ.clear()
    os.environ.update(request["environment"])
    # Where a new interpreter would look for modules, behind the folder that it is started in.
    folders = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    sys.path[1:1] = [folder for folder in folders if folder and folder not in sys.path]
    os.chdir(request["folder"])
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    for number, name in ((1, "out"), (2, "err")):
        os.dup2(os.open(request[name], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), number)
    os.closerange(3, 64)
    sys.argv = [request["module"], *request["arguments"]]
    # A gateway that starts itself again does so by this.
    sys.orig_argv[:] = [sys.executable, "-m", *sys.argv]
    code = 1
    try:
        runpy.run_module(request["module"], run_name="__main__", alter_sys=True)
        code = 0
    except SystemExit as ended:
        code = ended.code if isinstance(ended.code, int) else int(ended.code is not None)
    finally:
        kind, error, trace = sys.exc_info()
        if kind is not None and error is not None and kind is not SystemExit:
            sys.excepthook(kind, error, trace)
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def _die_with_parent() -> None:
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


if __name__ == "__main__":
    main()
