"""Which files a process has open."""

import os
from pathlib import Path


def has_open(pid: int, file: os.stat_result) -> bool:
    """Whether a process has a file open."""
    try:
        descriptors = list(Path(f"/proc/{pid}/fd").iterdir())
        return any(_same(each, file) for each in descriptors)
    except OSError:
        return False


def _same(descriptor: Path, file: os.stat_result) -> bool:
    try:
        return os.path.samestat(descriptor.stat(), file)
    except OSError:
        return False
