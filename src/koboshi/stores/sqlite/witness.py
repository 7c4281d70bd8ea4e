"""The witness: a small file beside the database that tells how far the database had come.

It is no truth. Nothing that is stored follows from it, and without it everything goes on: it only
lets a start notice that the database alone went back in time, by a lost log or a file that was put
back. It is written behind the commit of a heartbeat, so it never tells of more than was durable.
"""

import os
import stat
from contextlib import suppress
from pathlib import Path

import msgspec

from koboshi.domain.witness import Witness

WITNESS_NAME = "witness.json"
PART_NAME = f"{WITNESS_NAME}.part"
BYTES_MAX = 4_096
NUMBER_MAX = 2**62
"""What a database can be asked for."""


def read_witness(home: Path) -> Witness | None:
    """What the witness tells; None if there is none, or what is there cannot be one of ours."""
    try:
        found = msgspec.json.decode(_content(home / WITNESS_NAME), type=Witness)
    except (OSError, ValueError):
        return None
    numbers = (found.journal, found.boot, found.at_ms)
    return found if all(0 <= number < NUMBER_MAX for number in numbers) else None


def write_witness(home: Path, witness: Witness) -> None:
    """Replace the witness: the new one is whole on the disk before it gets the name.

    Raises OSError; then the old one is still there.
    """
    part = home / PART_NAME
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
    descriptor = os.open(part, flags, 0o600)
    try:
        rest = msgspec.json.encode(witness)
        while rest:
            rest = rest[os.write(descriptor, rest) :]
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    os.replace(part, home / WITNESS_NAME)


def forget_witness(home: Path) -> None:
    """Remove the witness before something is put in the place of what it tells of. It is gone for
    sure when this returns: a power cut must not bring it back beside another database."""
    for name in (WITNESS_NAME, PART_NAME):
        with suppress(FileNotFoundError, IsADirectoryError, PermissionError):
            (home / name).unlink()
    folder = os.open(home, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def _content(path: Path) -> bytes:
    """Raises OSError, and ValueError for what is no file or much too long."""
    flags = os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC
    descriptor = os.open(path, flags)
    try:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode) or found.st_size > BYTES_MAX:
            raise ValueError(f"{path} is no witness")
        return os.read(descriptor, BYTES_MAX)
    finally:
        os.close(descriptor)
