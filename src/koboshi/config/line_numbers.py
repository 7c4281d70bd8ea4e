"""On which line a key stands. `tomllib` reads the values but does not tell."""

import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

KeyPath: TypeAlias = tuple[str, ...]

_DEPTH_MAX = 16  # no known key is that deep; keeps a hostile file from costing more than it weighs

_TOKEN = re.compile(
    r"""
      (?P<text> \"{3} (?: \\. | [^\\] )*? \"{3,5} | '{3} .*? '{3,5}
              | " (?: \\. | [^"\\\n] )* " | ' [^'\n]* ' )
    | (?P<word> [A-Za-z0-9_-]+ )
    | (?P<mark> [][{}=,\n] )
    | \#[^\n]* | .
    """,
    re.VERBOSE | re.DOTALL,
)


def line_numbers(text: str) -> Mapping[KeyPath, int]:
    """The line (from 1) of every key and table in `text`, which must be valid TOML.

    Tables, dotted keys and keys of inline tables are found. Of a repeated key (arrays of tables)
    the first line counts.
    """
    scan = _Scan()
    for kind, token, line in _tokens(text):
        if scan.in_value:
            scan.read_value(kind, token)
        else:
            scan.read_key(kind, token, line)
    return scan.found


def line_of(path: KeyPath, lines: Mapping[KeyPath, int]) -> int | None:
    """The line of `path`, or of the nearest table around it."""
    for length in range(len(path), 0, -1):
        if path[:length] in lines:
            return lines[path[:length]]
    return None


@dataclass(slots=True)
class _Scan:
    """Where the reader is: in a key or in a value, and inside which brackets of that value."""

    found: dict[KeyPath, int] = field(default_factory=dict)
    table: KeyPath = ()  # of the last [header]
    parts: list[str] = field(default_factory=list)  # of the key being read
    key_line: int = 0
    in_header: bool = False
    in_value: bool = False
    around: list[KeyPath | None] = field(default_factory=list)  # inline tables; None = a list

    def read_key(self, kind: str, token: str, line: int) -> None:
        if kind != "mark":
            if not self.parts:
                self.key_line = line
            self.parts.append(_plain(token) if kind == "text" else token)
        elif token == "=":
            self.parts = [*self._base(), *self.parts][:_DEPTH_MAX]
            self._note(tuple(self.parts))
            self.in_value = True
        elif token == "[":
            self.in_header = True
        elif token == "]" and self.in_header and self.parts:
            self.table = tuple(self.parts[:_DEPTH_MAX])
            self._note(self.table)
            self.parts, self.in_header = [], False
        elif token == "}":
            self._close()

    def read_value(self, kind: str, token: str) -> None:
        if kind != "mark":
            return
        if token == "{":
            self.around.append(tuple(self.parts))
            self.parts, self.in_value = [], False
        elif token == "[":
            self.around.append(None)
        elif token in "]}":
            self._close()
        elif token == ("," if self.around else "\n") and not self._is_in_list():
            self.parts, self.in_value = [], False

    def _base(self) -> KeyPath:
        inner = self.around[-1] if self.around else None
        return self.table if inner is None else inner

    def _is_in_list(self) -> bool:
        return bool(self.around) and self.around[-1] is None

    def _close(self) -> None:
        """A bracket of a value ends: go on reading the value around it."""
        inner = self.around.pop() if self.around else None
        self.parts = list(inner) if inner is not None else self.parts
        self.in_value = True

    def _note(self, path: KeyPath) -> None:
        for length in range(1, len(path) + 1):
            self.found.setdefault(path[:length], self.key_line)


def _tokens(text: str) -> Iterator[tuple[str, str, int]]:
    line = 1
    for match in _TOKEN.finditer(text):
        kind, token = match.lastgroup, match.group()
        if kind is not None:
            yield kind, token, line
        line += token.count("\n")


def _plain(quoted: str) -> str:
    """A quoted key without its quotes; TOML's own rules undo its escapes."""
    value: object = tomllib.loads(f"key = {quoted}")["key"]
    return str(value)
