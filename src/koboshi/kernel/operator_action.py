"""What a person or the operator does to a turn: resume it, drop it, or cut the session."""

from functools import partial

from koboshi.domain.command import ActionStanding, OperatorAction, standing_of
from koboshi.domain.ids import Seq, SessionId, TurnId
from koboshi.domain.inbox import EntryEvent
from koboshi.domain.session import Cut, CutKind, Session, cut_of
from koboshi.domain.turn import TurnEvent
from koboshi.kernel.children import stop_children
from koboshi.kernel.context import VerbContext
from koboshi.kernel.decode import numbers
from koboshi.kernel.facts import facts_of, is_worked_on, may_run, question_kind
from koboshi.kernel.goal_gate import cut_goal
from koboshi.kernel.keys import lock_found
from koboshi.kernel.moves import move
from koboshi.kernel.next_turn import OPENING, end_turn, go_on_after
from koboshi.kernel.occasions import TakenAway, waiting_occasions
from koboshi.kernel.questions import resume
from koboshi.kernel.record import (
    abandon_deliveries,
    ask_processes_to_end,
    close_agent_session,
    move_turn,
    resolve_calls,
    settle_turn,
)
from koboshi.kernel.rows import (
    BY_PERSON,
    TurnRow,
    read_open_turn,
    read_question,
    read_session,
    read_turn,
    worked_ms_of,
)
from koboshi.kernel.telling import tell_ends
from koboshi.kernel.transaction import Reading, Transaction
from koboshi.ports.channel import Inbound
from koboshi.ports.wakeups import JOURNAL, OUTBOX, OUTBOX_SOONER


def standing_in(tx: Reading, turn: TurnRow) -> ActionStanding:
    """Whether a person's will applies to the turn in this transaction."""
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
    """Resume or drop a turn that no worker holds. `by` names the person or the operator."""
    match will:
        case OperatorAction.RESUME:
            _resume(tx, context, turn, by)
        case OperatorAction.DROP:
            _drop(tx, context, turn, by)


def will_of_person(
    tx: Transaction, context: VerbContext, turn: TurnRow, inbound: Inbound, will: OperatorAction
) -> None:
    """The person who resumes a turn becomes its person, and the answer refers to their message."""
    if will is OperatorAction.RESUME:
        anchor = inbound.words.anchor
        tx.change("turn_speaks", turn_id=turn.turn_id, person=inbound.sender, anchor=anchor)
    apply_will(tx, context, turn, will, "the person")


def will_of_operator(
    tx: Transaction, context: VerbContext, turn_id: TurnId, will: OperatorAction
) -> ActionStanding | None:
    """Apply the operator's will if it concerns the turn; None if there is no such turn. A turn of a
    person who is no longer allowed is not resumed: the operator changes the configuration for
    that."""
    lock_found(tx, "turn_key", turn_id=turn_id)
    turn = read_turn(tx, turn_id)
    if turn is None:
        return None
    standing = standing_in(tx, turn)
    channel = read_session(tx, turn.session_id).route.channel
    if standing is not ActionStanding.LEFT:
        return standing
    is_served = channel in context.world.channels and may_run(tx, context, channel, turn)
    if will is OperatorAction.RESUME and not is_served:
        return ActionStanding.NOT_SERVED
    apply_will(tx, context, turn, will, "the operator")
    return standing


def _resume(tx: Transaction, context: VerbContext, turn: TurnRow, by: str) -> None:
    """Like a yes to the gateway's own question: at once, with all counts at zero."""
    session = read_session(tx, turn.session_id)
    abandon_deliveries(tx, turn.session_id, turn.turn_id, f"resumed by {by}")
    resume(tx, turn, facts_of(tx, context, turn, session), rule=None, reason=BY_PERSON)


def _drop(tx: Transaction, context: VerbContext, turn: TurnRow, by: str) -> None:
    """End the turn. The generation stays, and what waits opens the next turn."""
    why, worked_ms = f"dropped by {by}", worked_ms_of(tx, turn)
    end_turn(tx, context, turn, TurnEvent.DROPPED, why, worked_ms=worked_ms)


def cut_session(
    tx: Transaction, context: VerbContext, session: Session, kind: CutKind
) -> tuple[TakenAway, ...]:
    """End the generation. The open turn is stopped, what waited is dropped, and the agent hears
    nothing from before the cut. The person is told how its processes ended. A goal is paused or
    cleared, and children are ended. Returns the occasions that were taken away."""
    cut: Cut = cut_of(session, kind)
    session_id = session.session_id
    turn = read_open_turn(tx, session_id)
    if turn is not None:
        by = "stopped by the person"
        resolve_calls(tx, session_id, turn.turn_id, turn.epoch, by)
        move_turn(tx, turn.turn_id, turn.epoch, turn.state, TurnEvent.CUT, reason=by)
        abandon_deliveries(tx, session_id, turn.turn_id, by)
    elif kind is not CutKind.NEW:
        _stop_answers(tx, context, session_id)
    taken = waiting_occasions(tx, session_id)
    cut_goal(tx, session, kind)
    move(tx, "entries_cut", EntryEvent.CUT, session_id=session_id, now=tx.now_ms)
    turn_id = None if turn is None else turn.turn_id
    ask_processes_to_end(tx, session_id, turn_id, everything=cut.ends_background)
    if cut.forgets_transcript:
        close_agent_session(tx, session_id, "a new conversation")
    context_from = Seq(tx.next_step()) if cut.forgets_transcript else Seq(0)
    tx.change(
        "session_cut",
        session_id=session_id,
        generation=cut.generation,
        context_from=context_from,
        now=tx.now_ms,
    )
    cut_child = partial(cut_session, tx, context, kind=CutKind.STOP_ALL)
    stop_children(tx, context, session_id, OPENING, cut_child)
    go_on_after(tx, context, session_id, turn_id)
    return taken


def _stop_answers(tx: Transaction, context: VerbContext, session_id: SessionId) -> None:
    """No turn is open, so the answer on its way is stopped: the parts that were certainly not sent
    are abandoned. If they told how a process ended, the gateway tells it."""
    for turn_id in map(TurnId, numbers(tx.rows("turns_answered", session_id=session_id))):
        abandon_deliveries(tx, session_id, turn_id, "stopped by the person")
        tell_ends(tx, context, session_id, turn_id)
        settle_turn(tx, turn_id)
    tx.hints.update((OUTBOX, OUTBOX_SOONER, JOURNAL))
