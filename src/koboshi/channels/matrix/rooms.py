"""What must be known of rooms: who is in them."""

from dataclasses import dataclass, field
from typing import Any

import msgspec

from koboshi.channels.matrix.client import MatrixApi, MatrixRefused, room_path
from koboshi.channels.matrix.codec import RoomFacts

ROOMS_MAX = 10_000
"""Rooms that are remembered. One that is forgotten is asked about again."""
PRIVATE_MAX = 2


class _Members(msgspec.Struct, frozen=True, kw_only=True):
    joined: dict[str, dict[str, Any]] = {}


@dataclass(frozen=True, slots=True, kw_only=True)
class MatrixRooms:
    api: MatrixApi
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
        """Some person came, went or has another name."""
        self._known.pop(room, None)

    async def _ask(self, room: str) -> RoomFacts:
        try:
            members = await self.api.ask_patiently(
                _Members, "GET", room_path(room, "joined_members")
            )
        except MatrixRefused:
            return RoomFacts(is_private=False)  # we are not in it any more
        names = {
            user: name
            for user, shown in members.joined.items()
            if isinstance(name := shown.get("display_name"), str)
        }
        return RoomFacts(is_private=len(members.joined) <= PRIVATE_MAX, names=names)
