"""What only one channel can hold: a bot's token, a port."""

from collections.abc import Iterator, Mapping
from itertools import combinations

from koboshi.config.problems import Origin, Problems
from koboshi.config.shape import ChannelConfig, TelegramConfig, WebConfig

_EVERYWHERE = ("0.0.0.0", "::")
_SAME = {"localhost": "127.0.0.1"}


def check_shared(
    channels: Mapping[str, ChannelConfig], origins: Mapping[str, Origin], problems: Problems
) -> None:
    """Note every two channels that would get into each other's way; both are told by section."""
    enabled = {section: channel for section, channel in channels.items() if channel.enabled}
    for (first, one), (second, other) in combinations(enabled.items(), 2):
        for what in _shared(one, other):
            message = f"{second} and {first} use {what}"
            problems.add(second, message, origin=origins[second])


def _shared(one: ChannelConfig, other: ChannelConfig) -> Iterator[str]:
    if isinstance(one, TelegramConfig) and isinstance(other, TelegramConfig):
        is_same = (one.token, one.api_base) == (other.token, other.api_base)
        if one.token is not None and is_same:
            yield "the same bot token"
    mine, theirs = _place(one), _place(other)
    if mine is not None and theirs is not None and mine[1] == theirs[1]:
        hosts = {_SAME.get(host, host) for host, _ in (mine, theirs)}
        if len(hosts) == 1 or not hosts.isdisjoint(_EVERYWHERE):
            yield f"the same port {mine[1]}"


def _place(channel: ChannelConfig) -> tuple[str, int] | None:
    """Where it listens; None if it does not, or on any free port."""
    match channel:
        case WebConfig(host=host, port=port) if port:
            return host, port
        case TelegramConfig(webhook_url=url, webhook_host=host, webhook_port=port) if url and port:
            return host, port
        case _:
            return None
