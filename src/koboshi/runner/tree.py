"""Which processes belong to a command, and how to signal exactly those. Imports nearly nothing:
it is part of the runner."""

import posix

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal
else:
    import _signal as signal

MARKER = b"KOBOSHI_PROCESS"
"""The variable that marks the processes of a command, wherever they went."""

# Positions in /proc/<pid>/stat, counted after the name, which may hold anything.
STATE, PARENT, SESSION, START = 0, 1, 3, 19


def find_tree(
    marker: bytes,
    roots: tuple[int, ...],
    session: int = -1,
    child: "tuple[int, bytes] | None" = None,
) -> dict[int, bytes]:
    """The living processes of a command, as pid → start ticks.

    `roots` are its runner and its keeper, as far as they live. `session` is the pid of a runner
    that is gone, and `child` is what that runner had started.
    """
    living = processes()
    for root in roots:
        living.pop(root, None)
    line = MARKER + b"=" + marker
    marked = {pid for pid in living if marker and line in environment_of(pid)}
    found = family(living, marked, roots, session, child)
    return {pid: living[pid][START] for pid in found}


def family(
    living: dict[int, list[bytes]],
    marked: set[int],
    roots: tuple[int, ...],
    session: int = -1,
    child: "tuple[int, bytes] | None" = None,
) -> set[int]:
    """Which of the living processes belong to a command, by the system's facts of each. Pure.

    They are the children of a root or in its session, or began with the marker in their
    environment, or are the child by its birth, or descend from one of these. The session of a
    runner that is gone counts only if one of these is in it: as long as a session has a member, its
    number is given to no other process, so then it is still the same session.
    """
    numbers = {b"%d" % root for root in roots}
    found = {
        pid
        for pid, stat in living.items()
        if pid in marked
        or stat[SESSION] in numbers
        or stat[PARENT] in numbers
        or child == (pid, stat[START])
    }
    same = {pid for pid, stat in living.items() if stat[SESSION] == b"%d" % session}
    if found & same:
        found |= same
    grown = found
    while grown:
        parents = {b"%d" % pid for pid in grown}
        grown = {pid for pid, stat in living.items() if stat[PARENT] in parents} - found
        found = found | grown
    return found


def read_child() -> "tuple[int, bytes] | None":
    """Pid and start of the command's first process, from the record in this folder."""
    try:
        said = entries(read("child"))
        return int(said[b"pid"]), said[b"start_ticks"]
    except (OSError, KeyError, ValueError):
        return None


def processes() -> dict[int, list[bytes]]:
    """All living processes; none where the system does not list them (macOS has no /proc)."""
    try:
        pids = [int(name) for name in posix.listdir("/proc") if name.isdigit()]
    except OSError:
        return {}
    return {pid: stat for pid in pids if (stat := stat_of(pid))}


def stat_of(pid: int) -> list[bytes]:
    """The system's facts of a living process; empty if there is none. A zombie is dead."""
    try:
        fields = read(f"/proc/{pid}/stat").rpartition(b")")[2].split()
    except OSError:
        return []
    return fields if len(fields) > START and fields[STATE] not in (b"Z", b"X") else []


def environment_of(pid: int) -> bytes:
    """The environment it began with; empty if it is gone, or another user's."""
    try:
        return read(f"/proc/{pid}/environ")
    except OSError:
        return b""


def send(pid: int, start: bytes, number: int) -> bool:
    """Signal the process that has this pid since `start`, and no other; False if it is gone.

    The open descriptor belongs to one process for ever: the checked process is the signalled one.
    """
    try:
        process = posix.pidfd_open(pid)
    except OSError:
        return False
    try:
        if not (stat := stat_of(pid)) or stat[START] != start:
            return False
        signal.pidfd_send_signal(process, number)
    except OSError:
        return False  # it ended just now, or has another user by now
    finally:
        posix.close(process)
    return True


def send_all(found: dict[int, bytes], number: int) -> None:
    for pid, start in found.items():
        send(pid, start, number)


def entries(content: bytes) -> dict[bytes, bytes]:
    """`name=value`, each ended by NUL."""
    found = {}
    for entry in content.split(b"\0"):
        name, sign, text = entry.partition(b"=")
        if sign:
            found[name] = text
    return found


def exists(name: str) -> bool:
    try:
        posix.stat(name)
    except OSError:
        return False
    return True


def read(name: str) -> bytes:
    file = posix.open(name, posix.O_RDONLY)
    try:
        content = b""
        while chunk := posix.read(file, 65_536):
            content += chunk
        return content
    finally:
        posix.close(file)
