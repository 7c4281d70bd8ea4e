"""Whether the kernel killed for lack of memory, as the memory group of this process counts it.
Imports nearly nothing: it is part of the runner.

A count that grew in the lifetime of a process that died of SIGKILL is the best evidence without
special rights. Processes that were started together share the group, and with it the count.
"""

import posix

GROUPS = "/sys/fs/cgroup"
CHUNK_BYTES = 65_536
COUNT = b"oom_kill"


def count_file() -> str:
    """The file that counts the kills in our group; "" where there is none."""
    for file in candidates(content("/proc/self/cgroup").decode("utf-8", "surrogateescape")):
        if kills_in(file) is not None:
            return file
    return ""


def candidates(groups: str) -> list[str]:
    """The files that may count them, by the content of /proc/self/cgroup."""
    files = []
    for line in groups.splitlines():
        _, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        folder = path.rstrip("/")
        if "memory" in controllers.split(","):
            files.append(f"{GROUPS}/memory{folder}/memory.oom_control")
        if not controllers:
            # The local one does not count what died in groups within ours.
            for mount in (GROUPS, GROUPS + "/unified"):
                files.append(f"{mount}{folder}/memory.events.local")
                files.append(f"{mount}{folder}/memory.events")
    return files


def kills_seen(own: str, groups: "list[bytes]") -> "int | None":
    """How many were killed so far in our own group, whose file this is, and in those that the
    command joins; None if that is not counted. A group that is not there yet has counted none."""
    names = ("memory.oom_control", "memory.events")
    folders = [each.decode("utf-8", "surrogateescape") for each in groups]
    joined = [f"{folder}/{name}" for folder in folders for name in names]
    found = [kills for file in (own, *joined) if (kills := kills_in(file)) is not None]
    return sum(found) if found or joined else None


def kills_in(file: str) -> "int | None":
    """How many processes were killed so far; None if the file is gone or unreadable."""
    for line in content(file).splitlines():
        name, _, count = line.partition(b" ")
        if name == COUNT and count.isdigit():
            return int(count)
    return None


def content(name: str) -> bytes:
    """Empty if it cannot be read."""
    try:
        file = posix.open(name, posix.O_RDONLY)
    except OSError:
        return b""
    found = b""
    try:
        while chunk := posix.read(file, CHUNK_BYTES):
            found += chunk
        return found
    except OSError:
        return b""
    finally:
        posix.close(file)
