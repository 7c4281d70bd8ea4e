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


def open_below(folder: Path) -> int:
    """How many descriptors of this process lead to the folder or into it. Other ones come and go
    with what earlier tests left behind."""
    return sum(_is_below(descriptor, folder) for descriptor in os.listdir("/proc/self/fd"))


def _is_below(descriptor: str, folder: Path) -> bool:
    try:
        return Path(os.readlink(f"/proc/self/fd/{descriptor}")).is_relative_to(folder)
    except OSError:
        return False
