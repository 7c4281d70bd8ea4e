"""Where a place that an owner named really is, although programs may change names.

A program can put a link in place of anything in a folder that it may write. A place is looked up
again for each command, so a link of a program would show the next one whatever it leads to. So a
link counts only where no program could have made it.
"""

import os
from collections.abc import Iterable

from koboshi.boundary.view import is_below

LINKS_MAX = 40
"""As many as the kernel follows."""


def true_path(path: str, touchable: Iterable[str]) -> str | None:
    """The path without links and dots; None if a link on the way lies in one of the folders that
    programs may write, or nothing is there. `path` is absolute."""
    folders = tuple(touchable)
    waiting = path.split("/")[::-1]
    walked = ""
    links = 0
    while waiting:
        name = waiting.pop()
        if name in ("", "."):
            continue
        if name == "..":
            walked = walked.rpartition("/")[0]
            continue
        target = _target_of(f"{walked}/{name}")
        if target is None:
            walked += f"/{name}"
            continue
        links += 1
        if links > LINKS_MAX or is_touchable(walked or "/", folders):
            return None
        if target.startswith("/"):
            walked = ""
        waiting += target.split("/")[::-1]
    return (walked or "/") if os.path.lexists(walked or "/") else None


def is_touchable(path: str, folders: Iterable[str]) -> bool:
    """Whether the path lies in one of the folders."""
    return any(is_below(path, folder) for folder in folders)


def _target_of(path: str) -> str | None:
    try:
        return os.readlink(path)
    except OSError:
        return None  # it is no link, or not there
