"""The rows read from a home are those that the next life would find."""

import shutil
from pathlib import Path
from shutil import copyfile

import apsw
import pytest

from tests.harness.rows import read_rows


def test_a_rollback_log_is_part_of_what_a_dead_gateway_left(tmp_path: Path) -> None:
    """Killed while it changed a file that has no other log yet: what was written is taken back."""
    alive, dead = tmp_path / "alive", tmp_path / "dead"
    alive.mkdir()
    connection = apsw.Connection(str(alive / "koboshi.db"))
    connection.execute("CREATE TABLE workers (worker_id INTEGER PRIMARY KEY, version TEXT)")
    with connection:
        for number in range(300):
            connection.execute("INSERT INTO workers VALUES (?, ?)", (number, "old" * 500))
    connection.pragma("cache_size", 1)
    connection.execute("BEGIN")
    connection.execute("UPDATE workers SET version = replace(version, 'old', 'new')")
    assert (alive / "koboshi.db-journal").stat().st_size > 0

    shutil.copytree(alive, dead)
    connection.close()
    rows = read_rows(dead)

    assert {row["version"] for row in rows.workers} == {"old" * 500}
    assert rows.damage == []


def test_rows_of_a_home_that_is_written_to_are_of_one_moment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Issue 12, C19: between the copy of the file and that of its log, the log is moved into the
    file and begun anew. The two copies do not belong together."""
    connection = apsw.Connection(str(tmp_path / "koboshi.db"))
    connection.pragma("journal_mode", "wal")
    connection.execute("CREATE TABLE workers (worker_id INTEGER PRIMARY KEY, version TEXT)")
    rows = [(number, "first" * 500) for number in range(300)]
    connection.executemany("INSERT INTO workers VALUES (?, ?)", rows)
    versions = iter(("second", "third"))

    def copy_and_write(source: Path, copy: Path) -> None:
        copyfile(source, copy)
        if source.name == "koboshi.db":
            for version in versions:
                connection.execute("UPDATE workers SET version = ?", (version * 500,))
                connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_RESTART)
            connection.execute("UPDATE workers SET version = ? WHERE worker_id = 1", ("last",))

    monkeypatch.setattr(shutil, "copyfile", copy_and_write)
    seen = read_rows(tmp_path)
    connection.close()

    assert seen.damage == []
    assert {row["version"] for row in seen.workers} == {"third" * 500, "last"}
