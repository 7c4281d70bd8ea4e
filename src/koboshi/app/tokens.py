"""The token of the web that the gateway makes itself and keeps in the home."""

import os
import secrets
import stat
from pathlib import Path

from koboshi.config import Config, WebConfig
from koboshi.domain.errors import StoreFailed

WEB_TOKEN_NAME = "web-token"
QUARANTINE_NAME = "quarantine"
TOKEN_CHARS_MAX = 4_096
"""A person may have put a token of their own there; nothing longer fits into a header."""


def web_token(home: Path, channel: WebConfig) -> str:
    """The configured token, or one that is made at the first start and kept in the home.

    What is there and can be no token is set aside, and a new one is made. Raises StoreFailed where
    the disk refuses that.
    """
    if channel.token is not None:
        return channel.token.reveal()
    path = home / WEB_TOKEN_NAME
    kept = kept_token(home)
    if kept is None:
        set_aside_secret(path)
    return kept or _made_token(path)


def make_tokens(config: Config) -> None:
    """Make the token of the web, if it has none yet."""
    for channel in config.enabled_channels:
        if isinstance(channel, WebConfig):
            web_token(config.home, channel)


def kept_token(home: Path) -> str | None:
    """The token in the home; empty if there is none, None if what is there can be no token.

    Raises OSError where it cannot be looked at: it may be a good one.
    """
    try:
        # A pipe of that name must not hold up the start.
        descriptor = os.open(home / WEB_TOKEN_NAME, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        return ""
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            return None
        found = os.read(descriptor, TOKEN_CHARS_MAX + 1)
    finally:
        os.close(descriptor)
    token = found.strip()
    is_token = len(found) <= TOKEN_CHARS_MAX and all(0x21 <= byte <= 0x7E for byte in token)
    return token.decode("ascii") if is_token else None


def set_aside_secret(path: Path) -> Path:
    """Move a damaged secret into the quarantine, and say so. Returns where it is kept."""
    # Only a start with such a secret pays for loading it.
    import structlog

    folder, number = path.parent / QUARANTINE_NAME / f"{path.name}-1", 1
    while folder.exists():
        number += 1
        folder = folder.with_name(f"{path.name}-{number}")
    try:
        folder.mkdir(parents=True, mode=0o700)
        path.rename(folder / path.name)
        _flush(folder)
        _flush(path.parent)
    except OSError as error:
        raise StoreFailed(f"{path} is damaged and can not be set aside: {error}") from error
    structlog.get_logger().warning(
        "secret_replaced",
        file=str(path),
        kept=str(folder / path.name),
        remedy="it was damaged; a new one is made, and programs that had the old one need it",
    )
    return folder / path.name


def secrets_set_aside(home: Path) -> tuple[Path, ...]:
    """Damaged secrets that were replaced, for as long as a person keeps them."""
    try:
        return tuple(sorted((home / QUARANTINE_NAME).glob(f"*/{WEB_TOKEN_NAME}")))
    except OSError:
        return ()


def _made_token(path: Path) -> str:
    """A new token in a file. It gets its name when it is whole: half a token would lock us out."""
    token = secrets.token_urlsafe(32)
    unnamed = path.with_suffix(".new")
    try:
        unnamed.unlink(missing_ok=True)
        descriptor = os.open(unnamed, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with os.fdopen(descriptor, "w", encoding="ascii") as file:
            file.write(f"{token}\n")
            file.flush()
            os.fsync(file.fileno())
        unnamed.rename(path)
        # A power cut may lose the new name unless the folder is flushed, too.
        _flush(path.parent)
    except OSError as error:
        raise StoreFailed(f"{path} can not be written: {error}") from error
    return token


def _flush(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
