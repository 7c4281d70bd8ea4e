"""Whether a chat was shown the approval that it answers."""

from koboshi.domain.ids import SessionId
from koboshi.domain.session import Session
from koboshi.kernel.rows import TurnRow, read_session
from koboshi.kernel.transaction import Reading


def is_shown_in(tx: Reading, session: Session, turn: TurnRow) -> bool:
    """Whether the question that the turn waits for stands in the chat of the session, for all that
    is known. A card that the platform refused, for good or for now, certainly does not. What works
    beside a conversation asks in its chat."""
    assert turn.question_seq is not None
    is_beside = read_session(tx, turn.session_id).route == session.route
    places: set[SessionId] = {session.session_id, *((turn.session_id,) if is_beside else ())}
    return any(
        tx.row("approval_shown", session_id=each, question=turn.question_seq) is not None
        for each in places
    )
