"""The keys of the channels: `[channels.<platform>.<account>]`.

`ChannelConfig` is what every channel has, `PlatformConfig` what every channel of a foreign platform
has. What other code must know of a channel, it asks these: no code lists the platforms but the
table `PLATFORMS` here and the one in `app/platforms`. A platform of another distribution has the
keys of `PluginChannelConfig`, and nothing of it is loaded to read them.
"""

import re
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Annotated, ClassVar, Literal

from msgspec import Meta

from koboshi.config import rules
from koboshi.config.rules import People, is_loopback
from koboshi.config.secret import Secret
from koboshi.config.section import (
    TOKEN,
    TOKEN_ENV,
    TOKEN_FILE,
    Host,
    Port,
    Section,
    Url,
    VariableName,
)
from koboshi.config.values import ReadBy

ENTRY_POINTS = "koboshi.channels"
"""The group of entry points by which another distribution brings a platform."""
WEB_TOKEN_CHARS_MIN = 16


# One key is one statement, and its words are most of it.
# fmt: off
class ChannelConfig(Section, frozen=True, kw_only=True):
    """One channel, of any platform."""

    secret_names: ClassVar[tuple[str, ...]] = ("token",)
    """The secrets of a channel. One of `<name>`, `<name>_env`, `<name>_file` says what it is."""
    secrets_needed: ClassVar[tuple[str, ...]] = ("token",)
    """The ones without which it cannot be used."""

    name: str  # "telegram:main"
    enabled: Annotated[bool, Meta(description="whether the channel is used")] = True
    token: Annotated[Secret | None, Meta(description=f"the token: {TOKEN}")] = None
    token_env: Annotated[VariableName, Meta(description=TOKEN_ENV)] = ""
    token_file: Annotated[Path | None, Meta(description=TOKEN_FILE)] = None

    @property
    def platform(self) -> str:
        return self.name.partition(":")[0]

    @property
    def section(self) -> str:
        """Where it stands in the file: "channels.telegram.main" for "telegram:main"."""
        return f"channels.{self.name.replace(':', '.', 1)}"

    def uses(self, secret: str) -> bool:  # noqa: ARG002
        """Whether it needs or may have this one of its secrets, as it is set up."""
        return True

    @property
    def secrets(self) -> tuple[Secret, ...]:
        """Every secret that it holds."""
        held = (getattr(self, name) for name in self.secret_names)
        return tuple(secret for secret in held if isinstance(secret, Secret))

    @property
    def secret_files(self) -> tuple[Path, ...]:
        """The files that its secrets are read from."""
        named = (getattr(self, f"{name}_file") for name in self.secret_names)
        return tuple(path for path in named if isinstance(path, Path))

    @property
    def secret_variables(self) -> tuple[str, ...]:
        """The variables that its secrets are read from."""
        return tuple(str(getattr(self, f"{name}_env")) for name in self.secret_names)

    @property
    def free_table(self) -> Secret | None:
        """A table as JSON of which only a plug-in knows what is secret; None without one."""
        return None

    @property
    def listens_at(self) -> tuple[str, int] | None:
        """Host and port; None if it does not listen. Port 0 is any that is free."""
        return None

    @property
    def addresses(self) -> Mapping[str, str]:
        """The keys whose addresses its secrets are sent to."""
        return {}

    @property
    def shares(self) -> tuple[str, object] | None:
        """What only one channel can use, in words and as a value; None if there is nothing."""
        return None if self.token is None else ("token", self.token)

    def warnings(self) -> Iterator[str]:
        """What is allowed and yet unwise."""
        yield from ()

    def complaints(self) -> Iterator[tuple[str, str]]:
        """Which keys an enabled channel cannot be without, each with the end of a sentence."""
        yield from ()


class PlatformConfig(ChannelConfig, frozen=True, kw_only=True):
    """One account on a platform where other people are."""

    allow: Annotated[People, Meta(
        description='stable ids of those who may use the gateway, or `["*"]`; others get access by '
        "[pairing](people.md)"), ReadBy(rules.read_ids)] = ()
    ambiguous: Annotated[Literal["probe", "label", "hold"], Meta(
        description="a send of unknown outcome: `probe` (the platform's own way: look for it, or "
        "repeat it under its key; else label), `label`, or `hold` until "
        "`koboshi outbox retry`")] = "probe"
    groups: Annotated[Literal["mention", "all"], Meta(
        description="what of a group is for the agent: `mention` (what is said to it) or `all`; a "
        "chat can override it (`/listen`)")] = "mention"
    rate_per_second: Annotated[float, Meta(ge=0, le=10_000,
        description="messages to all chats together; 0 = no limit of our own")] = 30

    def warnings(self) -> Iterator[str]:
        if "*" in self.allow:
            yield f'{self.section}.allow has "*": everyone may talk to the agent'


