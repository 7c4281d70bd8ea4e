"""What a key takes: one function per kind of value, each giving a `Spec`.

`parse` makes of a variable's text what TOML would have made of it, as far as possible, and never
fails. `check` returns the value or raises Unfit with the end of a sentence. Values that may be
secret are never repeated in a message.
"""

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from ipaddress import ip_address
from pathlib import Path
from typing import TypeGuard
from urllib.parse import urlsplit

from koboshi.config.problems import Unfit, shown
from koboshi.config.secret import Secret

SECRET_CHARS_MAX = 8_192
_ID_MAX = 2**63
_INT_SHOWN_MAX = 10**18


# Functions instead of a class per kind: every dataclass costs each start of the CLI a millisecond.
@dataclass(frozen=True, slots=True, eq=False)
class Spec:
    """The kind of value a key takes."""

    check: Callable[[object], object]
    parse: Callable[[str], object] = str
    is_path: bool = False


def key(spec: Spec) -> Mapping[str, Spec]:
    """The metadata that makes a dataclass field a key of the configuration."""
    return {"spec": spec}


def boolean() -> Spec:
    def parse(text: str) -> object:
        return {"true": True, "1": True, "false": False, "0": False}.get(text.lower(), text)

    def check(raw: object) -> bool:
        if isinstance(raw, bool):
            return raw
        raise Unfit(f"must be true or false, not {told(raw)}")

    return Spec(check, parse)


def whole(minimum: int, maximum: int) -> Spec:
    def check(raw: object) -> int:
        if is_whole(raw) and minimum <= raw <= maximum:
            return raw
        raise Unfit(f"must be a whole number from {minimum} to {maximum}, not {told(raw)}")

    return Spec(check, parse_number)


def days(minimum: int, maximum: int) -> Spec:
    """So many days; 0 is for ever."""

    def check(raw: object) -> int:
        if is_whole(raw) and (raw == 0 or minimum <= raw <= maximum):
            return raw
        wanted = f"a whole number of days from {minimum} to {maximum}, or 0 for ever"
        raise Unfit(f"must be {wanted}, not {told(raw)}")

    return Spec(check, parse_number)


def number(minimum: int, maximum: int) -> Spec:
    def check(raw: object) -> float:
        # Written so that "not a number" fails, too.
        if (is_whole(raw) or isinstance(raw, float)) and minimum <= raw <= maximum:
            return raw
        raise Unfit(f"must be a number from {minimum} to {maximum}, not {told(raw)}")

    return Spec(check, parse_number)


def choice(*options: str) -> Spec:
    def check(raw: object) -> str:
        if isinstance(raw, str) and raw in options:
            return raw
        near = get_close_matches(raw[:64], options, n=1) if isinstance(raw, str) else []
        hint = f'did you mean "{near[0]}"?' if near else ""
        raise Unfit(f"must be one of {', '.join(options)}, not {told(raw)}", hint)

    return Spec(check)


def words(chars_max: int) -> Spec:
    """A text of one line that says something."""

    def check(raw: object) -> str:
        text = require_text(raw, chars_max)
        if not text.strip() or not text.isprintable():
            raise Unfit("must be one line of text, not empty and without control characters")
        return text

    return Spec(check)


def prose(chars_max: int) -> Spec:
    """A text of any number of lines, also none."""
    return Spec(lambda raw: require_text(raw, chars_max))


def path() -> Spec:
    """A path, still as it was written; `load` expands it."""

    def check(raw: object) -> Path:
        text = require_text(raw, 4_096)
        if not text or "\0" in text:
            raise Unfit("must be a path, not empty")
        return Path(text)

    return Spec(check, is_path=True)


def time_zone() -> Spec:
    """The IANA name of a time zone that this machine knows; empty is the machine's own."""

    def check(raw: object) -> str:
        text = require_text(raw, 64)
        if text in ("", "UTC"):
            return text
        # Its module is loaded for those who name a zone.
        from zoneinfo import ZoneInfo, ZoneInfoNotFoundError, available_timezones

        try:
            ZoneInfo(text)
        except (ZoneInfoNotFoundError, ValueError, OSError):
            known = available_timezones()
            if not known:
                hint = "install tzdata, or leave the key away for the machine's own zone"
                raise Unfit("cannot be used: this machine knows no time zones", hint) from None
            near = get_close_matches(text, known, n=1)
            hint = f'did you mean "{near[0]}"?' if near else ""
            words = f"must be a time zone such as Europe/Berlin, not {told(raw)}"
            raise Unfit(words, hint) from None
        return text

    return Spec(check)


def variable_name() -> Spec:
    """The name of an environment variable; empty means there is none."""

    def check(raw: object) -> str:
        text = require_text(raw, SECRET_CHARS_MAX)
        if text and not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]{0,127}", text):
            # The commonest mistake is the secret itself: it is not repeated here.
            raise Unfit("must be the name of an environment variable, not the secret itself")
        return text

    return Spec(check)


def secret() -> Spec:
    return Spec(lambda raw: Secret(fit_secret(require_text(raw, SECRET_CHARS_MAX))))


def web_address(*, may_be_empty: bool = False) -> Spec:
    """An http address, without a slash at its end."""
    check = _address("https", "http", may_be_empty=may_be_empty, needs_host=True)
    return Spec(lambda raw: check(raw).rstrip("/"))


def endpoint() -> Spec:
    """An http address exactly as it was written; empty means there is none."""
    return Spec(_address("https", "http", may_be_empty=True, needs_host=True))


