"""Chats as the operator keeps them: named, pinned, archived, deleted."""

from typing import Protocol

from koboshi.domain.chat import ChatMark
from koboshi.domain.ids import ChannelName


class Chats(Protocol):
    """Each verb returns False, or None, where there is no such chat."""

    async def name(self, channel: ChannelName, chat: str, title: str) -> bool:
        """Give the chat a name. An empty one takes it back."""
        ...

    async def mark(self, channel: ChannelName, chat: str, mark: ChatMark) -> bool: ...

    async def delete(self, channel: ChannelName, chat: str, by: str) -> int | None:
        """End what goes on in the chat, erase everything that was said there, and list it no more.
        Returns how many messages were erased."""
        ...
