"""The parts in which an answer is sent."""

from collections.abc import Mapping

from koboshi.domain.ids import ChannelName
from koboshi.domain.outbox import split_text
from koboshi.ports.channel import Channel

CHARS_MAX = 4_000
"""What every platform takes."""


def split_for(
    channels: Mapping[ChannelName, Channel], name: ChannelName, words: str
) -> tuple[str, ...]:
    """The parts of an answer; for a channel that is not configured, what every platform takes."""
    channel = channels.get(name)
    return split_text(words, CHARS_MAX) if channel is None else channel.split(words)
