"""Which processes have a home's lock open, and whether one holds it."""

import fcntl
import os
from pathlib import Path

LOCK_NAME = "koboshi.lock"


def is_held(home: Path) -> bool:
    """Whether a process owns the home. Looking takes the lock for an instant, which a gateway that
    starts meanwhile waits for."""
    try:
        with (home / LOCK_NAME).open("rb") as lock:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    return False


def lock_holders(lock: Path) -> tuple[int, ...]:
    """The processes that have the lock open, as far as we may look."""
    try:
        wanted = lock.stat()
        pids = sorted(int(each.name) for each in Path("/proc").iterdir() if each.name.isdigit())
    except OSError:
        return ()
    return tuple(pid for pid in pids if _has_open(pid, wanted))


def _has_open(pid: int, wanted: os.stat_result) -> bool:
    try:
        for descriptor in Path(f"/proc/{pid}/fd").iterdir():
            if _is_same(descriptor, wanted):
                return True
    except OSError:
        return False
    return False


def _is_same(descriptor: Path, wanted: os.stat_result) -> bool:
    try:
        return os.path.samestat(descriptor.stat(), wanted)
    except OSError:
        return False
