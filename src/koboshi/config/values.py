"""A value written for a key, checked against the type of its field.

A field with a `Meta` that has a description is a key. `Meta` has its bounds as well, and msgspec
checks them; this module words the errors. A function beside the `Meta` is a rule: it is given the
checked value and returns the one to use, or raises InvalidValue. `ReadBy` names a function that is
given the raw value. Values that may be secret are never repeated in a message.
"""

import json
import re
from collections.abc import Callable, Mapping, Sized
from difflib import get_close_matches
from functools import cache
from pathlib import Path
from typing import Any, NoReturn, get_args

import msgspec
from msgspec import inspect
from msgspec.structs import fields

from koboshi.config.problems import InvalidValue, shown
from koboshi.config.secret import Secret

SECRET_CHARS_MAX = 8_192
_PATH_CHARS_MAX = 4_096
_INT_SHOWN_MAX = 10**18
_SWITCH = {"true": True, "1": True, "false": False, "0": False}


class ReadBy(msgspec.Struct, frozen=True):
    """How a field is read whose type differs from the written one."""

    read: Callable[[object], object]


class Key(msgspec.Struct, frozen=True, kw_only=True):
    """One key of a section, as its field describes it."""

    kind: Any
    default: object
    words: str  # what it means, for the reference
    marks: tuple[object, ...]

    def check(self, raw: object) -> object:
        """The value of the key, from the written `raw`. Raises InvalidValue."""
        for mark in self.marks:
            if isinstance(mark, ReadBy):
                return mark.read(raw)
        try:
            value: object = msgspec.convert(raw, self.kind, dec_hook=_decode)
        except (msgspec.ValidationError, UnicodeEncodeError):
            self._refuse(raw)
        if isinstance(value, float):
            value = raw  # a whole number is shown as it was written
        for text in value if isinstance(value, tuple) else (value,):
            check_utf8(text)
        for mark in self.marks:
            value = mark(value) if callable(mark) else value
        return value

    def from_variable(self, text: str) -> object:
        """The text of a variable as TOML would read it, as far as possible."""
        for kind in _types_of(self.kind):
            match kind:
                case inspect.BoolType() if text.lower() in _SWITCH:
                    return _SWITCH[text.lower()]
                case inspect.IntType() | inspect.FloatType():
                    return parse_number(text)
                case inspect.VarTupleType(item_type=item):
                    return _parse_list(text, item)
                case _:
                    continue
        return text

    def _refuse(self, raw: object) -> NoReturn:
        """Say why `raw` is not of this kind. Raises InvalidValue."""
        kind = _types_of(self.kind)[0]
        wanted, hint = "true or false", ""
        match kind:
            case inspect.StrType(max_length=int(chars_max)):
                require_text(raw, chars_max)
            case inspect.VarTupleType(item_type=inspect.StrType(max_length=int(chars_max))):
                require_texts(raw, kind.max_length or 0, chars_max)
            case inspect.LiteralType():
                options = _options(self.kind.__origin__)
                wanted = f"one of {', '.join(options)}"
                near = get_close_matches(raw[:64], options, n=1) if isinstance(raw, str) else []
                hint = f'did you mean "{near[0]}"?' if near else ""
            case inspect.IntType(ge=low, le=high):
                wanted = f"a whole number from {low} to {high}"
            case inspect.FloatType(ge=low, le=high):
                wanted = f"a number from {low} to {high}"
            case _:
                pass
        titles = [
            mark.title for mark in self.marks if isinstance(mark, msgspec.Meta) and mark.title
        ]
        raise InvalidValue(f"must be {(*titles, wanted)[0]}, not {quoted(raw)}", hint)


@cache
def keys_of(section: type[msgspec.Struct]) -> Mapping[str, Key]:
    """The keys of a section, in the order they are shown."""
    found: dict[str, Key] = {}
    for each in fields(section):
        marks = getattr(each.type, "__metadata__", ())
        words = [mark.description for mark in marks if isinstance(mark, msgspec.Meta)]
        if any(words):
            kind, default = each.type, each.default
            found[each.name] = Key(kind=kind, default=default, words=words[-1] or "", marks=marks)
    return found


@cache
def sections_of(section: type[msgspec.Struct]) -> Mapping[str, type[msgspec.Struct]]:
    """The sections inside a section."""
    kinds = {each.name: each.type for each in fields(section) if isinstance(each.type, type)}
    return {name: kind for name, kind in kinds.items() if issubclass(kind, msgspec.Struct)}


