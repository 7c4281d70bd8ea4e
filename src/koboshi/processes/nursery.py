"""Our side of the process that forks runners (`runner/nursery.py` says why, and how it is asked).

It is started with the first command, and ends with us. Where it cannot be had, a runner is started
alone. A request that was sent is never made again in another way: it may have been carried out, and
no command has two runners.
"""

import contextlib
import os
import signal
import socket
import threading
import weakref
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from koboshi.processes.pinned import BEGIN, PROGRAM_FILE, open_program

IS_POSSIBLE = hasattr(os, "pidfd_open") and hasattr(socket, "SOCK_SEQPACKET")
ANSWER_BYTES_MAX = 64
ANSWERS_WITHIN_S = 30.0
"""As long as a runner may take to be born: on a busy machine it has to be loaded first."""


@dataclass(slots=True, weakref_slot=True, eq=False)
class Nursery:
    """Safe in any thread. What the thread that asks first may not do, no runner of it may."""

    python: str
    program: bytes
    environment: Mapping[str, str]
    _turn: threading.Lock = field(default_factory=threading.Lock, init=False)
    _socket: socket.socket | None = field(default=None, init=False)
    _close: Callable[[], object] = field(default=lambda: None, init=False)
    """Ends it, once; also when no one has a use for it any more."""

    def bear(self, folder: str, files: tuple[int, int, int]) -> int | None:
        """Have a runner forked that has these files. Returns a descriptor of its process; -1 where
        it is unknown whether there is one, which its birth will tell; None if nothing was begun.
        Raises OSError if there is no room for a process."""
        with self._turn:
            asked = self._opened() if IS_POSSIBLE else None
            if asked is None:
                return None
            try:
                socket.send_fds(asked, [os.fsencode(folder)], files)
            except OSError:
                self._give_up()
                return None
            return self._answer(asked)

    def _answer(self, asked: socket.socket) -> int:
        try:
            said, found, _, _ = socket.recv_fds(asked, ANSWER_BYTES_MAX, 1)
            number = int(said)
        except (OSError, ValueError):
            # It has died, or stands still. Then it shall not begin anything later.
            self._give_up()
            return -1
        if number:
            raise OSError(number, os.strerror(number))
        return found[0] if found else -1

    def _opened(self) -> socket.socket | None:
        """The way to it, which is made if need be; None if that is not possible now."""
        if self._socket is not None:
            return self._socket
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        program = -1
        try:
            program = open_program(self.program)
            pid = os.posix_spawn(
                self.python,
                [self.python, "-I", "-S", "-c", BEGIN, ""],
                self.environment,
                file_actions=[
                    (os.POSIX_SPAWN_DUP2, theirs.fileno(), 0),
                    (os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0),
                    (os.POSIX_SPAWN_OPEN, 2, os.devnull, os.O_WRONLY, 0),
                    (os.POSIX_SPAWN_DUP2, program, PROGRAM_FILE),
                ],
                setsigmask=(),
            )
        except OSError:
            ours.close()
            return None
        finally:
            theirs.close()
            if program >= 0:
                os.close(program)
        ours.settimeout(ANSWERS_WITHIN_S)
        self._socket, self._close = ours, weakref.finalize(self, _end, ours, pid)
        return ours

    def _give_up(self) -> None:
        self._close()
        self._socket = None


def _end(asked: socket.socket, pid: int) -> None:
    asked.close()
    # Our own child, and not buried: the pid is its own.
    with contextlib.suppress(ProcessLookupError, ChildProcessError):
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
