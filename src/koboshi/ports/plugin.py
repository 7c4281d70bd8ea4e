"""A plug-in: what another distribution adds, by an entry point, and what it is given."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field


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
