"""Secrets that the gateway makes itself and keeps in the home, one in a file of its own.

A file gets its name when it is whole, so a crash leaves the old secret or the new one. What is
there and can be no secret is set aside, and a new one is made.
"""

import os
import stat
from pathlib import Path

from koboshi.domain.errors import StoreFailed

QUARANTINE_NAME = "quarantine"
SECRET_CHARS_MAX = 4_096
"""A person may have put a secret of their own there; nothing longer fits into a header."""


def kept_secret(path: Path) -> str | None:
    """The secret in the file; empty if there is none, None if what is there can be no secret.

    Raises OSError where it cannot be looked at: it may be a good one.
    """
    try:
        # A pipe of that name must not hold up the start.
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        return ""
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            return None
        found = os.read(descriptor, SECRET_CHARS_MAX + 1)
    finally:
        os.close(descriptor)
    secret = found.strip()
    is_fit = len(found) <= SECRET_CHARS_MAX and all(0x21 <= byte <= 0x7E for byte in secret)
    return secret.decode("ascii") if is_fit else None


def held_secret(path: Path) -> str:
    """The secret in the file, made now if there is none or only a damaged one. Raises StoreFailed
    where the disk refuses that."""
    kept = kept_secret(path)
    if kept:
        return kept
    if kept is None:
        set_aside_secret(path)
    # Only the start that makes one pays for loading it, and no command that shows one.
    import secrets

    return write_secret(path, secrets.token_urlsafe(32))


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
        raise StoreFailed(f"{path} is damaged and cannot be set aside: {error}") from error
    structlog.get_logger().warning(
        "secret_replaced",
        file=str(path),
        kept=str(folder / path.name),
        remedy="it was damaged; a new one is made, and programs that had the old one need it",
    )
    return folder / path.name


def write_secret(path: Path, secret: str) -> str:
    """Put the secret into the file, for its owner alone. Returns it. Raises StoreFailed."""
    unnamed = path.with_suffix(".new")
    try:
        unnamed.unlink(missing_ok=True)
        descriptor = os.open(unnamed, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with os.fdopen(descriptor, "w", encoding="ascii") as file:
            file.write(f"{secret}\n")
            file.flush()
            os.fsync(file.fileno())
        unnamed.rename(path)
        # A power cut may lose the new name unless the folder is flushed, too.
        _flush(path.parent)
    except OSError as error:
        raise StoreFailed(f"{path} cannot be written: {error}") from error
    return secret


def _flush(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
