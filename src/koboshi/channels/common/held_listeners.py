"""Listening sockets that outlive the gateway, so that its port is never free while it restarts.

Any program of this machine could take a port that is free for a moment, and would be sent what
people send us. So a socket that listens is handed to the parent that starts us again, which hands
it to the next gateway: `koboshi run --supervise`, or systemd's store of file descriptors. A gateway
that starts itself again keeps it open meanwhile. Who connects in between waits in its queue.
"""

import array
import os
import socket
from collections.abc import Callable, Mapping, MutableMapping
from contextlib import suppress
from dataclasses import dataclass, field

HANDED = "KOBOSHI_LISTENERS"
"""Sockets of the gateway before this one: name=descriptor, one after the other."""
DEPOSIT = "KOBOSHI_DEPOSIT"
"""Where a parent of ours takes them."""
LISTEN_PID, LISTEN_FDS, LISTEN_FDNAMES = "LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES"
FIRST = 3
NAME_BYTES_MAX = 200


@dataclass(slots=True, kw_only=True)
class HeldListeners:
    """Sockets by the names of their channels. `deposit` hands one to who starts us again."""

    handed: dict[str, socket.socket] = field(default_factory=dict)
    deposit: Callable[[str, socket.socket], None] = lambda _name, _listener: None
    kept: dict[str, socket.socket] = field(default_factory=dict)

    def taken(self, name: str, addresses: list[tuple[str, int]]) -> socket.socket | None:
        """The socket that already listens on one of these addresses; with port 0, the one of this
        name at the host. None if there is none."""
        held = {**self.handed, **self.kept}
        for each, listener in sorted(held.items(), key=lambda pair: pair[0] != name):
            host, port = listener.getsockname()[:2]
            is_any = each == name and (host, 0) in addresses
            if is_any or (host, port) in addresses:
                return listener.dup()
        return None

    def keep(self, name: str, listener: socket.socket) -> None:
        """From now on it stays open, whatever becomes of this gateway."""
        before, self.kept[name] = self.kept.get(name), listener.dup()
        if before is not None:
            before.close()
        old = self.handed.pop(name, None)
        if old is not None:
            old.close()
        self.deposit(name, self.kept[name])

    def for_next(self) -> dict[str, str]:
        """The variables by which a gateway in this very process finds them."""
        for listener in self.kept.values():
            listener.set_inheritable(True)
        return {HANDED: handed_words({name: each.fileno() for name, each in self.kept.items()})}


def handed_words(descriptors: Mapping[str, int]) -> str:
    return ",".join(f"{name}={descriptor}" for name, descriptor in descriptors.items())


def taken_listeners(environ: MutableMapping[str, str], pid: int) -> HeldListeners:
    """What the gateway before this one has left, and where to leave it again. The variables are
    removed, and no child process gets the sockets."""
    words = environ.pop(HANDED, "")
    found = [part.rpartition("=") for part in words.split(",") if part]
    numbers = {name: int(number) for name, _, number in found if number.isdigit()}
    whose, count = environ.pop(LISTEN_PID, ""), environ.pop(LISTEN_FDS, "")
    names = environ.pop(LISTEN_FDNAMES, "").split(":")
    if whose == str(pid) and count.isdigit():
        for place in range(int(count)):
            name = names[place] if place < len(names) else ""
            numbers.setdefault(name or f"systemd{place}", FIRST + place)
    handed = {name: one for name, number in numbers.items() if (one := _listener(number))}
    where = environ.pop(DEPOSIT, "")
    link = _link(int(where)) if where.isdigit() else None
    if link is None:
        return HeldListeners(handed=handed)
    return HeldListeners(handed=handed, deposit=lambda name, one: hand_over(link, name, one))


def hand_over(link: socket.socket, name: str, listener: socket.socket) -> None:
    """Send a socket to the parent. Nothing depends on it but the moment of a restart."""
    rights = array.array("i", [listener.fileno()]).tobytes()
    with suppress(OSError):
        link.sendmsg([name.encode()], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, rights)])


def received(link: socket.socket) -> tuple[str, int] | None:
    """A socket that a gateway has handed over, by its name; None if there is none now."""
    size = array.array("i").itemsize
    try:
        name, rights, _, _ = link.recvmsg(NAME_BYTES_MAX, socket.CMSG_SPACE(size))
    except OSError:
        return None
    for level, kind, content in rights:
        if (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS):
            descriptor = array.array("i", content[:size])[0]
            os.set_inheritable(descriptor, False)
            return name.decode("utf-8", "replace"), descriptor
    return None


def _listener(descriptor: int) -> socket.socket | None:
    """The socket, if it is one that listens for connections."""
    try:
        found = socket.socket(fileno=descriptor)
    except OSError:
        return None
    is_ours = found.family in (socket.AF_INET, socket.AF_INET6)
    try:
        is_ours = is_ours and bool(found.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN))
    except OSError:
        is_ours = False
    if not is_ours:
        found.detach()
        return None
    found.set_inheritable(False)
    found.setblocking(False)
    return found


def _link(descriptor: int) -> socket.socket | None:
    try:
        link = socket.socket(fileno=descriptor)
    except OSError:
        return None
    link.set_inheritable(False)
    link.setblocking(False)
    return link
