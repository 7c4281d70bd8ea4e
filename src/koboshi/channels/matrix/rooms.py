"""What must be known of rooms: who is in them, and whether they are encrypted."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import msgspec

from koboshi.channels.matrix.client import GONE, MatrixApi, MatrixRefused, room_path
from koboshi.channels.matrix.codec import ENCRYPTED, ENCRYPTION, RoomFacts

if TYPE_CHECKING:
    from koboshi.channels.matrix.encryption import Encryption

ROOMS_MAX = 10_000
"""Rooms that are remembered. One that is forgotten is asked about again."""
PRIVATE_MAX = 2
NOT_FOUND = 404


class _Members(msgspec.Struct, frozen=True, kw_only=True):
    joined: dict[str, dict[str, Any]] = {}


@dataclass(frozen=True, slots=True, kw_only=True)
class MatrixRooms:
    api: MatrixApi
    encryption: "Encryption | None" = None
    _known: dict[str, RoomFacts] = field(default_factory=dict)

    async def facts(self, room: str) -> RoomFacts:
        """As the homeserver has them; asked once, until `forget`."""
        known = self._known.get(room)
        if known is None:
            known = await self._ask(room)
            while len(self._known) >= ROOMS_MAX:
                del self._known[next(iter(self._known))]
            self._known[room] = known
        return known

    def forget(self, room: str) -> None:
        """Some person came, went or has another name, or the room is encrypted now."""
        self._known.pop(room, None)

    async def dressed(
        self, room: str, kind: str, content: dict[str, Any]
    ) -> tuple[str, dict[str, Any]]:
        """An event as the room wants it: encrypted where the room is. Raises what a call raises;
        nothing is sent then."""
        if self.encryption is None:
            return kind, content
        facts = await self.facts(room)
        if not facts.is_encrypted:
            return kind, content
        return ENCRYPTED, await self.encryption.seal(room, facts.members, kind, content)

    async def _ask(self, room: str) -> RoomFacts:
        try:
            members = await self.api.ask_patiently(
                _Members, "GET", room_path(room, "joined_members")
            )
        except MatrixRefused as refused:
            if refused.status not in GONE:
                raise  # a private room must not be taken for one where others are meant
            return RoomFacts(is_private=False)
        names = {
            user: name
            for user, shown in members.joined.items()
            if isinstance(name := shown.get("display_name"), str)
        }
        return RoomFacts(
            is_private=len(members.joined) <= PRIVATE_MAX,
            names=names,
            members=tuple(members.joined),
            is_encrypted=self.encryption is not None and await self._is_encrypted(room),
        )

    async def _is_encrypted(self, room: str) -> bool:
        try:
            await self.api.call_patiently("GET", room_path(room, "state", ENCRYPTION))
        except MatrixRefused as refused:
            if refused.status != NOT_FOUND:
                raise
            return False
        return True
