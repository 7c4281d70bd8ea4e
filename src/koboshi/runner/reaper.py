"""Adopting the orphans below us. Imports nearly nothing: it is part of the runner.

Only Linux has this. Elsewhere a process whose parent has ended is not our child, and is known by
its session and its marker only.
"""

import posix

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

SET_CHILD_SUBREAPER = 36

_ready: "list[Callable[[], int]]" = []
"""The system call, once it was made."""


def become_reaper() -> bool:
    """Make every orphan below us our child, in any session and environment. False where the system,
    or this interpreter, cannot."""
    return prepare() and _ready[0]() == 0


def prepare() -> bool:
    """Make the system call, which is not called by it. It takes longer than a fork: a nursery does
    it once, for all that it forks. False where this interpreter cannot."""
    if _ready:
        return True
    try:
        # The package around it costs more than all the rest of the runner.
        native = __import__("_ctypes")
        integer = type("integer", (native._SimpleCData,), {"_type_": "i"})
        word = type("word", (native._SimpleCData,), {"_type_": "l"})
        shape = {"_flags_": native.FUNCFLAG_CDECL, "_restype_": integer}
        call = type("call", (native.CFuncPtr,), shape)
        prctl = call(native.dlsym(native.dlopen(None, 0), "prctl"))
    except (ImportError, OSError, AttributeError):
        return False
    said = (integer(SET_CHILD_SUBREAPER), word(1), word(0), word(0), word(0))
    _ready.append(lambda: int(prctl(*said)))
    return True


def reap() -> dict[int, int]:
    """Reap every child that has ended. Returns their wait statuses by pid."""
    ended: dict[int, int] = {}
    try:
        while (found := posix.waitpid(-1, posix.WNOHANG))[0]:
            ended[found[0]] = found[1]
    except ChildProcessError:
        return ended  # none is left
    return ended


def has_children() -> bool:
    """Whether anything is left below us, living or not reaped yet."""
    try:
        posix.waitid(posix.P_ALL, 0, posix.WEXITED | posix.WNOHANG | posix.WNOWAIT)
    except ChildProcessError:
        return False
    return True
