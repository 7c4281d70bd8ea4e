"""What a person is told while a turn works."""

from koboshi.domain.ids import TurnId
from koboshi.domain.progress import ProgressFacts, Told, ordinal_in, progress_cause
from koboshi.domain.transcript import CallRecord, Effect
from koboshi.domain.turn import Claim, TurnState
from koboshi.kernel.context import VerbContext
from koboshi.kernel.decode import TurnRow, call_of, number, text
from koboshi.kernel.loading import fenced
from koboshi.kernel.read import read_session, read_turn
from koboshi.kernel.record import enqueue_delivery
from koboshi.kernel.transaction import Reading, Transaction


def progress_facts(tx: Reading, context: VerbContext, claim: Claim) -> ProgressFacts:
    """Raises Fenced if the claim is no longer valid."""
    turn = _claimed(tx, claim)
    calls = [call_of(row) for row in tx.rows("calls_unresolved", turn_id=claim.turn_id)]
    row = tx.row("progress_newest", session_id=claim.session_id, turn_id=claim.turn_id)
    return ProgressFacts(
        route=read_session(tx, claim.session_id).route,
        since_ms=_since_ms(tx, turn),
        now_ms=tx.now_ms,
        under_way=tuple(each for each in calls if each.is_under_way and not each.waits_for_person),
        held_up=() if _has_room(tx, context) else tuple(filter(_is_command_to_start, calls)),
        told=None
        if row is None
        else Told(
            ordinal=ordinal_in(text(row[0])),
            at_ms=number(row[1]),
            is_settled=row[2] is not None,
            platform_id=None if row[3] is None else text(row[3]),
        ),
    )


def _has_room(tx: Reading, context: VerbContext) -> bool:
    """Whether another command may be started."""
    return context.world.slots.has_room_for(tx.number("commands_running_count"))


def _is_command_to_start(record: CallRecord) -> bool:
    is_command = record.call.effect is Effect.RESUMABLE
    return is_command and record.started_ms is None and not record.waits_for_person


def tell_progress(tx: Transaction, claim: Claim, ordinal: int, words: str) -> None:
    turn = _claimed(tx, claim)
    cause = progress_cause(claim.turn_id, ordinal)
    if tx.row("delivery_by_cause", session_id=claim.session_id, cause=cause) is None:
        enqueue_delivery(tx, claim.session_id, claim.turn_id, cause, (words,), anchor=turn.anchor)


def _claimed(tx: Reading, claim: Claim) -> TurnRow:
    turn = read_turn(tx, TurnId(claim.turn_id))
    if turn is None or turn.epoch != claim.epoch or turn.state is not TurnState.RUNNING:
        raise fenced(claim)
    return turn


def _since_ms(tx: Reading, turn: TurnRow) -> int:
    row = tx.row(
        "turn_went_on",
        session_id=turn.session_id,
        first_seq=turn.first_seq,
        turn_id=turn.turn_id,
    )
    return turn.opened_ms if row is None else number(row[0])
