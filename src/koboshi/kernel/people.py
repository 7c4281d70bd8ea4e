"""People who were paired by a code, and the operator's verbs for them."""

import hmac
from dataclasses import dataclass
from functools import partial

from koboshi.domain import phrases
from koboshi.domain.child import ChildEnd
from koboshi.domain.ids import ChannelName, EntryId, SessionId
from koboshi.domain.people import (
    Pairing,
    Person,
    Revoked,
    RoleGiven,
    code_hash,
    normal_code,
)
from koboshi.domain.recovery import VerdictKind
from koboshi.domain.role import Role
from koboshi.domain.session import CutKind
from koboshi.domain.turn import TurnState
from koboshi.kernel.child_rows import child_of
from koboshi.kernel.children import end_children_of
from koboshi.kernel.context import VerbContext
from koboshi.kernel.decode import number, text, texts
from koboshi.kernel.enqueue import enqueue_delivery
from koboshi.kernel.keys import lock, lock_session, people_key
from koboshi.kernel.next_turn import OPENING
from koboshi.kernel.operator_action import cut_session
from koboshi.kernel.owners import owner_chats
from koboshi.kernel.record import ask_processes_to_end
from koboshi.kernel.recovery import apply_verdict
from koboshi.kernel.rows import turn_of
from koboshi.kernel.transaction import Readers, Reading, Row, Transaction, Writer


class PeopleVerbs:
    def __init__(self, writer: Writer, readers: Readers, context: VerbContext) -> None:
        self._writer = writer
        self._readers = readers
        self._context = context

    async def is_allowed(self, channel: ChannelName, person: str) -> bool:
        return await self._readers.read(lambda tx: self._context.allows(tx, channel, person))

    async def strangers(self, limit: int) -> tuple[Pairing, ...]:
        def look(tx: Reading) -> tuple[Pairing, ...]:
            rows = tx.rows("pairings_alive", now=tx.now_ms, limit=limit)
            return tuple(_pairing_of(row) for row in rows)

        return await self._readers.read(look)

    async def paired(self, limit: int) -> tuple[Person, ...]:
        rows = await self._readers.read(lambda tx: tx.rows("people_all", limit=limit))
        return tuple(_person_of(row) for row in rows)

    async def approve(self, code: str, role: Role = Role.MEMBER) -> Person | None:
        def operation(tx: Transaction) -> Person | None:
            offer = _find_offer(tx, self._context, code)
            if offer is None:
                return None
            person = Person(
                channel=offer.channel,
                person=offer.person,
                name=offer.name,
                paired_ms=tx.now_ms,
                entry_id=offer.entry_id,
                role=role,
            )
            _let_in(tx, self._context, offer, role)
            return person

        return await self._writer.write("people.approve", operation)

    async def deny(self, code: str) -> Pairing | None:
        def operation(tx: Transaction) -> Pairing | None:
            offer = _find_offer(tx, self._context, code)
            if offer is None:
                return None
            until_ms = tx.now_ms + self._context.pairing.silence_ms
            who = {"channel": offer.channel, "person": offer.person}
            tx.change("pairing_silence", **who, expires_ms=until_ms)
            row = tx.row("pairing_of", **who)
            assert row is not None
            return _pairing_of(row)

        return await self._writer.write("people.deny", operation)

    async def set_role(self, channel: ChannelName, person: str, role: Role) -> RoleGiven:
        def operation(tx: Transaction) -> RoleGiven:
            lock(tx, people_key(channel))
            who = {"channel": channel, "person": person}
            return RoleGiven(
                was_paired=bool(tx.change("person_set_role", **who, role=role, now=tx.now_ms)),
                is_named=self._is_named(channel, person),
            )

        return await self._writer.write("people.set_role", operation)

    async def role_of(self, channel: ChannelName, person: str) -> Role | None:
        return await self._readers.read(lambda tx: self._context.role_of(tx, channel, person))

    async def without_owner(self) -> tuple[ChannelName, ...]:
        world = self._context.world

        def look(tx: Reading) -> tuple[ChannelName, ...]:
            owned = {*world.owned, *texts(tx.rows("channels_with_owner"))}
            return tuple(channel for channel in world.channels if channel not in owned)

        return await self._readers.read(look)

    async def tell_of_roles(self) -> tuple[str, ...]:
        def operation(tx: Transaction) -> tuple[str, ...]:
            found = tx.rows("people_untold")
            told = tuple(f"{text(each[0])} {text(each[1])}" for each in found)
            tx.change("people_told", now=tx.now_ms)
            for chat in owner_chats(tx, self._context) if told else ():
                lock_session(tx, chat)
                cause, words = f"roles:{tx.now_ms}", (phrases.members_now(told),)
                enqueue_delivery(tx, chat, None, cause, words, anchor="")
            return told

        if not await self._readers.read(lambda tx: tx.rows("people_untold")):
            return ()
        return await self._writer.write("people.tell_of_roles", operation)

    def _is_named(self, channel: ChannelName, person: str) -> bool:
        world = self._context.world
        return world.is_allowed(channel, person) and world.is_owner(channel, person)

    async def revoke(self, channel: ChannelName, person: str) -> Revoked:
        def operation(tx: Transaction) -> Revoked:
            who = {"channel": channel, "person": person}
            lock(tx, people_key(channel))
            was_paired = bool(tx.change("person_revoke", **who, now=tx.now_ms))
            is_still_allowed = self._context.allows(tx, channel, person)
            is_over = was_paired and not is_still_allowed
            return Revoked(
                was_paired=was_paired,
                is_still_allowed=is_still_allowed,
                turns_set_aside=_set_aside(tx, self._context, channel, person) if is_over else 0,
            )

        return await self._writer.write("people.revoke", operation)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Offer:
    """A valid code, and the person who got it."""

    channel: ChannelName
    person: str
    name: str
    session_id: SessionId
    entry_id: EntryId


