"""The text of the schema as SQLite carries it out best.

SQLite makes a table in memory of a list with more than two values, fills it and throws it away, for
each row that is held against the list: a turn of the agent made 45 of them, a sixth of the
processor time of its store. Comparisons one after the other say the same.
"""

import re

_VALUE = r"(?:'[^']*'|\d+)"
_LIST = re.compile(rf"\b(\w+) IN\s+?\(({_VALUE}(?:,\s*{_VALUE}){{2,}})\)", re.DOTALL)
_SPLIT = re.compile(rf"{_VALUE}")


def plain_checks(text: str) -> str:
    """The same with comparisons in the place of each list that has more than two values."""

    def compared(found: re.Match[str]) -> str:
        column = found[1]
        return f"({' OR '.join(f'{column} = {value}' for value in _SPLIT.findall(found[2]))})"

    return _LIST.sub(compared, text)
