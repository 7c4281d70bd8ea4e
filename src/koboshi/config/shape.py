"""What a configuration is: the keys of `koboshi.toml`, their defaults, and what each takes.

A field with a spec is a key. The others are worked out by `load`: names, and resolved secrets.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import ClassVar, Literal, TypeAlias, get_args

from koboshi.config.limits import Limits
from koboshi.config.secret import Secret
from koboshi.config.server_specs import (
    NamedSecrets,
    free_tables,
    named_headers,
    named_variables,
    names,
    program,
    switch_or_names,
    texts,
    variable_names,
)
from koboshi.config.specs import (
    Spec,
    boolean,
    choice,
    days,
    endpoint,
    is_loopback,
    key,
    listening_host,
    loopback_host,
    number,
    path,
    people,
    prose,
    public_address,
    secret,
    store_address,
    time_zone,
    variable_name,
    web_address,
    whole,
    words,
)

Busy = Literal["queue", "steer", "interrupt"]
RecoveryPolicy = Literal["auto", "ask", "off"]
Approval = Literal["never", "dangerous", "always"]
Notify = Literal["all", "result", "error", "off"]
Ambiguous = Literal["probe", "label", "hold"]
Groups = Literal["mention", "all"]

# Long enough to mean "for ever", short enough to stay a plain number of milliseconds.
_SECONDS_MAX = 1_000_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class GatewayConfig:
    """How turns run."""

    busy: Busy = field(default="queue", metadata=key(choice(*get_args(Busy))))
    drain_seconds: float = field(default=45, metadata=key(number(0, _SECONDS_MAX)))
    progress_seconds: float = field(default=180, metadata=key(number(0, _SECONDS_MAX)))
    max_turns: int = field(default=16, metadata=key(whole(1, 1_000)))
    max_open_turns: int = field(default=256, metadata=key(whole(1, 10_000)))
    max_commands: int = field(default=64, metadata=key(whole(1, 10_000)))
    workdir: Path = field(default=Path("~/koboshi"), metadata=key(path()))  # load() expands it
    zone: str = field(default="", metadata=key(time_zone()))  # empty: the machine's


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelConfig:
    """Which model answers, and how to reach it."""

    name: str = field(default="scripted", metadata=key(words(256)))
    base_url: str = field(default="", repr=False, metadata=key(web_address(may_be_empty=True)))
    api_key_env: str = field(default="OPENAI_API_KEY", metadata=key(variable_name()))
    system_prompt: str = field(default="", metadata=key(prose(64_000)))
    patience_seconds: float = field(default=600, metadata=key(number(0, _SECONDS_MAX)))
    api_key: Secret | None = None  # never asked for by the scripted model

    @property
    def is_scripted(self) -> bool:
        return self.name.partition(":")[0] == "scripted"


@dataclass(frozen=True, slots=True, kw_only=True)
class RecoveryConfig:
    """What happens to turns that a crash left behind."""

    policy: RecoveryPolicy = field(default="auto", metadata=key(choice(*get_args(RecoveryPolicy))))
    # Zero and below mean "always fresh".
    fresh_seconds: float = field(default=3_600, metadata=key(number(-_SECONDS_MAX, _SECONDS_MAX)))
    attempts: int = field(default=3, metadata=key(whole(1, 100)))
    boot_breaker: bool = field(default=True, metadata=key(boolean()))


@dataclass(frozen=True, slots=True, kw_only=True)
class TerminalConfig:
    """How the terminal tool runs commands."""

    approval: Approval = field(default="dangerous", metadata=key(choice(*get_args(Approval))))
    timeout_seconds: float = field(default=600, metadata=key(number(1, _SECONDS_MAX)))
    notify: Notify = field(default="all", metadata=key(choice(*get_args(Notify))))


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolsConfig:
    """The settings of the tools."""

    # The entry points of other distributions to use: all, none, or these.
    plugins: bool | tuple[str, ...] = field(default=True, metadata=key(switch_or_names(256, 256)))
    # By entry point, as JSON: nobody but the plug-in knows which of it is secret.
    settings: NamedSecrets = field(default=(), metadata=key(free_tables(256, 64_000)))
    terminal: TerminalConfig = field(default_factory=TerminalConfig)


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreConfig:
    """Where the truth is kept."""

    # May hold a password, so it stays out of the repr; `describe` masks it.
    url: str = field(
        default="",
        repr=False,
        metadata=key(store_address()),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class RetentionConfig:
    """How long what is over is kept. 0 is for ever."""

    journal_days: int = field(default=90, metadata=key(days(7, 36_500)))
    deliveries_days: int = field(default=90, metadata=key(days(7, 36_500)))


@dataclass(frozen=True, slots=True, kw_only=True)
class TelegramConfig:
    """One Telegram bot."""

    platform: ClassVar[str] = "telegram"

    name: str  # "telegram:main"
    enabled: bool = field(default=True, metadata=key(boolean()))
    token: Secret | None = field(default=None, metadata=key(secret()))
    token_env: str = field(default="TELEGRAM_BOT_TOKEN", metadata=key(variable_name()))
    token_file: Path | None = field(default=None, metadata=key(path()))
    api_base: str = field(
        default="https://api.telegram.org", repr=False, metadata=key(web_address())
    )
    allow: tuple[int | str, ...] = field(default=(), metadata=key(people(10_000)))
    ambiguous: Ambiguous = field(default="probe", metadata=key(choice(*get_args(Ambiguous))))
    groups: Groups = field(default="mention", metadata=key(choice(*get_args(Groups))))
    rate_per_second: float = field(default=30, metadata=key(number(0, 10_000)))
    # Empty: we ask for updates. An address: Telegram calls it, and a proxy passes it on to us.
    webhook_url: str = field(default="", metadata=key(web_address(may_be_empty=True)))
    webhook_host: str = field(default="127.0.0.1", metadata=key(loopback_host()))
    webhook_port: int = field(default=8_443, metadata=key(whole(0, 65_535)))


@dataclass(frozen=True, slots=True, kw_only=True)
class WebConfig:
    """One web chat and dashboard."""

    platform: ClassVar[str] = "web"

    name: str  # "web:main"
    enabled: bool = field(default=True, metadata=key(boolean()))
    # None: the gateway makes one in <home>/web-token.
    token: Secret | None = field(default=None, metadata=key(secret()))
    token_env: str = field(default="", metadata=key(variable_name()))
    token_file: Path | None = field(default=None, metadata=key(path()))
    # Others than this machine are served only through a proxy that is stated by `public_url`.
    host: str = field(default="127.0.0.1", metadata=key(listening_host()))
    port: int = field(default=8_642, metadata=key(whole(0, 65_535)))  # 0: any free port
    public_url: str = field(default="", metadata=key(public_address()))

    @property
    def is_reached_safely(self) -> bool:
        """Whether only this machine can connect, or a proxy that keeps others' words secret."""
        return is_loopback(self.host) or bool(self.public_url)


