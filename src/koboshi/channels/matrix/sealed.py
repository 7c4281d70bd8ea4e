"""Events that cannot be decrypted yet. Each is a watermark of its own, in the transaction that
moves the cursor past it, until its key comes: the homeserver has the event, we have the place.
Pure."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

DEVICE_MARK = "device"
"""The watermark that says which device, with which key and since when, this home is. A restore
forgets it."""
TOLD_AFTER_MS = 10 * 60_000
KEPT_MS = 7 * 24 * 3_600_000
"""For so long a key is waited for. Then it is noted that the event was there."""
SEALED_MAX = 200
"""Events that are kept, beside one of each room."""
_PREFIX, _TOLD = "sealed ", "told"


@dataclass(frozen=True, slots=True, kw_only=True)
class Sealed:
    room: str
    event_id: str
    sender: str
    since_ms: int
    """When we first saw it."""
    is_told: bool = False

    @property
    def chat(self) -> str:
        """What the watermark is stored under."""
        return f"{_PREFIX}{self.room} {self.event_id}"

    @property
    def mark(self) -> str:
        return f"{self.since_ms} {self.sender}" + (f" {_TOLD}" if self.is_told else "")


def sealed_in(marks: Mapping[str, str]) -> list[Sealed]:
    """The events among the watermarks, the oldest first."""
    found = [_read(chat, mark) for chat, mark in marks.items() if chat.startswith(_PREFIX) and mark]
    return sorted(found, key=lambda each: each.since_ms)


def has_place(chats: Iterable[str], room: str) -> bool:
    """Whether one more event of a room can be kept. The first one always can, so that the room is
    told."""
    kept = [chat for chat in chats if chat.startswith(_PREFIX)]
    is_first = not any(chat.startswith(f"{_PREFIX}{room} ") for chat in kept)
    return is_first or len(kept) < SEALED_MAX


def due_to_be_told(sealed: Iterable[Sealed], now_ms: int) -> list[Sealed]:
    return [each for each in sealed if not each.is_told and now_ms - each.since_ms >= TOLD_AFTER_MS]


def words_for(count: int) -> str:
    """What a room is told of messages that are not read."""
    if count == 1:
        return "I cannot read a message here: its key has not reached me. Please send it again."
    return f"I cannot read {count} messages here: no key has reached me. Please send them again."


def _read(chat: str, mark: str) -> Sealed:
    room, _, event_id = chat.removeprefix(_PREFIX).partition(" ")
    since, _, rest = mark.partition(" ")
    sender, _, told = rest.partition(" ")
    return Sealed(
        room=room, event_id=event_id, sender=sender, since_ms=int(since), is_told=told == _TOLD
    )
