"""What a person is told while a turn runs."""

from koboshi.domain.ids import TurnId
from koboshi.domain.progress import ProgressFacts, Told, ordinal_in, progress_cause
from koboshi.domain.transcript import CallRecord, Effect
from koboshi.domain.turn import Claim, TurnState
from koboshi.kernel.context import VerbContext
from koboshi.kernel.decode import first_number, maybe_text, number, text
from koboshi.kernel.enqueue import enqueue_delivery
from koboshi.kernel.held_up import lacks_agent
from koboshi.kernel.loading import fenced
from koboshi.kernel.rows import TurnRow, read_session, read_turn, read_unresolved
from koboshi.kernel.transaction import Reading, Transaction


def progress_facts(tx: Reading, context: VerbContext, claim: Claim) -> ProgressFacts:
    """Raises Fenced if the claim is no longer valid."""
    turn = _claimed(tx, claim)
    calls = read_unresolved(tx, claim.turn_id)
    session = read_session(tx, claim.session_id)
    return ProgressFacts(
        route=session.route,
        is_shown=not session.is_child,
        since_ms=_since_ms(tx, turn),
        now_ms=tx.now_ms,
        under_way=tuple(each for each in calls if each.is_under_way and not each.waits_for_person),
        held_up=() if _has_room(tx, context) else tuple(filter(_is_command_to_start, calls)),
        told=_told(tx, claim),
        lacks_agent=lacks_agent(tx, context, turn),
    )


def _told(tx: Reading, claim: Claim) -> Told | None:
    """The newest progress message of the turn."""
    row = tx.row("progress_newest", session_id=claim.session_id, turn_id=claim.turn_id)
    if row is None:
        return None
    cause, at_ms, settled_ms, platform_id = row
    return Told(
        ordinal=ordinal_in(text(cause)),
        at_ms=number(at_ms),
        is_settled=settled_ms is not None,
        platform_id=maybe_text(platform_id),
    )


def _has_room(tx: Reading, context: VerbContext) -> bool:
    """Whether another command may be started."""
    return context.world.slots.has_room_for(tx.number("commands_running_count", home=context.home))


def _is_command_to_start(record: CallRecord) -> bool:
    is_command = record.call.effect is Effect.RESUMABLE
    return is_command and record.started_ms is None and not record.waits_for_person


def tell_progress(tx: Transaction, claim: Claim, ordinal: int, words: str) -> None:
    turn = _claimed(tx, claim)
    cause = progress_cause(claim.turn_id, ordinal)
    if tx.row("delivery_of_turn_by_cause", turn_id=claim.turn_id, cause=cause) is None:
        enqueue_delivery(tx, claim.session_id, claim.turn_id, cause, (words,), anchor=turn.anchor)


def _claimed(tx: Reading, claim: Claim) -> TurnRow:
    turn = read_turn(tx, TurnId(claim.turn_id))
    if turn is None or turn.epoch != claim.epoch or turn.state is not TurnState.RUNNING:
        raise fenced(claim)
    return turn


def _since_ms(tx: Reading, turn: TurnRow) -> int:
    went_on_ms = first_number(tx.row("turn_went_on", **turn.span))
    return turn.opened_ms if went_on_ms is None else went_on_ms
