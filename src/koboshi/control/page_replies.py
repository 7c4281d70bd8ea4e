"""Replies that only the page asks for."""

import msgspec

from koboshi.control.replies import Done
from koboshi.domain.reasons import Reason
from koboshi.ports.minutes import MinuteView


class CommandHint(msgspec.Struct, frozen=True, kw_only=True):
    """A command of the chat, for completion."""

    name: str
    words: str


class PageOffer(Done, frozen=True, kw_only=True):
    channel: str
    version: str
    model: str
    can_kill: bool
    rules: dict[str, str]
    """What each rule of recovery says, by its name."""
    ends: dict[str, str]
    """How a boot ended, in words, by `ended_how`."""
    commands: tuple[CommandHint, ...] = ()
    file_bytes_max: int = 0
    """The largest file that a person can send along; 0 if none can be."""


class ActivityItem(msgspec.Struct, frozen=True, kw_only=True):
    """One thing of the list: a turn, a message, a delivery or a process."""

    kind: str
    id: str
    at_ms: int
    ended_ms: int | None = None
    state: str
    stands: str
    group: str
    """open, done or failed."""
    channel: str
    chat: str
    text: str
    note: str = ""
    turn: str | None = None
    fate: Reason | None = None
    """Why a message was not answered, and what helps."""
    acts: tuple[str, ...] = ()
    """What can be done about it: retry, drop."""


class ActivityList(Done, frozen=True, kw_only=True):
    items: tuple[ActivityItem, ...]
    next: str | None


class SettingRow(msgspec.Struct, frozen=True, kw_only=True):
    key: str
    value: str
    """As it is written in the file; secrets are masked."""
    source: str
    """Where it was set; `default` if nowhere."""


class ToolRow(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    source: str
    """`built in`, `plug-in`, or the MCP server."""
    words: str


class SettingList(Done, frozen=True, kw_only=True):
    settings: tuple[SettingRow, ...]
    tools: tuple[ToolRow, ...] = ()


class MinuteList(Done, frozen=True, kw_only=True):
    now_ms: int
    minutes: tuple[MinuteView, ...]
    channels: tuple[tuple[str, int], ...]
    """When each channel had its last message, as far as the minutes tell."""


class FoundWords(msgspec.Struct, frozen=True, kw_only=True):
    chat: str
    title: str
    excerpt: str
    """What was found stands between U+0001 and U+0002."""
    at_ms: int
    message: str = ""
    """Empty for an answer and for the name of a chat."""
    turn: str = ""


class Found(Done, frozen=True, kw_only=True):
    hits: tuple[FoundWords, ...]


class ChatDeleted(Done, frozen=True, kw_only=True):
    chat: str
    messages: int
    is_finished: bool
    """Otherwise something was in the way; the gateway goes on with it."""
    backups: tuple[str, ...] = ()
    """They still hold the words."""
