"""Who may use the gateway beside those in its configuration."""

from typing import Protocol

from koboshi.domain.ids import ChannelName
from koboshi.domain.people import Pairing, Person, Revoked


class People(Protocol):
    """Who may use the gateway, beside those whom the configuration allows. Only the console calls
    these verbs: nothing that is said in a chat lets anybody in."""

    async def is_allowed(self, channel: ChannelName, person: str) -> bool: ...

    async def strangers(self, limit: int) -> tuple[Pairing, ...]:
        """Those who were given a code that is good, or get none for a while; newest first."""
        ...

    async def paired(self, limit: int) -> tuple[Person, ...]:
        """Those who were let in, newest first."""
        ...

    async def approve(self, code: str) -> Person | None:
        """Let in whoever was given the code, and tell them; what was set aside because they were
        not allowed goes on. None if no code is good that reads so: then the guess is counted."""
        ...

    async def deny(self, code: str) -> Pairing | None:
        """The code is worthless, and whoever was given it gets none for a while. None as above."""
        ...

    async def revoke(self, channel: ChannelName, person: str) -> Revoked:
        """Take the right away; what is queued or at work for the person is set aside."""
        ...
