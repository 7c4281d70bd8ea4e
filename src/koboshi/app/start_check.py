"""What keeps a gateway from starting, known before anything is begun.

A start asks first, and `koboshi config check`, `koboshi doctor` and every way to restart ask the
same: what a start refuses, they refuse.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from koboshi.app.boot_config import remote_model
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

    def __init__(self, reasons: tuple[str, ...], *, lacks_key: bool) -> None:
        super().__init__("\n".join(reasons))
        self.reasons = reasons
        self.lacks_key = lacks_key


@dataclass(frozen=True, slots=True, kw_only=True)
class StartVerdict:
    """What a start would make of a configuration."""

    refusals: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()


def usable_model(config: Config) -> "RemoteModel | PluginModel | None":
    """The first thing that a start does: the model, unless it is the scripted one, if a gateway can
    be built on the configuration. Nothing is begun. Raises StartRefused with every reason."""
    reasons, lacks_key = list[str](), False
    model: RemoteModel | PluginModel | None = None
    try:
        model = None if config.model.is_scripted else remote_model(config)
    except ModelUnusable as error:
        reasons.append(str(error))
        lacks_key = isinstance(error, KeyMissing)
    try:
        require_library([server.name for server in config.enabled_mcp])
    except ToolUnusable as error:
        reasons.append(str(error))
    if is_written_down(config) and (wrong := why_none(config)):
        reasons.append(f'tools.sandbox = "{config.tools.sandbox}": {wrong}')
    if reasons:
        raise StartRefused(tuple(reasons), lacks_key=lacks_key)
    return model


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
        usable_model(config)
    except StartRefused as refused:
        is_key_alone = refused.lacks_key and not needs_secrets
        return refused.reasons[1:] if is_key_alone else refused.reasons
    return ()


def _places(channel: ChannelConfig) -> Iterator[ListenAddress]:
    if isinstance(channel, WebConfig):
        is_public = bool(channel.public_url)
        yield web_place(channel.name, channel.host, channel.port, is_public=is_public)
    elif channel.listens_at is not None:
        yield webhook_place(*channel.listens_at)
