"""The kernel's count of processes killed for lack of memory."""

import os
from pathlib import Path

from koboshi.domain.worker import MemoryKills
from koboshi.runner.memory import count_file, kills_in

MACHINE_FILE = "/proc/vmstat"


def count_kills() -> MemoryKills:
    """As it is now, in our group and on the machine."""
    on_machine = kills_in(MACHINE_FILE)
    file = count_file()
    group = _identity(Path(file).parent) if file else None
    return MemoryKills(group=group, in_group=kills_in(file), on_machine=on_machine)


def _identity(folder: Path) -> str | None:
    """Of a group: one that was made anew under the same name is another, and counts from 0."""
    try:
        found = os.stat(folder)
    except OSError:
        return None
    return f"{found.st_dev}:{found.st_ino}"
