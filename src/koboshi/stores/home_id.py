"""The random id of a home, in a file of its own: a database may be shared by several homes, so it
cannot be the place. Nothing is decided by the file alone. It says which rows of the workers and
the processes are those of this home."""

import os
import secrets
from contextlib import suppress
from pathlib import Path

ID_NAME = "home-id"
PART_NAME = f"{ID_NAME}.part"
ID_BYTES = 16


def home_id(home: Path) -> str:
    """The id of a home that this process owns, made if there is none, or none that can be one."""
    try:
        found = (home / ID_NAME).read_text(encoding="ascii").strip()
    except (OSError, ValueError):
        found = ""
    if len(found) == 2 * ID_BYTES and set(found) <= set("0123456789abcdef"):
        return found
    made = secrets.token_hex(ID_BYTES)
    # One that cannot be kept is good for as long as we run: the next owner takes the rows over.
    with suppress(OSError):
        _keep(home, made)
    return made


def _keep(home: Path, made: str) -> None:
    """It is whole on the disk before it gets the name."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
    descriptor = os.open(home / PART_NAME, flags, 0o600)
    try:
        os.write(descriptor, f"{made}\n".encode())
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    os.replace(home / PART_NAME, home / ID_NAME)
