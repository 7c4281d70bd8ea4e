"""Why an open turn makes no progress, from stored rows."""

from koboshi.domain.agent import METHODS, MessageKind
from koboshi.domain.agent_words import awaits_answer
from koboshi.domain.budget import HELD
from koboshi.domain.durations import duration
from koboshi.domain.held_up import HoldUpFacts, why_held_up
from koboshi.domain.outage import Outage
from koboshi.domain.reasons import Reason
from koboshi.domain.turn import TurnEvent, TurnState
from koboshi.kernel.context import VerbContext
from koboshi.kernel.decode import number, text
from koboshi.kernel.rows import TurnRow, read_session
from koboshi.kernel.transaction import Reading


def read_hold_up(tx: Reading, context: VerbContext, turn: TurnRow) -> Reason | None:
    """What the turn waits for; None if it does not wait."""
    if turn.state not in (TurnState.QUEUED, TurnState.RUNNING):
        return None
    if turn.event == TurnEvent.POSTPONED and (turn.reason or "").startswith(HELD):
        words = f"{(turn.reason or '').removeprefix(HELD)}; it goes on tomorrow"
        return Reason(words=words, remedy="an owner can write /budget more; /stop ends it")
    is_running = turn.state is TurnState.RUNNING
    facts = HoldUpFacts(
        state=turn.state,
        is_due=turn.not_before_ms <= tx.now_ms,
        outage=_outage(tx, turn),
        has_command_to_start=is_running
        and tx.row("command_not_started", turn_id=turn.turn_id) is not None,
        turns_claimed=tx.number("turns_running_count"),
        commands_running=tx.number("commands_running_count", home=context.home),
        lacks_agent=is_running and lacks_agent(tx, context, turn),
        agents_running=tx.number("agents_running_count", home=context.home),
        agent_awaited=_agent_awaited(tx, turn) if is_running else "",
    )
    return why_held_up(facts, context.world.slots, context.world.patience)


def lacks_agent(tx: Reading, context: VerbContext, turn: TurnRow) -> bool:
    """Whether a foreign agent is to work on a turn, and none has been started for its chat."""
    chosen = read_session(tx, turn.session_id).settings.agent
    agent = context.world.agent if chosen is None else chosen
    if not agent:
        return False
    session_id, turn_id, home = turn.session_id, turn.turn_id, context.home
    found = tx.row("agent_awaited", session_id=session_id, turn_id=turn_id, home=home)
    return found is not None


def _agent_awaited(tx: Reading, turn: TurnRow) -> str:
    row = tx.row("agent_answer_awaited", session_id=turn.session_id)
    if row is None:
        return ""
    agent, kind, made_ms = row
    waited = duration(max(0, tx.now_ms - number(made_ms)))
    return awaits_answer(text(agent), METHODS[MessageKind(text(kind))], waited)


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
