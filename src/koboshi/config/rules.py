"""What a key takes beyond a type and its bounds: one function for each rule.

A rule is given the checked value and returns the one to use. The functions whose names begin with
`read` are given the raw value. All raise InvalidValue with the end of a sentence.
"""

import json
import re
from collections.abc import Callable
from difflib import get_close_matches
from ipaddress import ip_address
from typing import TypeAlias
from urllib.parse import parse_qsl, urlsplit

from koboshi.config.problems import InvalidValue, shown
from koboshi.config.secret import Secret
from koboshi.config.values import (
    SECRET_CHARS_MAX,
    check_count,
    kind_of,
    quoted,
    require_text,
    require_texts,
)
from koboshi.domain.allowed import complaint_about_entry

People: TypeAlias = tuple[int | str, ...]
NamedSecrets: TypeAlias = tuple[tuple[str, Secret], ...]

DAYS = "a whole number of days from 7 to 36500, or 0 for ever"
_ID_MAX = 2**63
_PEOPLE_MAX = 10_000
_ENTRIES_MAX = 256
_HEADERS_MAX = 64
_PLUGIN_CHARS_MAX = 64_000
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,127}")
_HEADER = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,128}")
# These carry the protocol itself.
_HEADERS_OF_OURS = frozenset("accept accept-encoding content-length content-type host".split())


def no_short_time(days: int) -> int:
    if 0 < days < 7:
        raise InvalidValue(f"must be {DAYS}, not {days}")
    return days


def one_line(text: str) -> str:
    """A text of one line that says something."""
    if not text.strip() or not text.isprintable():
        raise InvalidValue("must be one line of text, not empty and without control characters")
    return text


def time_zone(text: str) -> str:
    """The IANA name of a time zone known to this machine; empty is the machine's own."""
    if text in ("", "UTC"):
        return text
    # Its module is loaded only for a named zone.
    from zoneinfo import ZoneInfo, ZoneInfoNotFoundError, available_timezones

    try:
        ZoneInfo(text)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        known = available_timezones()
        if not known:
            hint = "install tzdata, or remove the key to use the machine's own zone"
            raise InvalidValue("cannot be used: this machine knows no time zones", hint) from None
        near = get_close_matches(text, known, n=1)
        hint = f'did you mean "{near[0]}"?' if near else ""
        words = f"must be a time zone such as Europe/Berlin, not {quoted(text)}"
        raise InvalidValue(words, hint) from None
    return text


def variable_name(text: str) -> str:
    """The name of an environment variable; empty means there is none."""
    if text and not _VARIABLE.fullmatch(text):
        # The commonest mistake is the secret itself: it is not repeated here.
        raise InvalidValue("must be the name of an environment variable, not the secret itself")
    return text


def web_address(text: str) -> str:
    """An http address, exactly as it was written."""
    # An address may hold a password: the message does not repeat it.
    message = "must be an address that begins with https:// or http://"
    scheme, mark, rest = text.partition("://")
    is_one_word = rest.isprintable() and not re.search(r"\s", rest)
    if scheme not in ("https", "http") or not mark or not is_one_word:
        raise InvalidValue(message)
    try:
        parts = urlsplit(text)
        is_complete = parts.port != 0 and bool(parts.hostname)
    except ValueError:
        is_complete = False
    if not is_complete:
        raise InvalidValue(f"{message} and goes on with a host")
    return text


def web_address_or_none(text: str) -> str:
    return web_address(text) if text else text


def no_slash_at_end(text: str) -> str:
    return text.rstrip("/")


def public_address(text: str) -> str:
    """Our address for people, through a proxy: over TLS, or on their own machine."""
    parts = urlsplit(web_address_or_none(text))
    if parts.path not in ("", "/") or parts.query or parts.fragment or "@" in parts.netloc:
        raise InvalidValue("must be an address without a path, like https://koboshi.example.org")
    if parts.scheme == "http" and not is_loopback(parts.hostname or ""):
        raise InvalidValue(
            "must begin with https:// unless it is on loopback",
            "the token and all messages could be read on their way",
        )
    return text


def store_address(text: str) -> str:
    """A database of PostgreSQL. An address is shown, so it holds no password."""
    if not text:
        return text
    if not text.startswith(("postgresql://", "postgres://")):
        raise InvalidValue(
            "must be empty or begin with postgresql://",
            "an empty one means SQLite in the home",
        )
    parts = urlsplit(text)
    named = {name.lower() for name, _ in parse_qsl(parts.query, keep_blank_values=True)}
    if ":" in parts.netloc.rpartition("@")[0] or "password" in named:
        raise InvalidValue(
            "must hold no password",
            "put it into a file that PGPASSFILE or passfile=… in the address names",
        )
    return text


