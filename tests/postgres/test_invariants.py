"""States that cannot be stored: what SQLite refuses, PostgreSQL refuses, too, although its checks
are functions and its triggers are written by the translation."""

import re

import psycopg
import pytest
from psycopg import errors

from tests.harness.forbidden_rows import REFUSED, with_turns
from tests.harness.forbidden_words import MESSAGES
from tests.harness.homes import Home
from tests.harness.lost_pointers import POINTING_NOWHERE
from tests.harness.postgres_backend import PostgresBackend

KINDS: dict[str, type[psycopg.Error]] = {
    "CHECK": errors.CheckViolation,
    "UNIQUE": errors.UniqueViolation,
    "INDEX": errors.UniqueViolation,
    "TRIGGER": errors.CheckViolation,
}


_WITH_FIXED = re.compile(r"SELECT ([^;]*?), \* FROM \(VALUES\s*(\([^;]*\))\)(?=\s*(?:;|$))")
"""Rows that share their first values: without a type of its own, a NULL among them is a text."""


def _written_out(found: re.Match[str]) -> str:
    return "VALUES " + found[2].replace("(", f"({found[1]}, ")


@pytest.fixture
async def backend(home: Home) -> PostgresBackend:
    await with_turns(home)
    assert isinstance(home.backend, PostgresBackend)
    return home.backend


def refusal(backend: PostgresBackend, statement: str) -> psycopg.Error | None:
    """Why a statement is refused; None if it would be stored."""
    past = backend.database.past
    past.execute("BEGIN")
    try:
        past.execute(_WITH_FIXED.sub(_written_out, statement).encode())
    except psycopg.Error as error:
        return error
    finally:
        past.execute("ROLLBACK")
    return None


async def test_what_must_not_be_is_refused(backend: PostgresBackend) -> None:
    surprises = []
    for table, attempts in REFUSED.items():
        for name, statement in attempts:
            found = refusal(backend, statement)
            kind = name.split()[0]
            words = MESSAGES.get(name, "") if kind == "TRIGGER" else ""
            if not isinstance(found, KINDS[kind]) or words not in str(found):
                surprises.append((table, name, found))

    assert surprises == []


async def test_nothing_points_to_what_is_not_there(backend: PostgresBackend) -> None:
    found = {name: refusal(backend, each) for name, each in POINTING_NOWHERE.items()}

    kinds = {name: type(each) for name, each in found.items()}
    assert kinds == dict.fromkeys(POINTING_NOWHERE, errors.ForeignKeyViolation)
