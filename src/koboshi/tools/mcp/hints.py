"""What a server says about its tools, and how much of it counts.

A server is a foreign program: a hint that would let us be careless counts only where the
configuration trusts the server. A hint that asks for more care always counts.
"""

from dataclasses import dataclass

from koboshi.domain.transcript import Effect, Need
from koboshi.tools.mcp.endpoint import Approval


@dataclass(frozen=True, slots=True, kw_only=True)
class Hints:
    """The annotations of a tool. What is not said is False: the protocol's own defaults are not
    something that the server has said."""

    is_read_only: bool = False
    is_idempotent: bool = False
    is_destructive: bool = False


def effect_of(hints: Hints, *, is_trusted: bool) -> Effect:
    """What repeating a call of the tool would do, as far as we may believe."""
    if is_trusted and hints.is_read_only:
        return Effect.NONE
    if is_trusted and hints.is_idempotent:
        return Effect.REPEATABLE
    return Effect.ONCE


def need_of(hints: Hints, approval: Approval, *, is_trusted: bool) -> Need:
    """Whether a person is asked first: unless a server that we trust says that it only reads."""
    match approval:
        case "always":
            return Need.APPROVAL
        case "never":
            return Need.NOBODY
        case "dangerous":
            # What is not said is destructive: the protocol's own default.
            return Need.NOBODY if is_trusted and hints.is_read_only else Need.APPROVAL
