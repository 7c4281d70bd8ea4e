"""Which processes belong to a command, and how to signal exactly those. Imports nearly nothing:
it is part of the runner."""

import posix

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal
else:
    import _signal as signal

MARKER = b"KOBOSHI_PROCESS"
"""The variable by which the processes of a command are known, wherever they went."""

# Places in /proc/<pid>/stat, counted after the name, which may hold anything.
STATE, PARENT, SESSION, START = 0, 1, 3, 19


def find_tree(marker: bytes, runner: int) -> dict[int, bytes]:
    """The living processes of a command, as pid → start ticks.

    They are in the session of its runner, or began with the marker in their environment, or descend
    from such a process. `runner` is -1 once that is gone: then its session may be anybody's.
    """
    living = processes()
    living.pop(runner, None)
    session = b"%d" % runner
    line = MARKER + b"=" + marker
    found = {
        pid
        for pid, stat in living.items()
        if session in (stat[SESSION], stat[PARENT]) or (marker and line in environment_of(pid))
    }
    grown = found
    while grown:
        parents = {b"%d" % pid for pid in grown}
        grown = {pid for pid, stat in living.items() if stat[PARENT] in parents} - found
        found = found | grown
    return {pid: living[pid][START] for pid in found}


def processes() -> dict[int, list[bytes]]:
    """All that live; none where the system does not tell (macOS has no /proc)."""
    try:
        pids = [int(name) for name in posix.listdir("/proc") if name.isdigit()]
    except OSError:
        return {}
    return {pid: stat for pid in pids if (stat := stat_of(pid))}


def stat_of(pid: int) -> list[bytes]:
    """What the system tells about a living process; empty if there is none. A zombie is dead."""
    try:
        fields = read(f"/proc/{pid}/stat").rpartition(b")")[2].split()
    except OSError:
        return []
    return fields if len(fields) > START and fields[STATE] not in (b"Z", b"X") else []


def environment_of(pid: int) -> bytes:
    """The environment it began with; empty if it is gone, or somebody else's."""
    try:
        return read(f"/proc/{pid}/environ")
    except OSError:
        return b""


def send(pid: int, start: bytes, number: int) -> bool:
    """Signal the process that has this pid since `start`, and no other; False if it is gone.

    The open descriptor belongs to one process for ever, so what is checked is what is signalled.
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


def read(name: str) -> bytes:
    file = posix.open(name, posix.O_RDONLY)
    try:
        content = b""
        while chunk := posix.read(file, 65_536):
            content += chunk
        return content
    finally:
        posix.close(file)
