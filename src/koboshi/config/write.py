"""Writing a configuration: whole or not at all, readable by its owner only."""

import os
from pathlib import Path


def write_new(file: Path, text: str, *, is_replacing: bool) -> None:
    """Write `file` with mode 0600. An existing file is replaced only on request, and kept beside it
    as `<name>.old`. Raises OSError, FileExistsError above all.

    It gets its name when it is on disk: a crash leaves the old file, the new one, or none.
    """
    file.parent.mkdir(parents=True, exist_ok=True)
    unnamed = file.with_name(f"{file.name}.new")
    unnamed.unlink(missing_ok=True)
    descriptor = os.open(unnamed, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as stream:
            stream.write(text)
            stream.flush()
            os.fsync(stream.fileno())
        if is_replacing and file.exists():
            old = file.with_name(f"{file.name}.old")
            old.unlink(missing_ok=True)
            os.link(file, old)
            os.rename(unnamed, file)
        else:
            os.link(unnamed, file)
    finally:
        unnamed.unlink(missing_ok=True)
    folder = os.open(file.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
