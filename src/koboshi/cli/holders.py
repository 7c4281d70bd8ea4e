"""Which processes have a home's lock open."""

import os
from pathlib import Path


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
