"""The numbered scripts that bring a database from one schema to the next. One number names the same
change in every store. Each script is written for SQLite. PostgreSQL translates it, or has a script
of its own with that number."""

from functools import cache
from importlib.resources import files

FIRST_VERSION = 1


@cache
def migration_scripts() -> dict[int, str]:
    """The scripts for SQLite by the version that each one leads to."""
    return numbered_scripts("sqlite")


def newest_version() -> int:
    """The version of the schema that this program works with."""
    return max(migration_scripts(), default=FIRST_VERSION)


def numbered_scripts(store: str) -> dict[int, str]:
    """The scripts of one store."""
    scripts = {}
    for script in files("koboshi.stores").joinpath(store, "migrations").iterdir():
        number, _, _ = script.name.partition("_")
        if script.name.endswith(".sql") and number.isdigit():
            scripts[int(number)] = script.read_text(encoding="utf-8")
    return scripts
