"""Issue 14: the columns of a table stand in one place, and its decoder expects exactly these."""

import re
from dataclasses import fields

import pytest

from koboshi.kernel.delivery_rows import OwedRow
from koboshi.kernel.queries import QUERIES
from koboshi.kernel.rows import EntryRow, TurnRow
from koboshi.kernel.sql import parse_queries

LISTED = """
-- columns: pair
-- Two of them.
one,
two;

-- name: plain
-- Without an alias.
SELECT {pair} FROM pairs;

-- name: joined
-- With one.
SELECT p.three, {p.pair} FROM pairs AS p;
"""


def test_a_list_of_columns_is_written_out_behind_the_alias_of_its_table() -> None:
    queries = {name: " ".join(query.split()) for name, query in parse_queries(LISTED).items()}

    assert queries == {
        "plain": "SELECT one, two FROM pairs;",
        "joined": "SELECT p.three, p.one, p.two FROM pairs AS p;",
    }


def test_columns_that_are_not_there_are_refused() -> None:
    with pytest.raises(ValueError, match="no list of columns is named 'trio'"):
        parse_queries("-- name: wrong\n-- Of three.\nSELECT {trio} FROM pairs;\n")


@pytest.mark.parametrize(
    "query,expected",
    [
        ("turn_by_id", [field.name for field in fields(TurnRow)]),
        ("view_entry", list(EntryRow._fields)),
        ("delivery_head", list(OwedRow._fields)),
    ],
)
def test_a_row_has_the_fields_that_its_query_selects(query: str, expected: list[str]) -> None:
    listed = QUERIES[query].partition("FROM")[0].removeprefix("SELECT")
    assert [re.sub(r"\w+\.", "", each.strip()) for each in listed.split(",")] == expected
