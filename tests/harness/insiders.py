"""The processes of a command as the machine knows them. Inside a boundary they have other pids."""

import json
from pathlib import Path

from koboshi.processes.files import ProcessFiles
from koboshi.runner.tree import START, find_tree, stat_of


def living_of(folder: Path) -> set[int]:
    """What lives of the command whose runner has this folder."""
    files = ProcessFiles(folder)
    born = [each for each in (files.read_birth(), files.read_keeper()) if each is not None]
    alive = [
        each.pid
        for each in born
        if (stat := stat_of(each.pid)) and int(stat[START]) == each.start_ticks
    ]
    return set(find_tree(files.read_marker(), tuple(alive), child=files.read_child()))


def true_pid(folder: Path, inside: int) -> int | None:
    """The pid of the living process that calls itself `inside`; None if there is none."""
    runner = json.loads((folder / "born.json").read_text(encoding="utf-8"))["pid"]
    found = find_tree(b"", (runner,))
    return next((pid for pid in found if _innermost(pid) == inside), None)


def _innermost(pid: int) -> int:
    try:
        lines = Path(f"/proc/{pid}/status").read_text(encoding="utf-8").splitlines()
    except OSError:
        return 0
    return next((int(line.split()[-1]) for line in lines if line.startswith("NSpid:")), pid)
