"""The few requests of ptrace(2) and seccomp(2) that a tracer needs, without anything to build.

Registers are those of x86-64; `why_not` says so elsewhere. Only the calls that are asked for stop
the traced program, by a filter in the kernel, so that a run takes hardly longer than without.
"""

import ctypes
import os
import platform
import signal
import struct
import sys
from collections.abc import Iterable

_libc = ctypes.CDLL(None, use_errno=True)
_libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
_libc.ptrace.restype = ctypes.c_long

CALLS = {
    "write": 1,
    "open": 2,
    "pwrite64": 18,
    "writev": 20,
    "sendfile": 40,
    "fsync": 74,
    "fdatasync": 75,
    "truncate": 76,
    "ftruncate": 77,
    "rename": 82,
    "mkdir": 83,
    "rmdir": 84,
    "creat": 85,
    "link": 86,
    "unlink": 87,
    "openat": 257,
    "mkdirat": 258,
    "unlinkat": 263,
    "renameat": 264,
    "linkat": 265,
    "fallocate": 285,
    "pwritev": 296,
    "renameat2": 316,
    "copy_file_range": 326,
    "pwritev2": 328,
}
"""Every call that changes a file or a name, by its number on x86-64."""
NAMES = {number: name for name, number in CALLS.items()}

EVENT_SECCOMP, EVENT_STOP = 7, 128
AT_EXIT = signal.SIGTRAP | 0x80

_CONT, _GETREGS, _SETREGS, _SYSCALL, _SEIZE, _LISTEN = 7, 12, 13, 24, 0x4206, 0x4208
# The calls' exits are told from signals; forks, threads, programs and the filter's calls stop;
# and a traced process dies with the tracer.
_OPTIONS = 0x1 | 0x2 | 0x4 | 0x8 | 0x10 | 0x80 | 0x100000
_WALL = 0x40000000

_R10, _RAX, _RDX, _RSI, _RDI, _ORIG_RAX = 7, 10, 12, 13, 14, 15


class Registers:
    """What a stopped thread was about to call, or has called."""

    def __init__(self, thread: int) -> None:
        self._thread = thread
        self._content = (ctypes.c_ulonglong * 27)()
        _ptrace(_GETREGS, thread, 0, ctypes.addressof(self._content))

    @property
    def call(self) -> int:
        return self._content[_ORIG_RAX]

    @property
    def result(self) -> int:
        return ctypes.c_longlong(self._content[_RAX]).value

    @property
    def arguments(self) -> tuple[int, int, int, int]:
        """The first four."""
        content = self._content
        return content[_RDI], content[_RSI], content[_RDX], content[_R10]

    def shorten(self, length: int) -> None:
        """Let the write that is about to happen write only so many bytes."""
        self._content[_RDX] = length
        self._set()

    def answer(self, result: int) -> None:
        """Let the call that has happened return this."""
        self._content[_RAX] = result
        self._set()

    def _set(self) -> None:
        _ptrace(_SETREGS, self._thread, 0, ctypes.addressof(self._content))


def seize(process: int) -> None:
    """Trace a process from now on, with all its threads and children."""
    _ptrace(_SEIZE, process, 0, _OPTIONS)


def go_on(thread: int, number: int = 0) -> None:
    """Let a stopped thread go on, with a signal that it shall get."""
    _resume(_CONT, thread, number)


def go_on_to_exit(thread: int) -> None:
    """Let a thread that stands before a call carry it out, and stop behind it."""
    _resume(_SYSCALL, thread, 0)


def stay_stopped(thread: int) -> None:
    """Leave a thread as stopped as a signal has made it."""
    _resume(_LISTEN, thread, 0)


def wait() -> tuple[int, int]:
    """The next thread that stopped or ended, and its status. Raises ChildProcessError if none
    is left."""
    return os.waitpid(-1, _WALL)


def stop_before(calls: Iterable[str]) -> None:
    """From now on this process, also as another program, stops for its tracer before the calls.
    Without a tracer they would fail."""
    numbers = [CALLS[name] for name in calls]
    # Load the number of the call; at one of ours jump to the last instruction; else allow it.
    filters = [struct.pack("HBBI", 0x20, 0, 0, 0)]
    filters += [
        struct.pack("HBBI", 0x15, len(numbers) - place, 0, number)
        for place, number in enumerate(numbers)
    ]
    filters += [struct.pack("HBBI", 0x06, 0, 0, answer) for answer in (0x7FFF0000, 0x7FF00000)]
    program = ctypes.create_string_buffer(b"".join(filters))
    header = ctypes.create_string_buffer(
        struct.pack("HxxxxxxQ", len(filters), ctypes.addressof(program))
    )
    set_no_new_privileges, set_filter = 38, 22
    for action in ((set_no_new_privileges, 1, 0), (set_filter, 2, ctypes.addressof(header))):
        arguments = [ctypes.c_ulong(number) for number in action[1:]]
        if _libc.prctl(action[0], *arguments, ctypes.c_ulong(0), ctypes.c_ulong(0)):
            raise OSError(ctypes.get_errno(), "the kernel takes no filter of system calls")


def why_not() -> str | None:
    """Why nothing can be traced here; None if it can."""
    if sys.platform != "linux" or platform.machine() != "x86_64":
        return f"system calls are traced on Linux on x86-64 only, not on {platform.machine()}"
    child = os.fork()
    if child == 0:
        signal.pause()
        os._exit(0)
    try:
        seize(child)
    except OSError as error:
        return f"the kernel does not let us trace: {error}"
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    return None


def _resume(request: int, thread: int, number: int) -> None:
    try:
        _ptrace(request, thread, 0, number)
    except ProcessLookupError:
        return  # it was killed while it stood; its end is told by `wait`


def _ptrace(request: int, thread: int, address: int, value: int) -> None:
    if _libc.ptrace(request, thread, address, value) == -1:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
