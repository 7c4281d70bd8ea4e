"""As whom a channel speaks to its platform, and what another account makes of what is stored."""

from koboshi.domain.ids import ChannelName, SessionId
from koboshi.kernel.decode import number, text
from koboshi.kernel.keys import lock_found
from koboshi.kernel.sessions import forget_anchors
from koboshi.kernel.transaction import Reading, Transaction
from koboshi.ports.wakeups import OUTBOX


def bind_account(tx: Transaction, channel: ChannelName, account: str) -> bool:
    """From now on the channel speaks as this account. Returns whether it was another one before:
    then the platform's ids from before are forgotten, as after a move."""
    row = tx.row("account_of", channel=channel)
    before = None if row is None else text(row[0])
    if before == account:
        return False
    tx.change("account_set", channel=channel, account=account, now=tx.now_ms)
    if before is None:
        return False
    lock_found(tx, "keys_of_channel", channel=channel)
    for found in tx.rows("sessions_of_channel", channel=channel):
        forget_anchors(tx, SessionId(number(found[0])))
    tx.change("sessions_rebound", channel=channel, now=tx.now_ms)
    # It was the other account that the platform asked for quiet.
    tx.change("quiet_forget", channel=channel)
    tx.hints.add(OUTBOX)
    return True


def has_unclaimed(tx: Reading, channel: ChannelName) -> bool:
    """Whether something of the channel is stored that came before accounts were known."""
    return tx.row("unclaimed_any", channel=channel) is not None


def adopt_unclaimed(tx: Transaction, channel: ChannelName, account: str) -> None:
    """What came before accounts were known came to this one: its keys, and how far it was read."""
    lock_found(tx, "keys_of_channel", channel=channel)
    tx.change("entries_adopt", channel=channel, account=account)
    tx.change("cursor_adopt", channel=channel, account=account)
