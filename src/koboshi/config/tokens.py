"""Where a token comes from: a systemd credential, else the one key that names it."""

import os
from collections.abc import Mapping
from pathlib import Path

from msgspec import Struct

from koboshi.config.cross_rules import Written, keys_of_secret
from koboshi.config.home_paths import is_there, read_secret_text
from koboshi.config.platforms import ChannelConfig
from koboshi.config.problems import InvalidValue, Origin, Problems
from koboshi.config.secret import Secret
from koboshi.config.sections import McpConfig
from koboshi.config.values import fit_secret


class Token(Struct, frozen=True):
    """A token and, for the person who asks, where it came from."""

    secret: Secret
    source: str


def find_token(
    holder: ChannelConfig | McpConfig,
    written: Written,
    environ: Mapping[str, str],
    problems: Problems,
    name: str = "token",
) -> Token | None:
    """The named secret of an enabled channel or server, or None if no key names it.

    A secret that is named and cannot be read is noted as a problem.
    """
    ways = _ways_of(holder, name)
    key = next(iter(written.ways(name)), f"{name}_env" if ways.variable else "")
    origin = written.ways(name).get(key, written.origin)
    try:
        return _from_credential(ways, written.section, environ) or _from_key(
            key, ways, origin, environ
        )
    except InvalidValue as error:
        place = f"{written.section}.{key}" if key else written.section
        problems.add(place, f"{place}: {error.message}", hint=error.hint, origin=origin)
        return None


class _Ways(Struct, frozen=True, kw_only=True):
    """What the three keys of a secret say."""

    name: str
    written: Secret | None
    variable: str
    file: Path | None


def _ways_of(holder: ChannelConfig | McpConfig, name: str) -> _Ways:
    written, variable, file = (getattr(holder, key) for key in keys_of_secret(name))
    return _Ways(name=name, written=written, variable=variable, file=file)


def _from_credential(ways: _Ways, section: str, environ: Mapping[str, str]) -> Token | None:
    folder = environ.get("CREDENTIALS_DIRECTORY", "")
    # "telegram_main_token" and "mcp_github_token"
    own_name = f"{section.removeprefix('channels.').replace('.', '_')}_{ways.name}"
    for name in (own_name, ways.file.name if ways.file else ""):
        if folder and name and is_there(Path(folder, name)):
            # systemd grants access by ACL, which shows as a group bit: the mode says nothing here.
            text = read_secret_text(Path(folder, name), must_be_private=False)
            return _token(text, f"credential {name}", f"credential {name}")
    return None


def _from_key(key: str, ways: _Ways, origin: Origin, environ: Mapping[str, str]) -> Token | None:
    as_text, by_variable, by_file = keys_of_secret(ways.name)
    if key == as_text and ways.written is not None:
        return Token(ways.written, str(origin))
    if key == by_file and ways.file is not None:
        text = read_secret_text(ways.file, must_be_private=True)
        return _token(text, "the file", f"file {os.fspath(ways.file)}")
    if key == by_variable:
        text = environ.get(ways.variable, "").strip()
        if not text:
            hint = f"set {ways.variable}, or use {by_file}"
            raise InvalidValue(f"the environment variable {ways.variable} is not set", hint)
        return _token(text, ways.variable, f"variable {ways.variable}")
    return None


def _token(text: str, where: str, source: str) -> Token:
    try:
        return Token(Secret(fit_secret(text)), source)
    except InvalidValue as error:
        raise InvalidValue(f"the token in {where} {error.message}", error.hint) from None
