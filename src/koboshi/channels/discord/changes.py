"""Words that people change or take back while we read them.

A page of a history may be older than an event that comes before it is stored. So while a channel is
behind, changes of messages that are not stored yet are held, and the page is stored with them: what
is stored is what its author says now. An event that a message is gone names no author; who wrote
the latest messages is remembered for that.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar

from koboshi.channels.common.reading import DELETED
from koboshi.channels.discord.codec import message_key
from koboshi.channels.discord.types import ChannelMessage
from koboshi.ports.channel import Inbound

REMEMBERED_MAX = 2_000
HELD_MAX = 500

Kept = TypeVar("Kept")


@dataclass(slots=True)
class MessageChanges:
    _said: dict[str, Inbound] = field(default_factory=dict)
    """The latest messages by their keys, without their words."""
    _edits: dict[str, ChannelMessage] = field(default_factory=dict)
    _gone: dict[str, None] = field(default_factory=dict)

    def remember(self, said: Iterable[Inbound]) -> None:
        """These are stored."""
        for each in said:
            bare = replace(each, words=replace(each.words, text="", files=()))
            _keep(self._said, each.external_id, bare, REMEMBERED_MAX)

    def taken_back(self, message_id: str) -> Inbound | None:
        """What is to be stored now that a message is gone; None if no one knows who wrote it."""
        said = self._said.get(message_key(message_id))
        if said is None:
            return None
        words = replace(said.words, text=DELETED)
        return replace(said, external_id=f"d{message_id}", edits=said.external_id, words=words)

    def hold_edit(self, message: ChannelMessage) -> None:
        """New words of a message that is not stored yet."""
        _keep(self._edits, message.id, message, HELD_MAX)

    def hold_gone(self, message_id: str) -> None:
        """A message that is not stored yet is gone."""
        _keep(self._gone, message_id, None, HELD_MAX)

    def as_they_are_now(self, page: Sequence[ChannelMessage]) -> list[ChannelMessage]:
        """The messages of a page, with what became of them since it was asked for."""
        return [self._newest(each) for each in page if each.id not in self._gone]

    def settle(
        self, stored: Sequence[ChannelMessage]
    ) -> tuple[list[ChannelMessage], list[Inbound]]:
        """What came while these were being stored: new words, and what was taken back."""
        late = [newest for each in stored if (newest := self._newest(each)) is not each]
        gone = [self.taken_back(each.id) for each in stored if each.id in self._gone]
        for each in stored:
            self._edits.pop(each.id, None)
            self._gone.pop(each.id, None)
        return late, [each for each in gone if each is not None]

    def _newest(self, message: ChannelMessage) -> ChannelMessage:
        held = self._edits.get(message.id)
        is_newer = held is not None and _edited_at(held) > _edited_at(message)
        return held if held is not None and is_newer else message


def _edited_at(message: ChannelMessage) -> str:
    """Time stamps of the platform are of one form, so they compare as words."""
    return message.edited_timestamp or ""


def _keep(kept: dict[str, Kept], key: str, value: Kept, count_max: int) -> None:
    while len(kept) >= count_max:
        del kept[next(iter(kept))]
    kept[key] = value
