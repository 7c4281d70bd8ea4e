"""What is durably known about a turn, read for recovery and for `explain` alike."""

from dataclasses import replace

from koboshi.domain.errors import ContradictoryFacts
from koboshi.domain.ids import EntryId
from koboshi.domain.inbox import EntryKind, Words
from koboshi.domain.recovery import (
    Interruption,
    Policy,
    TurnFacts,
    Verdict,
    VerdictKind,
    decide,
)
from koboshi.domain.session import Session
from koboshi.domain.standing import INTERRUPTED, stand_of
from koboshi.domain.transcript import Effect, StepKind, tail_of
from koboshi.domain.turn import TurnEvent, TurnState
from koboshi.domain.worker import OPEN_BOOTS, Breaker, breaker_of
from koboshi.kernel.context import VerbContext
from koboshi.kernel.decode import (
    EntryRow,
    TurnRow,
    call_of,
    entry_of,
    number,
    text,
    turn_of,
)
from koboshi.kernel.read import is_gone, read_question, read_session
from koboshi.kernel.senders import may_run
from koboshi.kernel.transaction import Reading

BY_PERSON = "person"
"""The reason of a RESUMED that a person asked for."""

LEFT_LOOKED_AT = 1_000
"""Turns that were interrupted, of one look at how many stand where."""

_GRAVEST = (Effect.ONCE, Effect.RESUMABLE, Effect.REPEATABLE, Effect.NONE)


def policy_of(context: VerbContext, session: Session) -> Policy:
    policy = context.world.policy
    chosen = session.settings.policy
    return policy if chosen is None else replace(policy, recovery=chosen)


def verdict_over(facts: TurnFacts, policy: Policy) -> Verdict:
    """The verdict; facts that contradict each other are a bug of ours, and are called that."""
    try:
        return decide(facts, policy)
    except ContradictoryFacts as error:
        return Verdict(kind=VerdictKind.GIVE_UP, rule="contradiction", because=str(error))


def facts_of(
    tx: Reading,
    context: VerbContext,
    turn: TurnRow,
    session: Session,
    arrived: EntryId | None = None,
) -> TurnFacts:
    """Everything that is durably known about a turn and matters for recovery."""
    world, channel = context.world, session.route.channel
    unresolved = [call_of(row) for row in tx.rows("calls_unresolved", turn_id=turn.turn_id)]
    under_way = [record.call.effect for record in unresolved if record.is_under_way]
    is_waiting = turn.state is TurnState.WAITING
    is_dead = turn.state is TurnState.RUNNING
    asked_by = None
    if is_waiting and turn.question_seq is not None:
        asked_by = read_question(tx, turn.question_seq).author
    gravest = min(under_way, key=_GRAVEST.index, default=None)
    return TurnFacts(
        state=turn.state,
        tail=tail_of(last=_last_kind(tx, turn), is_waiting=is_waiting, unresolved=unresolved),
        under_way=None if is_waiting else gravest,
        is_claimed_before=turn.epoch > 0,
        is_willed=_is_willed(turn),
        is_postponed=is_postponed(turn),
        is_current=turn.generation == session.generation,
        recoveries=turn.recoveries,
        crash_streak=turn.crash_streak + int(is_dead),
        idle_ms=max(0, tx.now_ms - max(turn.progressed_ms, worked_ms_of(tx, turn))),
        message_waits=waiting_message(tx, context, turn, session, arrived) is not None,
        message_behind=_message_behind(tx, context, session),
        asked_by=asked_by,
        is_person_allowed=may_run(tx, context, channel, turn),
        is_channel_known=channel in world.channels,
        is_interactive=world.channels.get(channel, False),
        interruption=_interruption(turn),
        policy=policy_of(context, session).recovery,
        breaker=breaker_now(tx, context)[0],
    )


def is_worked_on(tx: Reading, turn: TurnRow) -> bool:
    return turn.state is TurnState.RUNNING and not is_gone(tx, turn.worker_id)


def verdict_now(tx: Reading, context: VerbContext, turn: TurnRow) -> Verdict | None:
    """What recovery would decide about a turn that was worked on before and that nobody works on
    now; None for all others, of whom it has nothing to say that their state does not."""
    is_alive = turn.state in (TurnState.QUEUED, TurnState.RUNNING)
    if not is_alive or turn.epoch == 0 or is_worked_on(tx, turn):
        return None
    session = read_session(tx, turn.session_id)
    return verdict_over(facts_of(tx, context, turn, session), policy_of(context, session))


def stand_now(tx: Reading, context: VerbContext, turn: TurnRow) -> str:
    """Where a turn stands, as in `domain/standing.py`."""
    verdict = verdict_now(tx, context, turn)
    return stand_of(turn.state, verdict, is_worked_on=is_worked_on(tx, turn))


