"""What the gateway does so that other processes of its own user cannot read its secrets.

On Linux, the environment and the memory of a process can be read by every process of the same user,
so by every command that the agent runs. A process that says it is not *dumpable* is closed to them:
`/proc/<pid>/environ`, `/proc/<pid>/mem`, `ptrace`. Root still sees it. The kernel writes no core
dump of such a process. Programs that are started from it are as dumpable as any other.
"""

import ctypes
import os
import sys
from collections.abc import Collection, MutableMapping

PR_SET_DUMPABLE = 4
PR_GET_DUMPABLE = 3


def make_undumpable() -> bool:
    """Close this process to others of its user. Returns whether the system can do that."""
    if sys.platform != "linux":
        return False
    try:
        libc = ctypes.CDLL(None, use_errno=True)
        return bool(libc.prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) == 0)
    except (OSError, AttributeError):
        return False


def remove_variables(names: Collection[str], environ: MutableMapping[str, str]) -> None:
    """Take variables out of the environment, and wipe the copy that the kernel shows to others.
    What must know them later is to keep a copy of its own."""
    wipe_variables(names)
    for name in names:
        environ.pop(name, None)


def wipe_variables(names: Collection[str]) -> None:
    """Overwrite the values of variables where the kernel put them when this process began."""
    if sys.platform != "linux" or not names:
        return
    wanted = {os.fsencode(name) for name in names}
    try:
        strings = ctypes.POINTER(ctypes.c_void_p).in_dll(ctypes.CDLL(None), "environ")
    except (OSError, ValueError):
        return
    number = 0
    while address := strings[number]:
        name, sign, value = ctypes.string_at(address).partition(b"=")
        if sign and name in wanted:
            ctypes.memset(address + len(name) + 1, ord("x"), len(value))
        number += 1
