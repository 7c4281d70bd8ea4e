"""Rooms that people invite us to: joined if the person may use the gateway, else declined.

An invitation is told of once. A homeserver that cannot join a room now (the room is on another one
that does not answer, or it limits joins) must neither lose the invitation nor hold up the rest. So
the room gets a watermark that says who asks, in the transaction of the place behind the invitation,
and is tried again beside the work until it is joined, or never can be.
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from urllib.parse import quote

import structlog

from koboshi.channels.common.calls import NoAnswer
from koboshi.channels.matrix.client import CLIENT, TOO_MANY, MatrixApi, MatrixRefused, room_path
from koboshi.channels.matrix.codec import invited_by
from koboshi.channels.matrix.options import MatrixOptions
from koboshi.channels.matrix.types import InvitedRoom, events_of
from koboshi.ports.clock import Clock

log = structlog.get_logger()

INVITED = "invited"
"""The watermark of a room that we have joined and not read yet."""
ASKED = "asked "
"""Begins the watermark of a room that could not be joined yet; the person who asks is behind it."""
JOIN_AGAIN_SECONDS = 60.0


def is_awaited(mark: str) -> bool:
    """Whether a room with this watermark is to be read back to our invitation."""
    return mark == INVITED or mark.startswith(ASKED)


@dataclass(slots=True, kw_only=True)
class Invitations:
    api: MatrixApi
    options: MatrixOptions
    clock: Clock
    show: Callable[[Callable[[], Awaitable[None]]], None]
    """Does something beside the work; if it fails nothing is lost."""
    _tried: float = field(default=float("-inf"))
    _given_up: set[str] = field(default_factory=set)

    async def follow(
        self, invited: Mapping[str, InvitedRoom], marks: Mapping[str, str]
    ) -> dict[str, str]:
        """Join the rooms to which allowed people invite us. Returns the watermarks that change."""
        changed = {room: "" for room in self._given_up if room in marks}
        self._given_up.clear()
        if self.clock.monotonic() - self._tried > JOIN_AGAIN_SECONDS:
            self._tried = self.clock.monotonic()
            for room, mark in marks.items():
                if mark.startswith(ASKED) and room not in changed:
                    self.show(partial(self._join_again, room, mark.removeprefix(ASKED)))
        for room, asked in invited.items():
            mark = await self._follow(room, asked)
            changed |= {room: mark} if mark else {}
        return changed

    async def _follow(self, room: str, invited: InvitedRoom) -> str:
        """The watermark of a room that we are invited to; empty if we do not come."""
        asks = invited_by(events_of(invited.invite_state.events), self.options.user)
        if not asks or not await self.options.is_allowed(asks):
            log.info("invitation_declined", channel=self.options.name, room=room, by=asks)
            self.show(partial(self._decline, room))
            return ""
        try:
            await self._join(room, asks)
        except MatrixRefused as refused:
            # Else it was taken back, or the room is gone.
            return f"{ASKED}{asks}" if refused.status == TOO_MANY else ""
        except NoAnswer:
            return f"{ASKED}{asks}"
        return INVITED

    async def _join_again(self, room: str, asks: str) -> None:
        """The next answer tells of the room if we are in it then."""
        if not await self.options.is_allowed(asks):
            self._given_up.add(room)
            await self._decline(room)
            return
        try:
            await self._join(room, asks)
        except MatrixRefused as refused:
            if refused.status != TOO_MANY:
                self._given_up.add(room)

    async def _join(self, room: str, asks: str) -> None:
        try:
            await self.api.call_patiently("POST", f"{CLIENT}/join/{quote(room, safe='')}", {})
        except (MatrixRefused, NoAnswer) as error:
            log.warning("invitation_failed", channel=self.options.name, reason=str(error))
            raise
        log.info("invitation_followed", channel=self.options.name, room=room, by=asks)

    async def _decline(self, room: str) -> None:
        await self.api.call_patiently("POST", room_path(room, "leave"), {})
