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
