"""Telegram bots, from the configuration."""

from collections.abc import AsyncIterator, Iterator, Mapping
from dataclasses import dataclass

from koboshi.app.platforms.platform import (
    ChannelSetup,
    InitQuestions,
    KnownPlatform,
    PlatformFinding,
    ProbeFailed,
)
from koboshi.app.platforms.reaching import PROBE_SECONDS, clock_ahead_s, judged_clock, reached
from koboshi.clock import SystemClock
from koboshi.config import PlatformConfig, TelegramConfig
from koboshi.domain.ids import ChannelName
from koboshi.ports.channel import Channel

DEAF = (
    'groups = "all" is set, and Telegram brings the bot only what is said to it, except where it '
    "is an administrator"
)
FORBIDDEN = 403
"""What our webhook answers to a call without its secret."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WebhookStanding:
    """How Telegram and the rest of the world get to a bot's webhook."""

    registered: str
    """The address that Telegram calls; empty if it calls none."""
    error: str
    """Why its last call failed; empty if it did not."""
    answered: int | None
    """What a call without the secret is answered with; None without an answer."""
    why: str = ""


def telegram_channel(config: PlatformConfig, setup: ChannelSetup) -> Channel:
    from koboshi.channels.telegram.channel import TelegramChannel
    from koboshi.channels.telegram.options import TelegramOptions

    bot = _bot(config)
    assert bot.token is not None, "a channel that is enabled has its token"
    options = TelegramOptions(
        name=ChannelName(bot.name),
        token=bot.token.reveal(),
        api_base=bot.api_base,
        ambiguous=bot.ambiguous,
        per_second=bot.rate_per_second,
        home=setup.home,
        message_chars_max=setup.limits.message_chars_max,
        file_bytes_max=setup.limits.file_bytes_max,
        commands=setup.commands,
        webhook_url=bot.webhook_url,
        webhook_host=bot.webhook_host,
        webhook_port=bot.webhook_port,
    )
    return TelegramChannel(options, setup.clock, setup.on_back)


async def try_telegram(config: PlatformConfig) -> str:
    """The name of the bot whose token it is. Raises ProbeFailed."""
    bot = _bot(config)
    match await _asked(bot, "getMe"):
        case {"username": str(name)}:
            return f"the bot is @{name}"
        case _:
            raise ProbeFailed(f"{bot.api_base} does not answer like a Bot API")


async def examine_telegram(config: PlatformConfig) -> AsyncIterator[PlatformFinding]:
    bot = _bot(config)
    yield PlatformFinding(severity="ok", words=await try_telegram(bot))
    yield judged_clock(await clock_ahead_s(bot.api_base, SystemClock()))
    if bot.groups == "all" and not await _hears_groups(bot):
        remedy = "switch privacy mode off: /setprivacy at BotFather"
        yield PlatformFinding(severity="warning", words=DEAF, remedy=remedy)
    if bot.webhook_url:
        for found in judged_webhook(bot.webhook_url, await _webhook_standing(bot)):
            yield found


def judged_webhook(url: str, standing: WebhookStanding) -> Iterator[PlatformFinding]:
    """Whether Telegram calls us, can, and is answered by us."""
    if standing.registered != url:
        whom = standing.registered or "no address"
        words = f"Telegram calls {whom}, and {url} is configured"
        yield _warning(words, "a gateway registers its address at its start: koboshi run")
    if standing.error:
        words = f"Telegram could not call {url} lately: {standing.error}"
        yield _warning(words, "the address has to be reachable from outside, with a certificate")
    if standing.answered is None:
        words = f"{url} was not reached from here: {standing.why}"
        yield _warning(words, "does the proxy run, and does it pass calls on to the gateway?")
    elif standing.answered != FORBIDDEN:
        words = f"{url} was answered with {standing.answered}, not as the gateway does"
        yield _warning(words, "the proxy has to pass this address on to webhook_host:webhook_port")
    elif not standing.error and standing.registered == url:
        yield PlatformFinding(severity="ok", words=f"{url} is ours, and Telegram calls it")


PLATFORM = KnownPlatform(
    build=telegram_channel,
    probe=try_telegram,
    examine=examine_telegram,
    init=InitQuestions(
        title="a Telegram bot",
        token_env="TELEGRAM_BOT_TOKEN",
        comment="A bot of Telegram's BotFather:",
        person_example="123456789",
    ),
)


def _bot(config: PlatformConfig) -> TelegramConfig:
    assert isinstance(config, TelegramConfig)
    return config


def _warning(words: str, remedy: str) -> PlatformFinding:
    return PlatformFinding(severity="warning", words=words, remedy=remedy)


async def _hears_groups(bot: TelegramConfig) -> bool:
    """Whether Telegram brings it all that is said in a group. Raises ProbeFailed."""
    me = await _asked(bot, "getMe")
    return isinstance(me, dict) and me.get("can_read_all_group_messages") is True


async def _webhook_standing(bot: TelegramConfig) -> WebhookStanding:
    """Asked of Telegram, and tried from here. Raises ProbeFailed."""
    told = await _asked(bot, "getWebhookInfo")
    found: Mapping[str, object] = told if isinstance(told, dict) else {}
    registered, error = found.get("url", ""), found.get("last_error_message", "")
    answered, why, _ = await reached(bot.webhook_url)
    return WebhookStanding(registered=str(registered), error=str(error), answered=answered, why=why)


async def _asked(bot: TelegramConfig, method: str) -> object:
    """What the bot's platform answers to a method without parameters. Raises ProbeFailed."""
    import httpx2

    from koboshi.channels.common.calls import NoAnswer, NotReached
    from koboshi.channels.telegram.client import BotApi
    from koboshi.http_pool import HttpPool

    assert bot.token is not None, "a channel that is enabled has its token"
    lanes = HttpPool(count_max=1, timeout=httpx2.Timeout(PROBE_SECONDS))
    api = BotApi(lanes=lanes, base=bot.api_base, token=bot.token.reveal())
    try:
        answer = await api.call(method, {}, seconds=PROBE_SECONDS)
    except (NotReached, NoAnswer) as error:
        said = f"{bot.api_base} was not reached, or did not answer: {error}"
        raise ProbeFailed(said) from error
    finally:
        await lanes.aclose()
    if not answer.ok:
        raise ProbeFailed(f"Telegram does not take the token: {answer.description}")
    return answer.result
