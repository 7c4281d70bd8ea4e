"""What is read of a home is what the next life would find there."""

import shutil
from pathlib import Path

import apsw

from tests.harness.rows import read_rows


def test_a_rollback_log_is_part_of_what_a_dead_gateway_left(tmp_path: Path) -> None:
    """Killed while it changed a file that has no other log yet: what was written is taken back."""
    alive, dead = tmp_path / "alive", tmp_path / "dead"
    alive.mkdir()
    connection = apsw.Connection(str(alive / "koboshi.db"))
    connection.execute("CREATE TABLE workers (worker_id INTEGER PRIMARY KEY, version TEXT)")
    connection.execute("INSERT INTO workers VALUES (1, 'old'), (2, 'old')")
    connection.pragma("cache_size", 1)
    connection.execute("BEGIN")
    for number in range(3, 500):
        connection.execute("INSERT INTO workers VALUES (?, ?)", (number, "new" * 500))
    connection.execute("UPDATE workers SET version = 'new'")
    assert (alive / "koboshi.db-journal").stat().st_size > 0

    shutil.copytree(alive, dead)
    connection.close()
    rows = read_rows(dead)

    assert [row["version"] for row in rows.workers] == ["old", "old"]
    assert rows.damage == []
