"""Sessions: find or make one, set it, move it to another chat."""

from dataclasses import replace

from koboshi.domain.ids import SessionId
from koboshi.domain.outbox import SAID_THERE, DeliveryEvent
from koboshi.domain.route import Route
from koboshi.domain.session import Session, Settings
from koboshi.domain.turn import TurnEvent
from koboshi.kernel.decode import encoded, numbers
from koboshi.kernel.keys import key_for, lock, lock_found, lock_session
from koboshi.kernel.moves import move
from koboshi.kernel.rows import find_session
from koboshi.kernel.transaction import Readers, Transaction, Value
from koboshi.ports.wakeups import JOURNAL, OUTBOX


class SessionVerbs:
    def __init__(self, readers: Readers) -> None:
        self._readers = readers

    async def find(self, route: Route) -> Session | None:
        return await self._readers.read(lambda tx: find_session(tx, route))


def set_session(tx: Transaction, session_id: SessionId, settings: Settings) -> None:
    words = encoded(settings)
    tx.change("session_set", session_id=session_id, settings=words, now=tx.now_ms)


def find_or_make_session(tx: Transaction, route: Route) -> Session:
    session = find_session(tx, route)
    if session is not None:
        # A chat that has moved keeps its key, which differs from the key of its new place.
        lock_session(tx, session.session_id)
        return session
    key = key_for(tx, route.channel, route.chat)
    lock(tx, key)
    tx.insert(
        "session_insert",
        channel=route.channel,
        chat=route.chat,
        thread=route.thread,
        lock_key=key,
        now=tx.now_ms,
    )
    session = find_session(tx, route)
    assert session is not None
    return session


def known_as_private(tx: Transaction, session: Session, person: str) -> Session:
    """Store once whose private chat it is: owners are asked there about what members want."""
    if session.person == person:
        return session
    tx.change("session_of_person", session_id=session.session_id, person=person)
    return replace(session, person=person)


def move_chat(tx: Transaction, route: Route, chat: str) -> None:
    """Move all sessions of a chat to another chat, with everything that they owe."""
    rows = tx.rows("sessions_of_chat", channel=route.channel, chat=route.chat)
    for session_id in map(SessionId, numbers(rows)):
        lock_session(tx, session_id)
        move_session(tx, session_id, chat)


def move_session(tx: Transaction, session_id: SessionId, chat: str) -> None:
    """Move a session to another chat. If a session exists there, only what is owed moves to it."""
    forget_anchors(tx, session_id)
    lock_found(tx, "moved_key", session_id=session_id, chat=chat)
    if not tx.change("session_move", session_id=session_id, chat=chat, now=tx.now_ms):
        tx.change("deliveries_move", session_id=session_id, chat=chat)
        _withdraw_what_is_said_there(tx, session_id, chat)
    tx.hints.add(OUTBOX)


def _withdraw_what_is_said_there(tx: Transaction, session_id: SessionId, chat: str) -> None:
    """A cause is told once in a chat. What stays behind would hold up this session for ever."""
    answered = numbers(tx.rows("turns_answered", session_id=session_id))
    values: dict[str, Value] = {"session_id": session_id, "chat": chat, "reason": SAID_THERE}
    if move(tx, "deliveries_said_there", DeliveryEvent.WITHDRAWN, **values, now=tx.now_ms):
        tx.hints.add(JOURNAL)
        for turn_id in answered:
            move(tx, "turn_settle", TurnEvent.SETTLED, turn_id=turn_id, now=tx.now_ms)


def forget_anchors(tx: Transaction, session_id: SessionId) -> None:
    """Forget the platform's ids of messages, which are not valid in the new chat."""
    for forget in ("anchors_forget_turns", "anchors_forget_outbox", "anchors_forget_inbox"):
        tx.change(forget, session_id=session_id)
