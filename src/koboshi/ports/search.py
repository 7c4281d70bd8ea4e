"""Finding what was said."""

from dataclasses import dataclass
from typing import Protocol

from koboshi.domain.ids import ChannelName


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchHit:
    chat: str
    title: str
    """The name of the chat; empty if it was given none."""
    excerpt: str
    """What was found, between the characters U+0001 and U+0002, with a few words around it."""
    at_ms: int
    message: str = ""
    """The message, as people are shown it, if it is a person's."""
    turn: str = ""
    """The turn in which it was said; empty for the name of a chat."""


class WordSearch(Protocol):
    async def index(self, limit: int) -> int:
        """Index the next steps. Returns how many were looked at."""
        ...

    async def clear(self) -> None:
        """Forget all words, because some of them were erased. The rest is indexed anew."""
        ...

    async def find(self, channel: ChannelName, text: str, limit: int) -> tuple[SearchHit, ...]:
        """The newest messages and answers with all of these words, and chats that are named by
        them. The last word may be the beginning of one."""
        ...
