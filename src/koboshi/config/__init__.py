"""The configuration: the only reader of files and environment.

`load` gives one frozen `Config` or raises `ConfigError` with everything that is wrong. Nobody below
`app` imports this package; values are passed in.

A part is loaded when it is asked for: a quick command needs to know where the home is, and no more.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from koboshi.config.limits import Limits
    from koboshi.config.loading import load
    from koboshi.config.places import prepare_home
    from koboshi.config.problems import ConfigError, Origin, Problem
    from koboshi.config.secret import Secret
    from koboshi.config.shape import (
        Ambiguous,
        Approval,
        Busy,
        ChannelConfig,
        Config,
        GatewayConfig,
        McpConfig,
        ModelConfig,
        Notify,
        RecoveryConfig,
        RecoveryPolicy,
        RetentionConfig,
        StoreConfig,
        TelegramConfig,
        TerminalConfig,
        ToolsConfig,
        WebConfig,
    )
    from koboshi.config.show import describe, secrets_of

__all__ = [
    "Ambiguous",
    "Approval",
    "Busy",
    "ChannelConfig",
    "Config",
    "ConfigError",
    "GatewayConfig",
    "Limits",
    "McpConfig",
    "ModelConfig",
    "Notify",
    "Origin",
    "Problem",
    "RecoveryConfig",
    "RecoveryPolicy",
    "RetentionConfig",
    "Secret",
    "StoreConfig",
    "TelegramConfig",
    "TerminalConfig",
    "ToolsConfig",
    "WebConfig",
    "describe",
    "load",
    "prepare_home",
    "secrets_of",
]

_PARTS = {
    "ConfigError": "problems",
    "Limits": "limits",
    "Origin": "problems",
    "Problem": "problems",
    "Secret": "secret",
    "describe": "show",
    "load": "loading",
    "prepare_home": "places",
    "secrets_of": "show",
}
"""Where a name is; the others are shapes."""


def __getattr__(name: str) -> object:
    """What is named, from the part that has it."""
    if name not in __all__:
        raise AttributeError(f"{__name__} has no {name}")
    return getattr(import_module(f"{__name__}.{_PARTS.get(name, 'shape')}"), name)
