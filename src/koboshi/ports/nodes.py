"""The gateways that work on one database, as an operator sees them."""

from dataclasses import dataclass

from koboshi.domain.worker import Worker
from koboshi.ports.server import ServerStanding


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeView:
    """A gateway that works on the database."""

    worker_id: int
    node: str
    version: str
    started_ms: int
    heartbeat_ms: int
    silent_ms: int = 0
    """Since its last sign of life, by the clock of all nodes."""
    is_draining: bool
    turns: int
    """How many it works on."""
    accounts: tuple[str, ...] = ()
    """The channels on which it alone receives and sends."""
    processes: int = 0
    """How many run on it."""
    differs_in: tuple[str, ...] = ()
    """The sections that are configured otherwise than on the oldest node of the same version."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Status:
    worker: Worker | None
    previous: Worker | None
    turns: dict[str, int]
    """How many turns are in each state that is not closed."""
    stands: dict[str, int]
    """How many of them stand where: a turn that is held back is not at work, in any state."""
    inbox_waiting: int
    outbox_unsettled: int
    sessions: int
    sqlite: str
    """The version of SQLite, or the name and version of another database."""
    breaker: str = "closed"
    """How freely interrupted turns are taken up again."""
    outbox_held: int = 0
    """How many owed deliveries wait for a release."""
    gap: str | None = None
    """Rows that the database had stored and has lost, until the operator settles it."""
    turns_unheard: int = 0
    """How many set-aside turns the person is not to be told of, or cannot be."""
    server: ServerStanding | None = None
    """How the database server is; None where the store is a file."""
    nodes: tuple[NodeView, ...] = ()
