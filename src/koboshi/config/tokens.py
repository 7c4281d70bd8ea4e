"""Where a channel's token comes from: a systemd credential, else the one key that names it."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from koboshi.config.places import is_there, read_secret_text
from koboshi.config.problems import Origin, Problems, Unfit
from koboshi.config.secret import Secret
from koboshi.config.specs import fit_secret

TOKEN_KEYS = ("token", "token_env", "token_file")


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenKeys:
    """What a channel's section says about its token."""

    section: str  # "channels.telegram.main"
    credential: str  # "telegram_main_token"
    origin: Origin  # of the section
    given: Mapping[str, Origin]  # the token keys that were written, and where
    token: Secret | None
    token_env: str
    token_file: Path | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Token:
    """A token and, for the person who asks, where it came from."""

    secret: Secret
    source: str


def is_clear(keys: TokenKeys, problems: Problems) -> bool:
    """Whether at most one key names the token; more of them are noted as a problem."""
    if len(keys.given) <= 1:
        return True
    *_, last = keys.given.values()
    message = f"{keys.section} has {' and '.join(keys.given)}; only one of them can rule"
    problems.add(keys.section, message, origin=last)
    return False


def find_token(keys: TokenKeys, environ: Mapping[str, str], problems: Problems) -> Token | None:
    """The token of an enabled channel, or None if none is named.

    A token that is named and cannot be had is noted as a problem.
    """
    key = next(iter(keys.given), "token_env" if keys.token_env else "")
    origin = keys.given.get(key, keys.origin)
    try:
        return _from_credential(keys, environ) or _from_key(key, keys, origin, environ)
    except Unfit as unfit:
        name = f"{keys.section}.{key}" if key else keys.section
        problems.add(name, f"{name}: {unfit.message}", hint=unfit.hint, origin=origin)
        return None


def _from_credential(keys: TokenKeys, environ: Mapping[str, str]) -> Token | None:
    folder = environ.get("CREDENTIALS_DIRECTORY", "")
    names = (keys.credential, keys.token_file.name if keys.token_file else "")
    for name in names:
        if folder and name and is_there(Path(folder, name)):
            # systemd grants access by ACL, which shows as a group bit: the mode says nothing here.
            text = read_secret_text(Path(folder, name), must_be_private=False)
            return Token(secret=_secret(text, f"credential {name}"), source=f"credential {name}")
    return None


def _from_key(
    key: str, keys: TokenKeys, origin: Origin, environ: Mapping[str, str]
) -> Token | None:
    if key == "token" and keys.token is not None:
        return Token(secret=keys.token, source=str(origin))
    if key == "token_file" and keys.token_file is not None:
        text = read_secret_text(keys.token_file, must_be_private=True)
        return Token(secret=_secret(text, "the file"), source=f"file {os.fspath(keys.token_file)}")
    if key == "token_env":
        text = environ.get(keys.token_env, "").strip()
        if not text:
            hint = f"set {keys.token_env}, or use token_file"
            raise Unfit(f"the environment variable {keys.token_env} is not set", hint)
        return Token(secret=_secret(text, keys.token_env), source=f"variable {keys.token_env}")
    return None


def _secret(text: str, holder: str) -> Secret:
    try:
        return Secret(fit_secret(text))
    except Unfit as unfit:
        raise Unfit(f"the token in {holder} {unfit.message}", unfit.hint) from None
