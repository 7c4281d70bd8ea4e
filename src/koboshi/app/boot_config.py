"""What the configuration means to recovery and to the model."""

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from koboshi.app.prices import budget_limits, prices_of
from koboshi.app.tokens import kept_token
from koboshi.config import Config, PlatformConfig, secrets_of
from koboshi.domain.chain import ModelLink
from koboshi.domain.errors import ModelUnusable
from koboshi.domain.ids import ChannelName
from koboshi.domain.outage import Patience
from koboshi.domain.recovery import BootConfig, Policy, RecoveryPolicy
from koboshi.domain.slots import SlotLimits

if TYPE_CHECKING:
    from koboshi.config import ModelConfig
    from koboshi.logs import Redact
    from koboshi.models.limits import ModelLimits
    from koboshi.models.plugin import PluginModel
    from koboshi.models.remote import RemoteModel
    from koboshi.ports.model import Model

EVERYONE = "*"
THREADED = ("discord", "matrix", "slack")
"""The platforms on which a message of ours can begin a thread, which has the id of the message."""
TOPICAL = ("telegram",)
"""The platforms that make a thread by a call: a topic."""
KEPT_VARIABLES = ("PATH", "HOME", "LANG", "LANGUAGE", "TZ", "USER", "LOGNAME", "SHELL", "TMPDIR")
"""What commands inherit of our environment: nothing that may hold a key, or bend a program."""


def boot_config_of(config: Config) -> BootConfig:
    """What recovery must know of the configuration."""
    recovery = config.recovery
    return BootConfig(
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
            if isinstance(bot, PlatformConfig)
        },
        is_owner=named_by(config),
        agents=tuple(config.enabled_agents),
        agent=config.gateway.agent,
        budget=budget_limits(config),
        models=tuple(model.called for model in config.links),
        prices=prices_of(config),
        owned=_owned(config),
        threaded=_channels_of(config, *THREADED, *TOPICAL),
        topical=_channels_of(config, *TOPICAL),
        slots=SlotLimits(
            turns_max=config.gateway.max_turns,
            open_turns_max=config.gateway.max_open_turns,
            commands_max=config.gateway.max_commands,
            agents_max=config.gateway.max_agents,
        ),
        patience=Patience(
            total_ms=round(config.model.patience_seconds * 1000),
            told_after_ms=config.limits.model_told_ms,
            wait_ms_max=config.limits.model_wait_ms_max,
        ),
    )


def _channels_of(config: Config, *platforms: str) -> frozenset[ChannelName]:
    return frozenset(
        ChannelName(channel.name)
        for channel in config.enabled_channels
        if channel.name.partition(":")[0] in platforms
    )


def allowed_by(config: Config) -> Callable[[ChannelName, str], bool]:
    """Whom the configuration allows; those who were let in by a code are the store's to know.

    Ids are compared as texts, whole and exactly. On the web, the bearer of the token is allowed.
    """
    lists = _lists(config)

    def is_allowed(channel: ChannelName, person: str) -> bool:
        people = lists.get(channel, frozenset())
        return channel.startswith("web:") or EVERYONE in people or person in people

    return is_allowed


def named_by(config: Config) -> Callable[[ChannelName, str], bool]:
    """Whom the configuration names: its owners. `*` lets all people in, and names none."""
    lists = _lists(config)

    def is_named(channel: ChannelName, person: str) -> bool:
        people = lists.get(channel, frozenset())
        return channel.startswith("web:") or (person != EVERYONE and person in people)

    return is_named


def _owned(config: Config) -> frozenset[ChannelName]:
    """The channels with a named owner. The web page is always the owner's."""
    lists = _lists(config)
    return frozenset(
        ChannelName(channel.name)
        for channel in config.channels
        if channel.name.startswith("web:") or lists.get(channel.name, frozenset()) - {EVERYONE}
    )


def _lists(config: Config) -> dict[str, frozenset[str]]:
    return {
        channel.name: frozenset(str(person) for person in channel.allow)
        for channel in config.channels
        if isinstance(channel, PlatformConfig)
    }


@asynccontextmanager
async def opened_model(config: Config) -> "AsyncIterator[Model]":
    """The configured model, the first of a chain, for as long as it is needed. Raises
    ModelUnusable."""
    async with opened_models(remote_models((config.model,), config)) as models:
        yield models[config.model.called]


@asynccontextmanager
async def opened_models(
    remote: "Mapping[str, RemoteModel | PluginModel | None]",
) -> "AsyncIterator[Mapping[str, Model]]":
    """All models by what they are called; those that are None are the scripted one."""
    models: dict[str, Model] = {}
    for name, model in remote.items():
        if model is None:
            from koboshi.models.scripted import ScriptedModel

            models[name] = ScriptedModel()
        else:
            models[name] = model
    try:
        yield models
    finally:
        for each in remote.values():
            if each is not None:
                await each.aclose()


def remote_models(
    models: "Sequence[ModelConfig]", config: Config
) -> "dict[str, RemoteModel | PluginModel | None]":
    """The models of providers and plug-ins, by what they are called; None for the scripted one.
    Nothing is sent or loaded before the first request. Raises ModelUnusable."""
    return {
        model.called: None if model.is_scripted else remote_model(model, config) for model in models
    }


def remote_model(model: "ModelConfig", config: Config) -> "RemoteModel | PluginModel":
    """The model of a provider or a plug-in. Raises ModelUnusable."""
    # Only who uses a provider pays for loading what reaches it.
    from koboshi.models.provider import is_ours, open_model, read_name

    prefix, _ = read_name(model.name)
    if not is_ours(prefix):
        return _plugin_model(model, config)
    return open_model(
        model.name,
        base_url=model.base_url,
        api_key=model.api_key.reveal() if model.api_key is not None else None,
        key_variable=model.api_key_env,
        limits=_model_limits(config),
    )


def chain_links(config: Config) -> tuple[ModelLink, ...]:
    """What the rules of the chain must know of its models."""
    return tuple(
        ModelLink(
            name=model.called,
            model=model.name,
            sees_pictures=model.sees_pictures,
            takes_tools=model.tools,
            tokens_max=model.context_tokens,
        )
        for model in config.links
    )


def _plugin_model(model: "ModelConfig", config: Config) -> "PluginModel":
    """The model of a plug-in; its code is not loaded yet. Raises ModelUnusable."""
    from koboshi.app.plugins import MODELS, find_plugins
    from koboshi.models.plugin import PluginModel
    from koboshi.models.provider import read_name, unknown_provider
    from koboshi.ports.plugin import ModelSetting

    name, key = model.name, model.api_key
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
        base_url=model.base_url,
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


def redactor_of(config: Config) -> "Redact":
    """What takes every secret out of a text that is shown: those of the configuration, and the
    token that was made for the web."""
    # A command that shows no such text has no use for what a log needs.
    from koboshi.logs import redactor

    return redactor((*secrets_of(config), kept_token(config.home) or ""))


def environment_of_commands(environ: Mapping[str, str]) -> dict[str, str]:
    """The environment of every command."""
    kept = {name: environ[name] for name in KEPT_VARIABLES if name in environ}
    kept |= {name: value for name, value in environ.items() if name.startswith("LC_")}
    return kept | {"TERM": "dumb", "PYTHONUNBUFFERED": "1", "PAGER": "cat"}
