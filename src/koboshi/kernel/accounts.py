"""The account of a channel on its platform, and what a change of it does to stored rows."""

from koboshi.domain.ids import ChannelName, SessionId, WorkerId
from koboshi.kernel.decode import first_text, numbers
from koboshi.kernel.keys import lock_found
from koboshi.kernel.sessions import forget_anchors
from koboshi.kernel.transaction import Reading, Transaction
from koboshi.ports.wakeups import OUTBOX


def bind_account(tx: Transaction, channel: ChannelName, account: str) -> bool:
    """Set the account of a channel. Returns whether the channel had another account before. In that
    case the platform's ids from before are forgotten, as after a move."""
    before = first_text(tx.row("account_of", channel=channel))
    if before == account:
        return False
    tx.change("account_set", channel=channel, account=account, now=tx.now_ms)
    if before is None:
        return False
    lock_found(tx, "keys_of_channel", channel=channel)
    for session_id in numbers(tx.rows("sessions_of_channel", channel=channel)):
        forget_anchors(tx, SessionId(session_id))
    tx.change("sessions_rebound", channel=channel, now=tx.now_ms)
    # The platform asked the other account for quiet, not this one.
    tx.change("quiet_forget", channel=channel)
    tx.hints.add(OUTBOX)
    return True


def is_new_to(tx: Reading, channel: ChannelName, account: str, worker_id: WorkerId | None) -> bool:
    """Whether this boot has not connected as the account yet, or rows of the channel are stored
    without an account."""
    who = {"channel": channel, "account": account, "worker_id": worker_id}
    if tx.row("account_connects", **who) is not None:
        return True
    return tx.row("unclaimed_any", channel=channel) is not None


def assign_unclaimed(tx: Transaction, channel: ChannelName, account: str) -> None:
    """Give rows that were stored without an account to this one: message keys and the cursor."""
    lock_found(tx, "keys_of_channel", channel=channel)
    tx.change("entries_assign", channel=channel, account=account)
    tx.change("cursor_give_way", channel=channel, account=account)
    tx.change("cursor_assign", channel=channel, account=account)
