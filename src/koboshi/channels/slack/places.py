"""How far each conversation was read, and which threads in it we take part in. Pure.

All messages of a conversation, in threads or not, carry time stamps of one clock. So one stamp says
how far it was read. The history does not show replies below old messages; the threads that were
last spoken in with us are kept beside the stamp, so that a catch-up can look at them.
"""

from dataclasses import dataclass, field

from koboshi.channels.slack.codec import is_ts
from koboshi.channels.slack.history import micros_of

THREADS_MAX = 10
"""Threads of one conversation that are kept, those that were last spoken in."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatPlace:
    newest: str
    threads: tuple[str, ...] = ()
    """The time stamps of their first messages, the latest to be spoken in first."""

    @property
    def token(self) -> str:
        """What is stored as the watermark."""
        return " ".join((self.newest, *self.threads))

    def moved(self, ts: str, thread: str = "") -> "ChatPlace":
        """The place behind one more message; a place never goes back."""
        newest = max(self.newest, ts, key=micros_of)
        others = tuple(each for each in self.threads if each != thread)
        threads = ((thread, *others) if thread else others)[:THREADS_MAX]
        return ChatPlace(newest=newest, threads=threads)


def place_in(token: str) -> ChatPlace | None:
    """What a watermark says; None if it cannot be read."""
    stamps = token.split()
    if not stamps or not all(map(is_ts, stamps)):
        return None
    return ChatPlace(newest=stamps[0], threads=tuple(stamps[1 : THREADS_MAX + 1]))


@dataclass(slots=True)
class ChatPlaces:
    """The places of all conversations, as they are stored or about to be."""

    _places: dict[str, ChatPlace] = field(default_factory=dict)

    def load(self, chat: str, token: str) -> None:
        place = place_in(token)
        if place is not None:
            self._places[chat] = place

    def get(self, chat: str) -> ChatPlace | None:
        return self._places.get(chat)

    def note(self, chat: str, thread: str) -> None:
        """A thread of a conversation was spoken in, and how far it was read is not known."""
        known = self._places.get(chat)
        if known is not None and thread:
            self._places[chat] = known.moved(known.newest, thread)

    def move(self, chat: str, ts: str, thread: str = "") -> ChatPlace:
        """The place of a conversation behind one more message."""
        known = self._places.get(chat) or ChatPlace(newest=ts)
        self._places[chat] = moved = known.moved(ts, thread)
        return moved
