"""Goals as single effects: their moves, and the gate that each end of a turn passes."""

from koboshi.domain import time_words
from koboshi.domain.goal import BegunBy, Gate, Goal, GoalEvent, GoalRule, GoalState, gate
from koboshi.domain.ids import Generation, SessionId, TurnId
from koboshi.domain.inbox import EntryKind
from koboshi.domain.session import CutKind, Session
from koboshi.domain.turn import TurnEvent
from koboshi.kernel.child_rows import open_children
from koboshi.kernel.enqueue import enqueue_delivery_once
from koboshi.kernel.moves import move_from
from koboshi.kernel.rows import TurnRow, read_open_turn
from koboshi.kernel.timed_rows import goal_in
from koboshi.kernel.transaction import Reading, Transaction
from koboshi.ports.wakeups import GOALS, JOURNAL

OTHER_WORDS = "other words"
"""The reason of a question of ours that was answered by words that are neither yes nor no."""


def move_goal(
    tx: Transaction,
    goal: Goal,
    event: GoalEvent,
    rule: GoalRule,
    reason: str | None = None,
    *,
    wait_process: int | None = None,
    wait_until_ms: int | None = None,
    generation: Generation | None = None,
    judged_turn: TurnId | None = None,
    revised: bool = False,
) -> None:
    """Move a goal. With `revised`, what it had put into the inbox is worth nothing any more."""
    move_from(
        tx,
        "goal_move",
        event,
        goal.state,
        goal_id=goal.goal_id,
        rule=rule,
        reason=reason,
        wait_process=wait_process,
        wait_until_ms=wait_until_ms,
        not_before_ms=0,
        revised=int(revised),
        generation=goal.generation if generation is None else generation,
        judged_turn=judged_turn,
        now=tx.now_ms,
    )
    tx.hints.update((GOALS, JOURNAL))


def pause_goal(tx: Transaction, goal: Goal, rule: GoalRule, reason: str, *, told: bool) -> None:
    """No step follows before a person says so."""
    move_goal(tx, goal, GoalEvent.PAUSED, rule, reason, revised=True)
    if told:
        cause = f"goal:{goal.goal_id}:paused:{goal.revision}"
        words = time_words.goal_paused(goal, reason)
        enqueue_delivery_once(tx, goal.session_id, cause, words, anchor="")


def cut_goal(tx: Transaction, session: Session, kind: CutKind) -> None:
    """`/stop` pauses the goal of a session in the cut itself, and `/new` clears it."""
    goal = goal_in(tx, session.session_id)
    if goal is None:
        return
    if kind is CutKind.NEW:
        why = "a new conversation was begun"
        move_goal(tx, goal, GoalEvent.CLEARED, GoalRule.NEW, why, revised=True)
    elif goal.state is not GoalState.PAUSED:
        pause_goal(tx, goal, GoalRule.BY_PERSON, "stopped by the person", told=False)


def pass_gate(tx: Transaction, turn: TurnRow) -> bool:
    """What the end of a turn means to the goal of its session, in the transaction that ends it.
    Returns whether the goal is active still."""
    goal = goal_in(tx, turn.session_id)
    if goal is None or goal.state is not GoalState.ACTIVE:
        return False
    first = {"source": goal.source, "external_id": f"{goal.revision}.1"}
    if tx.row("goal_first_waits", session_id=turn.session_id, **first) is not None:
        return True  # nothing was done for it yet: this turn was at work on something else
    begun_by = _begun_by(tx, turn.turn_id, goal)
    has_other_words = turn.event == TurnEvent.DECLINED and turn.reason == OTHER_WORDS
    passed = gate(
        turn.state,
        turn.event,
        begun_by,
        is_current=turn.generation == goal.generation,
        has_other_words=has_other_words,
    )
    if passed is Gate.NOTHING:
        return True
    tokens = tx.number("turn_tokens", **turn.span)
    tx.change("goal_spent", goal_id=goal.goal_id, tokens=tokens)
    if passed is Gate.JUDGE and open_children(tx, turn.session_id):
        return True  # the turn that hears of their ends is judged
    if passed is Gate.JUDGE:
        rule = GoalRule.ANSWERED
        move_goal(tx, goal, GoalEvent.ANSWERED, rule, goal.reason, judged_turn=turn.turn_id)
        return False
    is_no = turn.event == TurnEvent.DECLINED
    rule = GoalRule.DECLINED if is_no else GoalRule.FAILED
    pause_goal(tx, goal, rule, time_words.why_goal_paused(turn.event, turn.reason), told=not is_no)
    return False


def take_up_goal(tx: Transaction, session_id: SessionId) -> None:
    """Judge an active goal again that nothing in its session goes on with: its step gave way to
    what was at work, and the end of that said nothing about the goal."""
    goal = goal_in(tx, session_id)
    if goal is None or goal.state is not GoalState.ACTIVE:
        return
    if read_open_turn(tx, session_id) is None and not open_children(tx, session_id):
        move_goal(tx, goal, GoalEvent.WOKEN, GoalRule.WOKEN, goal.reason)


def _begun_by(tx: Reading, turn_id: TurnId, goal: Goal) -> BegunBy:
    row = tx.row("turn_begun_by", turn_id=turn_id)
    if row is None:
        return BegunBy.OTHER
    kind, source = row
    if kind == EntryKind.GOAL:
        return BegunBy.GOAL if source == goal.source else BegunBy.OTHER
    is_judged = kind in (EntryKind.MESSAGE, EntryKind.CHILD)
    return BegunBy.PERSON if is_judged else BegunBy.OTHER
