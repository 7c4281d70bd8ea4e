"""Sessions and what a cut does to them."""

from koboshi.domain.ids import Seq, SessionId, TurnId
from koboshi.domain.inbox import EntryEvent
from koboshi.domain.outbox import DeliveryEvent
from koboshi.domain.route import Route
from koboshi.domain.session import Cut, CutKind, Session, Settings, cut_of
from koboshi.domain.turn import TurnEvent
from koboshi.kernel.context import VerbContext
from koboshi.kernel.decode import encoded, number
from koboshi.kernel.keys import key_for, lock, lock_found, lock_session, of_sessions
from koboshi.kernel.moves import move
from koboshi.kernel.read import find_session, read_open_turn
from koboshi.kernel.record import ask_processes_to_end, move_turn, resolve_calls
from koboshi.kernel.telling import go_on_after, tell_ends
from koboshi.kernel.transaction import Readers, Transaction, Writer
from koboshi.ports.wakeups import JOURNAL, OUTBOX, OUTBOX_SOONER


class SessionVerbs:
    def __init__(self, writer: Writer, readers: Readers) -> None:
        self._writer = writer
        self._readers = readers

    async def find(self, route: Route) -> Session | None:
        return await self._readers.read(lambda tx: find_session(tx, route))

    async def set(self, session_id: SessionId, settings: Settings) -> None:
        await self._writer.write(
            "sessions.set",
            lambda tx: set_session(tx, session_id, settings),
            of_sessions(session_id),
        )


def set_session(tx: Transaction, session_id: SessionId, settings: Settings) -> None:
    words = encoded(settings)
    tx.change("session_set", session_id=session_id, settings=words, now=tx.now_ms)


def find_or_make_session(tx: Transaction, route: Route) -> Session:
    session = find_session(tx, route)
    if session is not None:
        # A chat that has moved keeps its key, which is not the one of where it is now.
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


def move_chat(tx: Transaction, route: Route, chat: str) -> None:
    """The chat of a route is another one from now on, with everything that is owed in it."""
    for row in tx.rows("sessions_of_chat", channel=route.channel, chat=route.chat):
        lock_session(tx, SessionId(number(row[0])))
        move_session(tx, SessionId(number(row[0])), chat)


def move_session(tx: Transaction, session_id: SessionId, chat: str) -> None:
    """It goes on in another chat; where a session is there already, what is owed is said there."""
    forget_anchors(tx, session_id)
    lock_found(tx, "moved_key", session_id=session_id, chat=chat)
    if not tx.change("session_move", session_id=session_id, chat=chat, now=tx.now_ms):
        tx.change("deliveries_move", session_id=session_id, chat=chat)
    tx.hints.add(OUTBOX)


def forget_anchors(tx: Transaction, session_id: SessionId) -> None:
    """The platform's ids of messages mean nothing any more where the session is now."""
    for forget in ("anchors_forget_turns", "anchors_forget_outbox", "anchors_forget_inbox"):
        tx.change(forget, session_id=session_id)


def cut_session(tx: Transaction, context: VerbContext, session: Session, kind: CutKind) -> None:
    """End the generation: the open turn is stopped for good, what waited is dropped, and nothing
    born before is heard by the agent any more. How its processes ended is for the person."""
    cut: Cut = cut_of(session, kind)
    session_id = session.session_id
    turn = read_open_turn(tx, session_id)
    if turn is not None:
        by = "stopped by the person"
        resolve_calls(tx, session_id, turn.turn_id, turn.epoch, by)
        move_turn(tx, turn.turn_id, turn.epoch, turn.state, TurnEvent.CUT, reason=by)
        abandon_deliveries(tx, session_id, turn.turn_id, by)
    elif kind is not CutKind.NEW:
        _stop_answers(tx, context, session_id)
    move(tx, "entries_cut", EntryEvent.CUT, session_id=session_id, now=tx.now_ms)
    turn_id = None if turn is None else turn.turn_id
    ask_processes_to_end(tx, session_id, turn_id, everything=cut.ends_background)
    context_from = Seq(tx.next_step()) if cut.forgets_transcript else Seq(0)
    tx.change(
        "session_cut",
        session_id=session_id,
        generation=cut.generation,
        context_from=context_from,
        now=tx.now_ms,
    )
    go_on_after(tx, context, session_id, turn_id)


def _stop_answers(tx: Transaction, context: VerbContext, session_id: SessionId) -> None:
    """No turn is open, so what is stopped is the answer that is on its way: what has certainly not
    been sent of it is not sent any more. It may have told how a process ended: then we do."""
    for row in tx.rows("turns_answered", session_id=session_id):
        turn_id = TurnId(number(row[0]))
        abandon_deliveries(tx, session_id, turn_id, "stopped by the person")
        tell_ends(tx, context, session_id, turn_id)
        settle_turn(tx, session_id, turn_id)
    tx.hints.update((OUTBOX, OUTBOX_SOONER, JOURNAL))


def abandon_deliveries(
    tx: Transaction, session_id: SessionId, turn_id: TurnId, reason: str
) -> None:
    """What an ended turn still owed is not said."""
    move(
        tx,
        "deliveries_abandon",
        DeliveryEvent.WITHDRAWN,
        session_id=session_id,
        turn_id=turn_id,
        reason=reason,
        now=tx.now_ms,
    )


def settle_turn(tx: Transaction, session_id: SessionId, turn_id: TurnId) -> None:
    """An answered turn is done, if nothing of it is left to deliver."""
    values = {"session_id": session_id, "turn_id": turn_id, "now": tx.now_ms}
    move(tx, "turn_settle", TurnEvent.SETTLED, **values)
