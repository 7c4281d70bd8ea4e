"""Reading what a dead gateway left in its home, from a copy: nothing there is touched."""

import shutil
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import apsw

from koboshi.stores.sql import load_queries
from koboshi.torture.errands import LEDGER
from koboshi.torture.seen import DeliveryRow, EntryRow, ProcessRow, Remains, TurnRow

Row = TypeVar("Row")

FILES = ("koboshi.db", "koboshi.db-wal", "koboshi.db-journal")
"""The logs are part of the truth: the second is there while a new file is made. The file of shared
memory is made anew from them."""

_QUERIES = load_queries("koboshi.torture", "queries.sql")


def read_remains(home: Path) -> Remains:
    """All rows that the check looks at."""
    with _copied(home) as path:
        connection = apsw.Connection(str(path))
        try:
            return Remains(
                entries=_rows(connection, "entries", EntryRow),
                turns=_rows(connection, "turns", TurnRow),
                deliveries=_rows(connection, "deliveries", DeliveryRow),
                processes=_rows(connection, "processes", ProcessRow),
                heard=dict(connection.execute(_QUERIES["heard"])),
                damage=_damage(connection),
            )
        finally:
            connection.close()


def read_ledger(workdir: Path) -> Counter[str]:
    """How many lines each command left."""
    file = workdir / LEDGER
    return Counter(file.read_text(encoding="utf-8").splitlines() if file.exists() else [])


def has_runners(home: Path) -> bool:
    """Whether a command of this home still runs."""
    folders = [each for each in (home / "processes").glob("*") if (each / "born.json").exists()]
    return any(not (folder / "exit.json").exists() for folder in folders)


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
