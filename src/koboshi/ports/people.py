"""Who may use the gateway beside those in its configuration."""

from typing import Protocol

from koboshi.domain.ids import ChannelName
from koboshi.domain.people import Pairing, Person, Revoked, RoleGiven
from koboshi.domain.role import Role


class People(Protocol):
    """People who may use the gateway beside those in the configuration. Only the console calls
    these verbs: no chat message can grant access."""

    async def is_allowed(self, channel: ChannelName, person: str) -> bool: ...

    async def strangers(self, limit: int) -> tuple[Pairing, ...]:
        """People with a valid code, and people who get none for a while; newest first."""
        ...

    async def paired(self, limit: int) -> tuple[Person, ...]:
        """The people who were granted access by a code, newest first."""
        ...

    async def approve(self, code: str, role: Role = Role.MEMBER) -> Person | None:
        """Grant access to the person with this code, and tell them; their messages that were set
        aside go on. None if no valid code matches: then the guess is counted."""
        ...

    async def deny(self, code: str) -> Pairing | None:
        """Void the code; its person gets none for a while. None as above."""
        ...

    async def role_of(self, channel: ChannelName, person: str) -> Role | None:
        """What the person may decide; None for a person who may not use the gateway."""
        ...

    async def set_role(self, channel: ChannelName, person: str, role: Role) -> RoleGiven:
        """Give a person who was paired another role. Nothing changes for any other person."""
        ...

    async def without_owner(self) -> tuple[ChannelName, ...]:
        """The channels on which no person is an owner."""
        ...

    async def tell_of_roles(self) -> tuple[str, ...]:
        """Tell the owners once, in their chats, who became a member by an upgrade. Returns whom
        they were told of."""
        ...

    async def revoke(self, channel: ChannelName, person: str) -> Revoked:
        """Revoke the access; the person's queued and running work is set aside."""
        ...
