"""How far a channel was read: in all (its cursor), and in single chats (their watermarks)."""

from collections.abc import Mapping, Sequence

from koboshi.domain.ids import ChannelName
from koboshi.kernel.decode import text
from koboshi.kernel.keys import channel_key, chat_key
from koboshi.kernel.transaction import Keys, Reading, Transaction, Value
from koboshi.ports.store import Arrival


def move_places(
    tx: Transaction,
    channel: ChannelName,
    account: str,
    cursor: str | None,
    watermarks: Mapping[str, str],
) -> None:
    """Store how far was read, in the transaction that stores what was read. An empty watermark
    forgets its chat."""
    place: dict[str, Value] = {"channel": channel, "account": account}
    if cursor is not None:
        tx.change("cursor_set", **place, token=cursor)
    for chat, token in watermarks.items():
        if token:
            tx.change("watermark_set", **place, chat=chat, token=token)
        else:
            tx.change("watermark_forget", **place, chat=chat)


def read_watermarks(tx: Reading, channel: ChannelName, account: str) -> dict[str, str]:
    """How far each chat was read as this account."""
    rows = tx.rows("watermarks_of", channel=channel, account=account)
    return {text(chat): text(token) for chat, token in rows}


def keys_of(channel: ChannelName, arrivals: Sequence[Arrival], *, moves: bool) -> Keys:
    """The keys of the chats with arrivals, and of the chats that they move to."""
    if len(arrivals) == 1 and not moves and not arrivals[0].inbound.moved_to:
        route = arrivals[0].inbound.route
        return Keys(chats=(chat_key(route.channel, route.chat),))
    chats = {(each.inbound.route.channel, each.inbound.route.chat) for each in arrivals}
    moved = {
        (each.inbound.route.channel, each.inbound.moved_to)
        for each in arrivals
        if each.inbound.moved_to
    }
    keys = [chat_key(*place) for place in sorted(chats | moved)]
    return Keys(chats=(*keys, channel_key(channel)) if moves else tuple(keys))
