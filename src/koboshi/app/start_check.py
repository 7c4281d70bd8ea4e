"""What keeps a gateway from starting, known before anything is begun.

A start asks first, and `koboshi config check`, `koboshi doctor` and every way to restart ask the
same: what a start refuses, they refuse.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from koboshi.app.boot_config import remote_models
from koboshi.app.boundary import is_written_down, why_none
from koboshi.channels.common.listening import (
    ListenAddress,
    complaint_about,
    web_place,
    webhook_place,
)
from koboshi.config import ChannelConfig, Config, WebConfig
from koboshi.config.home_paths import check_folder_to_make, check_home
from koboshi.config.problems import ConfigError, InvalidValue
from koboshi.domain.errors import KeyMissing, ModelUnusable, ToolUnusable, Unusable
from koboshi.tools.mcp.library import require_library

if TYPE_CHECKING:
    from koboshi.models.plugin import PluginModel
    from koboshi.models.remote import RemoteModel


class StartRefused(Unusable):
    """No gateway can be built on this configuration, for all of these reasons."""

    def __init__(self, others: tuple[str, ...], *, missing_keys: tuple[str, ...]) -> None:
        self.reasons = (*missing_keys, *others)
        super().__init__("\n".join(self.reasons))
        self.others = others
        """Those that are not a missing key."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StartVerdict:
    """What a start would make of a configuration."""

    refusals: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()


def usable_models(config: Config) -> "dict[str, RemoteModel | PluginModel | None]":
    """The first thing that a start does: the models by what they are called, None for the scripted
    one, if a gateway can be built on the configuration. Nothing is begun. Raises StartRefused with
    every reason."""
    reasons, keys = list[str](), list[str]()
    models: dict[str, RemoteModel | PluginModel | None] = {}
    for model in config.links:
        try:
            models |= remote_models((model,), config)
        except KeyMissing as error:
            keys.append(str(error))
        except ModelUnusable as error:
            reasons.append(str(error))
    try:
        require_library([server.name for server in config.enabled_mcp])
    except ToolUnusable as error:
        reasons.append(str(error))
    if config.enabled_agents and find_spec("acp") is None:
        listed = ", ".join(config.enabled_agents)
        reasons.append(
            f"the agents of the configuration ({listed}) need a library that is not installed: run "
            '`pip install "koboshi[acp]"`, or set enabled = false'
        )
    if is_written_down(config) and (wrong := why_none(config)):
        reasons.append(f'tools.sandbox = "{config.tools.sandbox}": {wrong}')
    if reasons or keys:
        raise StartRefused(tuple(reasons), missing_keys=tuple(keys))
    return models


def verdict_on(
    config: Config, *, ours: frozenset[int] = frozenset(), needs_secrets: bool = True
) -> StartVerdict:
    """What a start would refuse or warn of, without its effects. `ours` are processes of the
    gateway that it would follow: what they hold will be free."""
    refusals = [*_home(config.home), *_unbuilt(config, needs_secrets=needs_secrets)]
    warnings = [*config.warnings, *workdir_warnings(config)]
    places = [place for channel in config.enabled_channels for place in _places(channel)]
    unheard = [words for place in places if (words := complaint_about(place, ours))]
    # A channel that cannot listen is down, and the others serve.
    is_last = len(unheard) == len(config.enabled_channels)
    (refusals if is_last else warnings).extend(unheard)
    return StartVerdict(refusals=tuple(refusals), warnings=tuple(warnings))


def workdir_warnings(config: Config) -> Iterator[str]:
    """Where commands could not run; a start goes on, because it may be there later."""
    try:
        check_folder_to_make(config.gateway.workdir)
    except InvalidValue as error:
        yield f"gateway.workdir: {error.message}; commands of the agent will fail"


def _home(home: Path) -> Iterator[str]:
    try:
        check_home(home)
    except ConfigError as error:
        yield str(error)


def _unbuilt(config: Config, *, needs_secrets: bool) -> tuple[str, ...]:
    try:
        usable_models(config)
    except StartRefused as refused:
        return refused.reasons if needs_secrets else refused.others
    return ()


def _places(channel: ChannelConfig) -> Iterator[ListenAddress]:
    if isinstance(channel, WebConfig):
        is_public = bool(channel.public_url)
        yield web_place(channel.name, channel.host, channel.port, is_public=is_public)
    elif channel.listens_at is not None:
        yield webhook_place(*channel.listens_at)
