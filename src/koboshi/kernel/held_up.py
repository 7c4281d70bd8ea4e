"""Why an open turn makes no progress, from stored rows."""

from koboshi.domain.held_up import HoldUpFacts, why_held_up
from koboshi.domain.outage import Outage
from koboshi.domain.reasons import Reason
from koboshi.domain.turn import TurnEvent, TurnState
from koboshi.kernel.context import VerbContext
from koboshi.kernel.rows import TurnRow
from koboshi.kernel.transaction import Reading


def read_hold_up(tx: Reading, context: VerbContext, turn: TurnRow) -> Reason | None:
    """What the turn waits for; None if it does not wait."""
    if turn.state not in (TurnState.QUEUED, TurnState.RUNNING):
        return None
    is_running = turn.state is TurnState.RUNNING
    facts = HoldUpFacts(
        state=turn.state,
        is_due=turn.not_before_ms <= tx.now_ms,
        outage=_outage(tx, turn),
        has_command_to_start=is_running
        and tx.row("command_not_started", turn_id=turn.turn_id) is not None,
        turns_claimed=tx.number("turns_running_count"),
        commands_running=tx.number("commands_running_count"),
    )
    return why_held_up(facts, context.world.slots, context.world.patience)


def _outage(tx: Reading, turn: TurnRow) -> Outage | None:
    """A wait is counted in full when it begins, so the rest of it is subtracted."""
    is_tried = turn.state is TurnState.RUNNING or turn.event == TurnEvent.POSTPONED
    if turn.model_failure is None or not is_tried:
        return None
    left_ms = max(0, turn.not_before_ms - tx.now_ms)
    return Outage(
        tries=turn.model_tries,
        waited_ms=max(0, turn.model_waited_ms - left_ms),
        reason=turn.model_failure,
    )