@dataclass(frozen=True, slots=True, kw_only=True)
class McpConfig:
    """One MCP server: a `command` to start, or a `url` to call."""

    name: str  # "github"
    enabled: bool = field(default=True, metadata=key(boolean()))
    command: str = field(default="", metadata=key(program()))
    args: tuple[str, ...] = field(default=(), metadata=key(texts(256, 32_000)))
    env: NamedSecrets = field(default=(), metadata=key(named_variables(256)))
    env_vars: tuple[str, ...] = field(default=(), metadata=key(variable_names(256)))
    # Some servers are told from others by a secret in the address.
    url: str = field(default="", repr=False, metadata=key(endpoint()))
    headers: NamedSecrets = field(default=(), metadata=key(named_headers(64)))
    token: Secret | None = field(default=None, metadata=key(secret()))
    token_env: str = field(default="", metadata=key(variable_name()))
    token_file: Path | None = field(default=None, metadata=key(path()))
    trust_hints: bool = field(default=False, metadata=key(boolean()))
    approval: Approval = field(default="dangerous", metadata=key(choice(*get_args(Approval))))
    timeout_seconds: float = field(default=300, metadata=key(number(1, _SECONDS_MAX)))
    tools: tuple[str, ...] | None = field(default=None, metadata=key(names(256, 256)))  # None: all
    passed: NamedSecrets = ()  # the variables of `env_vars`, with their values


ChannelConfig: TypeAlias = TelegramConfig | WebConfig


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """Everything that was decided outside the program, checked and complete."""

    home: Path
    file: Path | None = None  # None: there is no file, the defaults and the environment rule
    gateway: GatewayConfig = field(default_factory=GatewayConfig)
    model: ModelConfig = field(default_factory=ModelConfig)
    recovery: RecoveryConfig = field(default_factory=RecoveryConfig)
    tools: ToolsConfig = field(default_factory=ToolsConfig)
    channels: tuple[ChannelConfig, ...] = ()  # disabled ones included
    mcp: tuple[McpConfig, ...] = ()  # disabled ones included
    store: StoreConfig = field(default_factory=StoreConfig)
    retention: RetentionConfig = field(default_factory=RetentionConfig)
    limits: Limits = field(default_factory=Limits)
    sources: Mapping[str, str] = field(default_factory=dict)  # dotted key → where it was written
    warnings: tuple[str, ...] = ()

    @property
    def enabled_channels(self) -> tuple[ChannelConfig, ...]:
        """The channels to open."""
        return tuple(channel for channel in self.channels if channel.enabled)

    @property
    def enabled_mcp(self) -> tuple[McpConfig, ...]:
        """The MCP servers to connect to."""
        return tuple(server for server in self.mcp if server.enabled)


Section: TypeAlias = (
    type[GatewayConfig]
    | type[ModelConfig]
    | type[RecoveryConfig]
    | type[TerminalConfig]
    | type[ToolsConfig]
    | type[StoreConfig]
    | type[RetentionConfig]
    | type[Limits]
    | type[TelegramConfig]
    | type[WebConfig]
    | type[McpConfig]
)

SECTIONS: Mapping[str, Section] = {
    "gateway": GatewayConfig,
    "model": ModelConfig,
    "recovery": RecoveryConfig,
    "tools": ToolsConfig,
    "tools.terminal": TerminalConfig,
    "store": StoreConfig,
    "retention": RetentionConfig,
    "limits": Limits,
}
PLATFORMS: Mapping[str, type[TelegramConfig] | type[WebConfig]] = {
    "telegram": TelegramConfig,
    "web": WebConfig,
}


def keys_of(section: Section) -> dict[str, Spec]:
    """The keys of a section, in the order they are shown."""
    return {each.name: each.metadata["spec"] for each in fields(section) if each.metadata}
