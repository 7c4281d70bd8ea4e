"""Whether something that arrives would answer an approval."""

from koboshi.domain.command import CommandName, QuestionKind
from koboshi.domain.turn import TurnState
from koboshi.kernel.asides import session_meant, turns_waiting_beside
from koboshi.kernel.facts import question_kind
from koboshi.kernel.rows import TurnRow, find_entry, find_session, read_open_turn, read_question
from koboshi.kernel.transaction import Reading
from koboshi.ports.store import Arrival

_RULINGS = frozenset({CommandName.APPROVE, CommandName.DENY})


def answers_approval(tx: Reading, arrival: Arrival, account: str) -> bool:
    """Whether the words would be taken for an answer to the approval that their session waits for:
    a yes, a no, or what counts as one. Words that were stored before are only repeated."""
    inbound = arrival.inbound
    place = {"source": inbound.route.channel, "account": account}
    if find_entry(tx, **place, external_id=inbound.external_id) is not None:
        return False
    session = find_session(tx, inbound.route)
    if session is None:
        return False
    if arrival.command is not None:
        turns = (read_open_turn(tx, session.session_id), *turns_waiting_beside(tx, session))
    else:
        meant = session_meant(tx, session, inbound.words)
        turns = (read_open_turn(tx, meant.session_id),)
    return any(_answers(tx, arrival, turn) for turn in turns if turn is not None)


def _answers(tx: Reading, arrival: Arrival, turn: TurnRow) -> bool:
    inbound = arrival.inbound
    if turn.state is not TurnState.WAITING or turn.question_seq is None:
        return False
    if arrival.command is not None:
        is_answer = arrival.command.name in _RULINGS
    else:
        is_other = inbound.words.question not in (None, turn.question_seq)
        is_answer = inbound.words.busy is None and not is_other and not inbound.words.is_wordless
    if not is_answer:
        return False
    question = read_question(tx, turn.question_seq)
    return question_kind(tx, turn.turn_id, question) is QuestionKind.APPROVAL
