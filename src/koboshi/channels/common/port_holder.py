"""Who listens on a port of this machine, as far as the kernel lets us look."""

from collections.abc import Iterator
from pathlib import Path

LISTENING = "0A"
UNKNOWN = "another gateway?"


def holder_words(port: int) -> str:
    """The process that listens on the port, for a person."""
    pids = holders_of(port)
    if not pids:
        return UNKNOWN
    return ", ".join(f"pid {pid}{_name_of(pid)}" for pid in pids)


def holders_of(port: int) -> tuple[int, ...]:
    """The processes that listen on the port; none where we may not look at them."""
    wanted = {f"socket:[{inode}]" for inode in _inodes(port)}
    if not wanted:
        return ()
    try:
        pids = sorted(int(each.name) for each in Path("/proc").iterdir() if each.name.isdigit())
    except OSError:
        return ()
    return tuple(pid for pid in pids if not wanted.isdisjoint(_sockets(pid)))


def parents_of(pids: frozenset[int]) -> frozenset[int]:
    """The processes that started these: they hold a port for the next gateway."""
    return frozenset(map(_parent_of, pids))


def _parent_of(pid: int) -> int:
    try:
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    except (OSError, ValueError, IndexError):
        return 0


def _inodes(port: int) -> Iterator[str]:
    for name in ("tcp", "tcp6"):
        try:
            lines = Path("/proc/net", name).read_text(encoding="ascii").splitlines()[1:]
        except OSError:
            continue
        for _, local, _, state, *rest in map(str.split, lines):
            if state == LISTENING and int(local.rpartition(":")[2], 16) == port:
                yield rest[5]


def _sockets(pid: int) -> Iterator[str]:
    try:
        for descriptor in Path(f"/proc/{pid}/fd").iterdir():
            yield str(descriptor.readlink())
    except OSError:
        return


def _name_of(pid: int) -> str:
    try:
        name = Path(f"/proc/{pid}/comm").read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""
    return f": {name}" if name.isprintable() else ""
