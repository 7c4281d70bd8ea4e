"""A plug-in: what another distribution adds, by an entry point, and what it is given."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from koboshi.domain.ids import ChannelName
from koboshi.ports.channel import Watermarks
from koboshi.ports.clock import Clock


@dataclass(frozen=True, slots=True, kw_only=True)
class Plugin:
    """An installed entry point. Nothing of it is imported before `load`, which may take long and
    may raise anything."""

    name: str
    distribution: str
    """Which distribution declares it, with its version, in words for a person."""
    load: Callable[[], object]


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolSetting:
    """What a plug-in is given to make its tools."""

    workdir: str
    """Where commands run (`gateway.workdir`), a full path."""
    environment: Mapping[str, str] = field(repr=False)
    """The environment of commands: nothing in it that may hold a key."""
    settings: Mapping[str, object] = field(default_factory=dict, repr=False)
    """The table `[tools.settings.<entry point>]`, unchecked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelSetting:
    """What a plug-in is given to make its model, from the section `[model]`."""

    model: str
    """The part of `name` behind the colon."""
    base_url: str = field(default="", repr=False)
    api_key: str | None = field(default=None, repr=False)
    """The value of the variable `api_key_env`; None where none is named or it is not set."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChannelSetting:
    """What a plug-in is given to make a channel, from a section `[channels.<entry point>.<name>]`.
    Who is allowed, and which groups are heard, is the gateway's to decide."""

    name: ChannelName
    token: str | None = field(default=None, repr=False)
    settings: Mapping[str, object] = field(default_factory=dict, repr=False)
    """The table `settings` of the section, unchecked."""
    ambiguous: str = "probe"
    """What becomes of a send of unknown outcome: probe, label or hold."""
    rate_per_second: float = 30
    """Messages to all chats together; 0 means no limit of our own."""
    home: Path
    """Where files that are sent lie: `home / delivery.file.path`."""
    message_chars_max: int
    file_bytes_max: int
    commands: tuple[tuple[str, str], ...] = ()
    """What people may write, and what it does."""
    clock: Clock
    on_back: Callable[[], None]
    """To be called when the platform can be had again."""
    watermarks: Watermarks
    """How far each chat was read as an account, as it was given to `accept`."""
