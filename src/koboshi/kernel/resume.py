"""Taking up a turn again: what becomes of the calls that were under way, and the one note."""

from koboshi.domain import notes, phrases
from koboshi.domain.ids import Epoch
from koboshi.domain.recovery import CallFate, TurnFacts, fate_of
from koboshi.domain.transcript import CallRecord, Note, Result, ResultStatus
from koboshi.domain.turn import TurnEvent, TurnState
from koboshi.kernel.decode import TurnRow, call_of
from koboshi.kernel.facts import BY_PERSON, worked_ms_of
from koboshi.kernel.record import add_result, add_step, move_turn
from koboshi.kernel.transaction import Transaction


def resume(
    tx: Transaction,
    turn: TurnRow,
    facts: TurnFacts,
    *,
    rule: str | None,
    not_before_ms: int = 0,
    reason: str | None = None,
) -> None:
    """Back to the queue, with the one note of the epoch that ended early."""
    is_dead = turn.state is TurnState.RUNNING
    worked_ms = worked_ms_of(tx, turn)
    settle_dead_calls(tx, turn, worked_ms)
    if turn.state is not TurnState.QUEUED:  # one in the queue has its note, or needs none
        leave_note(tx, turn, facts)
    move_turn(
        tx,
        turn.turn_id,
        turn.epoch,
        turn.state,
        TurnEvent.RESUMED,
        rule=rule,
        reason=reason or facts.interruption,
        worked_ms=worked_ms,
        recovered=is_dead,
        died=is_dead,
        progressed=reason == BY_PERSON,
        renewed=reason == BY_PERSON,
        not_before_ms=not_before_ms,
    )


def settle_dead_calls(tx: Transaction, turn: TurnRow, died_ms: int) -> None:
    """A call that must not be repeated gets its result now: unknown. The others are taken up."""
    under_way = [
        record
        for record in (call_of(row) for row in tx.rows("calls_unresolved", turn_id=turn.turn_id))
        if record.is_under_way
    ]
    if under_way:
        tx.change("call_died", turn_id=turn.turn_id, died_ms=died_ms)
    for record in under_way:
        if fate_of(record.call.effect) is CallFate.UNKNOWN:
            add_result(tx, turn.session_id, turn.turn_id, turn.epoch, _unknown(record))


def _unknown(record: CallRecord) -> Result:
    started = phrases.clock_words(record.started_ms or 0)
    text = notes.outcome_unknown(record.call.tool, started=started)
    return Result(call_id=record.call.call_id, status=ResultStatus.UNKNOWN, text=text)


def leave_note(tx: Transaction, turn: TurnRow, facts: TurnFacts) -> None:
    """One recovery note for each epoch, whoever comes first to write it."""
    if turn.epoch == 0 or tx.row("note_exists", turn_id=turn.turn_id, epoch=turn.epoch):
        return
    text = notes.recovery(
        facts.interruption,
        has_new_message=facts.message_waits,
        is_interactive=facts.is_interactive,
    )
    note = Note(cause=notes.RECOVERY, text=text)
    add_step(tx, turn.session_id, turn.turn_id, Epoch(turn.epoch), notes.RECOVERY, note)
