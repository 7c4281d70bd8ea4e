"""Control groups: limits for all programs of a session together. Imports nearly nothing: it is part
of the runner.

The process that becomes the command makes its group, if there is none, and moves there by itself.
So an empty group can be removed at any time, by the runner that ends or by a gateway that begins:
the next command makes it again.
"""

import errno
import posix

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

ATTEMPTS = 5
MEMBERS = b"/cgroup.procs"
PROCESSES = (b"/pids.max",)
MEMORY = (b"/memory.max", b"/memory.limit_in_bytes")
"""Of the unified hierarchy, and of one of its own."""


def join(groups: "Iterable[bytes]", memory_max: int, processes_max: int) -> None:
    """Move this process, and with it all that it will start, into the groups, each with its limits;
    0 is no limit. Raises OSError."""
    limits = [(name, processes_max) for name in PROCESSES]
    limits += [(name, memory_max) for name in MEMORY]
    for folder in groups:
        enter(folder, [(folder + name, most) for name, most in limits if most])


def leave(groups: "Iterable[bytes]") -> None:
    """Remove the groups, unless other commands of the session are in them."""
    for folder in groups:
        try:
            posix.rmdir(folder)
        except OSError:
            continue


def enter(folder: bytes, limits: "list[tuple[bytes, int]]") -> None:
    for attempt in range(ATTEMPTS):
        try:
            make(folder)
            for file, most in limits:
                set_limit(file, most)
            write(folder + MEMBERS, b"0")
        except OSError as error:
            # It was empty, and a sweep removed it under our hands.
            is_gone = error.errno in (errno.ENOENT, errno.ENODEV)
            if not is_gone or attempt + 1 == ATTEMPTS:
                raise
        else:
            return


def make(folder: bytes) -> None:
    try:
        posix.mkdir(folder, 0o700)
    except FileExistsError:
        return


def set_limit(file: bytes, most: int) -> None:
    """A hierarchy without this limit is left alone. So is a group that holds more than that: it
    keeps the limit that it has."""
    try:
        write(file, b"%d" % most)
    except OSError as error:
        if error.errno not in (errno.ENOENT, errno.EBUSY):
            raise


def write(name: bytes, content: bytes) -> None:
    file = posix.open(name, posix.O_WRONLY)
    try:
        posix.write(file, content)
    finally:
        posix.close(file)
