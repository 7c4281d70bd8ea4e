"""A small parent that starts the gateway again, for machines without a service manager.

It hears signals through a pipe and does nothing inside a signal's own call, so that none is lost
and none comes at a bad moment. The gateway holds the other end of a second pipe, the lifeline: when
this parent dies, however it dies, the gateway sees it close and stops by itself.
"""

import os
import select
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

import click

from koboshi.channels.common.held_listeners import DEPOSIT, HANDED, handed_words, received
from koboshi.cli.options import OK, STORAGE_FAILED, WRONG_SETUP
from koboshi.cli.update.installation import own_installation
from koboshi.clock import SystemClock

LIFELINE = "KOBOSHI_LIFELINE"
STEADY_SECONDS = 30.0
"""A gateway that lived this long starts the back-off anew."""
PAUSE_SECONDS = (0.2, 0.5, 1.0, 2.0, 5.0, 15.0)
STOP = frozenset({signal.SIGTERM, signal.SIGINT})
PASSED_ON = frozenset({signal.SIGHUP, signal.SIGQUIT})


def supervise_gateway(stop_seconds: float) -> int:
    """Run the gateway as a child until it ends as asked, or cannot be helped by a restart.

    A child that is asked to stop and has not after `stop_seconds` is killed: that is always safe.
    Returns the exit code.
    """
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    ours.setblocking(False)
    with _heard_signals() as signals, _lifeline() as lifeline, ours, theirs:
        return _Parent(
            signals=signals,
            lifeline=lifeline,
            stop_seconds=stop_seconds,
            deposits=ours,
            deposit=theirs.fileno(),
        ).run()


def pause_after(deaths: int) -> float:
    """How long to wait before the next start, after so many deaths in a row."""
    return PAUSE_SECONDS[min(max(deaths, 1), len(PAUSE_SECONDS)) - 1]


def is_over(code: int, *, is_asked: bool) -> bool:
    """Whether a child that ended with `code` is not started again."""
    return is_asked or code in (OK, WRONG_SETUP)


def code_of(child_code: int) -> int:
    """The exit code of the parent, whose child will not be started again: that of the child, if it
    is one of those that mean something."""
    return child_code if child_code in (STORAGE_FAILED, WRONG_SETUP) else OK


def how_it_ended(code: int) -> str:
    """The end of a child in words; a negative code is a signal."""
    if code >= 0:
        return f"ended with code {code}"
    names = {number.value: number.name for number in signal.Signals}
    return f"was killed by {names.get(-code, f'signal {-code}')}"


def command_again(original: Sequence[str]) -> list[str]:
    """The command that runs the gateway just as this process was run, but without a parent. In an
    installation of ours its launcher does: another version may serve by now."""
    words = [word for word in original[1:] if word != "--supervise"]
    ours = own_installation()
    if ours is not None and "run" in words:
        return [str(ours.launcher), *words[words.index("run") :]]
    return [sys.executable, *words]


def stop_without_parent() -> bool:
    """In the gateway: be asked to stop when the parent has died. Returns whether there is one: it
    will start us again. Without one, nothing is done."""
    descriptor = os.environ.pop(LIFELINE, "")
    if not descriptor.isdigit():
        return False
    lifeline = int(descriptor)
    try:
        # Programs that tools start have no part in it.
        os.set_inheritable(lifeline, False)
    except OSError:
        return False

    def watch() -> None:
        os.read(lifeline, 1)
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=watch, name="koboshi-lifeline", daemon=True).start()
    return True


@dataclass(slots=True, kw_only=True)
class _Parent:
    signals: int
    """Readable when a signal has come; each byte is one."""
    lifeline: int
    stop_seconds: float
    deposits: socket.socket
    """What the gateway hands over to be kept for the next one."""
    deposit: int
    """The gateway's end of it."""
    listeners: dict[str, int] = field(default_factory=dict)
    """Sockets that listen, over all lives: the port is never free for another program."""
    clock: SystemClock = field(default_factory=SystemClock)
    is_asked: bool = False

    def run(self) -> int:
        deaths = 0
        while True:
            began = self.clock.monotonic()
            code = self._live_once()
            if is_over(code, is_asked=self.is_asked):
                return code_of(code)
            is_steady = self.clock.monotonic() - began > STEADY_SECONDS
            deaths = 1 if is_steady else deaths + 1
            pause = pause_after(deaths)
            click.echo(
                f"koboshi: the gateway {how_it_ended(code)}; it gets up again in {pause:g} s",
                err=True,
            )
            self._pause(pause)
            if self.is_asked:
                return OK

    def _live_once(self) -> int:
        """One life of the gateway. Returns how it ended."""
        self._take_deposits()
        child = subprocess.Popen(
            command_again(sys.orig_argv),
            env={
                **os.environ,
                LIFELINE: str(self.lifeline),
                DEPOSIT: str(self.deposit),
                HANDED: handed_words(self.listeners),
            },
            pass_fds=[self.lifeline, self.deposit, *self.listeners.values()],
            # A Ctrl-C is for this parent, which passes it on once.
            start_new_session=True,
        )
        deadline: float | None = None
        while child.poll() is None:
            if deadline is not None and self.clock.monotonic() >= deadline:
                child.kill()
                deadline = None
            for number in self._wait(deadline):
                if number in STOP:
                    self.is_asked = True
                    deadline = deadline or self.clock.monotonic() + self.stop_seconds
                    # Not a SIGINT: it would look like an error where Python itself is starting.
                    child.terminate()
                elif number in PASSED_ON:
                    child.send_signal(number)
        return child.returncode

    def _take_deposits(self) -> None:
        while (found := received(self.deposits)) is not None:
            name, descriptor = found
            before = self.listeners.get(name)
            self.listeners[name] = descriptor
            if before is not None:
                os.close(before)

    def _pause(self, seconds: float) -> None:
        """Wait, unless a stop is asked for meanwhile."""
        deadline = self.clock.monotonic() + seconds
        while not self.is_asked and self.clock.monotonic() < deadline:
            self.is_asked = any(number in STOP for number in self._wait(deadline))

    def _wait(self, deadline: float | None) -> bytes:
        """The signals that have come, after waiting for the first one."""
        timeout = None if deadline is None else max(0.0, deadline - self.clock.monotonic())
        readable, _, _ = select.select([self.signals, self.deposits.fileno()], [], [], timeout)
        if self.deposits.fileno() in readable:
            self._take_deposits()
        return os.read(self.signals, 4096) if self.signals in readable else b""


@contextmanager
def _heard_signals() -> Iterator[int]:
    """Every signal that matters becomes a byte in a pipe; this is its end to read from."""
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    for number in (*STOP, *PASSED_ON, signal.SIGCHLD):
        signal.signal(number, lambda _number, _frame: None)
    try:
        yield reader
    finally:
        signal.set_wakeup_fd(-1)
        os.close(reader)
        os.close(writer)


@contextmanager
def _lifeline() -> Iterator[int]:
    """The end of a pipe for the gateway; it is closed when the other end, ours, is."""
    theirs, ours = os.pipe()
    try:
        yield theirs
    finally:
        for descriptor in (theirs, ours):
            with suppress(OSError):
                os.close(descriptor)
