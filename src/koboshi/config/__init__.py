"""The configuration: the only reader of files and environment.

`load` gives one frozen `Config` or raises `ConfigError` with everything that is wrong. Nothing
below `app` imports this package; values are passed in.

A part is loaded when it is needed: a quick command needs only the place of the home.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from koboshi.config.home_paths import prepare_home as prepare_home
    from koboshi.config.limits import Limits as Limits
    from koboshi.config.loading import load as load
    from koboshi.config.models import ModelConfig as ModelConfig
    from koboshi.config.platforms import ChannelConfig as ChannelConfig
    from koboshi.config.platforms import DiscordConfig as DiscordConfig
    from koboshi.config.platforms import MatrixConfig as MatrixConfig
    from koboshi.config.platforms import PlatformConfig as PlatformConfig
    from koboshi.config.platforms import PluginChannelConfig as PluginChannelConfig
    from koboshi.config.platforms import SlackConfig as SlackConfig
    from koboshi.config.platforms import TelegramConfig as TelegramConfig
    from koboshi.config.platforms import WebConfig as WebConfig
    from koboshi.config.problems import ConfigError as ConfigError
    from koboshi.config.secret import Secret as Secret
    from koboshi.config.sections import AgentConfig as AgentConfig
    from koboshi.config.sections import Config as Config
    from koboshi.config.sections import GatewayConfig as GatewayConfig
    from koboshi.config.sections import McpConfig as McpConfig
    from koboshi.config.show import describe as describe
    from koboshi.config.show import secrets_of as secrets_of

_MODULES = {
    "limits": ("Limits",),
    "loading": ("load",),
    "home_paths": ("prepare_home",),
    "problems": ("ConfigError",),
    "secret": ("Secret",),
    "sections": ("AgentConfig", "Config", "GatewayConfig", "McpConfig"),
    "models": ("ModelConfig",),
    "platforms": (
        "ChannelConfig", "DiscordConfig", "MatrixConfig", "PlatformConfig", "PluginChannelConfig",
        "SlackConfig", "TelegramConfig",
        "WebConfig",
    ),
    "show": ("describe", "secrets_of"),
}  # fmt: skip


def __getattr__(name: str) -> object:
    """The named object, from its module."""
    for module, names in _MODULES.items():
        if name in names:
            return getattr(import_module(f"{__name__}.{module}"), name)
    raise AttributeError(f"{__name__} has no {name}")