class TelegramConfig(PlatformConfig, frozen=True, kw_only=True):
    """One Telegram bot."""

    enabled: Annotated[bool, Meta(description="whether the bot is used")] = True
    token: Annotated[Secret | None, Meta(
        description=f"the token of the [bot](telegram.md): {TOKEN}")] = None
    token_env: Annotated[VariableName, Meta(description=TOKEN_ENV)] = "TELEGRAM_BOT_TOKEN"
    api_base: Annotated[Url, Meta(description="any server of the Bot API"),
        rules.web_address, rules.no_slash_at_end] = "https://api.telegram.org"
    allow: Annotated[People, Meta(
        description='stable ids of those who may use the gateway, or `["*"]`; others get access by '
        "[pairing](people.md)"), ReadBy(rules.read_people)] = ()
    webhook_url: Annotated[Url, Meta(
        description="where Telegram calls us; empty = we ask for updates"),
        rules.web_address_or_none, rules.no_slash_at_end] = ""
    webhook_host: Annotated[Host, Meta(description="where a proxy passes these calls on to"),
        rules.loopback_host] = "127.0.0.1"
    webhook_port: Annotated[Port, Meta(description="its port")] = 8_443

    @property
    def listens_at(self) -> tuple[str, int] | None:
        return (self.webhook_host, self.webhook_port) if self.webhook_url else None

    @property
    def addresses(self) -> Mapping[str, str]:
        return {"api_base": self.api_base}

    @property
    def shares(self) -> tuple[str, object] | None:
        return None if self.token is None else ("bot token", (self.token, self.api_base))


class DiscordConfig(PlatformConfig, frozen=True, kw_only=True):
    """One Discord bot."""

    enabled: Annotated[bool, Meta(description="whether the bot is used")] = True
    token: Annotated[Secret | None, Meta(
        description=f"the token of the [bot](discord.md): {TOKEN}")] = None
    token_env: Annotated[VariableName, Meta(description=TOKEN_ENV)] = "DISCORD_BOT_TOKEN"
    api_base: Annotated[Url, Meta(description="the REST API, with its version"),
        rules.web_address, rules.no_slash_at_end] = "https://discord.com/api/v10"

    @property
    def addresses(self) -> Mapping[str, str]:
        return {"api_base": self.api_base}

    @property
    def shares(self) -> tuple[str, object] | None:
        return None if self.token is None else ("bot token", (self.token, self.api_base))


class SlackConfig(PlatformConfig, frozen=True, kw_only=True):
    """One Slack app in one workspace."""

    secret_names: ClassVar[tuple[str, ...]] = ("token", "app_token", "signing_secret")
    secrets_needed: ClassVar[tuple[str, ...]] = secret_names

    enabled: Annotated[bool, Meta(description="whether the app is used")] = True
    token: Annotated[Secret | None, Meta(
        description=f"the bot token of the [app](slack.md), `xoxb-…`: {TOKEN}")] = None
    token_env: Annotated[VariableName, Meta(description=TOKEN_ENV)] = "SLACK_BOT_TOKEN"
    app_token: Annotated[Secret | None, Meta(
        description=f"its app-level token, `xapp-…`, for Socket Mode: {TOKEN}")] = None
    app_token_env: Annotated[VariableName, Meta(description=TOKEN_ENV)] = "SLACK_APP_TOKEN"
    app_token_file: Annotated[Path | None, Meta(description=TOKEN_FILE)] = None
    signing_secret: Annotated[Secret | None, Meta(
        description="what Slack signs its calls with; used instead of the app-level token where "
        f"`webhook_url` is set: {TOKEN}")] = None
    signing_secret_env: Annotated[VariableName, Meta(
        description=TOKEN_ENV)] = "SLACK_SIGNING_SECRET"
    signing_secret_file: Annotated[Path | None, Meta(description=TOKEN_FILE)] = None
    api_base: Annotated[Url, Meta(description="the Web API"),
        rules.web_address, rules.no_slash_at_end] = "https://slack.com/api"
    webhook_url: Annotated[Url, Meta(
        description="where Slack calls us, as entered there; empty = Socket Mode"),
        rules.web_address_or_none, rules.no_slash_at_end] = ""
    webhook_host: Annotated[Host, Meta(description="where a proxy passes these calls on to"),
        rules.loopback_host] = "127.0.0.1"
    webhook_port: Annotated[Port, Meta(description="its port")] = 8_444

    def uses(self, secret: str) -> bool:
        """Either we connect with the app-level token, or Slack calls us and signs."""
        unused = "app_token" if self.webhook_url else "signing_secret"
        return secret != unused

    @property
    def listens_at(self) -> tuple[str, int] | None:
        return (self.webhook_host, self.webhook_port) if self.webhook_url else None

    @property
    def addresses(self) -> Mapping[str, str]:
        return {"api_base": self.api_base}

    @property
    def shares(self) -> tuple[str, object] | None:
        return None if self.token is None else ("bot token", (self.token, self.api_base))


