"""What a homeserver says, as far as we read it. Contents of events are anything at all."""

from collections.abc import Sequence
from typing import Any

import msgspec
import structlog

log = structlog.get_logger()


class MatrixEvent(msgspec.Struct, frozen=True, kw_only=True):
    event_id: str = ""
    type: str
    sender: str
    state_key: str | None = None
    redacts: str = ""
    """The event that this one takes back; in newer rooms it stands in the content."""
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


class DeviceLists(msgspec.Struct, frozen=True, kw_only=True):
    changed: list[str] = []


class SyncAnswer(msgspec.Struct, frozen=True, kw_only=True):
    next_batch: str
    rooms: Rooms = Rooms()
    to_device: Events = Events()
    device_lists: DeviceLists = DeviceLists()
    device_one_time_keys_count: dict[str, int] = {}
    device_unused_fallback_key_types: list[str] | None = None


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


def events_of(raws: Sequence[msgspec.Raw]) -> Sequence[MatrixEvent]:
    """The events that can be read. One that cannot is passed over: it must not stop the rest."""
    events = [event_of(raw) for raw in raws]
    if None in events:
        log.warning("events_unreadable", count=events.count(None))
    return [event for event in events if event is not None]
