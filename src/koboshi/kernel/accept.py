"""The inbox: what arrived is stored, together with what follows from it."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial

from koboshi.domain import phrases
from koboshi.domain.ids import ChannelName, EntryId, SessionId
from koboshi.domain.inbox import Entry, EntryKind, EntryState, Words
from koboshi.domain.people import NOT_ALLOWED
from koboshi.domain.retry import Retried
from koboshi.domain.session import Busy, Listen, Session
from koboshi.kernel.accounts import adopt_unclaimed, bind_account, has_unclaimed
from koboshi.kernel.admission import apply_admission
from koboshi.kernel.commands import carry_out
from koboshi.kernel.context import VerbContext
from koboshi.kernel.decode import encoded, number, text, words_of
from koboshi.kernel.keys import channel_key, chat_key, lock_found
from koboshi.kernel.pairing import as_kept, meet_stranger
from koboshi.kernel.read import find_session
from koboshi.kernel.record import enqueue_delivery, enqueue_delivery_once
from koboshi.kernel.retry import drop_by_hand, retry_entry
from koboshi.kernel.sessions import find_or_make_session, move_chat
from koboshi.kernel.transaction import Keys, Readers, Transaction, Value, Writer
from koboshi.ports.channel import Inbound, Receipt
from koboshi.ports.store import Arrival, Respond
from koboshi.ports.wakeups import JOURNAL

EDIT = "edit"
"""The reason of an entry that is not a message of its own."""
NOT_ADDRESSED = "not-addressed"
"""The reason of an entry that was said in a group, and not to us."""
_IGNORED = (EntryKind.IGNORED, EntryState.IGNORED)


class InboxVerbs:
    def __init__(self, writer: Writer, readers: Readers, context: VerbContext) -> None:
        self._writer = writer
        self._readers = readers
        self._context = context

    async def bind(self, accounts: Mapping[ChannelName, str]) -> tuple[ChannelName, ...]:
        def operation(tx: Transaction) -> tuple[ChannelName, ...]:
            bound = accounts.items()
            return tuple(channel for channel, who in bound if bind_account(tx, channel, who))

        return await self._writer.write("inbox.bind", operation)

    async def adopt(self, channel: ChannelName, account: str) -> None:
        if not account:
            return
        # Nearly always there is nothing, and then nothing is written.
        is_there = await self._readers.read(lambda tx: has_unclaimed(tx, channel))
        if is_there:
            await self._writer.write(
                "inbox.adopt", lambda tx: adopt_unclaimed(tx, channel, account)
            )

    async def cursor(self, channel: ChannelName, account: str = "") -> str | None:
        row = await self._readers.read(
            lambda tx: tx.row("cursor_get", channel=channel, account=account)
        )
        return None if row is None else text(row[0])

    async def messages_waiting(self, session_id: SessionId) -> int:
        return await self._readers.read(
            lambda tx: tx.number("messages_waiting_count", session_id=session_id)
        )

    async def accept(
        self,
        channel: ChannelName,
        arrivals: Sequence[Arrival],
        *,
        cursor: str | None,
        respond: Respond,
        account: str = "",
    ) -> tuple[Receipt, ...]:
        def operation(tx: Transaction) -> tuple[Receipt, ...]:
            if cursor is not None:
                tx.change("cursor_set", channel=channel, account=account, token=cursor)
            take_in = partial(_accept_one, tx, self._context, respond, account)
            return tuple(take_in(arrival) for arrival in arrivals)

        keys = _keys_of(channel, arrivals, has_cursor=cursor is not None)
        return await self._writer.write("inbox.accept", operation, keys)

    async def drop(self, entry_id: EntryId) -> bool:
        return await self._writer.write("inbox.drop", lambda tx: drop_by_hand(tx, entry_id))

    async def retry(self, entry_id: EntryId) -> Retried | None:
        return await self._writer.write(
            "inbox.retry", lambda tx: retry_entry(tx, self._context, entry_id)
        )


def _keys_of(channel: ChannelName, arrivals: Sequence[Arrival], *, has_cursor: bool) -> Keys:
    """The chats that something arrives in, and those that they move to."""
    chats = {(each.inbound.route.channel, each.inbound.route.chat) for each in arrivals}
    moved = {
        (each.inbound.route.channel, each.inbound.moved_to)
        for each in arrivals
        if each.inbound.moved_to
    }
    keys = [chat_key(*place) for place in sorted(chats | moved)]
    return Keys(chats=(*keys, channel_key(channel)) if has_cursor else tuple(keys))


def _accept_one(
    tx: Transaction, context: VerbContext, respond: Respond, account: str, arrival: Arrival
) -> Receipt:
    inbound = arrival.inbound
    insert = partial(_insert, tx, context, account)
    if inbound.moved_to:
        move_chat(tx, inbound.route, inbound.moved_to)
    if arrival.ignored is not None:
        return insert(arrival, None, *_IGNORED)
    # Before anything else is looked at: nobody who is not allowed commands, or opens anything.
    is_allowed = context.allows(tx, inbound.route.channel, inbound.sender)
    if not inbound.is_addressed and not (is_allowed and _listens(tx, context, inbound)):
        return insert(_unheard(arrival), None, *_IGNORED)
    if not is_allowed:
        return _turn_down(tx, context, account, inbound)
    if inbound.edits:
        return _edit(tx, context, account, arrival)
    session = find_or_make_session(tx, arrival.inbound.route)
    if arrival.command is not None:
        receipt = insert(arrival, session, EntryKind.COMMAND, EntryState.HANDLED)
        if not receipt.is_duplicate:
            carry_out(tx, context, session, arrival.inbound, receipt, arrival.command, respond)
        return receipt
    receipt = insert(arrival, session, EntryKind.MESSAGE, EntryState.WAITING)
    if receipt.is_duplicate:
        return receipt
    entry = _entry(arrival, session, receipt.entry_id)
    state = apply_admission(tx, context, session, entry)
    if state is EntryState.WAITING:
        _acknowledge(tx, session, entry)
    if context.is_draining and state is not EntryState.DROPPED:
        cause, anchor = f"drain:{context.worker_id}", arrival.inbound.words.anchor
        enqueue_delivery_once(tx, session.session_id, cause, phrases.after_restart(), anchor=anchor)
    return Receipt(entry_id=receipt.entry_id, state=state, is_duplicate=False)


def _listens(tx: Transaction, context: VerbContext, inbound: Inbound) -> bool:
    """Whether the agent hears what is said there to others, as the chat is set at this moment."""
    session = find_session(tx, inbound.route)
    own = None if session is None else session.settings.listen
    return (own or context.listen_on(inbound.route.channel)) is Listen.ALL


def _unheard(arrival: Arrival) -> Arrival:
    """It is not for us: that it was there is kept, its words are not."""
    nothing = Words(text="", sent_ms=arrival.inbound.words.sent_ms)
    inbound = replace(arrival.inbound, words=nothing)
    return Arrival(inbound=inbound, ignored=NOT_ADDRESSED)


def _edit(tx: Transaction, context: VerbContext, account: str, arrival: Arrival) -> Receipt:
    """Other words for a message: they take its place while it waits, and are too late once a turn
    has heard it."""
    inbound, words = arrival.inbound, arrival.inbound.words
    receipt = _insert(tx, context, account, replace(arrival, ignored=EDIT), None, *_IGNORED)
    if receipt.is_duplicate:
        return receipt
    place = {"source": inbound.route.channel, "account": account}
    before = tx.row("entry_by_key", **place, external_id=inbound.edits)
    if before is None or before[1] != EntryState.WAITING:
        return receipt
    lock_found(tx, "entry_key", entry_id=before[0])
    kept = replace(words_of(before[2]), text=words.text, files=words.files)
    tx.change("entry_reword", entry_id=before[0], sender=inbound.sender, body=encoded(kept))
    tx.hints.add(JOURNAL)
    return receipt


def _turn_down(tx: Transaction, context: VerbContext, account: str, inbound: Inbound) -> Receipt:
    """Nothing is done for a stranger; the first time they may hear how that can change."""
    arrival = Arrival(inbound=as_kept(inbound), ignored=NOT_ALLOWED)
    receipt = _insert(tx, context, account, arrival, None, *_IGNORED)
    if not receipt.is_duplicate:
        meet_stranger(tx, context, inbound, receipt.entry_id)
    return receipt


def _insert(
    tx: Transaction,
    context: VerbContext,
    account: str,
    arrival: Arrival,
    session: Session | None,
    kind: EntryKind,
    state: EntryState,
) -> Receipt:
    """The one place where a row enters the inbox; a key that is there already changes nothing."""
    inbound = arrival.inbound
    key: dict[str, Value] = {
        "source": inbound.route.channel,
        "account": account,
        "external_id": inbound.external_id,
    }
    inserted = tx.change(
        "entry_insert",
        **key,
        session_id=None if session is None else session.session_id,
        generation=None if session is None else session.generation,
        kind=kind,
        sender=inbound.sender,
        body=encoded(inbound.words),
        during_turn=None,
        accepted_by=context.worker_id,
        now=tx.now_ms,
        state=state,
        reason=arrival.ignored,
    )
    if inserted:
        tx.hints.add(JOURNAL)
        return Receipt(entry_id=EntryId(tx.last_id()), state=state, is_duplicate=False)
    row = tx.row("entry_by_key", **key)
    assert row is not None
    return Receipt(
        entry_id=EntryId(number(row[0])),
        state=EntryState(text(row[1])),
        is_duplicate=True,
        is_same=_is_same_place(row[3], session) and _is_same(row[2], inbound.words),
    )


def _is_same_place(stored: Value, session: Session | None) -> bool:
    """Whether a repeated key came from the same chat, as far as both are known."""
    return stored is None or session is None or stored == session.session_id


def _is_same(stored: object, words: Words) -> bool:
    """Whether a repeated key came with the same words; when they were sent does not matter."""
    before = words_of(str(stored))
    return (before.text, before.question, before.choice_id, before.busy) == (
        words.text,
        words.question,
        words.choice_id,
        words.busy,
    )


def _entry(arrival: Arrival, session: Session, entry_id: EntryId) -> Entry:
    inbound = arrival.inbound
    return Entry(
        entry_id=entry_id,
        session_id=session.session_id,
        generation=session.generation,
        kind=EntryKind.MESSAGE,
        source=inbound.route.channel,
        external_id=inbound.external_id,
        sender=inbound.sender,
        body=inbound.words,
    )


def _acknowledge(tx: Transaction, session: Session, entry: Entry) -> None:
    """Whoever said what their words shall do while a turn runs hears that they wait for it."""
    if not isinstance(entry.body, Words) or entry.body.busy is None:
        return
    ahead = tx.number("messages_waiting_count", session_id=session.session_id)
    steers = entry.body.busy is Busy.STEER
    words = phrases.steering() if steers else phrases.queued(ahead)
    cause = f"queued:{entry.entry_id}"
    enqueue_delivery(tx, session.session_id, None, cause, (words,), anchor=entry.body.anchor)
