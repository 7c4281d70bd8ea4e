"""Writing and removing the file of a service. One that was changed by hand is left alone."""

import hashlib
import os
import re
import tempfile
from enum import StrEnum
from pathlib import Path

_MARK = re.compile(r"Written by koboshi [^\n]*checksum ([0-9a-f]{64})")


class UnitFileStanding(StrEnum):
    """What is at the place of the file."""

    NOTHING = "nothing"
    SAME = "same"
    OURS = "ours"
    """As some koboshi wrote it."""
    CHANGED = "changed"
    """Changed by hand, or never ours."""


def signed(text: str, version: str) -> str:
    """The text with a line on top that tells later whether it was changed."""
    mark = f"Written by koboshi {version}; checksum {_checksum(text)}"
    if not text.startswith("<?xml"):
        return f"# {mark}\n{text}"
    declaration, rest = text.split("\n", 1)
    return f"{declaration}\n<!-- {mark} -->\n{rest}"


def standing(file: Path, text: str) -> UnitFileStanding:
    """Raises OSError if it cannot be read."""
    try:
        found = file.read_text(encoding="utf-8", errors="replace")
    except FileNotFoundError:
        return UnitFileStanding.CHANGED if file.is_symlink() else UnitFileStanding.NOTHING
    if found == text:
        return UnitFileStanding.SAME
    return UnitFileStanding.OURS if is_untouched(found) else UnitFileStanding.CHANGED


def is_untouched(found: str) -> bool:
    """Whether it is as some koboshi wrote it."""
    mark = _MARK.search(found)
    if mark is None:
        return False
    begin, end = found.rfind("\n", 0, mark.start()) + 1, found.find("\n", mark.end()) + 1
    return mark[1] == _checksum(found[:begin] + found[end:])


def write_whole(file: Path, text: str) -> None:
    """Replace the file by rename, so that a reader never sees half of it. Raises OSError."""
    file.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=file.parent, prefix=f".{file.name}.")
    try:
        with open(handle, "w", encoding="utf-8") as stream:
            stream.write(text)
            stream.flush()
            os.fchmod(handle, 0o644)
            os.fsync(handle)
        os.replace(name, file)
    finally:
        Path(name).unlink(missing_ok=True)
    folder = os.open(file.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def _checksum(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
