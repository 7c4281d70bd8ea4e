"""The way of a writer to its server, and which server that is.

The address of a server may lead to another one after a while: a standby was promoted, or a backup
took the place of what there was. One that follows a server which waited for it with each commit has
everything. Any other may lack what was acknowledged, whichever node wrote that; so a gateway that
meets such a server ends, and the next start holds all owed deliveries (`going_back.py`).
"""

from collections.abc import Callable
from contextlib import ExitStack

from koboshi.domain.errors import Buried, HomeCopied, StoreFailed
from koboshi.domain.ids import WorkerId
from koboshi.kernel.decode import maybe_number, number, text
from koboshi.stores.postgres.wire import BEGIN, COMMIT, Lost, Wire, WireRequest

ROUND_SECONDS_MAX = 10.0
"""A server that is silent for longer is lost. It ends a statement of its own by then."""


class ServerReach:
    """Connects to the server that was met first, or to one that lacks nothing of it."""

    def __init__(self, connect: Callable[[], Wire]) -> None:
        self._connect = connect
        self.server = ""
        """Which one it is; empty where it does not tell."""
        self.loses_none = False
        """Whether the promotion of its standby loses nothing, as it told last."""

    def connect(self) -> Wire:
        """A connection. Raises Lost; and StoreFailed where another server has taken the place of
        the one that was there."""
        wire = self._connect()
        with ExitStack() as undo:
            undo.callback(wire.close)
            self._meet(wire)
            undo.pop_all()
        return wire

    def _meet(self, wire: Wire) -> None:
        found, loses_none = wire.one("server_seen", within_s=ROUND_SECONDS_MAX).rows[0]
        server, before = text(found), self.server
        if before and server and server != before:
            if not self.loses_none:
                raise StoreFailed(went_back(before, server))
            moved = {"before": before, "server": server}
            wire.one("server_follows", moved, within_s=ROUND_SECONDS_MAX)
        self.server, self.loses_none = server or before, bool(loses_none)


def went_back(before: str, server: str) -> str:
    return (
        f"the database may have gone back: server {server} has taken the place of {before}, which "
        "did not wait for a standby, so that what was acknowledged last may be missing"
    )


def mark_of(wire: Wire, worker: WorkerId) -> tuple[int, int | None]:
    """The mark of the last batch of the worker, and when it was ended. Believed, because the look
    itself is committed. Raises Lost, and StoreFailed where there is no such worker."""
    asked = WireRequest("batch_mark", {"worker_id": worker})
    _, answer, ended = wire.round([BEGIN, asked, COMMIT], within_s=ROUND_SECONDS_MAX)
    if ended.tag != b"COMMIT" or wire.is_in_doubt:
        raise Lost("the look was not committed")
    if not answer.rows:
        raise StoreFailed("the database went back: it does not know this worker")
    mark, ended_ms = answer.rows[0]
    return number(mark), maybe_number(ended_ms)


READ_ONLY = "25006"
NO_WRITES = (
    "the server takes no writes: it is a standby, or set read-only; an address with all servers "
    "and target_session_attrs=read-write finds the one that does"
)


def burial_of(wire: Wire, worker: WorkerId, words: str) -> Buried:
    """The error of a worker that was ended. This process holds the lock of its home, so a later
    boot of that home is one on a copy. Raises Lost and ServerError."""
    asked = wire.one("home_successor", {"worker_id": worker}, within_s=ROUND_SECONDS_MAX)
    if not asked.rows:
        return Buried(words)
    node, host = asked.rows[0]
    return HomeCopied(
        f"a gateway on a copy of this home has taken over: node {node} on {host}. Give one of the "
        "two a home of its own, or remove `home-id` and `processes` from its home while it is "
        "stopped"
    )


def says_committed(found: tuple[int, int | None], batch_number: int) -> bool:
    """What the mark of a worker says of the batch whose commit had no answer. Raises StoreFailed
    where the database went back, and Buried."""
    mark, ended_ms = found
    if mark == batch_number:
        return True
    if mark != batch_number - 1:
        raise StoreFailed(
            f"the database went back: it knows batch {mark} of this worker, "
            f"and batch {batch_number - 1} was committed"
        )
    if ended_ms is not None:
        raise Buried("another node has ended this worker")
    return False
