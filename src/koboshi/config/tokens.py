"""Where a token comes from: a systemd credential, else the one key that names it."""

import os
from collections.abc import Mapping
from pathlib import Path

from msgspec import Struct

from koboshi.config.cross_rules import Written
from koboshi.config.home_paths import is_there, read_secret_text
from koboshi.config.problems import InvalidValue, Origin, Problems
from koboshi.config.secret import Secret
from koboshi.config.sections import ChannelConfig, McpConfig
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
) -> Token | None:
    """The token of an enabled channel or server, or None if none is named.

    A token that is named and cannot be read is noted as a problem.
    """
    key = next(iter(written.tokens), "token_env" if holder.token_env else "")
    origin = written.tokens.get(key, written.origin)
    try:
        return _from_credential(holder, written.section, environ) or _from_key(
            key, holder, origin, environ
        )
    except InvalidValue as error:
        name = f"{written.section}.{key}" if key else written.section
        problems.add(name, f"{name}: {error.message}", hint=error.hint, origin=origin)
        return None


def _from_credential(
    holder: ChannelConfig | McpConfig, section: str, environ: Mapping[str, str]
) -> Token | None:
    folder = environ.get("CREDENTIALS_DIRECTORY", "")
    # "telegram_main_token" and "mcp_github_token"
    own_name = f"{section.removeprefix('channels.').replace('.', '_')}_token"
    for name in (own_name, holder.token_file.name if holder.token_file else ""):
        if folder and name and is_there(Path(folder, name)):
            # systemd grants access by ACL, which shows as a group bit: the mode says nothing here.
            text = read_secret_text(Path(folder, name), must_be_private=False)
            return _token(text, f"credential {name}", f"credential {name}")
    return None


def _from_key(
    key: str, holder: ChannelConfig | McpConfig, origin: Origin, environ: Mapping[str, str]
) -> Token | None:
    if key == "token" and holder.token is not None:
        return Token(holder.token, str(origin))
    if key == "token_file" and holder.token_file is not None:
        text = read_secret_text(holder.token_file, must_be_private=True)
        return _token(text, "the file", f"file {os.fspath(holder.token_file)}")
    if key == "token_env":
        text = environ.get(holder.token_env, "").strip()
        if not text:
            hint = f"set {holder.token_env}, or use token_file"
            raise InvalidValue(f"the environment variable {holder.token_env} is not set", hint)
        return _token(text, holder.token_env, f"variable {holder.token_env}")
    return None


def _token(text: str, where: str, source: str) -> Token:
    try:
        return Token(Secret(fit_secret(text)), source)
    except InvalidValue as error:
        raise InvalidValue(f"the token in {where} {error.message}", error.hint) from None
