"""Telling the service manager how we are, by systemd's datagram protocol (sd_notify).

Nothing here can harm the gateway: without a socket nothing is sent, and a socket that is dead or
full is noted once in the log. Every message is one datagram on a socket of its own, so any thread
can send, also one that ends a hanging stop.
"""

import os
import socket
from collections.abc import MutableMapping
from dataclasses import dataclass, field

import structlog

log = structlog.get_logger()

SOCKET = "NOTIFY_SOCKET"
WATCHDOG_TIME = "WATCHDOG_USEC"
WATCHDOG_PID = "WATCHDOG_PID"
STATUS_CHARS_MAX = 400
EXTEND_SECONDS_MAX = 3_600.0


@dataclass(slots=True, kw_only=True)
class Notifier:
    """The service manager to tell. The default is none."""

    address: str = ""
    """A path, or a name in the abstract space after an `@`; empty if there is no listener."""
    watchdog_seconds: float | None = None
    """The manager ends us if it does not hear `alive()` for this long; None without a watchdog."""
    _owed: list[str] = field(default_factory=list, init=False)
    """Messages that the manager must get and could not be sent yet."""
    _is_ready: bool = field(default=False, init=False)
    _is_lost: bool = field(default=False, init=False)
    _last_status: str = field(default="", init=False)

    @classmethod
    def taken_from(cls, environ: MutableMapping[str, str], pid: int) -> "Notifier":
        """The notifier that the environment describes. Its variables are removed: no child process
        may speak for us."""
        address = environ.pop(SOCKET, "")
        limit, whose = environ.pop(WATCHDOG_TIME, ""), environ.pop(WATCHDOG_PID, "")
        if not address.startswith(("/", "@")):
            return cls()
        return cls(address=address, watchdog_seconds=_watchdog(limit, whose, pid))

    @property
    def is_heard(self) -> bool:
        """Whether there is a listener."""
        return bool(self.address)

    def ready(self) -> None:
        """The first message can be accepted. Said once."""
        if not self._is_ready:
            self._is_ready = True
            self._say_surely("READY=1")

    def stopping(self) -> None:
        """The stop has begun."""
        self._say_surely("STOPPING=1")

    def status(self, words: str) -> None:
        """Our state, in one line for a person. A repeated line is not sent."""
        line = " ".join(words.split())[:STATUS_CHARS_MAX]
        if line != self._last_status and self._say(f"STATUS={line}"):
            self._last_status = line

    def extend(self, seconds: float) -> None:
        """Ask for at least so many more seconds, from now, to start or to stop in."""
        bounded = min(max(seconds, 0.0), EXTEND_SECONDS_MAX)
        self._say(f"EXTEND_TIMEOUT_USEC={int(bounded * 1_000_000)}")

    def alive(self) -> None:
        """Feed the watchdog."""
        self._say("WATCHDOG=1")

    def keep_socket(self, name: str, listener: socket.socket) -> None:
        """Have the manager keep a socket open, and give it to the gateway that it starts next. One
        that it kept by that name before is let go. Best effort."""
        if not self.address:
            return
        try:
            _send(self.address, f"FDSTOREREMOVE=1\nFDNAME={name}")
            _send(self.address, f"FDSTORE=1\nFDNAME={name}", listener)
        except OSError as error:
            self._note_loss(error)

    def _say_surely(self, line: str) -> None:
        """Send it now, or with the next message."""
        self._owed.append(line)
        self._say()

    def _say(self, *lines: str) -> bool:
        if not self.address:
            return False
        message = "\n".join((*self._owed, *lines))
        if not message:
            return True
        try:
            _send(self.address, message)
        except OSError as error:
            self._note_loss(error)
            return False
        self._is_lost = False
        self._owed.clear()
        return True

    def _note_loss(self, error: OSError) -> None:
        """Once, until something is heard again."""
        if not self._is_lost:
            log.warning("service_notify_failed", error=str(error))
        self._is_lost = True


def _send(address: str, message: str, listener: socket.socket | None = None) -> None:
    place = os.fsencode(address)
    if place.startswith(b"@"):
        place = b"\0" + place[1:]
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as link:
        # A manager that does not read must not block the event loop.
        link.setblocking(False)
        link.connect(place)
        said = message.encode("utf-8", "replace")
        if listener is None:
            link.send(said)
        else:
            socket.send_fds(link, [said], [listener.fileno()])


def _watchdog(limit: str, whose: str, pid: int) -> float | None:
    """The time between two signs of life in seconds; None if none are wanted of this process."""
    if whose and whose != str(pid):
        return None
    if not (limit.isascii() and limit.isdigit()) or int(limit) == 0:
        return None
    return int(limit) / 1_000_000
