"""How far each channel was read: ids of messages, and whose private channel it is.

A watermark is the id of the newest message that is stored, as `123`; for a private channel with
the person before it, as `77/123`, because the platform lists no private channels. The watermark of
no channel, FLOOR, is the moment of the first connection: nothing from before is ever taken.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from koboshi.channels.discord.places import is_id

FLOOR = "*"


@dataclass(slots=True)
class ReadMarks:
    """What the store has. `keep` follows the commit, so memory is never ahead of the store."""

    newest: dict[str, int] = field(default_factory=dict)
    people: dict[str, str] = field(default_factory=dict)
    """Private channels: whose they are."""

    @property
    def floor(self) -> int | None:
        return self.newest.get(FLOOR)

    def after(self, channel_id: str, joined: int = 0) -> int:
        """Behind which id the messages of a channel are new to us."""
        return self.newest.get(channel_id) or max(self.floor or 0, joined)

    def token(self, channel_id: str, number: int, person: str = "") -> str:
        """The watermark to be stored with a message that was read. It never goes back."""
        newest = max(number, self.newest.get(channel_id, 0))
        whose = person or self.people.get(channel_id, "")
        return f"{whose}/{newest}" if whose else str(newest)

    def keep(self, stored: Mapping[str, str]) -> None:
        """These were stored; an empty one was forgotten."""
        for channel_id, token in stored.items():
            person, _, number = token.rpartition("/")
            if is_id(number):
                self.newest[channel_id] = max(int(number), self.newest.get(channel_id, 0))
                if person:
                    self.people[channel_id] = person
            else:
                self.newest.pop(channel_id, None)
                self.people.pop(channel_id, None)

    def places(self) -> Iterator[str]:
        yield from (each for each in self.newest if each != FLOOR)


def read_marks(stored: Mapping[str, str]) -> ReadMarks:
    """The watermarks of the store. One that cannot be read counts as none."""
    marks = ReadMarks()
    marks.keep(stored)
    return marks
