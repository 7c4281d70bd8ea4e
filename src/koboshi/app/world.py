"""What the configuration means to recovery, to the model and to the web channel."""

import os
import secrets
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from koboshi.config import Config, TelegramConfig, WebConfig, secrets_of
from koboshi.domain.errors import ModelUnusable, StoreFailed
from koboshi.domain.ids import ChannelName
from koboshi.domain.outage import Patience
from koboshi.domain.recovery import Policy, RecoveryPolicy, World
from koboshi.domain.slots import SlotLimits

if TYPE_CHECKING:
    from koboshi.logs import Redact
    from koboshi.models.limits import ModelLimits
    from koboshi.models.plugin import PluginModel
    from koboshi.models.remote import RemoteModel
    from koboshi.ports.model import Model

WEB_TOKEN_NAME = "web-token"
EVERYONE = "*"
KEPT_VARIABLES = ("PATH", "HOME", "LANG", "LANGUAGE", "TZ", "USER", "LOGNAME", "SHELL", "TMPDIR")
"""What commands inherit of our environment: nothing that may hold a key, or bend a program."""


def world_of(config: Config) -> World:
    """What recovery must know of the configuration."""
    recovery = config.recovery
    return World(
        policy=Policy(
            recovery=RecoveryPolicy(recovery.policy),
            fresh_ms=int(recovery.fresh_seconds * 1000),
            deaths_max=recovery.attempts,
            has_breaker=recovery.boot_breaker,
        ),
        channels={ChannelName(channel.name): True for channel in config.enabled_channels},
        is_allowed=allowed_by(config),
        busy=config.gateway.busy,
        listen={
            ChannelName(bot.name): bot.groups
            for bot in config.channels
            if isinstance(bot, TelegramConfig)
        },
        is_owner=named_by(config),
        slots=SlotLimits(
            turns_max=config.gateway.max_turns,
            open_turns_max=config.gateway.max_open_turns,
            commands_max=config.gateway.max_commands,
        ),
        patience=Patience(
            total_ms=round(config.model.patience_seconds * 1000),
            told_after_ms=config.limits.model_told_ms,
            wait_ms_max=config.limits.model_wait_ms_max,
        ),
    )


def allowed_by(config: Config) -> Callable[[ChannelName, str], bool]:
    """Whom the configuration allows; those who were let in by a code are the store's to know.

    Ids are compared as texts, whole and exactly. On the web, whoever has the token is allowed.
    """
    lists = _lists(config)

    def is_allowed(channel: ChannelName, person: str) -> bool:
        people = lists.get(channel, frozenset())
        return channel.startswith("web:") or EVERYONE in people or person in people

    return is_allowed


def named_by(config: Config) -> Callable[[ChannelName, str], bool]:
    """Whom the configuration names: its owners. `*` lets everybody in, and names nobody."""
    lists = _lists(config)

    def is_named(channel: ChannelName, person: str) -> bool:
        people = lists.get(channel, frozenset())
        return channel.startswith("web:") or (person != EVERYONE and person in people)

    return is_named


def _lists(config: Config) -> dict[str, frozenset[str]]:
    return {
        channel.name: frozenset(str(person) for person in channel.allow)
        for channel in config.channels
        if isinstance(channel, TelegramConfig)
    }


@asynccontextmanager
async def opened_model(config: Config) -> "AsyncIterator[Model]":
    """The configured model, for as long as the gateway runs. Raises ModelUnusable."""
    if config.model.is_scripted:
        from koboshi.models.scripted import ScriptedModel

        yield ScriptedModel()
        return
    # Only who uses a provider pays for loading what reaches it.
    from koboshi.models.provider import is_ours, open_model, read_name

    prefix, _ = read_name(config.model.name)
    if is_ours(prefix):
        key = config.model.api_key
        model: RemoteModel | PluginModel = open_model(
            config.model.name,
            base_url=config.model.base_url,
            api_key=key.reveal() if key is not None else None,
            key_variable=config.model.api_key_env,
            limits=_model_limits(config),
        )
    else:
        model = _plugin_model(config)
    try:
        yield model
    finally:
        await model.aclose()


def _plugin_model(config: Config) -> "PluginModel":
    """The model of a plug-in; its code is not loaded yet. Raises ModelUnusable."""
    from koboshi.app.plugins import MODELS, find_plugins
    from koboshi.models.plugin import PluginModel
    from koboshi.models.provider import read_name, unknown_provider
    from koboshi.ports.plugin import ModelSetting

    name, key = config.model.name, config.model.api_key
    prefix, behind = read_name(name)
    installed = find_plugins(MODELS)
    ours = [plugin for plugin in installed if plugin.name == prefix]
    if not ours:
        raise unknown_provider(name, [plugin.name for plugin in installed])
    if len(ours) > 1:
        listed = ", ".join(sorted(plugin.distribution for plugin in ours))
        raise ModelUnusable(f'more than one plug-in has "{prefix}": {listed}; uninstall the others')
    setting = ModelSetting(
        model=behind,
        base_url=config.model.base_url,
        api_key=None if key is None else key.reveal(),
    )
    return PluginModel(ours[0], setting, _model_limits(config))


def _model_limits(config: Config) -> "ModelLimits":
    from koboshi.models.limits import ModelLimits

    limits = config.limits
    return ModelLimits(
        load_s=limits.model_load_seconds,
        connect_s=limits.model_connect_seconds,
        first_s=limits.model_first_seconds,
        idle_s=limits.model_idle_seconds,
        total_s=limits.model_total_seconds,
        reply_chars_max=limits.reply_chars_max,
    )


def web_token(home: Path, channel: WebConfig) -> str:
    """The configured token, or one that is made at the first start and kept in the home."""
    if channel.token is not None:
        return channel.token.reveal()
    path = home / WEB_TOKEN_NAME
    kept = path.read_text(encoding="ascii").strip() if path.exists() else ""
    return kept or _made_token(path)


def make_tokens(config: Config) -> None:
    """Make the token of the web, if it has none yet."""
    for channel in config.enabled_channels:
        if isinstance(channel, WebConfig):
            web_token(config.home, channel)


def redactor_of(config: Config) -> "Redact":
    """What takes every secret out of a text that is shown to anybody: those of the configuration,
    and the token that was made for the web."""
    # A command that shows no such text has no use for what a log needs.
    from koboshi.logs import redactor

    path = config.home / WEB_TOKEN_NAME
    made = path.read_text(encoding="ascii").strip() if path.exists() else ""
    return redactor((*secrets_of(config), made))


def _made_token(path: Path) -> str:
    """A new token in a file. It gets its name when it is whole: half a token would lock us out."""
    token = secrets.token_urlsafe(32)
    unnamed = path.with_suffix(".new")
    try:
        unnamed.unlink(missing_ok=True)
        descriptor = os.open(unnamed, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with os.fdopen(descriptor, "w", encoding="ascii") as file:
            file.write(f"{token}\n")
            file.flush()
            os.fsync(file.fileno())
        unnamed.rename(path)
        # A power cut may lose the new name unless the folder is flushed, too.
        folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
    except OSError as error:
        raise StoreFailed(f"{path} can not be written: {error}") from error
    return token


def environment_of_commands(environ: Mapping[str, str]) -> dict[str, str]:
    """The environment of every command."""
    kept = {name: environ[name] for name in KEPT_VARIABLES if name in environ}
    kept |= {name: value for name, value in environ.items() if name.startswith("LC_")}
    return kept | {"TERM": "dumb", "PYTHONUNBUFFERED": "1", "PAGER": "cat"}
