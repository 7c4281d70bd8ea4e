"""What a claimed turn starts from: its session, its context, its steps and its calls."""

from koboshi.domain.errors import Fenced
from koboshi.domain.session import Session
from koboshi.domain.transcript import Step, Summary
from koboshi.domain.turn import Claim, TurnState
from koboshi.kernel.context import VerbContext
from koboshi.kernel.decode import first_number
from koboshi.kernel.facts import standing_of_turn
from koboshi.kernel.rows import call_of, read_session, read_turn, step_of
from koboshi.kernel.transaction import Reading
from koboshi.ports.store import Loaded


def load_turn(tx: Reading, context: VerbContext, claim: Claim) -> Loaded:
    turn = read_turn(tx, claim.turn_id)
    if turn is None or turn.epoch != claim.epoch or turn.state is not TurnState.RUNNING:
        raise fenced(claim)
    session = read_session(tx, claim.session_id)
    is_apart = tx.row("turn_is_apart", turn_id=claim.turn_id) is not None
    summary = newest_summary(tx, session, claim)
    earlier = tx.rows(
        "steps_before",
        session_id=claim.session_id,
        context_from=max(session.context_from, covered_by(summary) + 1),
        first_seq=turn.first_seq,
        limit=0 if is_apart else context.context_steps_max,
    )
    steps = tx.rows("steps_of_turn", **turn.span)
    return Loaded(
        session=session,
        context=tuple(step_of(row) for row in reversed(earlier)),
        steps=tuple(step_of(row) for row in steps),
        calls=tuple(call_of(row) for row in tx.rows("calls_of_turn", turn_id=claim.turn_id)),
        model_tries=turn.model_tries,
        summary=summary,
        standing=standing_of_turn(tx, context, claim),
    )


def newest_summary(tx: Reading, session: Session, claim: Claim) -> Step | None:
    """The summary that stands for the beginning of what the turn may see."""
    apart = first_number(tx.row("turn_is_apart", turn_id=claim.turn_id)) or 0
    place = {"session_id": session.session_id, "context_from": session.context_from}
    row = tx.row("summary_newest", **place, apart=apart)
    return None if row is None else step_of(row)


def covered_by(summary: Step | None) -> int:
    """The number of the last step that the summary stands for; 0 if there is none."""
    return summary.body.covers if summary and isinstance(summary.body, Summary) else 0


def fenced(claim: Claim) -> Fenced:
    return Fenced(f"the claim on turn {claim.turn_id} in epoch {claim.epoch} is no longer valid")
