"""The configuration: the only reader of files and environment.

`load` gives one frozen `Config` or raises `ConfigError` with everything that is wrong. Nobody below
`app` imports this package; values are passed in.
"""

from koboshi.config.limits import Limits
from koboshi.config.load import load
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
