"""A platform gives a chat another id: its sessions move, with everything that they owe."""

from koboshi.domain.ids import SessionId, TurnId
from koboshi.domain.outbox import SAID_THERE, DeliveryEvent
from koboshi.domain.route import Route
from koboshi.kernel.decode import numbers
from koboshi.kernel.keys import lock_found, lock_session
from koboshi.kernel.moves import move
from koboshi.kernel.record import settle_turn
from koboshi.kernel.sessions import forget_anchors
from koboshi.kernel.transaction import Transaction, Value
from koboshi.ports.wakeups import JOURNAL, OUTBOX


def move_chat(tx: Transaction, route: Route, chat: str) -> None:
    """Move all sessions of a chat to another chat, with everything that they owe."""
    rows = tx.rows("sessions_of_chat", channel=route.channel, chat=route.chat)
    for session_id in map(SessionId, numbers(rows)):
        lock_session(tx, session_id)
        move_session(tx, session_id, chat)


def move_session(tx: Transaction, session_id: SessionId, chat: str) -> None:
    """Move a session to another chat. If one exists there, only owed deliveries move to it."""
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
        for turn_id in map(TurnId, answered):
            settle_turn(tx, turn_id)