def store_address() -> Spec:
    """The address of a PostgreSQL server; empty means the database in the home."""
    return Spec(_address("postgresql", "postgres", may_be_empty=True, needs_host=False))


def loopback_host() -> Spec:
    def check(raw: object) -> str:
        text = require_text(raw, 256)
        if is_loopback(text):
            return text
        raise Unfit(
            f"must be a loopback address, not {told(text)}",
            "the web channel serves this machine only for now: "
            "use 127.0.0.1, ::1 or localhost, with a proxy or a tunnel in front",
        )

    return Spec(check)


def listening_host() -> Spec:
    """An address of this machine. Whether others may reach it is asked when all is known."""

    def check(raw: object) -> str:
        text = require_text(raw, 256)
        if text == "localhost":
            return text
        try:
            ip_address(text)
        except ValueError:
            raise Unfit(
                f"must be a loopback address, not {told(text)}",
                "use 127.0.0.1, ::1 or localhost; behind a proxy that `public_url` names, "
                "the number of any address of this machine, or 0.0.0.0",
            ) from None
        return text

    return Spec(check)


def public_address() -> Spec:
    """Where people reach us through a proxy: over TLS, or on the machine that they sit at."""
    check_address = _address("https", "http", may_be_empty=True, needs_host=True)

    def check(raw: object) -> str:
        text = check_address(raw)
        parts = urlsplit(text)
        if parts.path not in ("", "/") or parts.query or parts.fragment or "@" in parts.netloc:
            raise Unfit("must be an address without a path, like https://koboshi.example.org")
        if parts.scheme == "http" and not is_loopback(parts.hostname or ""):
            raise Unfit(
                "must begin with https:// unless it is on loopback",
                "what is said and the token would be read by whoever is in between",
            )
        return text

    return Spec(check)


def people(count_max: int) -> Spec:
    """Stable ids of people, or "*" for everyone; each once."""

    def parse(text: str) -> object:
        if not text.lstrip().startswith("["):
            return [parse_number(part.strip()) for part in text.split(",")] if text.strip() else []
        try:
            tree: object = json.loads(text)
        except (ValueError, RecursionError):
            return text
        return tree

    def check(raw: object) -> tuple[int | str, ...]:
        if not isinstance(raw, list):
            raise Unfit(f'must be a list of ids, as in [123456789] or ["*"], not {told(raw)}')
        if len(raw) > count_max:
            raise Unfit(f"must have at most {count_max} entries")
        return tuple(dict.fromkeys(_person(entry) for entry in raw))

    return Spec(check, parse)


def _person(entry: object) -> int | str:
    if entry == "*":
        return "*"
    if is_whole(entry) and abs(entry) < _ID_MAX:
        return entry
    hint = ""
    if isinstance(entry, str):
        is_id = re.fullmatch(r"-?[0-9]{1,18}", entry)
        hint = f"write {entry} without quotes" if is_id else "names can change hands, ids cannot"
    raise Unfit(f'must hold whole numbers or "*", not {told(entry)}', hint)


def _address(*schemes: str, may_be_empty: bool, needs_host: bool) -> Callable[[object], str]:
    # An address may hold a password: the message does not repeat it.
    message = f"must be an address that begins with {schemes[0]}:// or {schemes[1]}://"

    def check(raw: object) -> str:
        text = require_text(raw, 2_048)
        if not text and may_be_empty:
            return text
        scheme, mark, rest = text.partition("://")
        if scheme not in schemes or not mark or not rest.isprintable() or re.search(r"\s", rest):
            raise Unfit(message)
        try:
            parts = urlsplit(text)
            is_complete = parts.port != 0 and (bool(parts.hostname) or not needs_host)
        except ValueError:
            is_complete = False
        if not is_complete:
            raise Unfit(f"{message} and goes on with a host")
        return text

    return check


def parse_number(text: str) -> object:
    """The number that `text` is, or `text`."""
    if re.fullmatch(r"[+-]?[0-9]{1,18}", text):
        return int(text)
    if re.fullmatch(r"[+-]?[0-9]{1,18}\.[0-9]{1,18}", text):
        return float(text)
    return text


def fit_secret(text: str) -> str:
    """`text` if it can be a token or key: one word of printable ASCII. Raises Unfit without it."""
    if not text:
        raise Unfit("must not be empty")
    if len(text) > SECRET_CHARS_MAX:
        raise Unfit(f"must have at most {SECRET_CHARS_MAX} characters")
    if not re.fullmatch(r"[!-~]+", text):
        raise Unfit("must be one word of plain ascii characters, without spaces or line breaks")
    return text


def require_text(raw: object, chars_max: int) -> str:
    """`raw` if it is a storable text of at most `chars_max` characters. Raises Unfit."""
    if not isinstance(raw, str):
        raise Unfit(f"must be a text in quotes, not {kind_of(raw)}")
    if len(raw) > chars_max:
        raise Unfit(f"must have at most {chars_max} characters, not {len(raw)}")
    if any("\ud800" <= char <= "\udfff" for char in raw):
        raise Unfit("must be valid utf-8")
    return raw


def is_whole(raw: object) -> TypeGuard[int]:
    """Whether `raw` is a whole number; to Python, true and false are numbers as well."""
    return isinstance(raw, int) and not isinstance(raw, bool)


def is_loopback(host: str) -> bool:
    """Whether `host` names this machine and nothing else."""
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback and "%" not in host
    except ValueError:
        return False


def told(raw: object) -> str:
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
