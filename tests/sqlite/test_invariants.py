"""States that cannot be stored: each constraint of the schema is tried by hand, on a real file.

`tests/harness/forbidden_rows.py` names every CHECK, UNIQUE, primary key and guarding trigger of
`schema.sql`, with a statement that would write what it makes impossible.
"""

import re
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path

import apsw
import pytest

from tests.harness.backends import SqliteBackend
from tests.harness.forbidden_rows import REFUSED, STEP, with_turns
from tests.harness.forbidden_words import message_of
from tests.harness.homes import Home, OpenHome
from tests.harness.lost_pointers import POINTING_NOWHERE

SCHEMA = files("koboshi.kernel").joinpath("schema.sql").read_text(encoding="utf-8")


@pytest.fixture
async def database(open_home: OpenHome) -> Home:
    """Turn 1 is done, turn 2 runs with two proposed calls, turn 3 waits for its question."""
    return await with_turns(await open_home())


def connect(home: Home) -> apsw.Connection:
    assert isinstance(home.backend, SqliteBackend)
    connection = apsw.Connection(str(home.backend.path / "koboshi.db"))
    connection.execute("PRAGMA foreign_keys = ON")
    return connection


async def try_all(home: Home, attempts: list[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    """The statements that were not refused as expected, with what happened instead."""
    await home.store.close()
    connection, surprises = connect(home), []
    for statement, expected in attempts:
        connection.execute("BEGIN")
        try:
            connection.execute(statement)
            surprises.append((statement, "it was stored"))
        except apsw.ConstraintError as error:
            if expected not in " ".join(str(error).split()):
                surprises.append((statement, str(error)))
        connection.execute("ROLLBACK")
    connection.close()
    await home.boot()
    return iter(surprises)


@pytest.mark.parametrize("table", REFUSED)
async def test_what_must_not_be_is_refused(database: Home, table: str) -> None:
    """S10, S35, S163: whatever the code does, these states cannot be written."""
    attempts = [(statement, message_of(name)) for name, statement in REFUSED[table]]

    assert list(await try_all(database, attempts)) == []


def test_every_constraint_of_the_schema_is_tried() -> None:
    tried = {(table, name) for table, attempts in REFUSED.items() for name, _ in attempts}

    assert set(constraints()) == tried


def constraints() -> Iterator[tuple[str, str]]:
    """(table, name) of everything in the schema that refuses a write, named as above."""
    for table, body in re.findall(r"CREATE TABLE (\w+) \((.*?)\n\) STRICT", SCHEMA, re.DOTALL):
        lines = re.sub(r"--[^\n]*", "", body)
        for found in re.finditer(r"CHECK \(", lines):
            yield table, "CHECK " + " ".join(inside(lines, found.end()).split())
        for columns in re.findall(r"(?:UNIQUE|PRIMARY KEY) \(([^)]*)\)", lines):
            named = ", ".join(f"{table}.{column.strip()}" for column in columns.split(","))
            yield table, f"UNIQUE {named}"
        for column in re.findall(r"(\w+)\s+TEXT PRIMARY KEY", lines):
            yield table, f"UNIQUE {table}.{column}"
    for index, table in re.findall(r"CREATE UNIQUE INDEX (\w+) ON (\w+)", SCHEMA):
        yield table, f"INDEX {index}"
    guards = r"CREATE TRIGGER (\w+) BEFORE UPDATE (?:OF \w+ )?ON (\w+)"
    for trigger, table in re.findall(guards, SCHEMA):
        yield table, f"TRIGGER {trigger}"


def inside(text: str, begin: int) -> str:
    """What stands between the parenthesis before `begin` and the one that closes it."""
    depth = 1
    for place in range(begin, len(text)):
        depth += {"(": 1, ")": -1}.get(text[place], 0)
        if depth == 0:
            return text[begin:place]
    raise AssertionError("a parenthesis is not closed")


async def test_nothing_points_to_what_is_not_there(database: Home) -> None:
    """S40: no turn without a session, no watcher without a process: nothing is originless."""
    attempts = [(statement, "FOREIGN KEY") for statement in POINTING_NOWHERE.values()]

    assert list(await try_all(database, attempts)) == []


def test_every_reference_of_the_schema_is_tried() -> None:
    named = set()
    for table, body in re.findall(r"CREATE TABLE (\w+) \((.*?)\n\) STRICT", SCHEMA, re.DOTALL):
        columns = re.findall(r"(\w+)\s+INTEGER(?: NOT NULL)? REFERENCES", body)
        named |= {f"{table}.{column}" for column in columns}

    assert named == set(POINTING_NOWHERE)


@pytest.mark.parametrize("column", ["channel", "chat", "thread"])
async def test_a_route_is_never_half_known(database: Home, column: str) -> None:
    """S35, S40, S123: what is needed to find the way back cannot be missing."""
    attempt = (f"UPDATE sessions SET {column} = NULL", "NOT NULL constraint failed")

    assert list(await try_all(database, [attempt])) == []


async def test_a_time_is_a_time(database: Home) -> None:
    """S35, S49: neither missing nor malformed."""
    attempts = [
        ("UPDATE turns SET progressed_ms = NULL WHERE turn_id = 2", "NOT NULL"),
        ("UPDATE turns SET progressed_ms = 'soon' WHERE turn_id = 2", "cannot store TEXT"),
        ("UPDATE turns SET opened_ms = 1.5 WHERE turn_id = 2", "cannot store REAL"),
        (f"{STEP} (1, 2, 1, '{{}}', NULL, 'note', 'x')", "NOT NULL"),
        ("UPDATE workers SET heartbeat_ms = NULL", "NOT NULL"),
    ]

    assert list(await try_all(database, attempts)) == []


def test_the_schema_says_what_each_constraint_is_for() -> None:
    """Every unique index and every guard stands under a comment or raises words."""
    for found in re.finditer(r"\n(CREATE UNIQUE INDEX [^\n]*)", SCHEMA):
        assert SCHEMA[: found.start()].rsplit("\n", 1)[-1].startswith("--"), found[1]


def test_the_schema_is_a_file_of_the_package(tmp_path: Path) -> None:
    connection = apsw.Connection(str(tmp_path / "new.db"))
    connection.execute(SCHEMA)

    assert connection.pragma("integrity_check") == "ok"
    connection.close()
