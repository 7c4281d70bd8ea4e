"""Telegram bots, from the configuration."""

from collections.abc import Callable

from koboshi.channels.telegram.channel import TelegramChannel
from koboshi.channels.telegram.options import TelegramOptions
from koboshi.commands.menu import menu
from koboshi.config import Config, TelegramConfig
from koboshi.domain.ids import ChannelName
from koboshi.ports.clock import Clock


def telegram_channel(
    config: Config, bot: TelegramConfig, clock: Clock, on_back: Callable[[], None]
) -> TelegramChannel:
    assert bot.token is not None, "a channel that is enabled has its token"
    options = TelegramOptions(
        name=ChannelName(bot.name),
        token=bot.token.reveal(),
        api_base=bot.api_base,
        ambiguous=bot.ambiguous,
        per_second=bot.rate_per_second,
        home=config.home,
        message_chars_max=config.limits.message_chars_max,
        file_bytes_max=config.limits.file_bytes_max,
        commands=menu(),
        webhook_url=bot.webhook_url,
        webhook_host=bot.webhook_host,
        webhook_port=bot.webhook_port,
    )
    return TelegramChannel(options, clock, on_back)
