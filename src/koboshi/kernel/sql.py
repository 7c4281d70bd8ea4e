"""Named queries from `.sql` files: one block per query, under a sentence that describes it.

A list of columns that several queries select has a block of its own, `-- columns: turn`. A query
writes `{turn}` for it, or `{t.turn}` where the table has the alias `t`. So the columns that a
decoder expects stand in one place.

`INDEXED BY` in a query is a hint for SQLite, which would choose another index while it has no
statistics, and a promise that the index fits. It changes no result. A loader for another database
drops all of them (`without_hints`).
"""

import re
from importlib.resources import files

_HINT = re.compile(r"\s+INDEXED BY \w+")
_BLOCK = re.compile(r"^-- (?P<kind>name|columns): (?P<name>\w+)\n", re.MULTILINE)
_COLUMNS = re.compile(r"\{(?:(?P<alias>\w+)\.)?(?P<name>\w+)\}")


def load_queries(package: str, file_name: str) -> dict[str, str]:
    """The queries of a file by name. Raises ValueError for a block without a description, a name
    that is there twice, and columns that are not there."""
    text = files(package).joinpath(file_name).read_text(encoding="utf-8")
    return parse_queries(text)


def parse_queries(text: str) -> dict[str, str]:
    """The same for the text of a file."""
    found: dict[str, dict[str, str]] = {"name": {}, "columns": {}}
    marks = list(_BLOCK.finditer(text))
    for mark, following in zip(marks, [*marks[1:], None], strict=True):
        block = text[mark.end() : following.start() if following else len(text)]
        lines = block.strip().splitlines()
        description = [line for line in lines if line.startswith("--")]
        statement = "\n".join(line for line in lines if not line.startswith("--")).strip()
        if not description or not statement.endswith(";"):
            raise ValueError(f"query {mark['name']!r} wants a description and a final semicolon")
        if mark["name"] in found[mark["kind"]]:
            raise ValueError(f"query {mark['name']!r} is there twice")
        found[mark["kind"]][mark["name"]] = statement
    columns = {name: statement.rstrip(";") for name, statement in found["columns"].items()}
    return {name: _with_columns(query, columns) for name, query in found["name"].items()}


def _with_columns(query: str, columns: dict[str, str]) -> str:
    """The query with its lists of columns, each column behind the alias of its table."""

    def written_out(mark: re.Match[str]) -> str:
        if mark["name"] not in columns:
            raise ValueError(f"no list of columns is named {mark['name']!r}")
        listed = columns[mark["name"]]
        return re.sub(r"\b(?=\w)", f"{mark['alias']}.", listed) if mark["alias"] else listed

    return _COLUMNS.sub(written_out, query)


def without_hints(statement: str) -> str:
    """The statement for a database that chooses its indexes itself."""
    return _HINT.sub("", statement)
