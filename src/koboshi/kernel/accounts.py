"""The account of a channel on its platform, and what a change of it does to stored rows."""

from collections.abc import Mapping

from koboshi.domain.errors import Fenced
from koboshi.domain.ids import ChannelName, SessionId, WorkerId
from koboshi.kernel.decode import first_number, first_text, number, numbers, text
from koboshi.kernel.keys import channel_key, lock_found
from koboshi.kernel.sessions import forget_anchors
from koboshi.kernel.transaction import Keys, Readers, Reading, Transaction, Writer
from koboshi.ports.wakeups import ACCOUNTS, OUTBOX


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


class AccountVerbs:
    """Who receives and sends as an account, where several gateways could. Changes with the key of
    the channel, as the cursor does."""

    def __init__(self, writer: Writer, readers: Readers) -> None:
        self._writer = writer
        self._readers = readers

    async def take(self, channel: ChannelName, worker_id: WorkerId) -> int | None:
        def operation(tx: Transaction) -> int | None:
            return first_number(tx.row("account_take", channel=channel, worker_id=worker_id))

        return await self._writer.write("accounts.take", operation, _key(channel))

    async def give_back(self, channel: ChannelName, worker_id: WorkerId, epoch: int) -> None:
        def operation(tx: Transaction) -> None:
            tx.change("account_give_back", channel=channel, worker_id=worker_id, epoch=epoch)
            tx.hints.update((ACCOUNTS, OUTBOX))

        await self._writer.write("accounts.give_back", operation, _key(channel))

    async def owners(self) -> Mapping[ChannelName, WorkerId]:
        rows = await self._readers.read(lambda tx: tx.rows("account_owners"))
        return {ChannelName(text(name)): WorkerId(number(owner)) for name, owner in rows}


def _key(channel: ChannelName) -> Keys:
    return Keys(chats=(channel_key(channel),))


def require_account(
    tx: Reading, channel: ChannelName, worker_id: WorkerId | None, epoch: int | None
) -> None:
    """Raises Fenced if another gateway has the account by now."""
    if epoch is None:
        return
    held = {"channel": channel, "worker_id": worker_id, "epoch": epoch}
    if tx.row("account_held", **held) is None:
        raise Fenced(f"another gateway receives on {channel} now")


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
