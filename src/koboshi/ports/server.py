"""What can be known of a database server, for an operator."""

from collections.abc import Mapping
from dataclasses import dataclass

from koboshi.domain.timing import Timing


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerStanding:
    """How the server is, as the gateway sees it now."""

    name: str
    round_trip_ms: float
    standby: str
    """Which promise holds when it is lost, in words."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LivingNode:
    """A gateway that has no end."""

    node: str
    home: str
    version: str
    silent_ms: int
    """Since its last sign of life, by the clock of the server."""
    fingerprint: str = ""
    """How it is configured (`domain/fingerprint.py`); empty: unknown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerFacts:
    """What `koboshi doctor` asks a server. Nothing is changed by asking."""

    name: str
    round_trip_ms: float
    clock_ahead_ms: int
    """How far its clock is ahead of that of this machine."""
    fsync: str
    synchronous_commit: str
    standby_names: str
    standbys: int
    is_standby: bool
    encoding: str
    connections_left: int
    """How many more it takes of us."""
    idle_timeout: str
    """What `idle_in_transaction_session_timeout` is, once we have set it."""
    is_pooled: bool
    """Whether another server than the one that we connected to carries statements out."""
    schema: int | None
    """None: there are no tables of ours yet."""
    schema_known: int
    """What this program knows."""
    oldest_code: int = 0
    rows_are: str = ""
    """Where the rows are, if those of the database do not count."""
    nodes: tuple[LivingNode, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerRefusal:
    """Why a server could not be asked."""

    words: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerFigures:
    """What a store on a server counts, for the metrics."""

    rounds: int
    reconnects: int
    unknown_commits: Mapping[str, int]
    """Commits of unknown outcome, by what became of them."""
    lock_waits: Timing
    lease_age_s: float
    """Since this node last gave a sign of life that the server has confirmed."""
