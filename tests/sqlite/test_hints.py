"""`INDEXED BY` is a hint: a store that drops all of them answers the same."""

import re
from pathlib import Path

import apsw
import pytest

from koboshi.kernel.queries import QUERIES
from koboshi.kernel.sql import without_hints
from koboshi.kernel.transaction import Value
from koboshi.stores.sqlite.file import DATABASE_NAME, open_writer
from tests.harness.golden import lay_out_every_state

HINTED = sorted(name for name, query in QUERIES.items() if without_hints(query) != query)
LARGE, NEWEST = 2**61, 2**53
VALUES: dict[str, Value] = {"limit": 1_000, "before": NEWEST, "before_ms": LARGE, "now": LARGE}
"""So that as much as possible is found; what is named by an id is tried with each of a few."""


@pytest.fixture(scope="module")
def connection(tmp_path_factory: pytest.TempPathFactory) -> apsw.Connection:
    home: Path = tmp_path_factory.mktemp("home")
    lay_out_every_state(home)
    return open_writer(home / DATABASE_NAME)


def values_for(query: str, number: int) -> dict[str, Value]:
    return {name: VALUES.get(name, number) for name in re.findall(r":(\w+)", query)}


def test_many_queries_have_hints() -> None:
    assert len(HINTED) > 20
    assert not any("INDEXED" in without_hints(QUERIES[name]) for name in HINTED)


@pytest.mark.parametrize("name", HINTED)
def test_a_query_without_its_hints_finds_the_same(connection: apsw.Connection, name: str) -> None:
    """Issue 14, 2: on the database that has every state. What writes is undone."""
    query = QUERIES[name]
    for number in (0, 1, 2, 3, 7):
        values = values_for(query, number)
        found = []
        for text in (query, without_hints(query)):
            connection.execute("BEGIN")
            rows = connection.execute(text, values).fetchall()
            found.append((sorted(rows, key=repr), connection.changes()))
            connection.execute("ROLLBACK")
        assert found[0] == found[1], values
