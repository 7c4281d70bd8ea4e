"""Named queries from `.sql` files: one block per query, under a sentence that describes it.

`INDEXED BY` in a query is a hint for SQLite, which would choose another index while it has no
statistics, and a promise that the index fits. It changes no result. A loader for another database
drops all of them (`without_hints`).
"""

import re
from importlib.resources import files

_HINT = re.compile(r"\s+INDEXED BY \w+")
_BLOCK = re.compile(r"^-- name: (?P<name>\w+)\n", re.MULTILINE)


def load_queries(package: str, file_name: str) -> dict[str, str]:
    """The queries of a file by name. Raises ValueError for one without a description or a name
    that is there twice."""
    text = files(package).joinpath(file_name).read_text(encoding="utf-8")
    found: dict[str, str] = {}
    marks = list(_BLOCK.finditer(text))
    for mark, following in zip(marks, [*marks[1:], None], strict=True):
        block = text[mark.end() : following.start() if following else len(text)]
        lines = block.strip().splitlines()
        description = [line for line in lines if line.startswith("--")]
        statement = "\n".join(line for line in lines if not line.startswith("--")).strip()
        if not description or not statement.endswith(";"):
            raise ValueError(f"query {mark['name']!r} wants a description and a final semicolon")
        if mark["name"] in found:
            raise ValueError(f"query {mark['name']!r} is there twice")
        found[mark["name"]] = statement
    return found


def without_hints(statement: str) -> str:
    """The statement for a database that chooses its indexes itself."""
    return _HINT.sub("", statement)
