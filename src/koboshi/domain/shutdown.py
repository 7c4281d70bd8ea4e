"""How a gateway is asked to end."""

from enum import StrEnum


class Leave(StrEnum):
    """How the gateway was asked to end."""

    STOP = "stop"
    RESTART = "restart"
    DRAIN = "drain"  # however long the turns take that run now


async def nothing_against_it() -> str:
    """Why a gateway would not come back from a restart, where that is unknown."""
    return ""
