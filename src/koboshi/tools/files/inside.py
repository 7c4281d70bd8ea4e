"""Paths as the programs inside a boundary call them. Standard library only.

A command may put a link in the way at any moment. So no path is ever given to the system as a
whole: each folder is opened below the one before it, and links are read as words and followed by
ourselves, inside the view. A link that leads out of the view leads nowhere. The kernel's own way to
say this (`openat2`) is not needed then, and it knows nothing of a view that is made of many places.
"""

import os

from koboshi.boundary.view import View
from koboshi.domain.sandbox import Boundary

LINKS_MAX = 40
"""As many as the kernel follows."""

# Linux can hold a folder that may be entered and not be listed.
ENTER = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_CLOEXEC


def expand_home(view: View, path: str) -> str:
    """`~` is the home of the programs, not ours."""
    return view.home + path[1:] if path == "~" or path.startswith("~/") else path


def resolve_inside(view: View, path: str) -> str | None:
    """The path without links and dots, as programs inside call it; None if there are too many
    links. It need not exist, nor be visible. `path` is absolute.

    Only a name comes of it: the file is opened by walking this name without following links.
    """
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
        target = _link_at(view, f"{walked}/{name}")
        if target is None:
            walked += f"/{name}"
            continue
        links += 1
        if links > LINKS_MAX:
            return None
        if target.startswith("/"):
            walked = ""
        waiting += target.split("/")[::-1]
    return walked or "/"


def open_folder(path: str) -> int:
    """The folder with this path of the machine, which must have no links in it. Raises OSError."""
    descriptor = os.open("/", ENTER)
    for name in filter(None, path.split("/")):
        try:
            deeper = os.open(name, ENTER | os.O_NOFOLLOW, dir_fd=descriptor)
        finally:
            os.close(descriptor)
        descriptor = deeper
    return descriptor


def _link_at(view: View, path: str) -> str | None:
    """Where the link leads that programs call `path`; None if it is none. `path` has no links
    before its last name."""
    for link, target in view.links:
        if link == path:
            return target
    # Landlock does not hide where links lead; bubblewrap has no link outside of the view.
    outside = view.locate(path) if view.boundary is Boundary.BUBBLEWRAP else path
    if outside is None or any(place.inside == path for place in view.places):
        return None
    try:
        folder = open_folder(os.path.dirname(outside))
    except OSError:
        return None  # what is wrong with it shows when it is opened
    try:
        return os.readlink(os.path.basename(outside), dir_fd=folder)
    except OSError:
        return None  # it is no link, or not there
    finally:
        os.close(folder)
