"""Whether enough files can be open at once for a gateway to begin."""

import os
import resource
from pathlib import Path

FILES_MIN = 48
"""The store, the sockets and the event loop take half of them; the rest is for the first people,
and for commands."""


def too_few_files() -> str:
    """What is wrong with the limit on open files; empty if nothing is. Below the minimum the
    event loop itself cannot be made, and ends the process without a word."""
    limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if limit == resource.RLIM_INFINITY:
        return ""
    left = limit - _open_now()
    if left >= FILES_MIN:
        return ""
    return (
        f"only {max(left, 0)} more files can be open at once (the limit is {limit}), and a gateway "
        f"needs {FILES_MIN}; raise it, with `ulimit -n 1024` or LimitNOFILE= in the unit"
    )


def _open_now() -> int:
    for folder in (Path("/proc/self/fd"), Path("/dev/fd")):
        try:
            return len(os.listdir(folder))
        except OSError:
            continue
    return 0
