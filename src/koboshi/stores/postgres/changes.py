"""A numbered change of the schema in the dialect of PostgreSQL.

A script for SQLite is translated. What a script for SQLite does by making a table anew, because
SQLite cannot change a constraint, is less here: the checks of a table are a function, and all
functions of checks and triggers are made anew behind the last script. So of a table that is made
anew only its new columns are added, and its rows are unique in the new way. Rows are not copied.

No check and no trigger acts while scripts run. A script that cannot be translated is refused when
it is loaded, which a test does. Then `postgres/migrations/` has a script of the same number
instead: named blocks with one statement each.
"""

import re
from collections.abc import Iterator
from functools import cache

from koboshi.kernel.sql import load_queries, parse_queries
from koboshi.stores.migration_scripts import migration_scripts, numbered_scripts
from koboshi.stores.postgres.schema import (
    COMMENT,
    column_statements,
    columns_in,
    index_statements,
    rule_names,
    rule_statements,
    table_statements,
    unique_statements,
)
from koboshi.stores.postgres.translate import in_dialect

_STATEMENT = re.compile(r"\s*(CREATE TRIGGER.*?\bEND;|[^;]+;)", re.DOTALL)
_TABLE = re.compile(r"CREATE TABLE (\w+) \((.*)\) STRICT", re.DOTALL)
_RENAMED = re.compile(r"ALTER TABLE (\w+) RENAME TO (\w+);")
_ADDED = re.compile(r"ALTER TABLE (\w+) ADD COLUMN (.*);", re.DOTALL)
_COPY = re.compile(r"INSERT INTO (\w+) \(([^()]*)\)\s+SELECT (.*?)\s+FROM (\w+)\b", re.DOTALL)
_NOT_HERE = ("CREATE TRIGGER", "DROP TRIGGER", "CREATE VIRTUAL TABLE")
"""Triggers are made anew behind all scripts. The index of words is each store's own."""
_FUNCTION = "CREATE FUNCTION"
_DATA = ("UPDATE ", "INSERT INTO ", "DELETE FROM ")


class Untranslatable(Exception):
    """The change needs a script of its own."""


def statements_from(version: int, newest: int) -> Iterator[str]:
    """What brings the tables of an earlier version to the newest."""
    for name in rule_names(migration_scripts().values()):
        yield f"DROP FUNCTION IF EXISTS {name}() CASCADE"
    for following in range(version + 1, newest + 1):
        yield from change_to(following)
    for each in load_queries("koboshi.stores.postgres", "own_schema.sql").values():
        if each.startswith(_FUNCTION):
            yield each.replace(_FUNCTION, "CREATE OR REPLACE FUNCTION", 1)
    yield from rule_statements()


@cache
def change_to(version: int) -> tuple[str, ...]:
    """The statements that lead from the version before to this one. Raises Untranslatable."""
    own = numbered_scripts("postgres")
    if version in own:
        return tuple(parse_queries(own[version]).values())
    return tuple(translated(migration_scripts()[version]))


def translated(script: str) -> Iterator[str]:
    """The same change for PostgreSQL. Raises Untranslatable."""
    plain = COMMENT.sub("", script)
    statements = [each.strip() for each in _STATEMENT.findall(plain)]
    bodies = {
        found[1]: found[2] for each in statements if (found := _TABLE.match(each)) is not None
    }
    anew = {
        found[1]: found[2]
        for each in statements
        if (found := _RENAMED.match(each)) is not None and found[1] in bodies
    }
    for statement in statements:
        yield from _translated(statement, bodies, anew)


def _translated(statement: str, bodies: dict[str, str], anew: dict[str, str]) -> Iterator[str]:
    if statement.startswith(_NOT_HERE):
        return
    if found := _TABLE.match(statement):
        yield from _table(found[1], found[2], anew)
    elif found := _RENAMED.match(statement):
        if found[1] not in anew:
            raise Untranslatable(f"a table gets another name: {statement}")
    elif statement.startswith("DROP TABLE "):
        if statement.removeprefix("DROP TABLE ").rstrip(";") not in anew.values():
            raise Untranslatable(f"a table is removed: {statement}")
    elif found := _ADDED.match(statement):
        yield from column_statements(found[1], found[2])
    elif statement.startswith(("CREATE INDEX", "CREATE UNIQUE INDEX")):
        yield from index_statements(statement, bodies)
    elif statement.startswith("DROP INDEX "):
        yield f"DROP INDEX IF EXISTS {statement.removeprefix('DROP INDEX ').rstrip(';')}"
    elif (found := _COPY.match(statement)) and found[1] in anew:
        _refuse_changed(found)
    elif statement.startswith(_DATA) and "chat_key(" not in statement:
        yield in_dialect(statement.rstrip(";"))
    else:
        raise Untranslatable(statement)


def _table(name: str, body: str, anew: dict[str, str]) -> Iterator[str]:
    if name not in anew:
        yield from table_statements(name, body)
        return
    for definition in columns_in(body).values():
        yield from column_statements(anew[name], definition)
    yield from unique_statements(anew[name], body)


def _refuse_changed(copy: re.Match[str]) -> None:
    """A copy that is none: here the rows stay where they are, as they are."""
    if copy[2].replace(" ", "").split() != copy[3].replace(" ", "").split():
        raise Untranslatable(f"rows are changed while they are copied: {copy[0]}")
