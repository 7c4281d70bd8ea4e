"""The inbox: what arrived is stored, together with what follows from it.

Theory of operation. `accept` is one transaction: the cursor of the channel, a row for each arrival,
and the effect of each new row. The channel acknowledges to its platform after the commit. So at
every moment:

* What the platform believes that we have is durable. What it does not believe comes again: source,
  account and external id are a unique key, so the second arrival changes nothing and gets the
  receipt of the first.
* Cursor and watermarks are never ahead of the rows that they stand for: they are one commit.
* A stored message is in a turn, waits behind an open turn, or has an end with a reason. None waits
  in an idle session: the admission opens a turn in the same transaction.
* A command is stored as handled, with its effect and its reply. A `/stop` that is delivered twice
  stops once.
* The right to use the gateway is read first, in this transaction. Without it a person commands,
  edits and opens nothing, and leaves a bounded number of rows.

Admission and recovery are effects of the same layer. The verbs here use both, so they hand
`apply_verdict` to `apply_admission`, which needs it where an open turn must be judged first.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial

from koboshi.domain import phrases
from koboshi.domain.approver import APPROVAL_NEEDS_PERSON, may_answer_approval
from koboshi.domain.command import Command
from koboshi.domain.ids import ChannelName, EntryId, SessionId
from koboshi.domain.inbox import Entry, EntryKind, EntryState, Words
from koboshi.domain.people import NOT_ALLOWED
from koboshi.domain.retry import Retried
from koboshi.domain.session import CutKind, Listen, Session
from koboshi.kernel.accounts import assign_unclaimed, bind_account, is_new_to, require_account
from koboshi.kernel.acknowledging import acknowledge_waiting
from koboshi.kernel.admission import apply_admission
from koboshi.kernel.approval_answers import answers_approval
from koboshi.kernel.approvals import revoke_rule
from koboshi.kernel.asides import schedules_at_work, session_meant
from koboshi.kernel.command_settings import change_settings
from koboshi.kernel.commands import command_facts
from koboshi.kernel.context import VerbContext
from koboshi.kernel.decode import encoded, first_text, words_of
from koboshi.kernel.enqueue import enqueue_delivery, enqueue_delivery_once
from koboshi.kernel.erasure import erase_person
from koboshi.kernel.filing import drop_waiting, grant_wish, offer_again
from koboshi.kernel.keys import lock_found, lock_session
from koboshi.kernel.memory_changes import grant_to_person
from koboshi.kernel.moved_chats import move_chat
from koboshi.kernel.operator_action import cut_session, will_of_person
from koboshi.kernel.own_threads import hear_of_thread
from koboshi.kernel.owners import asked_about, settle_from_here, turn_asked_here
from koboshi.kernel.pairing import as_kept, forget_strangers, meet_stranger
from koboshi.kernel.places import keys_of, move_places, read_watermarks
from koboshi.kernel.questions import rule_on_approval
from koboshi.kernel.record import ask_restart
from koboshi.kernel.recovery import apply_verdict
from koboshi.kernel.retry import retry_entry, retry_turn
from koboshi.kernel.rows import EntryRow, TurnRow, find_entry, find_session, read_open_turn
from koboshi.kernel.sessions import find_or_make_session, known_as
from koboshi.kernel.transaction import Readers, Transaction, Value, Writer
from koboshi.kernel.zones import hear_zone
from koboshi.ports.channel import NO_WATERMARKS, Inbound, Receipt
from koboshi.ports.store import Arrival, Respond
from koboshi.ports.wakeups import JOURNAL

NOT_ADDRESSED = "not-addressed"
"""The reason of an entry of a group that was not addressed to the gateway."""
EDIT = "edit"
"""The reason of an entry that only changes an earlier message."""
_IGNORED = (EntryKind.IGNORED, EntryState.IGNORED)
_REFUSED = Receipt(
    entry_id=EntryId(0),
    state=EntryState.DROPPED,
    is_duplicate=False,
    refused=APPROVAL_NEEDS_PERSON,
)
"""Nothing is stored of it, so the same key can be used again by a person."""
_NOT_ADDRESSED = Receipt(entry_id=EntryId(0), state=EntryState.IGNORED, is_duplicate=False)
"""It was said in a group, and not to us. Nothing is stored of it but the cursor: words to others
are not ours to keep, and could fill a disk."""


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

    async def connect(self, channel: ChannelName, account: str) -> None:
        worker_id = self._context.worker_id
        if not account:
            return

        def operation(tx: Transaction) -> None:
            assign_unclaimed(tx, channel, account)
            now = tx.now_ms
            tx.change(
                "account_connected", channel=channel, account=account, worker_id=worker_id, now=now
            )

        # A later connection of this boot has nothing to write.
        if await self._readers.read(lambda tx: is_new_to(tx, channel, account, worker_id)):
            await self._writer.write("inbox.connect", operation)

    async def cursor(self, channel: ChannelName, account: str = "") -> str | None:
        row = await self._readers.read(
            lambda tx: tx.row("cursor_get", channel=channel, account=account)
        )
        return first_text(row)

    async def watermarks(self, channel: ChannelName, account: str = "") -> Mapping[str, str]:
        return await self._readers.read(lambda tx: read_watermarks(tx, channel, account))

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
        watermarks: Mapping[str, str] = NO_WATERMARKS,
        epoch: int | None = None,
    ) -> tuple[Receipt, ...]:
        worker_id = self._context.worker_id

        def operation(tx: Transaction) -> tuple[Receipt, ...]:
            require_account(tx, channel, worker_id, epoch)
            move_places(tx, channel, account, cursor, watermarks)
            take_in = partial(_accept_one, tx, self._context, respond, account)
            return tuple(take_in(arrival) for arrival in arrivals)

        keys = keys_of(channel, arrivals, moves=cursor is not None or bool(watermarks))
        return await self._writer.write("inbox.accept", operation, keys)

    async def drop(self, entry_id: EntryId) -> bool:
        return await self._writer.write(
            "inbox.drop", lambda tx: drop_waiting(tx, self._context, entry_id)
        )

    async def retry(self, entry_id: EntryId, *, wants_anew: bool = False) -> Retried | None:
        def operation(tx: Transaction) -> Retried | None:
            retried, asked = retry_entry(tx, self._context, entry_id, wants_anew=wants_anew)
            if asked is not None:
                apply_admission(tx, self._context, asked.session, asked.entry, apply_verdict)
            return retried

        return await self._writer.write("inbox.retry", operation)


def _accept_one(
    tx: Transaction, context: VerbContext, respond: Respond, account: str, arrival: Arrival
) -> Receipt:
    inbound = arrival.inbound
    insert = partial(_insert, tx, context, account)
    if inbound.moved_to:
        move_chat(tx, inbound.route, inbound.moved_to)
    hear_of_thread(tx, inbound)
    # The right comes first: without it, a person commands and opens nothing.
    is_allowed = context.allows(tx, inbound.route.channel, inbound.sender)
    if arrival.ignored == NOT_ADDRESSED:
        return _NOT_ADDRESSED
    if not inbound.is_addressed and not (is_allowed and _hears(tx, context, account, inbound)):
        return _NOT_ADDRESSED
    if not is_allowed:
        return _turn_down(tx, context, account, arrival)
    if arrival.ignored is not None:
        return insert(arrival, None, *_IGNORED)
    if inbound.edits:
        return _edit(tx, context, account, arrival)
    if not may_answer_approval(inbound.sent_by) and answers_approval(tx, arrival, account):
        return _REFUSED
    session = find_or_make_session(tx, arrival.inbound.route)
    hear_zone(tx, context, inbound.route.channel, inbound.sender, inbound.zone)
    session = known_as(tx, session, inbound)
    if arrival.command is None:
        session = session_meant(tx, session, inbound.words)
    if (asked := turn_asked_here(tx, session, inbound.words)) is not None:
        return _settle(tx, context, insert, arrival, session, asked)
    if arrival.command is not None:
        receipt = insert(arrival, session, EntryKind.COMMAND, EntryState.HANDLED)
        if not receipt.is_duplicate:
            _carry_out(tx, context, session, arrival.inbound, receipt, arrival.command, respond)
        return receipt
    receipt = insert(arrival, session, EntryKind.MESSAGE, EntryState.WAITING)
    if receipt.is_duplicate:
        return receipt
    entry = _entry(arrival, session, receipt.entry_id)
    state = apply_admission(tx, context, session, entry, apply_verdict)
    if state is EntryState.WAITING:
        acknowledge_waiting(tx, session, entry)
    if context.is_draining and state is not EntryState.DROPPED and not _is_served(tx, context):
        cause, anchor = f"drain:{context.worker_id}", arrival.inbound.words.anchor
        enqueue_delivery_once(tx, session.session_id, cause, phrases.after_restart(), anchor=anchor)
    return replace(receipt, state=state)


def _is_served(tx: Transaction, context: VerbContext) -> bool:
    """Whether another gateway takes up what this one does not any more."""
    return tx.row("worker_serves_beside", worker_id=context.worker_id) is not None


def _settle(
    tx: Transaction,
    context: VerbContext,
    insert: Callable[..., Receipt],
    arrival: Arrival,
    session: Session,
    asked: TurnRow,
) -> Receipt:
    """A button for the approval of another chat. Like a command, it is stored with its effect and
    its reply."""
    inbound = arrival.inbound
    receipt = insert(arrival, session, EntryKind.COMMAND, EntryState.HANDLED)
    if not receipt.is_duplicate:
        words = settle_from_here(tx, context, session, asked, inbound.sender, inbound.words)
        cause, anchor = f"command:{receipt.entry_id}", inbound.words.anchor
        enqueue_delivery(tx, session.session_id, None, cause, (words,), anchor=anchor)
    return receipt


def _hears(tx: Transaction, context: VerbContext, account: str, inbound: Inbound) -> bool:
    """Whether the agent hears words to others: it listens to all, or they replace words to it."""
    waits = _edited(tx, account, inbound) if inbound.edits else None
    if waits is not None and waits.sender == inbound.sender:
        return True
    session = find_session(tx, inbound.route)
    own = None if session is None else session.settings.listen
    return (own or context.listen_on(inbound.route.channel)) is Listen.ALL


def _edit(tx: Transaction, context: VerbContext, account: str, arrival: Arrival) -> Receipt:
    """New words for a message. They replace the old ones while the message waits. Once a turn has
    the message, they change nothing."""
    inbound, words = arrival.inbound, arrival.inbound.words
    receipt = _insert(tx, context, account, replace(arrival, ignored=EDIT), None, *_IGNORED)
    if receipt.is_duplicate:
        return receipt
    before = _edited(tx, account, inbound)
    if before is None:
        return receipt
    lock_found(tx, "entry_key", entry_id=before.entry_id)
    kept = replace(words_of(before.body), text=words.text, files=words.files)
    tx.change("entry_reword", entry_id=before.entry_id, sender=inbound.sender, body=encoded(kept))
    tx.hints.add(JOURNAL)
    return receipt


def _edited(tx: Transaction, account: str, inbound: Inbound) -> EntryRow | None:
    """The message whose words are replaced; None if it does not wait any more."""
    place = {"source": inbound.route.channel, "account": account}
    before = find_entry(tx, **place, external_id=inbound.edits)
    return before if before is not None and before.state == EntryState.WAITING else None


def _turn_down(tx: Transaction, context: VerbContext, account: str, arrival: Arrival) -> Receipt:
    """Nothing is done for a stranger; the first time that they write something they may hear how
    that can change. Whatever they send, only the newest rows of it are kept."""
    inbound = arrival.inbound
    kept = Arrival(inbound=as_kept(inbound), ignored=NOT_ALLOWED)
    receipt = _insert(tx, context, account, kept, None, *_IGNORED)
    if not receipt.is_duplicate:
        forget_strangers(tx, context)
        if arrival.ignored is None:
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
    """Store an arrival. A key that is already stored changes nothing."""
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
    before = find_entry(tx, **key)
    assert before is not None
    return Receipt(
        entry_id=before.entry_id,
        state=EntryState(before.state),
        is_duplicate=True,
        is_same=_is_same_place(before, session) and _is_same(before, inbound.words),
    )


def _is_same_place(before: EntryRow, session: Session | None) -> bool:
    """Whether a repeated key came from the same chat, where both chats are known."""
    stored = before.session_id
    return stored is None or session is None or stored == session.session_id


def _is_same(repeated: EntryRow, words: Words) -> bool:
    """Whether a repeated key came with the same words. The time of sending does not matter."""
    before = words_of(repeated.body)
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


def _carry_out(
    tx: Transaction,
    context: VerbContext,
    session: Session,
    inbound: Inbound,
    receipt: Receipt,
    command: Command,
    respond: Respond,
) -> None:
    """A command's effect and its reply, in the transaction that stores it."""
    words, open_row = inbound.words, read_open_turn(tx, session.session_id)
    asked_row = asked_about(tx, session, open_row, command)
    facts = command_facts(tx, context, session, open_row, inbound, command, asked_row)
    response = respond(command, facts)
    if response.erases:
        cut, who = partial(cut_session, tx, context, kind=CutKind.NEW), inbound.sender
        erase_person(tx, context, session.route.channel, who, who, cut=cut)
    cause, told = f"command:{receipt.entry_id}", response.reply
    if response.wish is not None:
        done = grant_wish(tx, context, session, inbound.sender, response.wish, receipt.entry_id)
        told = f"{done} {told}".strip()
    if response.memory is not None:
        told = grant_to_person(tx, context, session, response.memory, receipt.entry_id)
    owe = partial(enqueue_delivery, tx, session.session_id, None, cause, choices=response.choices)
    owe((told,), anchor=words.anchor)
    if response.cut is not None:
        for each in (session, *schedules_at_work(tx, session)):
            offer_again(tx, context, each, cut_session(tx, context, each, response.cut))
    if response.ruling is not None:
        assert asked_row is not None, "a ruling without an open question"
        lock_session(tx, asked_row.session_id)
        is_here = asked_row.session_id == session.session_id
        ruling, sender = response.ruling, inbound.sender
        rule_on_approval(tx, asked_row, sender, words.anchor, ruling, speaks=is_here)
    if response.restarts and context.worker_id is not None:
        ask_restart(tx, context.worker_id, f"entry:{receipt.entry_id}")
    change_settings(tx, context, session.session_id, response)
    if response.will is not None:
        assert open_row is not None, "a will without an open turn"
        will_of_person(tx, context, open_row, inbound, response.will)
    if response.retry is not None:
        asked = retry_turn(tx, context, session, inbound.sender, words, response.retry)
        apply_admission(tx, context, session, asked.entry, apply_verdict)
    if response.revokes is not None:
        revoke_rule(tx, response.revokes, inbound.sender)
