"""How long we wait for a client, and how much of it we listen to."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpLimits:
    head_bytes_max: int = 64_000
    request_bytes_max: int = 8_000_000
    """With its body; a route that reads a body sets its own limit below this."""
    ahead_max: int = 16
    """Requests on one connection that wait for the answer to an earlier one."""
    request_s: float = 30.0
    """From the moment when a request may come until all of it is here."""
    unread_s: float = 60.0
    """While nothing more can be written, because what was written is not read."""
