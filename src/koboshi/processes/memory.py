"""How much memory the processes of commands have, as the system counts it."""

import os
from collections.abc import Mapping

from koboshi.domain.ids import ProcessId
from koboshi.domain.process import Birth
from koboshi.runner.tree import START, family, processes

RESIDENT = 21
"""The pages in memory, in /proc/<pid>/stat, counted after the name."""


def memory_of(births: Mapping[ProcessId, Birth]) -> dict[ProcessId, int]:
    """The resident bytes of each command with all that it started, without its runner. Pages that
    several of them share count for each. Empty where the system does not tell."""
    living = processes() if births else {}
    page = os.sysconf("SC_PAGE_SIZE")
    found = {}
    for process_id, birth in births.items():
        runner = living.get(birth.pid)
        if runner is None or int(runner[START]) != birth.start_ticks:
            continue
        others = {pid: stat for pid, stat in living.items() if pid != birth.pid}
        members = family(others, set(), (birth.pid,))
        found[process_id] = sum(int(others[pid][RESIDENT]) for pid in members) * page
    return found
