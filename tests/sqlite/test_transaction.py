"""What the transaction on a SQLite connection knows without asking the database."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import apsw
import apsw.ext
import pytest

from koboshi.stores.sqlite.file import DATABASE_NAME, open_writer
from koboshi.stores.sqlite.transaction import QUERIES, SqliteTransaction, names_in
from tests.harness.golden import lay_out_every_state


@pytest.fixture
def connection(tmp_path: Path) -> Iterator[apsw.Connection]:
    lay_out_every_state(tmp_path)
    connection = open_writer(tmp_path / DATABASE_NAME)
    yield connection
    connection.close()


def add_step(tx: SqliteTransaction) -> int:
    seq = tx.next_step()
    place = {"session_id": 1, "turn_id": 1, "epoch": 0}
    tx.change("step_insert", seq=seq, **place, kind="reply", cause="model", body="{}", now=1)
    return seq


def newest_step(connection: apsw.Connection) -> int:
    found = connection.execute("SELECT max(seq) FROM steps").get
    assert isinstance(found, int)
    return found


def test_values_are_handed_over_in_the_order_in_which_sqlite_numbers_them(
    connection: apsw.Connection,
) -> None:
    for name, query in QUERIES.items():
        known = apsw.ext.query_info(connection, query)
        assert known.query_remaining is None, name
        assert known.bindings_names == names_in(query), name


def test_the_number_of_the_next_step_stays_until_a_step_has_it(connection: apsw.Connection) -> None:
    tx, newest = SqliteTransaction(connection), newest_step(connection)

    assert [tx.next_step(), tx.next_step()] == [newest + 1] * 2
    assert [add_step(tx), add_step(tx)] == [newest + 1, newest + 2]
    assert newest_step(connection) == newest + 2
    assert tx.next_step() == newest + 3


def test_the_numbers_of_one_transaction_cost_one_question(connection: apsw.Connection) -> None:
    tx, asked = SqliteTransaction(connection), list[str]()
    connection.trace_v2(
        apsw.SQLITE_TRACE_STMT,
        lambda event: asked.append(str(event["sql"])),
    )
    for _ in range(5):
        add_step(tx)
    connection.trace_v2(0, None)

    assert asked.count(QUERIES["step_next"]) == 1


def test_what_was_undone_leaves_no_gap_in_the_numbers(connection: apsw.Connection) -> None:
    tx, newest = SqliteTransaction(connection), newest_step(connection)
    connection.execute("SAVEPOINT operation")
    add_step(tx)
    connection.execute("ROLLBACK TO operation")
    connection.execute("RELEASE operation")
    tx.forget()

    assert add_step(tx) == newest + 1


LOADS_THE_STORE = """
import apsw
earlier = apsw.Connection(":memory:") if {is_earlier} else None
import koboshi.stores.sqlite.file
connection = earlier or apsw.Connection(":memory:")
assert connection.execute("SELECT 1").get == 1
print(apsw.memory_used() > 0)
"""


@pytest.mark.parametrize("is_earlier", [False, True])
def test_sqlite_counts_its_memory_only_where_a_connection_was_open_before(
    *, is_earlier: bool
) -> None:
    """A library that is in use is left as it is."""
    script = LOADS_THE_STORE.format(is_earlier=is_earlier)
    ended = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=True
    )

    assert ended.stdout.strip() == str(is_earlier)
