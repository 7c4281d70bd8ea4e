"""Rows of children as typed values, and the rows that several verbs read."""

from koboshi.domain.child import Child, ChildEnd, ChildState
from koboshi.domain.ids import CallId, ChildId, Generation, SessionId, TurnId
from koboshi.domain.session import Session
from koboshi.kernel.decode import maybe_number, number, text
from koboshi.kernel.transaction import Reading, Row


def child_of(row: Row) -> Child:
    child_id, session_id, generation, turn_id, call_id, person, name, task, depth, *rest = row
    state, own, how, made_ms, begun_ms, ended_ms = rest
    own_session = maybe_number(own)
    return Child(
        child_id=ChildId(number(child_id)),
        session_id=SessionId(number(session_id)),
        generation=Generation(number(generation)),
        turn_id=TurnId(number(turn_id)),
        call_id=CallId(text(call_id)),
        person=text(person),
        name=text(name),
        task=text(task),
        depth=number(depth),
        state=ChildState(text(state)),
        own_session=None if own_session is None else SessionId(own_session),
        how=None if how is None else ChildEnd(text(how)),
        made_ms=number(made_ms),
        begun_ms=maybe_number(begun_ms),
        ended_ms=maybe_number(ended_ms),
    )


def read_child(tx: Reading, child_id: ChildId) -> Child:
    row = tx.row("child_by_id", child_id=child_id)
    assert row is not None, "a row refers to a child that is not there"
    return child_of(row)


def child_in(tx: Reading, session_id: SessionId) -> Child | None:
    """The child that works, or worked, in a session; None if it is no child's."""
    row = tx.row("child_in", session_id=session_id)
    return None if row is None else child_of(row)


def open_children(tx: Reading, session_id: SessionId) -> tuple[Child, ...]:
    """The children of a session that work or wait, the oldest first."""
    return tuple(child_of(row) for row in tx.rows("children_open_of", session_id=session_id))


def children_of_turn(tx: Reading, turn_id: TurnId) -> tuple[Child, ...]:
    return tuple(child_of(row) for row in tx.rows("children_of_turn", turn_id=turn_id))


def depth_of(tx: Reading, session: Session) -> int:
    """How deep a child works in a session; 0 for a conversation."""
    child = child_in(tx, session.session_id) if session.is_child else None
    return 0 if child is None else child.depth
