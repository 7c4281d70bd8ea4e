"""What a homeserver says, as far as we read it. Contents of events are anything at all."""

from typing import Any

import msgspec


class MatrixEvent(msgspec.Struct, frozen=True, kw_only=True):
    event_id: str = ""
    type: str
    sender: str
    state_key: str | None = None
    content: dict[str, Any] = {}
    origin_server_ts: int = 0
    unsigned: dict[str, Any] = {}

    @property
    def relation(self) -> dict[str, Any]:
        """How it relates to another event."""
        found = self.content.get("m.relates_to")
        return found if isinstance(found, dict) else {}


class Events(msgspec.Struct, frozen=True, kw_only=True):
    events: list[msgspec.Raw] = []


class Timeline(Events, frozen=True, kw_only=True):
    limited: bool = False
    prev_batch: str = ""


class JoinedRoom(msgspec.Struct, frozen=True, kw_only=True):
    timeline: Timeline = Timeline()
    state: Events = Events()


class InvitedRoom(msgspec.Struct, frozen=True, kw_only=True):
    invite_state: Events = Events()


class Rooms(msgspec.Struct, frozen=True, kw_only=True):
    join: dict[str, JoinedRoom] = {}
    invite: dict[str, InvitedRoom] = {}


class SyncAnswer(msgspec.Struct, frozen=True, kw_only=True):
    next_batch: str
    rooms: Rooms = Rooms()


class MessagesAnswer(msgspec.Struct, frozen=True, kw_only=True):
    chunk: list[msgspec.Raw] = []
    end: str | None = None


class ErrorAnswer(msgspec.Struct, frozen=True, kw_only=True):
    errcode: str = ""
    error: str = ""
    retry_after_ms: int | float | None = None


_event = msgspec.json.Decoder(MatrixEvent)


def event_of(raw: bytes | msgspec.Raw) -> MatrixEvent | None:
    """The event; None for one that cannot be read."""
    try:
        return _event.decode(raw)
    except (msgspec.DecodeError, RecursionError):
        return None