def stands_counted(tx: Reading, context: VerbContext) -> dict[str, int]:
    """How many turns that are not closed stand where. Each that nobody works on is looked at only
    while the boot breaker is not closed, and of very many the oldest."""
    rows = tx.rows("turns_alive_by_state")
    counts = {text(state): number(count) for state, count in rows}
    if breaker_now(tx, context)[0] is Breaker.CLOSED:
        left = tx.number("count_turns_left")
        _count(counts, TurnState.RUNNING, INTERRUPTED, left)
        return counts
    for row in tx.rows("turns_left", limit=LEFT_LOOKED_AT):
        turn = turn_of(row)
        _count(counts, turn.state, stand_now(tx, context, turn), 1)
    return counts


def _count(counts: dict[str, int], state: str, stand: str, turns: int) -> None:
    """So many turns in that state stand there."""
    if turns and stand != state:
        counts[state] -= turns
        counts[stand] = counts.get(stand, 0) + turns


def breaker_now(tx: Reading, context: VerbContext) -> tuple[Breaker, int]:
    """How much may be taken up again, and until when that holds."""
    if not context.world.policy.has_breaker:
        return Breaker.CLOSED, 0
    rows = tx.rows("workers_unclean", limit=OPEN_BOOTS)
    return breaker_of([number(row[0]) for row in rows], tx.now_ms)


def worked_ms_of(tx: Reading, turn: TurnRow) -> int:
    """When the turn was last worked on: for a dead worker's, its last sign of life."""
    if turn.state is not TurnState.RUNNING:
        return turn.worked_ms
    row = tx.row("worker_heartbeat", worker_id=turn.worker_id)
    return turn.worked_ms if row is None else number(row[0])


def waiting_message(
    tx: Reading,
    context: VerbContext,
    turn: TurnRow,
    session: Session,
    arrived: EntryId | None = None,
) -> EntryRow | None:
    """The oldest message of an allowed person that was accepted after the question or the death.
    The one that has just arrived is, whatever the clock says."""
    rows = tx.rows("entries_waiting", session_id=turn.session_id)
    if not rows:
        return None
    # The order of the commits tells what came first: clocks jump, and a batch has one time.
    newest_before = tx.number("entry_newest_before_move", turn_id=turn.turn_id)
    channel = session.route.channel
    for row in rows:
        waiting = entry_of(row)
        is_newer = waiting.entry.entry_id > newest_before
        if waiting.entry.entry_id == arrived:
            is_after = True
        elif turn.state is TurnState.RUNNING:
            # Newer than the claim, and not accepted by the worker that made it: where a home has
            # one owner at a time, that was a later boot.
            is_after = is_newer and waiting.accepted_by not in (None, turn.worker_id)
        else:
            is_after = is_newer
        is_heard = is_after and _is_heard(turn, waiting)
        if is_heard and context.allows(tx, channel, waiting.entry.sender):
            return waiting
    return None


def _is_heard(turn: TurnRow, waiting: EntryRow) -> bool:
    """Whether it is a message that matters to the turn: what a person sent to wait, or to steer,
    answers no question."""
    body = waiting.entry.body
    is_answer = isinstance(body, Words) and body.busy is None
    is_message = waiting.entry.kind is EntryKind.MESSAGE
    return is_message and (is_answer or turn.state is not TurnState.WAITING)


def _message_behind(tx: Reading, context: VerbContext, session: Session) -> bool:
    """Whether a message of an allowed person waits, whenever it was accepted."""
    rows = tx.rows("entries_waiting", session_id=session.session_id)
    entries = (entry_of(row).entry for row in rows)
    return any(
        entry.kind is EntryKind.MESSAGE and context.allows(tx, session.route.channel, entry.sender)
        for entry in entries
    )


def _last_kind(tx: Reading, turn: TurnRow) -> StepKind | None:
    row = tx.row(
        "step_last_kind",
        session_id=turn.session_id,
        first_seq=turn.first_seq,
        turn_id=turn.turn_id,
    )
    return None if row is None else StepKind(str(row[0]))


def _is_willed(turn: TurnRow) -> bool:
    if turn.state is not TurnState.QUEUED:
        return False
    resumed_by_person = turn.event == TurnEvent.RESUMED and turn.reason == BY_PERSON
    return turn.event == TurnEvent.REPLIED or resumed_by_person


def is_postponed(turn: TurnRow) -> bool:
    return turn.state is TurnState.QUEUED and turn.event == TurnEvent.POSTPONED


def _interruption(turn: TurnRow) -> Interruption:
    if turn.state is TurnState.RUNNING:
        return Interruption.CRASH
    if turn.event == TurnEvent.RELEASED:
        return Interruption.DRAIN
    return Interruption.NONE
