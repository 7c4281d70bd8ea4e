"""Sessions: find or make one, set it, move it to another chat."""

from dataclasses import replace

from koboshi.domain.ids import SessionId
from koboshi.domain.route import Route
from koboshi.domain.session import Session, Settings
from koboshi.kernel.decode import encoded
from koboshi.kernel.keys import key_for, lock, lock_session, model_key
from koboshi.kernel.rows import find_session
from koboshi.kernel.transaction import Readers, Transaction
from koboshi.ports.channel import Inbound


class SessionVerbs:
    def __init__(self, readers: Readers) -> None:
        self._readers = readers

    async def find(self, route: Route) -> Session | None:
        return await self._readers.read(lambda tx: find_session(tx, route))


def set_session(tx: Transaction, session_id: SessionId, settings: Settings) -> None:
    words = encoded(settings)
    if settings.model is not None:  # an owner's word: it is asked again at once
        lock(tx, model_key(settings.model))
        tx.change("bench_lift_all", model=settings.model)
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


def known_as(tx: Transaction, session: Session, inbound: Inbound) -> Session:
    """Store once whose private chat it is: owners are asked there about what members want, and the
    agent is shown what it remembers of the person. A chat that others have joined is none."""
    if not inbound.is_private and not inbound.is_group:
        return session
    return known_as_private(tx, session, inbound.sender if inbound.is_private else "")


def known_as_private(tx: Transaction, session: Session, person: str) -> Session:
    """Store whose private chat it is; empty: it is none."""
    if session.person == person:
        return session
    tx.change("session_of_person", session_id=session.session_id, person=person)
    return replace(session, person=person)


def forget_anchors(tx: Transaction, session_id: SessionId) -> None:
    """Forget the platform's ids of messages, which are not valid in the new chat."""
    for forget in ("anchors_forget_turns", "anchors_forget_outbox", "anchors_forget_inbox"):
        tx.change(forget, session_id=session_id)
