"""Where a server is and how far it is trusted, and the ways in which asking it can fail."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from koboshi.ports.runners import UNCONFINED, Confinement

Approval = Literal["never", "dangerous", "always"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """A server that we start, and that speaks over its standard input and output."""

    command: str
    args: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict, repr=False)
    """All of it: nothing else is inherited."""
    workdir: str
    """As the program calls it."""
    confinement: Confinement = UNCONFINED
    ports: frozenset[int] = frozenset()
    """Ports of ours that it can neither take nor reach."""
    blocked: str = ""
    """Why its boundary cannot hold on this machine: then it is not started."""
    remedy: str = ""
    """What helps if it does not start inside its boundary."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    """A server that is there, over HTTP. Addresses and headers may hold secrets."""

    url: str = field(repr=False)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)


Endpoint: TypeAlias = Program | Address


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerSpec:
    name: str
    endpoint: Endpoint
    timeout_seconds: float
    """For one call."""
    trusts_hints: bool = False
    approval: Approval = "dangerous"
    only: tuple[str, ...] | None = None
    """The tools that may be used, as the server calls them; None: all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerLimits:
    """How long the gateway waits, and how much it takes in."""

    connect_s: float = 60.0
    """From starting a server to its list of tools: some are downloaded first."""
    reach_s: float = 30.0
    """A call waits so long for its server."""
    settle_s: float = 10.0
    """The first request to a model waits so long for servers, once for each boot."""
    retry_s_min: float = 1.0
    retry_s_max: float = 60.0
    farewell_s: float = 1.0
    """For a server to end by itself, and again after it was asked to."""
    message_bytes_max: int = 8_000_000
    """One message of a server; what comes longer ends the connection."""


class NotTaken(Exception):
    """The server has certainly not begun with the call."""


class SessionRefused(NotTaken):
    """The server does not know our session, so it has certainly not begun with the call. The call
    may be sent again in a new one."""


class Unanswered(Exception):
    """The call was sent, and its outcome is unknown."""


class Declined(Exception):
    """The server answered that it does not do it, in its own words."""
