"""What a person's will does to a turn: it goes on now, it ends for good, or it is asked again."""

from dataclasses import replace

from koboshi.domain.command import Failed, Retry, Standing, Will, standing_of
from koboshi.domain.files import attachment_words
from koboshi.domain.ids import EntryId, TurnId
from koboshi.domain.inbox import Entry, EntryKind, EntryState, Words
from koboshi.domain.session import Busy, Session
from koboshi.domain.transcript import Message
from koboshi.domain.turn import TurnEvent
from koboshi.ports.wakeups import JOURNAL
from koboshi.stores.sqlite.admitting import admit_message
from koboshi.stores.sqlite.facts import BY_PERSON, facts_of, is_worked_on, worked_ms_of
from koboshi.stores.sqlite.ground import Ground
from koboshi.stores.sqlite.noting import RETRY
from koboshi.stores.sqlite.reads import read_question, read_session, read_turn
from koboshi.stores.sqlite.replies import question_kind
from koboshi.stores.sqlite.resume import resume
from koboshi.stores.sqlite.rows import TurnRow, encoded, step_of, turn_of
from koboshi.stores.sqlite.senders import may_run
from koboshi.stores.sqlite.sessions import abandon_deliveries
from koboshi.stores.sqlite.telling import go_on_after
from koboshi.stores.sqlite.transaction import Reading, Transaction
from koboshi.stores.sqlite.writes import ask_processes_to_end, move_turn, resolve_calls


def standing_in(tx: Reading, ground: Ground, turn: TurnRow) -> Standing:
    """Whether a person's will concerns the turn, as it stands in this transaction."""
    asked = None
    if turn.question_seq is not None:
        asked = question_kind(tx, turn.turn_id, read_question(tx, turn.question_seq))
    return standing_of(
        turn.state,
        is_worked_on=is_worked_on(ground, turn),
        is_claimed_before=turn.epoch > 0,
        asked=asked,
    )


def apply_will(tx: Transaction, ground: Ground, turn: TurnRow, will: Will, by: str) -> None:
    """Do what was asked with a turn that nobody works on. `by` says who wants it so."""
    match will:
        case Will.RESUME:
            _resume(tx, ground, turn, by)
        case Will.DROP:
            _drop(tx, ground, turn, by)


def will_of_operator(
    tx: Transaction, ground: Ground, turn_id: TurnId, will: Will
) -> Standing | None:
    """The operator's will, unless it does not concern the turn. Nobody's work is taken up who is
    no longer allowed: the operator changes the configuration for that."""
    turn = read_turn(tx, turn_id)
    if turn is None:
        return None
    standing = standing_in(tx, ground, turn)
    channel = read_session(tx, turn.session_id).route.channel
    if standing is not Standing.LEFT:
        return standing
    is_served = channel in ground.world.channels and may_run(tx, ground, channel, turn)
    if will is Will.RESUME and not is_served:
        return Standing.NOT_SERVED
    apply_will(tx, ground, turn, will, "the operator")
    return standing


def _resume(tx: Transaction, ground: Ground, turn: TurnRow, by: str) -> None:
    """As a yes to the gateway's own question: now, and with the counts at zero."""
    session = read_session(tx, turn.session_id)
    abandon_deliveries(tx, turn.session_id, turn.turn_id, f"resumed by {by}")
    resume(tx, turn, facts_of(tx, ground, turn, session), rule=None, reason=BY_PERSON)


def _drop(tx: Transaction, ground: Ground, turn: TurnRow, by: str) -> None:
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
    go_on_after(tx, ground, turn.session_id, turn.turn_id)


def read_failed(tx: Reading, ground: Ground, session: Session) -> Failed | None:
    """The newest turn that failed or was dropped, and that nobody has asked again. One in which
    only people wrote who are no longer allowed is not asked again."""
    place = {"session_id": session.session_id, "context_from": session.context_from}
    for row in tx.rows("turn_to_retry", **place):
        turn = turn_of(row)
        said = words_in(tx, ground, turn)
        words = said.text or "\n".join(map(attachment_words, said.files))
        if words or turn.rule != "not-allowed-behind":
            return Failed(turn_id=turn.turn_id, words=words)
    return None


def words_in(tx: Reading, ground: Ground, turn: TurnRow) -> Words:
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
    said = [each for each in heard if ground.allows(tx, channel, each.sender)]
    return Words(
        text="\n\n".join(each.text for each in said if each.text),
        sent_ms=said[0].sent_ms if said else 0,
        files=tuple(file for each in said for file in each.files),
    )


def retry_turn(
    tx: Transaction, ground: Ground, session: Session, person: str, words: Words, retry: Retry
) -> None:
    """The words of a turn that has ended become a message of whoever wants them asked again."""
    turn = read_turn(tx, retry.turn_id)
    assert turn is not None
    said = words_in(tx, ground, turn)
    body = replace(said, sent_ms=words.sent_ms, anchor=words.anchor, name=words.name)
    ask_again(tx, ground, session, person, body, str(retry.turn_id))


def ask_again(
    tx: Transaction, ground: Ground, session: Session, person: str, words: Words, external_id: str
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
        accepted_by=ground.worker_id,
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
    admit_message(tx, ground, session, entry)
    return entry.entry_id
