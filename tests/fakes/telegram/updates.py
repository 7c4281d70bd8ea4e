"""What waits for the bot: updates, kept until they are acknowledged or too old."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import msgspec

from tests.fakes.telegram.state import JSON

KEPT_S = 24 * 3600
# A press of a button is not kept as long as a message.
PRESS_KEPT_S = 150
FIRST_UPDATE_ID = 700_000_001
# How far above the next update an offset may be.
FUTURE_MAX = 10
# Delivered only to those who ask for them by name.
ONLY_IF_NAMED = frozenset({"chat_member", "message_reaction", "message_reaction_count"})


@dataclass(slots=True, kw_only=True, eq=False)
class Waiting:
    """An update, encoded when it happened: a later edit of the message does not change it."""

    update_id: int
    body: bytes
    expires_at: float
    is_repeat: bool = False
    """Told once more although it may have been acknowledged."""


class Updates:
    """The queue of one bot. An update leaves it when it is acknowledged, dropped or expired."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._next_id = FIRST_UPDATE_ID
        self._waiting: list[Waiting] = []
        self._told: dict[int, Waiting] = {}
        self._is_reversed = False
        self.allowed: tuple[str, ...] = ()
        self.acknowledged: list[int] = []
        self.dropped: list[int] = []
        """Forgotten because a person asked for it, and not because they were read."""
        self.expired: list[int] = []

    def __len__(self) -> int:
        self._expire()
        return len(self._waiting)

    @property
    def told(self) -> list[int]:
        """The numbers of all updates there ever were."""
        return list(self._told)

    def is_wanted(self, kind: str) -> bool:
        return kind in self.allowed if self.allowed else kind not in ONLY_IF_NAMED

    def add(self, kind: str, content: JSON, *, since: float, kept_s: float = KEPT_S) -> int | None:
        """Queue what happened at `since`. None if no one wants it or it is too old by now."""
        expires_at = since + kept_s
        if not self.is_wanted(kind) or expires_at <= self._clock():
            return None
        body = msgspec.json.encode({"update_id": self._next_id, kind: content})
        return self._append(body, expires_at)

    def add_raw(self, content: JSON | bytes) -> int:
        """Queue whatever it is. An object gets the next id unless it brings one."""
        if isinstance(content, dict):
            content = msgspec.json.encode({"update_id": self._next_id, **content})
        return self._append(content, self._clock() + KEPT_S)

    def repeat(self, update_id: int, *, renumbered: bool = False) -> int:
        """Tell an update once more: under its old id whatever the offset says, or a new one."""
        old = self._find(update_id)
        if renumbered:
            content = msgspec.json.decode(old.body)
            content["update_id"] = self._next_id
            return self._append(msgspec.json.encode(content), self._clock() + KEPT_S)
        self._waiting.append(
            Waiting(update_id=update_id, body=old.body, expires_at=old.expires_at, is_repeat=True)
        )
        return update_id

    def reverse_next(self) -> None:
        """The next answer has its updates in the wrong order."""
        self._is_reversed = True

    def renumber(self, update_id: int) -> None:
        """Go on with another number, lower or higher, as after a week without updates."""
        self._next_id = update_id

    def take(self, offset: int, limit: int) -> list[Waiting]:
        """Forget what the offset acknowledges; the next ones after it.

        An offset too far in the future acknowledges nothing, and the oldest ones are told."""
        self._expire()
        if offset > self._next_id + FUTURE_MAX:
            offset = 0
        if offset < 0:
            self._drop(self._waiting[:offset])
        elif offset > 0:
            self._acknowledge(offset)
        told = self._waiting[:limit]
        repeats = [each for each in told if each.is_repeat]
        if repeats:
            self._waiting = [each for each in self._waiting if each not in repeats]
        if self._is_reversed and told:
            self._is_reversed = False
            told = told[::-1]
        return told

    def settle(self, waiting: Waiting) -> None:
        """A webhook has taken it."""
        if waiting in self._waiting:
            self._waiting.remove(waiting)
            self.acknowledged.append(waiting.update_id)

    def first(self) -> Waiting | None:
        self._expire()
        return self._waiting[0] if self._waiting else None

    def drop_all(self) -> None:
        self._drop(self._waiting)

    def _append(self, body: bytes, expires_at: float) -> int:
        waiting = Waiting(update_id=self._next_id, body=body, expires_at=expires_at)
        self._next_id += 1
        self._waiting.append(waiting)
        self._told[waiting.update_id] = waiting
        return waiting.update_id

    def _find(self, update_id: int) -> Waiting:
        if update_id not in self._told:
            raise LookupError(f"there was no update {update_id}")
        return self._told[update_id]

    def _acknowledge(self, offset: int) -> None:
        read = [each for each in self._waiting if each.update_id < offset and not each.is_repeat]
        if read:
            self._forget(read)
            self.acknowledged += [each.update_id for each in read]

    def _drop(self, dropped: Iterable[Waiting]) -> None:
        dropped = list(dropped)
        self._forget(dropped)
        self.dropped += [each.update_id for each in dropped]

    def _expire(self) -> None:
        now = self._clock()
        old = [each for each in self._waiting if each.expires_at <= now]
        if old:
            self._forget(old)
            self.expired += [each.update_id for each in old]

    def _forget(self, gone: list[Waiting]) -> None:
        ids = {id(each) for each in gone}
        self._waiting = [each for each in self._waiting if id(each) not in ids]
