"""The kinds of values that describe servers and plug-ins: programs, lists, tables of secrets."""

import json
import re
from collections.abc import Callable
from typing import TypeAlias

from koboshi.config.problems import Unfit, shown
from koboshi.config.secret import Secret
from koboshi.config.specs import SECRET_CHARS_MAX, Spec, kind_of, require_text, told

NamedSecrets: TypeAlias = tuple[tuple[str, Secret], ...]

_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,127}")
_HEADER = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,128}")
# These carry the protocol itself.
_HEADERS_OF_OURS = frozenset("accept accept-encoding content-length content-type host".split())


def program() -> Spec:
    """The name of a program on the PATH, or its full path; empty means there is none."""

    def check(raw: object) -> str:
        text = require_text(raw, 4_096)
        if not text.isprintable() or text != text.strip():
            raise Unfit("must be a program in one line, without spaces around it")
        if "/" in text and not text.startswith("/"):
            raise Unfit(f"must be a name on the PATH or a full path, not {told(text)}")
        return text

    return Spec(check)


def texts(count_max: int, chars_max: int) -> Spec:
    """A list of texts, in their order."""

    def check(raw: object) -> tuple[str, ...]:
        entries = _entries(raw, count_max)
        found = tuple(require_text(entry, chars_max) for entry in entries)
        if any("\0" in text for text in found):
            raise Unfit("must not hold a NUL")
        return found

    return Spec(check, _parse_json_or(_split))


def names(count_max: int, chars_max: int) -> Spec:
    """A list of names, each once, at least one."""

    def check(raw: object) -> tuple[str, ...]:
        entries = _entries(raw, count_max)
        if not entries:
            raise Unfit("must not be empty", "leave it out to mean all")
        found = tuple(require_text(entry, chars_max) for entry in entries)
        if not all(text.strip() and text.isprintable() for text in found):
            raise Unfit("must hold names in one line each")
        return tuple(dict.fromkeys(found))

    return Spec(check, _parse_json_or(_split))


def switch_or_names(count_max: int, chars_max: int) -> Spec:
    """true for all, false for none, or a list of names."""
    some = names(count_max, chars_max)

    def parse(text: str) -> object:
        said = {"true": True, "1": True, "false": False, "0": False}.get(text.lower())
        return some.parse(text) if said is None else said

    def check(raw: object) -> object:
        if isinstance(raw, bool):
            return raw
        if not isinstance(raw, list):
            raise Unfit(f'must be true, false or a list of names, as in ["one"], not {told(raw)}')
        if not raw:
            raise Unfit("must not be empty", "write false to mean none")
        return some.check(raw)

    return Spec(check, parse)


def free_tables(count_max: int, chars_max: int) -> Spec:
    """A table of tables whose keys only somebody else knows. Each is kept as JSON."""

    def check(raw: object) -> NamedSecrets:
        if not isinstance(raw, dict) or not all(isinstance(each, dict) for each in raw.values()):
            raise Unfit("must be a table of tables, one for each plug-in")
        if len(raw) > count_max:
            raise Unfit(f"must have at most {count_max} entries")
        found: list[tuple[str, Secret]] = []
        for name, table in raw.items():
            try:
                text = json.dumps(table, ensure_ascii=False, allow_nan=False)
            except (TypeError, ValueError, RecursionError):
                # TOML knows dates and times, and numbers that are none.
                message = f'"{shown(str(name))}" must hold texts, numbers, switches and lists only'
                raise Unfit(message) from None
            require_text(text, chars_max)
            found.append((str(name), Secret(text)))
        return tuple(found)

    return Spec(check, _parse_json_or(lambda text: text))


def variable_names(count_max: int) -> Spec:
    """A list of names of environment variables."""

    def check(raw: object) -> tuple[str, ...]:
        found = tuple(require_text(entry, SECRET_CHARS_MAX) for entry in _entries(raw, count_max))
        if not all(_VARIABLE.fullmatch(text) for text in found):
            # The commonest mistake is the value itself: it is not repeated here.
            raise Unfit("must hold names of environment variables, not their values")
        return tuple(dict.fromkeys(found))

    return Spec(check, _parse_json_or(_split))


def named_variables(count_max: int) -> Spec:
    """A table of environment variables and their values, which may be secrets."""

    def check_name(name: str) -> None:
        if not _VARIABLE.fullmatch(name):
            raise Unfit(f'"{shown(name)}" can not name an environment variable')

    def check_value(text: str) -> None:
        if "\0" in text:
            raise Unfit("must not hold a NUL")

    return _table(count_max, check_name, check_value)


def named_headers(count_max: int) -> Spec:
    """A table of HTTP headers and their values, which are secrets."""

    def check_name(name: str) -> None:
        if not _HEADER.fullmatch(name):
            raise Unfit(f'"{shown(name)}" can not name a header')
        if name.lower() in _HEADERS_OF_OURS or name.lower().startswith("mcp-"):
            raise Unfit(f'"{shown(name)}" is a header of the protocol itself')

    def check_value(text: str) -> None:
        if not text.isascii() or not text.isprintable() or text != text.strip():
            raise Unfit("must have values in one line of plain ascii characters")

    return _table(count_max, check_name, check_value)


def _table(
    count_max: int, check_name: Callable[[str], None], check_value: Callable[[str], None]
) -> Spec:
    def check(raw: object) -> NamedSecrets:
        if not isinstance(raw, dict):
            raise Unfit(f'must be a table, as in {{ NAME = "value" }}, not {kind_of(raw)}')
        if len(raw) > count_max:
            raise Unfit(f"must have at most {count_max} entries")
        found: list[tuple[str, Secret]] = []
        for name, value in raw.items():
            check_name(str(name))
            if not isinstance(value, str):
                kind = kind_of(value)
                raise Unfit(f'must have texts as values, and "{shown(str(name))}" is {kind}')
            text = require_text(value, SECRET_CHARS_MAX)
            check_value(text)
            found.append((str(name), Secret(text)))
        return tuple(found)

    return Spec(check, _parse_json_or(lambda text: text))


def _entries(raw: object, count_max: int) -> list[object]:
    if not isinstance(raw, list):
        raise Unfit(f'must be a list of texts, as in ["one", "two"], not {kind_of(raw)}')
    if len(raw) > count_max:
        raise Unfit(f"must have at most {count_max} entries")
    return raw


def _parse_json_or(otherwise: Callable[[str], object]) -> Callable[[str], object]:
    """How a variable says a list or a table: as JSON, or else in a simpler way."""

    def parse(text: str) -> object:
        if not text.lstrip().startswith(("[", "{")):
            return otherwise(text)
        try:
            tree: object = json.loads(text)
        except (ValueError, RecursionError):
            return text
        return tree

    return parse


def _split(text: str) -> object:
    return [part.strip() for part in text.split(",")] if text.strip() else []
