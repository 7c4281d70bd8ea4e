"""The kernel's queries in the dialect of PostgreSQL, made at load.

`kernel/queries.sql` is the only text. What both databases understand stands there as it is. The
rest is rewritten here, by rules that hold for every query:

* `:name` becomes `$n`. A name that is always a number is cast, and has one number however often it
  occurs. Of any other each occurrence has its own, because the server infers a type for each.
* `INDEXED BY` is dropped. `CROSS JOIN … ON`, which only fixes an order in SQLite, is a join.
* `max` and `min` of several values are `greatest` and `least`. They ignore NULL, where SQLite gives
  NULL: no query of the kernel passes one.
* `GLOB 'x*'` is `LIKE 'x%'`. Values of JSON have the type of their name.
* A condition that is compared with a number becomes one.
* An insert gives the id of its row, which SQLite tells by itself.

Functions that SQLite has and PostgreSQL has not are made in the database (`own_schema.sql`).
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from koboshi.kernel.sql import without_hints

_STRING = re.compile(r"'(?:[^']|'')*'")
_NAME = re.compile(rf"{_STRING.pattern}|(?<!:):([a-z_]+)\b")
_GLOB = re.compile(r"GLOB '([^'*]*)\*'")
_LIST_OF_TEXTS = re.compile(r"json_each\((:channels)\)")
_JSON_VALUE = re.compile(r"json_extract\(([\w.]+), '\$\.(\w+)'\)")
_JSON_SET = re.compile(r"json_set\((\w+), ((?:'\$\.\w+', ''(?:, )?)+)\)")
_JSON_FIELD = re.compile(r"'\$\.(\w+)', ''")
_AS_INTEGER = re.compile(r"CAST\(((?:[^()]|\([^()]*\))+) AS INTEGER\)")
_CONDITION_AS_NUMBER = re.compile(r"(\([^()]* AND [^()]*\)) (= :recovered|IN \(0, 1\))")
_EXTREME = re.compile(r"\b(max|min)\(")
_INSERT = re.compile(r"INSERT INTO (\w+)")
_OF_SEVERAL = {"max": "greatest", "min": "least"}

NUMBERS_IN_JSON = frozenset({"process_id", "question", "seconds", "tokens_in", "tokens_out"})
"""Values of JSON that are compared with numbers."""
LISTS = frozenset({"ids", "turns", "sessions", "bounds_ms"})
"""Parameters that are lists of numbers, as JSON."""
_NUMBERS = frozenset(
    "now limit jump_ms since_ms before_ms spent_ms quiet_ms idle_ms latest_ms begun_ms boot_seq "
    "wrong_max kept kept_max looked_at lines upto newest log_size old_offset old_reports is_heard "
    "batch age_ms everything died progressed renewed strike may_be_there recovered soon_ms "
    "before_turn after_offset before_offset to_person".split()
)
"""Parameters that are numbers and not named as a column."""


@dataclass(frozen=True, slots=True)
class Statement:
    """A query as the server is sent it."""

    text: str
    names: tuple[str, ...]
    """Which parameter each `$n` is."""
    gives_id: bool
    """Whether it is an insert that gives the id of its row."""


@dataclass(frozen=True, slots=True)
class Dialect:
    """What the translation knows of the tables."""

    numbers: frozenset[str]
    """Columns that are numbers, in every table that has them."""
    ids: Mapping[str, str]
    """The column that numbers the rows of a table by itself, by the table."""

    def statement(self, query: str) -> Statement:
        plain = in_dialect(without_hints(query)).rstrip().rstrip(";")
        gives_id = False
        if (found := _INSERT.match(plain)) and found[1] in self.ids:
            plain, gives_id = f"{plain}\nRETURNING {self.ids[found[1]]}", True
        names: list[str] = []
        return Statement(self._numbered(plain, names), tuple(names), gives_id)

    def _numbered(self, text: str, names: list[str]) -> str:
        def number(found: re.Match[str]) -> str:
            name = found[1]
            if name is None:
                return found[0]
            is_number = name in _NUMBERS or name in self.numbers
            if not is_number or name not in names:
                names.append(name)
            if name in LISTS:
                return f"${len(names)}::text"
            return f"${names.index(name) + 1}::bigint" if is_number else f"${len(names)}"

        return _NAME.sub(number, text)


def in_dialect(query: str) -> str:
    """A query without what only SQLite understands; its parameters keep their names."""
    query = query.replace("CROSS JOIN", "JOIN").replace("LIMIT -1", "LIMIT ALL")
    query = query.replace("char(1114111)", "chr(1114111)")
    query = _LIST_OF_TEXTS.sub(r"json_texts(\1)", query)
    query = _GLOB.sub(r"LIKE '\1%'", query)
    query = _JSON_VALUE.sub(_json_value, query)
    query = _JSON_SET.sub(_json_set, query)
    query = _AS_INTEGER.sub(r"number_in(\1)", query)
    query = _CONDITION_AS_NUMBER.sub(r"\1::int \2", query)
    return with_extremes(query)


def _json_value(found: re.Match[str]) -> str:
    cast = "::bigint" if found[2] in NUMBERS_IN_JSON else ""
    return f"(json_of({found[1]}) ->> '{found[2]}'){cast}"


def _json_set(found: re.Match[str]) -> str:
    made = f"json_of({found[1]})::jsonb"
    for field in _JSON_FIELD.findall(found[2]):
        made = f"""jsonb_set({made}, '{{{field}}}', '""')"""
    return f"({made})::text"


def with_extremes(text: str) -> str:
    """`max` and `min` of several values by the names that they have in PostgreSQL."""
    strings = [(found.start(), found.end()) for found in _STRING.finditer(text)]
    pieces, behind = [], 0
    for found in _EXTREME.finditer(text):
        inside = any(start < found.start() < end for start, end in strings)
        if not inside and _has_several(text, found.end()):
            pieces += [text[behind : found.start()], _OF_SEVERAL[found[1]], "("]
            behind = found.end()
    return "".join([*pieces, text[behind:]])


def _has_several(text: str, begin: int) -> bool:
    """Whether there is a comma between a parenthesis and the one that closes it."""
    depth, is_string = 1, False
    for character in text[begin:]:
        if character == "'":
            is_string = not is_string
        elif is_string:
            continue
        elif character == "(":
            depth += 1
        elif character == ")":
            depth -= 1
            if depth == 0:
                return False
        elif character == "," and depth == 1:
            return True
    return False
