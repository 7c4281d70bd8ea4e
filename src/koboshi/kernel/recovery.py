"""Recovery inside the transaction: read the facts, decide, apply.

Theory of operation. A turn needs a decision while no worker works on it: it is RUNNING under a
worker that is gone, it was set aside, or it is QUEUED after an earlier claim. The rules are in
`domain/recovery.py`. This module reads the facts, asks `decide`, and applies the verdict, in one
transaction. So at every moment:

* The facts are those of the moment of the decision. No message arrives between the two.
* A verdict moves the turn from the state and the epoch that its facts had. If another write came
  first, `Fenced` is raised and nothing changes. After a crash before the commit the facts are as
  they were, and the next boot decides the same.
* The person hears of a verdict once, in its transaction: the cause of the delivery names the turn,
  and the epoch where a turn may be set aside again.
* The calls of a dead turn are settled before another worker can claim it. A `once` call that was
  under way gets an unknown outcome. The others are taken up again.
* A message that arrived while the turn waited for an answer is applied as that answer, whether it
  came before or after the restart.
* A turn whose facts contradict each other is closed alone, so that it holds up no other turn.

`explain` asks for the same verdict and does not apply it.
"""

from koboshi.domain import phrases
from koboshi.domain.ids import EntryId
from koboshi.domain.recovery import Policy, TurnFacts, Verdict, VerdictKind
from koboshi.domain.session import Session
from koboshi.domain.transcript import Author, Effect, Question
from koboshi.domain.turn import TurnEvent, TurnState
from koboshi.domain.worker import Breaker
from koboshi.kernel.context import VerbContext
from koboshi.kernel.enqueue import enqueue_delivery, enqueue_delivery_once
from koboshi.kernel.facts import (
    breaker_now,
    facts_of,
    has_allowed_sender,
    policy_of,
    verdict_over,
    waiting_message,
)
from koboshi.kernel.next_turn import end_turn, go_on_after, go_on_after_reply, readmit_reports
from koboshi.kernel.questions import answer_question, resume, settle_dead_calls
from koboshi.kernel.record import abandon_deliveries, add_step, move_turn, resolve_calls
from koboshi.kernel.rows import TurnRow, read_request, read_session, read_unresolved, worked_ms_of
from koboshi.kernel.transaction import Transaction


def apply_verdict(
    tx: Transaction, context: VerbContext, turn: TurnRow, arrived: EntryId | None = None
) -> Verdict:
    """Decide about a turn and apply the verdict. `arrived` is a message that counts as newer than
    the turn's state, whatever the clock says."""
    session = read_session(tx, turn.session_id)
    facts = facts_of(tx, context, turn, session, arrived)
    policy = policy_of(context, session)
    verdict = verdict_over(facts, policy)
    _apply(tx, context, turn, session, facts, verdict, policy)
    return verdict


def _apply(
    tx: Transaction,
    context: VerbContext,
    turn: TurnRow,
    session: Session,
    facts: TurnFacts,
    verdict: Verdict,
    policy: Policy,
) -> None:
    match verdict.kind:
        case VerdictKind.STAND if facts.breaker is not Breaker.CLOSED:
            _hold_back(tx, context, turn)
        case VerdictKind.DELIVER | VerdictKind.STAND:
            return
        case VerdictKind.RESUME if turn.state is TurnState.QUEUED:
            # A release leaves calls under way. The next claim must not find one of them runnable
            # if it must not be repeated.
            settle_dead_calls(tx, turn, turn.worked_ms)
        case VerdictKind.RESUME if turn.state is TurnState.WAITING:
            waiting = waiting_message(tx, context, turn, session)
            assert waiting is not None
            is_over = answer_question(tx, context, session, turn, waiting.entry)
            go_on_after_reply(tx, context, turn, is_over=is_over)
        case VerdictKind.RESUME if facts.is_attached:
            resume(tx, turn, facts, rule=verdict.rule)
        case VerdictKind.RESUME:
            # A clock that was set back must not turn a pause of seconds into days.
            worked_ms = min(worked_ms_of(tx, turn), tx.now_ms)
            not_before = policy.not_before(facts.crash_streak, worked_ms)
            resume(tx, turn, facts, rule=verdict.rule, not_before_ms=not_before)
        case VerdictKind.SUSPEND:
            _suspend(tx, context, turn, session, verdict)
        case VerdictKind.ASK_USER:
            _ask_user(tx, context, turn, session, verdict)
        case VerdictKind.CLEAR:
            _clear(tx, context, turn, session, verdict)
        case VerdictKind.GIVE_UP if turn.state in (TurnState.WAITING, TurnState.ANSWERED):
            return  # a contradiction in a turn without a worker: it is shown, and left to a person
        case VerdictKind.GIVE_UP:
            resolve_calls(tx, turn.session_id, turn.turn_id, turn.epoch, "given up")
            _move(tx, turn, TurnEvent.GAVE_UP, verdict, died=facts.crash_streak > turn.crash_streak)
            cause = f"verdict:{turn.turn_id}:{turn.epoch}"
            words = _apology(tx, turn, facts, verdict)
            enqueue_delivery(tx, turn.session_id, turn.turn_id, cause, (words,), anchor=turn.anchor)
            go_on_after(tx, context, turn.session_id, turn.turn_id)