def _find_offer(tx: Transaction, context: VerbContext, code: str) -> _Offer | None:
    """The person who got the code. A wrong code counts against every valid one, so guessing makes
    all of them worthless before one fits."""
    said, found = normal_code(code), None
    for channel, person, name, session_id, entry_id, stored in tx.rows(
        "pairings_good", now=tx.now_ms
    ):
        # The comparison takes the same time for every code.
        if hmac.compare_digest(code_hash(text(channel), text(person), said), text(stored)):
            found = _Offer(
                channel=ChannelName(text(channel)),
                person=text(person),
                name=text(name),
                session_id=SessionId(number(session_id)),
                entry_id=EntryId(number(entry_id)),
            )
    if found is not None:
        lock(tx, people_key(found.channel))
    else:
        tx.change("pairings_guessed", now=tx.now_ms, wrong_max=context.pairing.wrong_max)
    return found


def _let_in(tx: Transaction, context: VerbContext, offer: _Offer, role: Role) -> None:
    """Allow the person, tell them once, and judge their turns that were set aside again."""
    who = {"channel": offer.channel, "person": offer.person}
    tx.change("pairing_forget", **who)
    tx.change(
        "person_insert",
        **who,
        name=offer.name,
        entry_id=offer.entry_id,
        role=role,
        now=tx.now_ms,
    )
    cause = f"paired:{offer.entry_id}"
    lock_session(tx, offer.session_id)
    enqueue_delivery(tx, offer.session_id, None, cause, (phrases.paired(),), anchor="")
    for row in tx.rows("turns_of_person", **who):
        turn = turn_of(row)
        lock_session(tx, turn.session_id)
        if turn.state is TurnState.SUSPENDED:
            apply_verdict(tx, context, turn)


def _set_aside(tx: Transaction, context: VerbContext, channel: ChannelName, person: str) -> int:
    """Stop every turn with a message of the person, queued or running: its claim is void, and its
    command is asked to end. A question stays open unless messages of others wait behind it. What
    children do for the person ends."""
    who = {"channel": channel, "person": person}
    for row in tx.rows("children_of_person", **who):
        lock_session(tx, child_of(row).session_id)
    cut = partial(cut_session, tx, context, kind=CutKind.STOP_ALL)
    count = end_children_of(tx, context, who, ChildEnd.NOT_ALLOWED, OPENING, cut)
    for row in tx.rows("turns_of_person", **who):
        turn = turn_of(row)
        lock_session(tx, turn.session_id)
        verdict = apply_verdict(tx, context, turn)
        is_parked = verdict.kind is VerdictKind.SUSPEND and turn.state is not TurnState.SUSPENDED
        if is_parked or verdict.kind is VerdictKind.CLEAR:
            ask_processes_to_end(tx, turn.session_id, turn.turn_id, everything=False)
            count += 1
    return count


def _pairing_of(row: Row) -> Pairing:
    channel, person, name, chat, offered_ms, expires_ms, is_silenced = row
    return Pairing(
        channel=ChannelName(text(channel)),
        person=text(person),
        name=text(name),
        chat=text(chat),
        offered_ms=number(offered_ms),
        expires_ms=number(expires_ms),
        is_silenced=bool(is_silenced),
    )


def _person_of(row: Row) -> Person:
    channel, person, name, paired_ms, entry_id, role = row
    return Person(
        channel=ChannelName(text(channel)),
        person=text(person),
        name=text(name),
        paired_ms=number(paired_ms),
        entry_id=EntryId(number(entry_id)),
        role=Role(text(role)),
    )
