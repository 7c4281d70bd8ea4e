"""Which channels there are, and how ids hold the time. Pure but for what is remembered."""

from dataclasses import dataclass, field
from datetime import datetime

from koboshi.channels.discord.types import DiscordPlace

EPOCH_MS = 1_420_070_400_000
"""Ids count milliseconds from the first one of 2015, above 22 bits of other numbers."""
PRIVATE = 1
THREADS = frozenset({10, 11, 12})
SILENT = frozenset({4, 14, 15, 16})
"""Categories, directories, forums and media: no messages are in them. What a forum calls its newest
message is its newest post, which is a thread."""
PLACES_MAX = 20_000
"""Channels that are remembered. One that is forgotten is asked for again."""


def id_at(at_ms: int) -> int:
    """The least id that was given out at that time."""
    return max(0, at_ms - EPOCH_MS) << 22


def time_of(number: str) -> int:
    """When an id was given out, in milliseconds; 0 for what is no id."""
    return (int(number) >> 22) + EPOCH_MS if is_id(number) else 0


def is_id(words: str) -> bool:
    return words.isascii() and words.isdecimal() and len(words) <= 20


def moment_of(stamp: str) -> int:
    """A time stamp of the API as an id; 0 for what is none."""
    try:
        return id_at(int(datetime.fromisoformat(stamp).timestamp() * 1000))
    except ValueError:
        return 0


@dataclass(slots=True)
class KnownPlaces:
    """Channels by id. A thread never changes its parent, so what is remembered stays true."""

    _known: dict[str, DiscordPlace] = field(default_factory=dict)

    def learn(self, place: DiscordPlace) -> None:
        while len(self._known) >= PLACES_MAX:
            del self._known[next(iter(self._known))]
        self._known[place.id] = place

    def forget(self, channel_id: str) -> None:
        self._known.pop(channel_id, None)

    def get(self, channel_id: str) -> DiscordPlace | None:
        return self._known.get(channel_id)
