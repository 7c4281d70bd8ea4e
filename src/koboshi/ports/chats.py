"""Chats as the operator keeps them: named, pinned, archived, deleted."""

from dataclasses import dataclass
from typing import Protocol

from koboshi.domain.chat import ChatMark
from koboshi.domain.ids import ChannelName, SessionId


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatView:
    """A chat with recent events. `title` is the name that it was given, else what was
    first said in it."""

    chat: str
    thread: str
    session_id: SessionId
    title: str
    state: str | None
    """Of its newest turn."""
    touched_ms: int
    stand: str = ""
    """Where that turn stands: its state, `held-back` or `interrupted`."""
    stands: str = ""
    """The same, in words."""
    is_pinned: bool = False
    is_archived: bool = False
    is_named: bool = False
    """Whether the title was given to it, and is not what was first said."""


class Chats(Protocol):
    """Each verb returns False, or None, where there is no such chat."""

    async def name(self, channel: ChannelName, chat: str, title: str) -> bool:
        """Give the chat a name. An empty one takes it back."""
        ...

    async def mark(self, channel: ChannelName, chat: str, mark: ChatMark) -> bool: ...

    async def delete(self, channel: ChannelName, chat: str, by: str) -> int | None:
        """End what goes on in the chat, erase all that was said there, and remove it from the list.
        Returns how many messages were erased."""
        ...
