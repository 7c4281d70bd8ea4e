"""What the verbs of a claim holder have in common: the claim is checked by each write."""

from koboshi.domain import notes
from koboshi.domain.durations import duration
from koboshi.domain.files import Parcel
from koboshi.domain.ids import (
    CallId,
    ChannelName,
    Epoch,
    Generation,
    Seq,
    SessionId,
    TurnId,
    WorkerId,
)
from koboshi.domain.outage import (
    Decision,
    Failure,
    Outage,
    Patience,
    TryAgain,
    after_failure,
    told,
)
from koboshi.domain.recovery import VerdictKind
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
from koboshi.kernel.decode import number, text
from koboshi.kernel.joining import join_backlog
from koboshi.kernel.loading import fenced
from koboshi.kernel.moves import move
from koboshi.kernel.read import read_turn
from koboshi.kernel.record import add_step, enqueue_delivery, move_turn
from koboshi.kernel.recovery import apply_verdict
from koboshi.kernel.senders import are_senders_allowed
from koboshi.kernel.transaction import Reading, Transaction
from koboshi.ports.wakeups import JOURNAL


def claim_due(
    tx: Transaction, context: VerbContext, worker_id: WorkerId, limit: int, *, is_recovered: bool
) -> tuple[Claim, ...]:
    """Claim up to `limit` turns that are due, of those that were recovered or of the others."""
    kind = int(is_recovered)
    claims = []
    for row in tx.rows(
        "turns_due", now=tx.now_ms, limit=limit, recovered=kind, worker_id=worker_id
    ):
        turn_id, session_id, generation, epoch, opened_ms, person, channel, has_others = row[:8]
        key, node = row[8:]
        if not tx.try_lock(number(key)):
            continue
        claim = Claim(
            turn_id=TurnId(number(turn_id)),
            session_id=SessionId(number(session_id)),
            generation=Generation(number(generation)),
            epoch=Epoch(number(epoch) + 1),
            worker_id=worker_id,
            is_recovered=is_recovered,
        )
        is_plain = epoch == 0 and context.serves(tx, text(channel), text(person))
        if is_plain and has_others:
            name = ChannelName(text(channel))
            is_plain = are_senders_allowed(tx, context, name, claim.turn_id, text(person))
        if is_plain or lets_through(tx, context, claim.turn_id):
            if not take(tx, claim):
                continue
            if node != context.node:
                tx.change("session_at_node", session_id=session_id, node=context.node)
            if epoch == 0:
                join_backlog(tx, context, claim)
                _note_wait(tx, claim, tx.now_ms - number(opened_ms))
            claims.append(claim)
    return tuple(claims)


def _note_wait(tx: Transaction, claim: Claim, waited_ms: int) -> None:
    """The model knows when the words came; it cannot know that nobody took them up until now."""
    if waited_ms > notes.WAITED_MS:
        note = Note(cause=notes.WAITED, text=notes.waited(duration(waited_ms)))
        own_step(tx, claim, f"waited:{claim.turn_id}", note)


def turns_held_up(tx: Reading, context: VerbContext) -> tuple[TurnId, ...]:
    """Turns that the list of this boot does not let run, and that a message waits behind."""
    found = []
    for turn_id, person, channel in tx.rows("turns_held_up"):
        one, name = TurnId(number(turn_id)), ChannelName(text(channel))
        if not are_senders_allowed(tx, context, name, one, text(person)):
            found.append(one)
    return tuple(found)


def lets_through(tx: Transaction, context: VerbContext, turn_id: TurnId) -> bool:
    """A turn that was worked on before is judged again, so that nothing stale slips in."""
    turn = read_turn(tx, turn_id)
    assert turn is not None
    return apply_verdict(tx, context, turn).kind is VerdictKind.RESUME


def take(tx: Transaction, claim: Claim) -> bool:
    """Claim the turn. False if another worker took it since it was found."""
    touched = move(
        tx,
        "turn_claim",
        TurnEvent.CLAIMED,
        turn_id=claim.turn_id,
        epoch=claim.epoch - 1,
        worker_id=claim.worker_id,
        now=tx.now_ms,
    )
    tx.hints.add(JOURNAL)
    return bool(touched)


def is_held(tx: Reading, claim: Claim) -> bool:
    return tx.row("turn_held", turn_id=claim.turn_id, epoch=claim.epoch) is not None


def progress(tx: Transaction, claim: Claim) -> None:
    touched = tx.change("turn_progress", turn_id=claim.turn_id, epoch=claim.epoch, now=tx.now_ms)
    if not touched:
        raise fenced(claim)


def start(tx: Transaction, claim: Claim, call_id: CallId) -> int:
    return tx.change(
        "call_start",
        turn_id=claim.turn_id,
        call_id=call_id,
        epoch=claim.epoch,
        now=tx.now_ms,
    )


def note_failure(tx: Transaction, claim: Claim, failure: Failure, patience: Patience) -> Decision:
    """The model did not answer. Returns what follows from it, after all that was stored before."""
    row = tx.row(
        "turn_tried_model",
        turn_id=claim.turn_id,
        epoch=claim.epoch,
        reason=failure.reason,
        spent_ms=max(0, failure.spent_ms),
    )
    if row is None:
        raise fenced(claim)
    outage = Outage(tries=number(row[0]), waited_ms=number(row[1]), reason=failure.reason)
    decision = after_failure(outage, failure.asked_ms, patience)
    if isinstance(decision, TryAgain) and decision.is_told:
        _tell_outage(tx, claim, patience)
    return decision


def _tell_outage(tx: Transaction, claim: Claim, patience: Patience) -> None:
    """Once for a request, over any number of deaths and of people who do not want to wait."""
    turn = read_turn(tx, claim.turn_id)
    assert turn is not None
    place = {"session_id": turn.session_id, "first_seq": turn.first_seq, "turn_id": turn.turn_id}
    cause = f"outage:{claim.turn_id}:{tx.number('turn_request', **place)}"
    if tx.row("delivery_by_cause", session_id=claim.session_id, cause=cause) is None:
        enqueue_delivery(
            tx, claim.session_id, claim.turn_id, cause, (told(patience),), anchor=turn.anchor
        )


def leave(
    tx: Transaction,
    claim: Claim,
    event: TurnEvent,
    *,
    question_seq: Seq | None = None,
    expires_ms: int | None = None,
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
    """A file for the person; it goes out while the turn goes on."""
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
