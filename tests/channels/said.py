"""Numbered messages of a chat."""

from koboshi.domain.ids import ChannelName
from koboshi.domain.inbox import Words
from koboshi.domain.route import Route
from koboshi.ports.channel import Inbound


def said(chat: str, number: int) -> Inbound:
    route = Route(channel=ChannelName("test:main"), chat=chat)
    words = Words(text=f"{chat}{number}", sent_ms=number)
    return Inbound(route=route, external_id=f"{chat}/{number}", sender="ann", words=words)
