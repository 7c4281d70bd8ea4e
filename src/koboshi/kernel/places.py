"""How far a channel was read: in all (its cursor), and in single chats (their watermarks)."""

from collections.abc import Mapping

from koboshi.domain.ids import ChannelName
from koboshi.kernel.decode import text
from koboshi.kernel.transaction import Reading, Transaction, Value


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
