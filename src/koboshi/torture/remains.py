"""Reading what a dead gateway left in its home, from a copy: nothing there is touched."""

import json
import os
import random
import re
import shutil
import signal
import tempfile
from collections import Counter
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import apsw

from koboshi.kernel.sql import load_queries
from koboshi.torture.errands import LEDGER
from koboshi.torture.seen import DeliveryRow, JoinedRow, ProcessRow, Remains, SeenEntry, SeenTurn

Row = TypeVar("Row")

FILES = ("koboshi.db", "koboshi.db-wal", "koboshi.db-journal")
"""The logs are part of the truth: the second is there while a new file is made. The file of shared
memory is made anew from them."""

_MARK_ON_WEB = re.compile(r"\bp[0-9]+x[0-9]{5}")
_START = 19
"""Where the start of a process stands in what the kernel tells of it, behind its name."""

_QUERIES = load_queries("koboshi.torture", "queries.sql")


def read_remains(home: Path) -> Remains:
    """All rows that the check looks at."""
    with _copied(home) as path:
        connection = apsw.Connection(str(path))
        try:
            return Remains(
                entries=_rows(connection, "entries", SeenEntry),
                turns=_rows(connection, "turns", SeenTurn),
                deliveries=_rows(connection, "deliveries", DeliveryRow),
                processes=_rows(connection, "processes", ProcessRow),
                heard=dict(connection.execute(_QUERIES["heard"])),
                joined=_rows(connection, "joined", JoinedRow),
                damage=_damage(connection),
            )
        finally:
            connection.close()


def read_ledger(workdir: Path) -> Counter[str]:
    """How many lines each command left."""
    file = workdir / LEDGER
    return Counter(file.read_text(encoding="utf-8").splitlines() if file.exists() else [])


def has_runners(home: Path, killed: Collection[int] = ()) -> bool:
    """Whether a command of this home still runs. Those whose runner was killed never tell."""
    return bool(runners_in(home, killed))


def runners_in(home: Path, killed: Collection[int] = ()) -> tuple[int, ...]:
    """The numbers of the commands of this home that still run."""
    numbers = (int(folder.name) for folder in _folders_at_work(home))
    return tuple(sorted(number for number in numbers if number not in killed))


def kill_a_runner(home: Path, dice: random.Random) -> int | None:
    """Kill the runner of a command that a person on the web has asked for, with SIGKILL. Returns
    the number of the process; None if there is none."""
    folders = [each for each in _folders_at_work(home) if _MARK_ON_WEB.search(_spec_in(each))]
    if not folders:
        return None
    folder = dice.choice(sorted(folders))
    try:
        born = json.loads((folder / "born.json").read_bytes())
        # A number may belong to another program by now: its start tells them apart.
        stat = Path("/proc", str(born["pid"]), "stat").read_text(encoding="utf-8")
        if int(stat.rpartition(")")[2].split()[_START]) != born["start_ticks"]:
            return None
        os.kill(born["pid"], signal.SIGKILL)
    except (OSError, ValueError):
        return None
    return int(folder.name)


def _folders_at_work(home: Path) -> list[Path]:
    born = [each for each in (home / "processes").glob("*") if (each / "born.json").exists()]
    return [folder for folder in born if not (folder / "exit.json").exists()]


def _spec_in(folder: Path) -> str:
    try:
        return (folder / "spec").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


@contextmanager
def _copied(home: Path) -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="koboshi-remains-") as folder:
        for name in FILES:
            if (home / name).exists():
                shutil.copyfile(home / name, Path(folder, name))
        yield Path(folder, FILES[0])


def _rows(connection: apsw.Connection, query: str, make: type[Row]) -> list[Row]:
    cursor = connection.execute(_QUERIES[query])
    found: list[Row] = []
    for values in cursor:
        named: dict[str, Any] = dict(
            zip((column[0] for column in cursor.get_description()), values, strict=True)
        )
        found.append(make(**named))
    return found


def _damage(connection: apsw.Connection) -> list[str]:
    found = [str(row[0]) for row in connection.execute(_QUERIES["integrity"])]
    broken = [f"foreign key: {row}" for row in connection.execute(_QUERIES["foreign_keys"])]
    return [*(words for words in found if words != "ok"), *broken]
