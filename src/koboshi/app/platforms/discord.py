"""Discord bots, from the configuration."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.util import find_spec
from typing import TYPE_CHECKING

from koboshi.app.platforms.platform import (
    ChannelSetup,
    InitQuestions,
    KnownPlatform,
    PlatformFinding,
    ProbeFailed,
)
from koboshi.app.platforms.reaching import PROBE_SECONDS, clock_ahead_s, judged_clock
from koboshi.channels.common.absent import AbsentChannel
from koboshi.clock import SystemClock
from koboshi.config import DiscordConfig, PlatformConfig
from koboshi.domain.ids import ChannelName
from koboshi.ports.channel import Channel

if TYPE_CHECKING:
    from koboshi.channels.discord.introduction import Introduction
    from koboshi.channels.discord.options import DiscordOptions

MISSING = "Discord needs one package more: pip install 'koboshi[discord]'"
UNREADABLE = "the bot may not read messages of servers, except where it is named"
REMEDY = "switch on Message Content Intent in the Developer Portal: Bot, Privileged Gateway Intents"


def discord_channel(config: PlatformConfig, setup: ChannelSetup) -> Channel:
    """The channel, or one that is down and says what has to be installed."""
    name = ChannelName(config.name)
    if find_spec("websockets") is None:
        return AbsentChannel(name=name, reason=MISSING)
    from koboshi.channels.discord.channel import DiscordChannel
    from koboshi.channels.discord.options import DiscordOptions

    bot = _bot(config)
    assert bot.token is not None, "a channel that is enabled has its token"
    options = DiscordOptions(
        name=name,
        token=bot.token.reveal(),
        api_base=bot.api_base,
        ambiguous=bot.ambiguous,
        per_second=bot.rate_per_second,
        home=setup.home,
        message_chars_max=setup.limits.message_chars_max,
        file_bytes_max=setup.limits.file_bytes_max,
        commands=setup.commands,
        people=tuple(str(person) for person in bot.allow if person != "*"),
    )
    return DiscordChannel(options, setup.clock, setup.watermarks_of(bot.name), setup.on_back)


async def try_discord(config: PlatformConfig) -> str:
    """The name of the bot whose token it is. Raises ProbeFailed."""
    async with _introduced(_bot(config)) as introduction:
        me, _ = await introduction.me()
    return f"the bot is {me.name}"


async def examine_discord(config: PlatformConfig) -> AsyncIterator[PlatformFinding]:
    bot = _bot(config)
    if find_spec("websockets") is None:
        yield PlatformFinding(severity="error", words=MISSING)
    yield PlatformFinding(severity="ok", words=await try_discord(bot))
    yield judged_clock(await clock_ahead_s(bot.api_base, SystemClock()))
    async with _introduced(bot) as introduction:
        may_read = await introduction.may_read()
    if may_read:
        yield PlatformFinding(severity="ok", words="the bot may read messages")
    else:
        yield PlatformFinding(severity="error", words=UNREADABLE, remedy=REMEDY)


PLATFORM = KnownPlatform(
    build=discord_channel,
    probe=try_discord,
    examine=examine_discord,
    init=InitQuestions(
        title="a Discord bot",
        token_env="DISCORD_BOT_TOKEN",
        comment="A bot of an application in Discord's Developer Portal:",
        person_example="80351110224678912",
    ),
)


def _bot(config: PlatformConfig) -> DiscordConfig:
    assert isinstance(config, DiscordConfig)
    return config


@asynccontextmanager
async def _introduced(bot: DiscordConfig) -> AsyncIterator["Introduction"]:
    """A few calls of the bot's platform. Raises ProbeFailed for what they meet."""
    import httpx2

    from koboshi.channels.common.calls import NoAnswer, NotReached
    from koboshi.channels.discord.client import DiscordApi
    from koboshi.channels.discord.introduction import Introduction
    from koboshi.channels.discord.rate_buckets import RateBuckets
    from koboshi.domain.errors import ChannelUnusable
    from koboshi.http_pool import HttpPool

    options = _options(bot)
    lanes = HttpPool(count_max=1, timeout=httpx2.Timeout(PROBE_SECONDS))
    buckets = RateBuckets(SystemClock())
    api = DiscordApi(lanes=lanes, base=bot.api_base, buckets=buckets, token=options.token)
    try:
        yield Introduction(api=api, options=options)
    except (NotReached, NoAnswer) as error:
        said = f"{bot.api_base} was not reached, or did not answer: {error}"
        raise ProbeFailed(said) from error
    except ChannelUnusable as error:
        raise ProbeFailed(str(error)) from error
    finally:
        await lanes.aclose()


def _options(bot: DiscordConfig) -> "DiscordOptions":
    from pathlib import Path

    from koboshi.channels.discord.options import DiscordOptions

    assert bot.token is not None, "a channel that is enabled has its token"
    return DiscordOptions(
        name=ChannelName(bot.name),
        token=bot.token.reveal(),
        api_base=bot.api_base,
        ambiguous=bot.ambiguous,
        per_second=bot.rate_per_second,
        home=Path(),
    )
