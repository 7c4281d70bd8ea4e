"""Taking a turn, and what every write under a claim has in common.

Theory of operation. A claim is a turn, an epoch and a worker. `take` moves a turn from QUEUED to
RUNNING and raises its epoch in one conditional statement. So at every moment:

* At most one claim of a turn is valid: the newest. Of two workers that found the same turn, one
  touches a row. Epochs only grow; a trigger refuses anything else.
* A turn that no worker had before, and whose senders are all allowed, is claimed as it is
  (`is_plain`). Every other turn is judged in the transaction of the claim, so a stale turn, or one
  whose person lost the right, is not run.
* The first claim settles what the turn answers: the backlog joins it, and a long wait is noted. A
  later claim finds both in the transcript and adds nothing.
* A claim ends in the transaction that says why: an answer, a question, a failure, a wait, a drain.
  It also ends when its worker does; then recovery decides.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from koboshi.domain import notes, phrases
from koboshi.domain.durations import duration
from koboshi.domain.files import OutFile, Parcel
from koboshi.domain.ids import (
    CallId,
    ChannelName,
    Epoch,
    Generation,
    ProcessId,
    Seq,
    SessionId,
    TurnId,
    WorkerId,
)
from koboshi.domain.outage import (
    Decision,
    ModelFailure,
    Outage,
    Patience,
    TryAgain,
    after_failure,
    outage_notice,
)
from koboshi.domain.transcript import (
    Answer,
    Call,
    Note,
    ProposedCall,
    Question,
    Reply,
    Step,
    Summary,
    fingerprint,
)
from koboshi.domain.turn import Claim, TurnEvent, TurnState
from koboshi.kernel.context import VerbContext
from koboshi.kernel.decode import first_text, number
from koboshi.kernel.endings import read_ending
from koboshi.kernel.enqueue import enqueue_delivery
from koboshi.kernel.facts import are_senders_allowed, facts_of
from koboshi.kernel.joining import join_backlog
from koboshi.kernel.loading import fenced
from koboshi.kernel.moves import move
from koboshi.kernel.next_turn import go_on_after
from koboshi.kernel.occasions import is_failing
from koboshi.kernel.questions import leave_note
from koboshi.kernel.record import add_step, mark_log_size, move_turn, resolve_calls
from koboshi.kernel.rows import read_request, read_session, read_turn
from koboshi.kernel.transaction import Reading, Transaction
from koboshi.ports.wakeups import JOURNAL


def _note_wait(tx: Transaction, claim: Claim, waited_ms: int) -> None:
    """Tell the model that the message waited this long before a worker took it up."""
    if waited_ms > notes.WAITED_MS:
        note = Note(cause=notes.WAITED, text=notes.waited(duration(waited_ms)))
        own_step(tx, claim, f"waited:{claim.turn_id}", note)


def _note_move(tx: Transaction, context: VerbContext, claim: Claim, before: str | None) -> None:
    """Tell the model once that the chat goes on at another node, without the files of the first."""
    if before is None or not context.is_shared or context.is_workdir_shared:
        return
    if first_text(tx.row("node_home", node=before)) != context.home:
        note = Note(cause=notes.MOVED, text=notes.moved(before, context.node))
        own_step(tx, claim, f"moved:{claim.turn_id}:{claim.epoch}", note)


class DueTurn(NamedTuple):
    """A queued turn that may be claimed, in the order of the columns of `turns_due`."""

    turn_id: TurnId
    session_id: SessionId
    generation: Generation
    epoch: Epoch
    opened_ms: int
    person: str
    channel: ChannelName
    has_others: int
    """Whether another person has a message in it, too."""
    lock_key: int
    node: str | None
    """Where the newest turn of its session was claimed."""
    has_waiting: int
    """Whether an entry waits behind it, as far as was seen before its key was held."""


def find_due(
    tx: Reading, context: VerbContext, worker_id: WorkerId, limit: int, *, is_recovered: bool
) -> list[DueTurn]:
    rows = tx.rows(
        "turns_due",
        now=tx.now_ms,
        late_ms=tx.now_ms - context.node_wait_ms,
        node=context.node,
        home=context.home,
        limit=limit,
        recovered=int(is_recovered),
        worker_id=worker_id,
    )
    return [DueTurn._make(row) for row in rows]


def is_plain(tx: Reading, context: VerbContext, due: DueTurn) -> bool:
    """Whether the turn may be claimed without a verdict: no worker had it before, and all whose
    messages are in it are allowed."""
    if due.epoch > 0 or not context.serves(tx, due.channel, due.person):
        return False
    if not due.has_others:
        return True
    return are_senders_allowed(tx, context, due.channel, due.turn_id, due.person)


def take(
    tx: Transaction,
    context: VerbContext,
    due: DueTurn,
    worker_id: WorkerId,
    *,
    is_recovered: bool,
) -> Claim | None:
    """Claim the turn. None if another worker took it since it was found."""
    claim = Claim(
        turn_id=due.turn_id,
        session_id=due.session_id,
        generation=due.generation,
        epoch=Epoch(due.epoch + 1),
        worker_id=worker_id,
        is_recovered=is_recovered,
    )
    touched = move(
        tx,
        "turn_claim",
        TurnEvent.CLAIMED,
        turn_id=claim.turn_id,
        epoch=due.epoch,
        worker_id=worker_id,
        now=tx.now_ms,
    )
    tx.hints.add(JOURNAL)
    if not touched:
        return None
    if due.node != context.node:
        tx.change("session_at_node", session_id=due.session_id, node=context.node)
        _note_move(tx, context, claim, due.node)
    if due.epoch == 0:
        if due.has_waiting or tx.uses_keys:
            join_backlog(tx, context, claim)
        _note_wait(tx, claim, tx.now_ms - due.opened_ms)
    return claim


def is_held(tx: Reading, claim: Claim) -> bool:
    return tx.row("turn_held", turn_id=claim.turn_id, epoch=claim.epoch) is not None


def progress(tx: Transaction, claim: Claim) -> None:
    touched = tx.change("turn_progress", turn_id=claim.turn_id, epoch=claim.epoch, now=tx.now_ms)
    if not touched:
        raise fenced(claim)


def note_failure(
    tx: Transaction, claim: Claim, failure: ModelFailure, patience: Patience
) -> Decision:
    """Count that the model did not answer. Returns what to do, given all failures so far."""
    row = tx.row(
        "turn_tried_model",
        turn_id=claim.turn_id,
        epoch=claim.epoch,
        reason=failure.reason,
        spent_ms=max(0, failure.spent_ms),
    )
    if row is None:
        raise fenced(claim)
    tries, waited_ms = row
    outage = Outage(tries=number(tries), waited_ms=number(waited_ms), reason=failure.reason)
    decision = after_failure(outage, failure.asked_ms, patience)
    if isinstance(decision, TryAgain) and decision.is_told:
        _tell_outage(tx, claim, patience)
    return decision


def _tell_outage(tx: Transaction, claim: Claim, patience: Patience) -> None:
    """Tell the person once for each request, however often the gateway dies or a person resumes."""
    turn = read_turn(tx, claim.turn_id)
    assert turn is not None
    cause = f"outage:{claim.turn_id}:{tx.number('turn_request', **turn.span)}"
    if tx.row("delivery_of_turn_by_cause", turn_id=claim.turn_id, cause=cause) is None:
        enqueue_delivery(
            tx,
            claim.session_id,
            claim.turn_id,
            cause,
            (outage_notice(patience),),
            anchor=turn.anchor,
        )


def leave(
    tx: Transaction,
    claim: Claim,
    event: TurnEvent,
    *,
    question_seq: Seq | None = None,
    expires_ms: int | None = None,
    has_progress: bool = True,
) -> None:
    """End the work on a turn with a step, which is progress."""
    move_turn(
        tx,
        claim.turn_id,
        claim.epoch,
        TurnState.RUNNING,
        event,
        question_seq=question_seq,
        expires_ms=expires_ms,
        worked_ms=tx.now_ms,
        progressed=True,
        has_progress=has_progress,
    )


def own_step(
    tx: Transaction,
    claim: Claim,
    cause: str,
    body: Note | Reply | Question | Answer | Summary,
    seq: int | None = None,
) -> Step:
    return add_step(tx, claim.session_id, claim.turn_id, claim.epoch, cause, body, seq)


def anchor_of(tx: Transaction, claim: Claim) -> str:
    turn = read_turn(tx, claim.turn_id)
    assert turn is not None
    return turn.anchor


def owe_parcel(tx: Transaction, claim: Claim, call_id: CallId, parcel: Parcel) -> None:
    """Owe the person a file. It is sent while the turn continues."""
    words = parcel.caption or parcel.file.name
    cause, anchor = f"file:{call_id}", anchor_of(tx, claim)
    enqueue_delivery(
        tx,
        claim.session_id,
        claim.turn_id,
        cause,
        (words,),
        anchor=anchor,
        file=parcel.file,
    )


def call_at(seq: int, place: int, call: ProposedCall) -> Call:
    return Call(
        call_id=CallId(f"{seq}.{place}"),
        tool=call.tool,
        arguments=call.arguments,
        effect=call.effect,
        need=call.need,
        provider_id=call.provider_id,
    )


def propose(tx: Transaction, claim: Claim, place: int, call: Call) -> None:
    tx.insert(
        "call_insert",
        turn_id=claim.turn_id,
        call_id=call.call_id,
        place=place,
        tool=call.tool,
        arguments=call.arguments,
        effect=call.effect,
        need=call.need,
        provider_id=call.provider_id,
        args_hash=fingerprint(call.tool, call.arguments),
    )


def answer_turn(
    tx: Transaction,
    context: VerbContext,
    claim: Claim,
    reply: Reply,
    parts: Sequence[str],
    log_sizes: Mapping[ProcessId, int],
    file: OutFile | None,
) -> None:
    """The turn ends with its answer. Without a part, there was nothing to report: no person is
    told, and the turn is closed at once."""
    session_id, turn_id = claim.session_id, claim.turn_id
    answer = Answer(
        text=reply.text,
        model=reply.model,
        tokens_in=reply.tokens_in,
        tokens_out=reply.tokens_out,
        raw=reply.raw,
    )
    ending = read_ending(tx, turn_id)
    if ending is None:
        raise fenced(claim)
    leave(tx, claim, TurnEvent.ANSWERED, has_progress=ending.has_progress)
    if ending.has_calls:
        resolve_calls(tx, session_id, turn_id, claim.epoch, "the answer came first")
    step = own_step(tx, claim, "model", answer)
    if parts:
        cause, anchor = f"step:{step.seq}", ending.anchor
        enqueue_delivery(tx, session_id, turn_id, cause, parts, anchor=anchor, file=file)
    for process_id, size in log_sizes.items():
        mark_log_size(tx, turn_id, process_id, size)
    go_on_after(tx, context, session_id, turn_id, ending)
    if not parts:
        values = {"session_id": session_id, "turn_id": turn_id, "now": tx.now_ms}
        move(tx, "turn_settle", TurnEvent.SILENCED, **values)


def fail_turn(tx: Transaction, context: VerbContext, claim: Claim, reason: str) -> None:
    """The turn ends with one apology."""
    turn = read_turn(tx, claim.turn_id)
    if turn is None:
        raise fenced(claim)
    resolve_calls(tx, claim.session_id, claim.turn_id, claim.epoch, "the turn failed")
    move_turn(
        tx,
        claim.turn_id,
        claim.epoch,
        TurnState.RUNNING,
        TurnEvent.ERRED,
        reason=reason,
        worked_ms=tx.now_ms,
    )
    if not is_failing(tx, claim.turn_id):  # of a schedule, its first failure in a row is told
        words = phrases.failed(read_request(tx, turn), phrases.failure(reason))
        cause = f"failure:{claim.turn_id}"
        enqueue_delivery(tx, claim.session_id, claim.turn_id, cause, (words,), anchor=turn.anchor)
    go_on_after(tx, context, claim.session_id, claim.turn_id)


def postpone_turn(tx: Transaction, claim: Claim, wait_ms: int, reason: str) -> None:
    """Back to the queue until a wait is over. The wait counts as work: the turn is not idle."""
    due_ms = tx.now_ms + wait_ms
    held = {"turn_id": claim.turn_id, "epoch": claim.epoch}
    tx.change("turn_waits_for_model", wait_ms=wait_ms, **held)
    move_turn(
        tx,
        claim.turn_id,
        claim.epoch,
        TurnState.RUNNING,
        TurnEvent.POSTPONED,
        reason=reason,
        worked_ms=due_ms,
        not_before_ms=due_ms,
    )


def release_turn(tx: Transaction, context: VerbContext, claim: Claim) -> None:
    """Back to the queue, because this worker drains."""
    if read_turn(tx, claim.turn_id) is None:
        raise fenced(claim)
    session = read_session(tx, claim.session_id)
    move_turn(
        tx,
        claim.turn_id,
        claim.epoch,
        TurnState.RUNNING,
        TurnEvent.RELEASED,
        reason="drain",
        worked_ms=tx.now_ms,
        recovered=True,
    )
    released = read_turn(tx, claim.turn_id)
    assert released is not None
    facts = facts_of(tx, context, released, session)
    if not facts.is_attached:
        leave_note(tx, released, facts)