class MatrixConfig(PlatformConfig, frozen=True, kw_only=True):
    """One account of Matrix."""

    enabled: Annotated[bool, Meta(description="whether the account is used")] = True
    homeserver: Annotated[Url, Meta(description="the address of its [homeserver](matrix.md)"),
        rules.web_address_or_none, rules.no_slash_at_end] = ""
    user: Annotated[str, Meta(max_length=255, description="its id: `@bot:example.org`"),
        rules.matrix_user] = ""
    token: Annotated[Secret | None, Meta(description=f"its access token: {TOKEN}")] = None
    token_env: Annotated[VariableName, Meta(description=TOKEN_ENV)] = "MATRIX_ACCESS_TOKEN"
    rate_per_second: Annotated[float, Meta(ge=0, le=10_000,
        description="messages to all rooms together; 0 = no limit of our own")] = 10
    encryption: Annotated[bool, Meta(
        description="whether [encrypted rooms](matrix.md#encrypted-rooms) are read; needs the "
        "extra `koboshi[matrix-e2e]` and the store in the home")] = False

    @property
    def addresses(self) -> Mapping[str, str]:
        return {"homeserver": self.homeserver}

    @property
    def shares(self) -> tuple[str, object] | None:
        return ("account", (self.user, self.homeserver)) if self.user else None

    def complaints(self) -> Iterator[tuple[str, str]]:
        if not self.homeserver:
            yield "homeserver", "is missing: the address of the homeserver, https://…"
        if not self.user:
            yield "user", 'is missing: the id of the account, "@bot:example.org"'


class WebConfig(ChannelConfig, frozen=True, kw_only=True):
    """One web chat and dashboard."""

    secrets_needed: ClassVar[tuple[str, ...]] = ()

    enabled: Annotated[bool, Meta(
        description="whether there is a web channel; without a section, `main` is")] = True
    token: Annotated[Secret | None, Meta(
        description=f"the secret of programs: {TOKEN}. Without any, one is made in "
        "`<home>/web-token`")] = None
    host: Annotated[Host, Meta(
        description="loopback only, unless `public_url` states a proxy"),
        rules.listening_host] = "127.0.0.1"
    port: Annotated[Port, Meta(description="0 = any that is free")] = 8_642
    public_url: Annotated[Url, Meta(
        description="where people reach it through a proxy, over TLS"), rules.public_address] = ""

    @property
    def is_reached_safely(self) -> bool:
        """Whether only this machine can connect, or a proxy that encrypts the traffic of others."""
        return is_loopback(self.host) or bool(self.public_url)

    @property
    def listens_at(self) -> tuple[str, int] | None:
        return self.host, self.port

    @property
    def shares(self) -> tuple[str, object] | None:
        return None

    def warnings(self) -> Iterator[str]:
        if self.token is not None and len(self.token.reveal()) < WEB_TOKEN_CHARS_MIN:
            yield (
                f"{self.section} has a token of fewer than {WEB_TOKEN_CHARS_MIN} characters: it "
                "can be guessed"
            )


class PluginChannelConfig(PlatformConfig, frozen=True, kw_only=True):
    """One account on a platform that another distribution brings."""

    secrets_needed: ClassVar[tuple[str, ...]] = ()

    # As JSON: only the plug-in knows which of it is secret.
    settings: Annotated[Secret | None, Meta(
        description="a table that is handed to the [plug-in](writing-a-channel.md) as it is"),
        ReadBy(rules.read_free_table)] = None

    @property
    def free_table(self) -> Secret | None:
        return self.settings
# fmt: on


PLATFORMS: Mapping[str, type[ChannelConfig]] = {
    "telegram": TelegramConfig,
    "matrix": MatrixConfig,
    "discord": DiscordConfig,
    "slack": SlackConfig,
    "web": WebConfig,
}
"""Our own platforms."""


@cache
def foreign_platforms() -> frozenset[str]:
    """The platforms that other distributions bring, by name. It takes a tenth of a start, so it is
    asked only for a name that is not ours."""
    from importlib.metadata import entry_points

    named = {entry_point.name for entry_point in entry_points(group=ENTRY_POINTS)}
    return frozenset(
        name for name in named - {*PLATFORMS} if re.fullmatch(r"[a-z][a-z0-9_]*", name)
    )


def config_of_platform(platform: str) -> type[ChannelConfig]:
    """The keys of a platform that is ours or installed."""
    return PLATFORMS.get(platform, PluginChannelConfig)
