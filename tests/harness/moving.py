"""`koboshi migrate`, as the tests call it, and what it leaves in a home."""

from pathlib import Path
from typing import Any

import apsw

from tests.cli.process import Ended, koboshi

STEPS = (
    "migrate.staged:after", "imports.commit:before", "imports.commit:after",
    "migrate.placed:after", "migrate.placed:after:3", "imports.finish:before",
    "imports.finish:after",
)  # fmt: skip
"""Where a move can be killed."""


def migrate(source: str, theirs: Path, home: Path, *more: str, **environ: str) -> Ended:
    return koboshi("migrate", source, "--from", str(theirs), "--json", *more, home=home, **environ)


def rows(home: Path, query: str) -> list[tuple[Any, ...]]:
    connection = apsw.Connection(str(home / "koboshi.db"), flags=apsw.SQLITE_OPEN_READONLY)
    try:
        return list(connection.execute(query))
    finally:
        connection.close()


def remains(home: Path) -> dict[str, object]:
    """All that a move leaves, without what a gateway adds."""
    own = ("koboshi.db", "koboshi.lock", "home-id", "control", "web-token", "reserve", "witness")
    files = {
        str(each.relative_to(home)): each.read_text()
        for each in sorted(home.rglob("*"))
        if each.is_file() and not str(each.relative_to(home)).startswith(own)
    }
    people = rows(home, "SELECT channel, person, name, role FROM people ORDER BY person")
    orders = rows(home, "SELECT name, kind, expression, state, due_ms FROM schedules ORDER BY name")
    return {"files": files, "people": people, "schedules": orders, "memory": remembered(home)}


def remembered(home: Path) -> list[tuple[Any, ...]]:
    """Every entry of every memory, with whose it is."""
    return rows(
        home,
        "SELECT s.channel, s.name, m.shelf, m.text, s.revision FROM memories AS m "
        "JOIN memory_scopes AS s USING (scope_id) WHERE m.died IS NULL ORDER BY m.memory_id",
    )