def is_loopback(host: str) -> bool:
    """Whether `host` names this machine and nothing else."""
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback and "%" not in host
    except ValueError:
        return False


def loopback_host(text: str) -> str:
    if is_loopback(text):
        return text
    raise InvalidValue(
        f"must be a loopback address, not {quoted(text)}",
        "the web channel serves this machine only for now: "
        "use 127.0.0.1, ::1 or localhost, with a proxy or a tunnel in front",
    )


def listening_host(text: str) -> str:
    """An address of this machine. Whether others may reach it is checked later."""
    if text == "localhost":
        return text
    try:
        ip_address(text)
    except ValueError:
        raise InvalidValue(
            f"must be a loopback address, not {quoted(text)}",
            "use 127.0.0.1, ::1 or localhost; behind a proxy that `public_url` names, "
            "the number of any address of this machine, or 0.0.0.0",
        ) from None
    return text


def program(text: str) -> str:
    """The name of a program on the PATH, or its full path; empty means there is none."""
    if not text.isprintable() or text != text.strip():
        raise InvalidValue("must be a program in one line, without spaces around it")
    if "/" in text and not text.startswith("/"):
        raise InvalidValue(f"must be a name on the PATH or a full path, not {quoted(text)}")
    return text


def no_nul(texts: tuple[str, ...]) -> tuple[str, ...]:
    if any("\0" in text for text in texts):
        raise InvalidValue("must not hold a NUL")
    return texts


def full_paths(texts: tuple[str, ...]) -> tuple[str, ...]:
    """Full paths, each once; `~` is the user's home."""
    for text in no_nul(texts):
        if not text.startswith(("/", "~/")):
            raise InvalidValue(f'must hold full paths, as in ["/srv/books"], not {quoted(text)}')
    return tuple(dict.fromkeys(texts))


def names(texts: tuple[str, ...]) -> tuple[str, ...]:
    """Names, each once, at least one."""
    if not texts:
        raise InvalidValue("must not be empty", "leave it out to mean all")
    if not all(text.strip() and text.isprintable() for text in texts):
        raise InvalidValue("must hold names in one line each")
    return tuple(dict.fromkeys(texts))


def names_or_none(texts: tuple[str, ...]) -> tuple[str, ...]:
    """Names, each once, or none at all."""
    return names(texts) if texts else ()


def file_names(texts: tuple[str, ...]) -> tuple[str, ...]:
    """Names of files in one folder, each once, or none at all."""
    for text in names_or_none(texts):
        if "/" in text or text in (".", ".."):
            raise InvalidValue(f'must hold names of files, as in ["AGENTS.md"], not {quoted(text)}')
    return tuple(dict.fromkeys(texts))


def plain_commands(texts: tuple[str, ...]) -> tuple[str, ...]:
    """First words of commands, each once."""
    for text in texts:
        if complaint := complaint_about_entry(text):
            raise InvalidValue(f"must hold plain commands: {shown(complaint)}")
    return tuple(dict.fromkeys(texts))


def variable_names(texts: tuple[str, ...]) -> tuple[str, ...]:
    """Names of environment variables, each once."""
    if not all(_VARIABLE.fullmatch(text) for text in texts):
        # The commonest mistake is the value itself: it is not repeated here.
        raise InvalidValue("must hold names of environment variables, not their values")
    return tuple(dict.fromkeys(texts))


def read_people(raw: object) -> People:
    """Stable ids of people, or "*" for everyone; each once."""
    if not isinstance(raw, list):
        raise InvalidValue(f'must be a list of ids, as in [123456789] or ["*"], not {quoted(raw)}')
    check_count(raw, _PEOPLE_MAX)
    return tuple(dict.fromkeys(_person(entry) for entry in raw))


def _person(entry: object) -> int | str:
    if entry == "*":
        return "*"
    if isinstance(entry, int) and not isinstance(entry, bool) and abs(entry) < _ID_MAX:
        return entry
    hint = ""
    if isinstance(entry, str):
        is_id = re.fullmatch(r"-?[0-9]{1,18}", entry)
        hint = f"write {entry} without quotes" if is_id else "names can change hands, ids cannot"
    raise InvalidValue(f'must hold whole numbers or "*", not {quoted(entry)}', hint)