def _clear(
    tx: Transaction, context: VerbContext, turn: TurnRow, session: Session, verdict: Verdict
) -> None:
    """End the turn and take up what waits behind it. A turn is cleared once, so the person is told
    once what was left unfinished, before the next message is answered."""
    resolve_calls(tx, turn.session_id, turn.turn_id, turn.epoch, "interrupted")
    _move(tx, turn, TurnEvent.CLEARED, verdict)
    if turn.state is TurnState.WAITING:
        why = "its question is closed"
        abandon_deliveries(tx, turn.session_id, turn.turn_id, why)
    if verdict.rule == "not-allowed-behind":
        _tell_the_others(tx, context, turn, session)
    else:
        words = (phrases.left_unfinished(read_request(tx, turn)),)
        cause = f"cleared:{turn.turn_id}"
        enqueue_delivery(tx, turn.session_id, turn.turn_id, cause, words, anchor=turn.anchor)
    go_on_after(tx, context, turn.session_id, turn.turn_id)


def _suspend(
    tx: Transaction, context: VerbContext, turn: TurnRow, session: Session, verdict: Verdict
) -> None:
    """Set the turn aside and tell the person, once for each epoch. A turn that is already set aside
    may be untold: its channel was gone, or an earlier version set it aside. No person takes up the
    turn of a child again, so it ends, and its parent hears of that."""
    if session.is_child and verdict.rule != "channel-unknown":
        worked_ms = worked_ms_of(tx, turn)
        end_turn(tx, context, turn, TurnEvent.DROPPED, verdict.because, worked_ms=worked_ms)
        return
    if turn.state is not TurnState.SUSPENDED:
        _move(tx, turn, TurnEvent.PARKED, verdict)
        readmit_reports(tx, context, turn.session_id)
    match verdict.rule:
        case "channel-unknown":
            return  # no message can be sent there; the status tells the operator
        case "person-not-allowed":
            _tell_the_others(tx, context, turn, session)
        case _:
            cause = f"set-aside:{turn.turn_id}:{turn.epoch}"
            if tx.row("delivery_of_turn_by_cause", turn_id=turn.turn_id, cause=cause) is None:
                words = (phrases.set_aside_by_policy(read_request(tx, turn)),)
                enqueue_delivery(
                    tx, turn.session_id, turn.turn_id, cause, words, anchor=turn.anchor
                )


def _tell_the_others(
    tx: Transaction, context: VerbContext, turn: TurnRow, session: Session
) -> None:
    """Tell an allowed person who has a message in the turn why it does not continue."""
    if has_allowed_sender(tx, context, session.route.channel, turn):
        words, cause = phrases.set_aside(read_request(tx, turn)), f"set-aside:{turn.turn_id}"
        enqueue_delivery_once(tx, turn.session_id, cause, words, anchor="")


def _hold_back(tx: Transaction, context: VerbContext, turn: TurnRow) -> None:
    """Keep the turn from being claimed before the breaker closes."""
    until_ms = breaker_now(tx, context)[1]
    tx.change("turn_hold", turn_id=turn.turn_id, not_before_ms=until_ms, now=tx.now_ms)


def _move(
    tx: Transaction, turn: TurnRow, event: TurnEvent, verdict: Verdict, *, died: bool = False
) -> None:
    move_turn(
        tx,
        turn.turn_id,
        turn.epoch,
        turn.state,
        event,
        rule=verdict.rule,
        reason=verdict.because,
        worked_ms=worked_ms_of(tx, turn),
        died=died,
    )


def _ask_user(
    tx: Transaction, context: VerbContext, turn: TurnRow, session: Session, verdict: Verdict
) -> None:
    words = _offer(tx, turn, verdict)
    question = Question(author=Author.GATEWAY, text=words, choices=phrases.YES_NO)
    cause = f"verdict:{verdict.rule}"
    step = add_step(tx, turn.session_id, turn.turn_id, turn.epoch, cause, question)
    move_turn(
        tx,
        turn.turn_id,
        turn.epoch,
        turn.state,
        TurnEvent.PROMPTED,
        rule=verdict.rule,
        reason=verdict.because,
        question_seq=step.seq,
        expires_ms=tx.now_ms + context.question_age_ms_max,
        worked_ms=worked_ms_of(tx, turn),
    )
    readmit_reports(tx, context, session.session_id)
    enqueue_delivery(
        tx,
        session.session_id,
        turn.turn_id,
        f"step:{step.seq}",
        (words,),
        anchor=turn.anchor,
        choices=phrases.YES_NO,
        question=step.seq,
    )


def _offer(tx: Transaction, turn: TurnRow, verdict: Verdict) -> str:
    request = read_request(tx, turn)
    at = phrases.clock_words(max(turn.progressed_ms, worked_ms_of(tx, turn)))
    match verdict.rule:
        case "worn-out":
            return phrases.offer_worn_out(request)
        case "outcome-unknown":
            calls = (each for each in read_unresolved(tx, turn.turn_id) if each.is_under_way)
            under_way = [each.call for each in calls]
            once = [call for call in under_way if call.effect is Effect.ONCE] or under_way
            return phrases.offer_unknown(request, once[0].tool)
        case "policy-ask":
            return phrases.offer_policy(request, at)
        case _:
            return phrases.offer_stale(request, at)


def _apology(tx: Transaction, turn: TurnRow, facts: TurnFacts, verdict: Verdict) -> str:
    request = read_request(tx, turn)
    match verdict.rule:
        case "exhausted":
            return phrases.gave_up_deaths(request, facts.crash_streak)
        case "stale-unattended":
            return phrases.gave_up_stale(request)
        case rule:
            return phrases.failed(request, phrases.failure(rule))
