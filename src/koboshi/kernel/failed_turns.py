"""What was asked in turns that were not answered, for `/retry` and for what it is offered with."""

from koboshi.domain.command import Failed
from koboshi.domain.files import attachment_words
from koboshi.domain.inbox import Words
from koboshi.domain.session import Session
from koboshi.domain.transcript import Message
from koboshi.kernel.context import VerbContext
from koboshi.kernel.rows import TurnRow, read_session, step_of, turn_of
from koboshi.kernel.transaction import Reading


def read_failed(tx: Reading, context: VerbContext, session: Session) -> Failed | None:
    """The newest turn that failed or was dropped and was not asked again. A turn with messages only
    of people who are no longer allowed does not count."""
    place = {"session_id": session.session_id, "context_from": session.context_from}
    for row in tx.rows("turn_to_retry", **place):
        turn = turn_of(row)
        said = words_in(tx, context, turn)
        words = said.text or "\n".join(map(attachment_words, said.files))
        if words or turn.rule != "not-allowed-behind":
            return Failed(turn_id=turn.turn_id, words=words)
    return None


def words_in(tx: Reading, context: VerbContext, turn: TurnRow) -> Words:
    """All messages of a turn from people who are allowed now, as one message."""
    channel = read_session(tx, turn.session_id).route.channel
    bodies = [step_of(row).body for row in tx.rows("steps_of_turn", **turn.span)]
    heard = [body for body in bodies if isinstance(body, Message)]
    said = [each for each in heard if context.allows(tx, channel, each.sender)]
    return Words(
        text="\n\n".join(each.text for each in said if each.text),
        sent_ms=said[0].sent_ms if said else 0,
        files=tuple(file for each in said for file in each.files),
    )