def require_text(raw: object, chars_max: int) -> str:
    """`raw` if it is a storable text of at most `chars_max` characters. Raises InvalidValue."""
    if not isinstance(raw, str):
        raise InvalidValue(f"must be a text in quotes, not {kind_of(raw)}")
    if len(raw) > chars_max:
        raise InvalidValue(f"must have at most {chars_max} characters, not {len(raw)}")
    check_utf8(raw)
    return raw


def require_texts(raw: object, count_max: int, chars_max: int) -> tuple[str, ...]:
    """`raw` if it is a list of at most `count_max` such texts. Raises InvalidValue."""
    if not isinstance(raw, list):
        raise InvalidValue(f'must be a list of texts, as in ["one", "two"], not {kind_of(raw)}')
    check_count(raw, count_max)
    return tuple(require_text(entry, chars_max) for entry in raw)


def check_count(entries: Sized, count_max: int) -> None:
    """Raises InvalidValue if there are more entries than `count_max`."""
    if len(entries) > count_max:
        raise InvalidValue(f"must have at most {count_max} entries")


def check_utf8(value: object) -> None:
    """Raises InvalidValue for a text that cannot be stored."""
    if isinstance(value, str) and any("\ud800" <= char <= "\udfff" for char in value):
        raise InvalidValue("must be valid utf-8")


def fit_secret(text: str) -> str:
    """`text` if it can be a token or key: one word of printable ASCII. Raises InvalidValue without
    it."""
    if not text:
        raise InvalidValue("must not be empty")
    if len(text) > SECRET_CHARS_MAX:
        raise InvalidValue(f"must have at most {SECRET_CHARS_MAX} characters")
    if not re.fullmatch(r"[!-~]+", text):
        raise InvalidValue(
            "must be one word of plain ascii characters, without spaces or line breaks"
        )
    return text


def parse_number(text: str) -> object:
    """The number that `text` is, or `text`."""
    if re.fullmatch(r"[+-]?[0-9]{1,18}", text):
        return int(text)
    if re.fullmatch(r"[+-]?[0-9]{1,18}\.[0-9]{1,18}", text):
        return float(text)
    return text


def quoted(raw: object) -> str:
    """A wrong value as a message names it."""
    if isinstance(raw, bool):
        return str(raw).lower()
    if isinstance(raw, str):
        return f'"{shown(raw)}"'
    if isinstance(raw, float) or (isinstance(raw, int) and abs(raw) < _INT_SHOWN_MAX):
        return str(raw)
    return kind_of(raw)


def kind_of(raw: object) -> str:
    """The kind of a TOML value, in words."""
    if isinstance(raw, bool):
        return "true or false"
    names: tuple[tuple[type, str], ...] = (
        (str, "a text"), (int, "a whole number"), (float, "a number"),
        (list, "a list"), (dict, "a table"), (type(None), "nothing"),
    )  # fmt: skip
    return next((name for kind, name in names if isinstance(raw, kind)), "a date or time")


def _types_of(kind: object) -> tuple[inspect.Type, ...]:
    """The types that a value of `kind` may have, as msgspec understands them."""
    found = inspect.type_info(kind)
    found = found.type if isinstance(found, inspect.Metadata) else found
    return found.types if isinstance(found, inspect.UnionType) else (found,)


def _decode(kind: type, raw: object) -> object:
    """Types that msgspec cannot decode."""
    if kind is Secret:
        return Secret(fit_secret(require_text(raw, SECRET_CHARS_MAX)))
    text = require_text(raw, _PATH_CHARS_MAX)
    if not text or "\0" in text:
        raise InvalidValue("must be a path, not empty")
    return Path(text)


def _parse_list(text: str, item: inspect.Type) -> object:
    if text.lstrip().startswith(("[", "{")):
        try:
            tree: object = json.loads(text)
        except (ValueError, RecursionError):
            return text
        return tree
    if isinstance(item, inspect.TupleType):
        return text  # a table, which only JSON can write
    parts = [part.strip() for part in text.split(",")] if text.strip() else []
    return [parse_number(part) for part in parts] if isinstance(item, inspect.UnionType) else parts


def _options(kind: Any) -> list[str]:
    """The texts that a key takes, in their order. A key that may be left out is one of several
    kinds."""
    found: list[str] = []
    for each in get_args(kind):
        if isinstance(each, str):
            found.append(each)
        else:
            found += _options(each)
    return found
