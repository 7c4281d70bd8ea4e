"""What a person's will does to a turn: it goes on now, it ends for good, or it is asked again."""

from dataclasses import replace

from koboshi.domain.command import Failed, OperatorAction, Retry, Standing, standing_of
from koboshi.domain.files import attachment_words
from koboshi.domain.ids import EntryId, TurnId
from koboshi.domain.inbox import Entry, EntryKind, EntryState, Words
from koboshi.domain.session import Busy, Session
from koboshi.domain.transcript import Message
from koboshi.domain.turn import TurnEvent
from koboshi.kernel.admission import apply_admission
from koboshi.kernel.context import VerbContext
from koboshi.kernel.decode import TurnRow, encoded, step_of, turn_of
from koboshi.kernel.end_notes import RETRY
from koboshi.kernel.facts import BY_PERSON, facts_of, is_worked_on, worked_ms_of
from koboshi.kernel.keys import lock_found
from koboshi.kernel.questions import question_kind
from koboshi.kernel.read import read_question, read_session, read_turn
from koboshi.kernel.record import ask_processes_to_end, move_turn, resolve_calls
from koboshi.kernel.resume import resume
from koboshi.kernel.senders import may_run
from koboshi.kernel.sessions import abandon_deliveries
from koboshi.kernel.telling import go_on_after
from koboshi.kernel.transaction import Reading, Transaction
from koboshi.ports.wakeups import JOURNAL


def standing_in(tx: Reading, turn: TurnRow) -> Standing:
    """Whether a person's will concerns the turn, as it stands in this transaction."""
    asked = None
    if turn.question_seq is not None:
        asked = question_kind(tx, turn.turn_id, read_question(tx, turn.question_seq))
    return standing_of(
        turn.state,
        is_worked_on=is_worked_on(tx, turn),
        is_claimed_before=turn.epoch > 0,
        asked=asked,
    )


def apply_will(
    tx: Transaction, context: VerbContext, turn: TurnRow, will: OperatorAction, by: str
) -> None:
    """Do what was asked with a turn that nobody works on. `by` says who wants it so."""
    match will:
        case OperatorAction.RESUME:
            _resume(tx, context, turn, by)
        case OperatorAction.DROP:
            _drop(tx, context, turn, by)


def will_of_operator(
    tx: Transaction, context: VerbContext, turn_id: TurnId, will: OperatorAction
) -> Standing | None:
    """The operator's will, unless it does not concern the turn. Nobody's work is taken up who is
    no longer allowed: the operator changes the configuration for that."""
    lock_found(tx, "turn_key", turn_id=turn_id)
    turn = read_turn(tx, turn_id)
    if turn is None:
        return None
    standing = standing_in(tx, turn)
    channel = read_session(tx, turn.session_id).route.channel
    if standing is not Standing.LEFT:
        return standing
    is_served = channel in context.world.channels and may_run(tx, context, channel, turn)
    if will is OperatorAction.RESUME and not is_served:
        return Standing.NOT_SERVED
    apply_will(tx, context, turn, will, "the operator")
    return standing


def _resume(tx: Transaction, context: VerbContext, turn: TurnRow, by: str) -> None:
    """As a yes to the gateway's own question: now, and with the counts at zero."""
    session = read_session(tx, turn.session_id)
    abandon_deliveries(tx, turn.session_id, turn.turn_id, f"resumed by {by}")
    resume(tx, turn, facts_of(tx, context, turn, session), rule=None, reason=BY_PERSON)


def _drop(tx: Transaction, context: VerbContext, turn: TurnRow, by: str) -> None:
    """The turn ends for good. The generation stays, and what waits opens the next turn."""
    why = f"dropped by {by}"
    worked_ms = worked_ms_of(tx, turn)
    resolve_calls(tx, turn.session_id, turn.turn_id, turn.epoch, why)
    move_turn(
        tx,
        turn.turn_id,
        turn.epoch,
        turn.state,
        TurnEvent.DROPPED,
        reason=why,
        worked_ms=worked_ms,
    )
    abandon_deliveries(tx, turn.session_id, turn.turn_id, why)
    ask_processes_to_end(tx, turn.session_id, turn.turn_id, everything=False)
    go_on_after(tx, context, turn.session_id, turn.turn_id)


def read_failed(tx: Reading, context: VerbContext, session: Session) -> Failed | None:
    """The newest turn that failed or was dropped, and that nobody has asked again. One in which
    only people wrote who are no longer allowed is not asked again."""
    place = {"session_id": session.session_id, "context_from": session.context_from}
    for row in tx.rows("turn_to_retry", **place):
        turn = turn_of(row)
        said = words_in(tx, context, turn)
        words = said.text or "\n".join(map(attachment_words, said.files))
        if words or turn.rule != "not-allowed-behind":
            return Failed(turn_id=turn.turn_id, words=words)
    return None


def words_in(tx: Reading, context: VerbContext, turn: TurnRow) -> Words:
    """All that people said in a turn who may use the gateway now, as one message."""
    channel = read_session(tx, turn.session_id).route.channel
    rows = tx.rows(
        "steps_of_turn",
        session_id=turn.session_id,
        first_seq=turn.first_seq,
        turn_id=turn.turn_id,
    )
    bodies = [step.body for step in map(step_of, rows)]
    heard = [body for body in bodies if isinstance(body, Message)]
    said = [each for each in heard if context.allows(tx, channel, each.sender)]
    return Words(
        text="\n\n".join(each.text for each in said if each.text),
        sent_ms=said[0].sent_ms if said else 0,
        files=tuple(file for each in said for file in each.files),
    )


def retry_turn(
    tx: Transaction, context: VerbContext, session: Session, person: str, words: Words, retry: Retry
) -> None:
    """The words of a turn that has ended become a message of whoever wants them asked again."""
    turn = read_turn(tx, retry.turn_id)
    assert turn is not None
    said = words_in(tx, context, turn)
    body = replace(said, sent_ms=words.sent_ms, anchor=words.anchor, name=words.name)
    ask_again(tx, context, session, person, body, str(retry.turn_id))


def ask_again(
    tx: Transaction,
    context: VerbContext,
    session: Session,
    person: str,
    words: Words,
    external_id: str,
) -> EntryId:
    """Words that were not answered become a message of their person again. It waits for its own
    turn if another one is open. Each key is used once, so nothing is asked again twice."""
    body = replace(words, busy=Busy.QUEUE, group="")
    inserted = tx.insert(
        "entry_insert",
        session_id=session.session_id,
        generation=session.generation,
        kind=EntryKind.MESSAGE,
        source=RETRY,
        account="",
        external_id=external_id,
        sender=person,
        body=encoded(body),
        during_turn=None,
        accepted_by=context.worker_id,
        now=tx.now_ms,
        state=EntryState.WAITING,
        reason=None,
    )
    tx.hints.add(JOURNAL)
    entry = Entry(
        entry_id=EntryId(inserted),
        session_id=session.session_id,
        generation=session.generation,
        kind=EntryKind.MESSAGE,
        source=RETRY,
        external_id=external_id,
        sender=person,
        body=body,
    )
    apply_admission(tx, context, session, entry)
    return entry.entry_id