def read_ids(raw: object) -> People:
    """Stable ids of people on any platform, as texts, or "*" for everyone; each once."""
    if not isinstance(raw, list):
        raise InvalidValue(f'must be a list of ids, as in ["an-id"] or ["*"], not {quoted(raw)}')
    check_count(raw, _PEOPLE_MAX)
    return tuple(dict.fromkeys(_any_id(entry) for entry in raw))


def _any_id(entry: object) -> str:
    if isinstance(entry, int) and not isinstance(entry, bool) and abs(entry) < _ID_MAX:
        return str(entry)  # some platforms have long numbers, which people write without quotes
    if not isinstance(entry, str) or not re.fullmatch(r"[^\s\x00-\x1f]{1,255}", entry):
        raise InvalidValue(f'must hold ids without spaces, or "*", not {quoted(entry)}')
    return entry


def matrix_user(text: str) -> str:
    """The id of a user of Matrix, with its server."""
    if text and not re.fullmatch(r"@[^\s:]{1,200}:[^\s@]{1,200}", text):
        raise InvalidValue(f'must be an id such as "@bot:example.org", not {quoted(text)}')
    return text


def read_switch_or_names(raw: object) -> bool | tuple[str, ...]:
    """true for all, false for none, or a list of names."""
    if isinstance(raw, bool):
        return raw
    if not isinstance(raw, list):
        message = 'must be true, false or a list of names, as in ["one"]'
        raise InvalidValue(f"{message}, not {quoted(raw)}")
    if not raw:
        raise InvalidValue("must not be empty", "write false to mean none")
    return names(require_texts(raw, _ENTRIES_MAX, 256))


def read_free_tables(raw: object) -> NamedSecrets:
    """A table of tables whose keys only a plug-in knows. Each is kept as JSON."""
    if not isinstance(raw, dict) or not all(isinstance(each, dict) for each in raw.values()):
        raise InvalidValue("must be a table of tables, one for each plug-in")
    check_count(raw, _ENTRIES_MAX)
    return tuple(
        (str(name), _as_json(table, f'"{shown(str(name))}" ')) for name, table in raw.items()
    )


def read_free_table(raw: object) -> Secret:
    """A table whose keys only a plug-in knows, as JSON."""
    if not isinstance(raw, dict):
        raise InvalidValue(f"must be a table, not {kind_of(raw)}")
    return _as_json(raw, "")


def _as_json(table: object, whose: str) -> Secret:
    try:
        text = json.dumps(table, ensure_ascii=False, allow_nan=False)
    except (TypeError, ValueError, RecursionError):
        # TOML has dates and times, NaN and infinities.
        message = f"{whose}must hold texts, numbers, switches and lists only"
        raise InvalidValue(message) from None
    return Secret(require_text(text, _PLUGIN_CHARS_MAX))


def read_variables(raw: object) -> NamedSecrets:
    """A table of environment variables and their values, which may be secrets."""
    return _named_secrets(raw, _ENTRIES_MAX, _variable_value)


def read_headers(raw: object) -> NamedSecrets:
    """A table of HTTP headers and their values, which are secrets."""
    return _named_secrets(raw, _HEADERS_MAX, _header_value)


def _variable_value(name: str, raw: object) -> str:
    if not _VARIABLE.fullmatch(name):
        raise InvalidValue(f'"{shown(name)}" cannot name an environment variable')
    (value,) = no_nul((_value(name, raw),))
    return value


def _header_value(name: str, raw: object) -> str:
    if not _HEADER.fullmatch(name):
        raise InvalidValue(f'"{shown(name)}" cannot name a header')
    if name.lower() in _HEADERS_OF_OURS or name.lower().startswith("mcp-"):
        raise InvalidValue(f'"{shown(name)}" is a header of the protocol itself')
    value = _value(name, raw)
    if not value.isascii() or not value.isprintable() or value != value.strip():
        raise InvalidValue("must have values in one line of plain ascii characters")
    return value


def _value(name: str, raw: object) -> str:
    if not isinstance(raw, str):
        raise InvalidValue(f'must have texts as values, and "{shown(name)}" is {kind_of(raw)}')
    return require_text(raw, SECRET_CHARS_MAX)


def _named_secrets(
    raw: object, count_max: int, value_of: Callable[[str, object], str]
) -> NamedSecrets:
    if not isinstance(raw, dict):
        raise InvalidValue(f'must be a table, as in {{ NAME = "value" }}, not {kind_of(raw)}')
    check_count(raw, count_max)
    return tuple((name, Secret(value_of(name, each))) for name, each in raw.items())
