"""Slack apps, from the configuration."""

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from importlib.util import find_spec
from typing import TYPE_CHECKING, Literal, TypeAlias

from koboshi.app.platforms.platform import (
    ChannelSetup,
    InitKey,
    InitQuestions,
    KnownPlatform,
    PlatformFinding,
    ProbeFailed,
)
from koboshi.app.platforms.reaching import PROBE_SECONDS, judged_clock
from koboshi.clock import SystemClock
from koboshi.config import PlatformConfig, SlackConfig
from koboshi.domain.errors import ChannelUnusable
from koboshi.domain.ids import ChannelName
from koboshi.ports.channel import Channel

if TYPE_CHECKING:
    from koboshi.channels.slack.api import SlackApi

Severity: TypeAlias = Literal["warning", "error"]

MISSED = "what was written while the gateway was down cannot be looked for, so the channel is down"
SCOPES = {
    "chat:write": "nothing can be sent",
    "im:history": "messages of people alone with the app do not come in",
    "im:read": MISSED,
    "channels:read": MISSED,
    "groups:read": MISSED,
    "mpim:read": MISSED,
    "channels:history": "messages in public channels do not come in",
    "groups:history": "messages in private channels do not come in",
    "mpim:history": "messages in groups of people do not come in",
    "metadata.message:read": "a send of unknown outcome cannot be looked for, and is labelled",
    "files:read": "files of people cannot be fetched",
    "files:write": "files cannot be sent",
    "users:read": "people have no names",
    "reactions:write": "messages that wait are not marked",
}
"""What the app needs, and what is missing without it."""
ESSENTIAL = frozenset({"chat:write", "im:history"}) | {
    scope for scope, cost in SCOPES.items() if cost is MISSED
}
MAKE_ANEW = "add it at api.slack.com/apps (OAuth & Permissions) and install the app again"


def slack_channel(config: PlatformConfig, setup: ChannelSetup) -> Channel:
    from koboshi.channels.slack.channel import SlackChannel
    from koboshi.channels.slack.options import SlackOptions

    app = _app(config)
    assert app.token is not None, "a channel that is enabled has its token"
    if not app.webhook_url and find_spec("websockets") is None:
        raise ChannelUnusable("Socket Mode needs a library: pip install 'koboshi[slack]'")
    options = SlackOptions(
        name=ChannelName(app.name),
        token=app.token.reveal(),
        app_token="" if app.app_token is None else app.app_token.reveal(),
        signing_secret="" if app.signing_secret is None else app.signing_secret.reveal(),
        api_base=app.api_base,
        ambiguous=app.ambiguous,
        per_second=app.rate_per_second,
        home=setup.home,
        message_chars_max=setup.limits.message_chars_max,
        file_bytes_max=setup.limits.file_bytes_max,
        commands=frozenset(name for name, _ in setup.commands),
        webhook_host=app.webhook_host,
        webhook_port=app.webhook_port,
    )
    return SlackChannel(options, setup.clock, setup.watermarks_of(app.name), setup.on_back)


async def try_slack(config: PlatformConfig) -> str:
    """The name of the app and of the workspace. Raises ProbeFailed."""
    async with _api_of(_app(config)) as api:
        words, _ = await _introduced(api)
        return words


async def examine_slack(config: PlatformConfig) -> AsyncIterator[PlatformFinding]:
    app = _app(config)
    async with _api_of(app) as api:
        words, scopes = await _introduced(api)
        found = [PlatformFinding(severity="ok", words=words), *judged_scopes(scopes)]
        found.append(judged_clock(-api.ahead_s))
        if not app.webhook_url:
            found.append(await _tried_socket(app, api))
    for each in found:
        yield each


def judged_scopes(scopes: frozenset[str]) -> Iterator[PlatformFinding]:
    """What the app may not do, and what that costs."""
    missing = [scope for scope in SCOPES if scope not in scopes]
    for scope in missing:
        words = f"the app lacks the scope {scope}: {SCOPES[scope]}"
        severity: Severity = "error" if scope in ESSENTIAL else "warning"
        yield PlatformFinding(severity=severity, words=words, remedy=MAKE_ANEW)
    if not missing:
        yield PlatformFinding(severity="ok", words="the app has all scopes that it needs")


PLATFORM = KnownPlatform(
    build=slack_channel,
    probe=try_slack,
    examine=examine_slack,
    init=InitQuestions(
        title="a Slack app",
        token_env="SLACK_BOT_TOKEN",
        comment="An app made at api.slack.com/apps; docs/slack.md has its manifest:",
        keys=(
            InitKey(
                name="app_token_env",
                question="the variable with its app-level token (xapp-…)",
                example="SLACK_APP_TOKEN",
            ),
        ),
        person_example="U012ABCDEF",
    ),
)


def _app(config: PlatformConfig) -> SlackConfig:
    assert isinstance(config, SlackConfig)
    return config


@asynccontextmanager
async def _api_of(app: SlackConfig) -> "AsyncIterator[SlackApi]":
    """The Web API for a few calls. Raises ProbeFailed for what goes wrong with them."""
    import httpx2

    from koboshi.channels.common.calls import NoAnswer, NotReached
    from koboshi.channels.slack.api import SlackApi
    from koboshi.http_pool import HttpPool

    assert app.token is not None, "a channel that is enabled has its token"
    lanes = HttpPool(count_max=1, timeout=httpx2.Timeout(PROBE_SECONDS))
    token = app.token.reveal()
    try:
        yield SlackApi(lanes=lanes, base=app.api_base, token=token, clock=SystemClock())
    except (NotReached, NoAnswer) as error:
        said = f"{app.api_base} was not reached, or did not answer: {error}"
        raise ProbeFailed(said) from error
    finally:
        await lanes.aclose()


async def _introduced(api: "SlackApi") -> tuple[str, frozenset[str]]:
    """Who we are there, and what we may do. Raises ProbeFailed."""
    from koboshi.channels.slack.types import SlackReply

    answered = await api.write("auth.test", {}, seconds=PROBE_SECONDS)
    reply = answered.read(SlackReply)
    if not reply.ok:
        raise ProbeFailed(f"Slack does not take the bot token: {reply.error}")
    return f"the app is {reply.user_id} in the workspace {reply.team}", answered.scopes


async def _tried_socket(app: SlackConfig, api: "SlackApi") -> PlatformFinding:
    from koboshi.channels.slack.types import SlackReply

    token = "" if app.app_token is None else app.app_token.reveal()
    reply = (await api.open_socket(token)).read(SlackReply)
    if reply.ok:
        return PlatformFinding(severity="ok", words="Socket Mode is open to the app")
    return PlatformFinding(
        severity="error",
        words=f"Slack does not take the app-level token: {reply.error}",
        remedy="it begins with xapp- and has the scope connections:write; switch Socket Mode on",
    )
