"""The verbs of turns: claim, work under a claim, recover, expire.

Theory of operation. A turn is RUNNING exactly while one worker holds it, and its row carries the
epoch of that claim. So at every moment:

* Every write of the holder repeats turn, epoch and RUNNING in its condition. If it touches no row,
  the claim is void: the verb raises `Fenced` and its transaction changes nothing. A worker that was
  taken for gone, or whose turn a person stopped, cannot write, however late it wakes.
* Every effect on the world lies between two commits. `append` stores calls as proposed,
  `start_call` marks one as started, `finish_call` stores its result. A call that is not started has
  certainly not run. A started call without a result is a known unknown.
* The transcript alone says what comes next (`domain/action.py`). A turn that is taken up after a
  crash continues with the step that was next before it.
* The step that ends the work, the deliveries that it owes, and the next turn of the session are one
  transaction (`go_on_after`). "Answered but still running" cannot be stored.
* Only progress moves `progressed_ms`: a step of the work or an answer of a person. A claim, a
  release or a retry does not.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from koboshi.domain import phrases
from koboshi.domain.action import BY_GATEWAY, OWN_REPLY
from koboshi.domain.command import ActionStanding, OperatorAction
from koboshi.domain.errors import Fenced
from koboshi.domain.files import OutFile, Parcel
from koboshi.domain.ids import CallId, ProcessId, TurnId, WorkerId
from koboshi.domain.outage import Decision, ModelFailure
from koboshi.domain.progress import ProgressFacts
from koboshi.domain.recovery import Verdict, VerdictKind
from koboshi.domain.role import Role, RoleStanding
from koboshi.domain.transcript import (
    ApprovalSeal,
    Author,
    Choice,
    Note,
    ProposedCall,
    Question,
    Reply,
    Result,
    Step,
    Summary,
)
from koboshi.domain.turn import Claim, TurnEvent, TurnState
from koboshi.kernel.approvals import spare_by_rule
from koboshi.kernel.claims import (
    DueTurn,
    anchor_of,
    answer_turn,
    call_at,
    fail_turn,
    find_due,
    is_held,
    is_plain,
    leave,
    note_failure,
    owe_parcel,
    own_step,
    postpone_turn,
    progress,
    propose,
    release_turn,
    take,
)
from koboshi.kernel.context import VerbContext
from koboshi.kernel.decode import first_number, number, numbers
from koboshi.kernel.enqueue import enqueue_delivery
from koboshi.kernel.facts import is_worked_on, standing_of_turn, turns_held_up
from koboshi.kernel.keys import lock_found, of_sessions, rows_locked
from koboshi.kernel.loading import covered_by, fenced, load_turn, newest_summary
from koboshi.kernel.next_turn import attach_at_boundary, go_on_after, readmit_reports
from koboshi.kernel.operator_action import will_of_operator
from koboshi.kernel.owners import ask_owners, card_of, is_for_owners, require_role
from koboshi.kernel.progress import progress_facts, tell_progress
from koboshi.kernel.record import (
    add_result,
    mark_exit_read,
    move_turn,
    resolve_calls,
)
from koboshi.kernel.recovery import apply_verdict
from koboshi.kernel.rows import is_unresolved, read_question, read_session, read_turn
from koboshi.kernel.transaction import Readers, Reading, Transaction, Value, Writer
from koboshi.ports.store import NO_SIZES, Loaded

DEADLY_MS = 20_000
"""A call that began less than this before the gateway died may have killed it."""


class TurnVerbs:
    def __init__(self, writer: Writer, readers: Readers, context: VerbContext) -> None:
        self._writer = writer
        self._readers = readers
        self._context = context

    async def claim(
        self, worker_id: WorkerId, limit: int, *, recovered_max: int | None = None
    ) -> tuple[Claim, ...]:
        def operation(tx: Transaction) -> tuple[Claim, ...]:
            first = _claim_due(tx, self._context, worker_id, limit, is_recovered=False)
            left = limit - len(first)
            if recovered_max is not None:
                left = min(left, recovered_max)
            if not left:
                return first
            return first + _claim_due(tx, self._context, worker_id, left, is_recovered=True)

        return await self._writer.write("turns.claim", operation)

    async def due_in_ms(self, *, with_recovered: bool = True) -> int | None:
        def look(tx: Reading) -> int | None:
            kinds = (0, 1) if with_recovered else (0,)
            here: dict[str, Value] = {"now": tx.now_ms, "node": self._context.node}
            rows = [tx.row("turns_next_due", recovered=kind, **here) for kind in kinds]
            found = [first_number(row) for row in rows]
            due = [max(0, due_ms - tx.now_ms) for due_ms in found if due_ms is not None]
            return min(due, default=None)

        return await self._readers.read(look)

    async def load(self, claim: Claim) -> Loaded:
        return await self._readers.read(lambda tx: load_turn(tx, self._context, claim))

    async def standing(self, claim: Claim) -> RoleStanding:
        return await self._readers.read(lambda tx: standing_of_turn(tx, self._context, claim))

    async def holds(self, claim: Claim) -> bool:
        return await self._readers.read(lambda tx: is_held(tx, claim))

    async def append(
        self, claim: Claim, reply: Reply, calls: Sequence[ProposedCall]
    ) -> tuple[Step, ...]:
        def operation(tx: Transaction) -> tuple[Step, ...]:
            progress(tx, claim)
            seq = tx.next_step()
            stored = tuple(call_at(seq, place, call) for place, call in enumerate(calls))
            by = OWN_REPLY if reply.model == BY_GATEWAY else "model"
            step = own_step(tx, claim, by, replace(reply, calls=stored), seq=seq)
            for place, call in enumerate(stored):
                propose(tx, claim, seq * 1_000 + place, call)
            return (step,)

        return await self._writer.write("turns.append", operation, of_sessions(claim.session_id))

    async def note(self, claim: Claim, note: Note) -> tuple[Step, ...]:
        def operation(tx: Transaction) -> tuple[Step, ...]:
            if not is_held(tx, claim):
                raise fenced(claim)
            return (own_step(tx, claim, note.cause, note),)

        return await self._writer.write("turns.note", operation, of_sessions(claim.session_id))

    async def summarise(self, claim: Claim, summary: Summary) -> tuple[Step, ...]:
        def operation(tx: Transaction) -> tuple[Step, ...]:
            held = {"turn_id": claim.turn_id, "epoch": claim.epoch}
            if not tx.change("turn_model_answered", **held):
                raise fenced(claim)
            newest = newest_summary(tx, read_session(tx, claim.session_id), claim)
            if not covered_by(newest) < summary.covers < tx.next_step():
                raise ValueError(f"a summary up to step {summary.covers} covers nothing more")
            return (own_step(tx, claim, "context", summary),)

        return await self._writer.write("turns.summarise", operation, of_sessions(claim.session_id))

    async def start_call(
        self,
        claim: Claim,
        call_id: CallId,
        seal: str | None = None,
        role: Role = Role.MEMBER,
    ) -> bool:
        def operation(tx: Transaction) -> bool:
            if role is not Role.MEMBER:
                require_role(tx, self._context, claim, role)
            if _start(tx, claim, call_id, seal):
                return True
            if _was_unsettled(tx, claim, call_id):
                return False
            raise fenced(claim)

        return await self._writer.write(
            "turns.start_call", operation, of_sessions(claim.session_id)
        )

    async def finish_call(
        self,
        claim: Claim,
        result: Result,
        exits_read: Sequence[ProcessId] = (),
        parcel: Parcel | None = None,
    ) -> tuple[Step, ...]:
        def operation(tx: Transaction) -> tuple[Step, ...]:
            progress(tx, claim)
            for process_id in exits_read:
                mark_exit_read(tx, process_id, result.call_id)
            if parcel is not None:
                owe_parcel(tx, claim, result.call_id, parcel)
            step = add_result(tx, claim.session_id, claim.turn_id, claim.epoch, result)
            joined = attach_at_boundary(
                tx, self._context, claim.session_id, claim.turn_id, claim.epoch
            )
            return (step, *joined)

        return await self._writer.write(
            "turns.finish_call", operation, of_sessions(claim.session_id)
        )

    async def ask(
        self,
        claim: Claim,
        call_id: CallId,
        text: str,
        choices: Sequence[Choice],
        age_ms_max: int,
        *,
        sealed: ApprovalSeal | None = None,
        chat_text: str = "",
    ) -> bool:
        def operation(tx: Transaction) -> bool:
            if not is_unresolved(tx, claim.turn_id, call_id):
                raise Fenced(f"call {call_id} of turn {claim.turn_id} has nothing to ask")
            if sealed is not None and not is_held(tx, claim):
                raise fenced(claim)
            if sealed is not None and spare_by_rule(tx, self._context, claim, call_id, sealed):
                return False
            tx.change("call_ask", turn_id=claim.turn_id, call_id=call_id, now=tx.now_ms)
            question = Question(
                author=Author.MODEL,
                text=text,
                choices=tuple(choices),
                call_id=call_id,
                sealed=sealed,
            )
            step = own_step(tx, claim, f"call:{call_id}", question)
            leave(
                tx,
                claim,
                TurnEvent.ASKED,
                question_seq=step.seq,
                expires_ms=tx.now_ms + age_ms_max,
            )
            readmit_reports(tx, self._context, claim.session_id)
            card, anchor = card_of(step.seq, question, chat_text), anchor_of(tx, claim)
            if is_for_owners(tx, self._context, claim, question):
                ask_owners(tx, self._context, claim, card, anchor=anchor)
            else:
                card.owe(tx, claim.session_id, claim.turn_id, anchor=anchor)
            return True

        return await self._writer.write("turns.ask", operation, of_sessions(claim.session_id))

    async def answer(
        self,
        claim: Claim,
        reply: Reply,
        parts: Sequence[str],
        log_sizes: Mapping[ProcessId, int] = NO_SIZES,
        file: OutFile | None = None,
        *,
        is_silent: bool = False,
    ) -> None:
        if bool(parts) == is_silent:
            raise ValueError("an answer has at least one part, unless no person is told")

        def operation(tx: Transaction) -> None:
            answer_turn(tx, self._context, claim, reply, parts, log_sizes, file)

        await self._writer.write("turns.answer", operation, of_sessions(claim.session_id))

    async def fail(self, claim: Claim, reason: str) -> None:
        await self._writer.write(
            "turns.fail",
            lambda tx: fail_turn(tx, self._context, claim, reason),
            of_sessions(claim.session_id),
        )

    async def progress(self, claim: Claim) -> ProgressFacts:
        return await self._readers.read(lambda tx: progress_facts(tx, self._context, claim))

    async def tell_progress(self, claim: Claim, ordinal: int, words: str) -> None:
        await self._writer.write(
            "turns.tell_progress",
            lambda tx: tell_progress(tx, claim, ordinal, words),
            of_sessions(claim.session_id),
        )

    async def retry_model(self, claim: Claim, failure: ModelFailure) -> Decision:
        patience = self._context.world.patience
        return await self._writer.write(
            "turns.retry_model",
            lambda tx: note_failure(tx, claim, failure, patience),
            of_sessions(claim.session_id),
        )

    async def postpone(self, claim: Claim, wait_ms: int, reason: str) -> None:
        await self._writer.write(
            "turns.postpone",
            lambda tx: postpone_turn(tx, claim, wait_ms, reason),
            of_sessions(claim.session_id),
        )

    async def release(self, claim: Claim) -> None:
        await self._writer.write(
            "turns.release",
            lambda tx: release_turn(tx, self._context, claim),
            of_sessions(claim.session_id),
        )

    async def unowned(self, *, with_suspended: bool) -> tuple[TurnId, ...]:
        query = "turns_to_judge" if with_suspended else "turns_unowned"

        def look(tx: Reading) -> tuple[TurnId, ...]:
            found = tuple(TurnId(each) for each in numbers(tx.rows(query)))
            return found + turns_held_up(tx, self._context) if with_suspended else found

        return await self._readers.read(look)

    async def recover(self, turn_id: TurnId) -> Verdict | None:
        def operation(tx: Transaction) -> Verdict | None:
            lock_found(tx, "turn_key", turn_id=turn_id)
            turn = read_turn(tx, turn_id)
            if turn is None or turn.closed_ms is not None or is_worked_on(tx, turn):
                return None
            return apply_verdict(tx, self._context, turn)

        return await self._writer.write("turns.recover", operation)

    async def will(self, turn_id: TurnId, will: OperatorAction) -> ActionStanding | None:
        return await self._writer.write(
            "turns.will", lambda tx: will_of_operator(tx, self._context, turn_id, will)
        )

    async def expire(self, limit: int) -> int:
        def operation(tx: Transaction) -> int:
            rows = rows_locked(tx, "turns_expired", 1, now=tx.now_ms, limit=limit)
            for turn_id, _ in rows:
                expire_question(tx, self._context, TurnId(number(turn_id)))
            return len(rows)

        return await self._writer.write("turns.expire", operation)


def _start(tx: Transaction, claim: Claim, call_id: CallId, seal: str | None) -> int:
    return tx.change(
        "call_start_settled",
        turn_id=claim.turn_id,
        call_id=call_id,
        epoch=claim.epoch,
        seal=seal,
        quiet_ms=DEADLY_MS,
        now=tx.now_ms,
    )


def _was_unsettled(tx: Reading, claim: Claim, call_id: CallId) -> bool:
    row = tx.row("call_was_unsettled", turn_id=claim.turn_id, call_id=call_id, quiet_ms=DEADLY_MS)
    return row is not None


def expire_question(tx: Transaction, context: VerbContext, turn_id: TurnId) -> None:
    """A question was not answered in time: the turn ends, and the person is told once."""
    turn = read_turn(tx, turn_id)
    assert turn is not None
    assert turn.question_seq is not None
    question = read_question(tx, turn.question_seq)
    by = "nobody answered"
    resolve_calls(tx, turn.session_id, turn_id, turn.epoch, by)
    move_turn(tx, turn_id, turn.epoch, TurnState.WAITING, TurnEvent.EXPIRED, reason=by)
    cause = f"expired:{turn.question_seq}"
    words = (phrases.expired(question.text),)
    enqueue_delivery(tx, turn.session_id, turn_id, cause, words, anchor=turn.anchor)
    go_on_after(tx, context, turn.session_id, turn.turn_id)


def _claim_due(
    tx: Transaction, context: VerbContext, worker_id: WorkerId, limit: int, *, is_recovered: bool
) -> tuple[Claim, ...]:
    """Claim up to `limit` turns that are due, of those that were recovered or of the others."""

    def claim(due: DueTurn) -> Claim | None:
        if not tx.try_lock(due.lock_key):
            return None
        if not is_plain(tx, context, due) and not _lets_through(tx, context, due):
            return None
        return take(tx, context, due, worker_id, is_recovered=is_recovered)

    found = find_due(tx, context, worker_id, limit, is_recovered=is_recovered)
    return tuple(each for each in tx.each(claim, found) if each is not None)


def _lets_through(tx: Transaction, context: VerbContext, due: DueTurn) -> bool:
    """A turn that was worked on before is judged again, so that no stale turn is claimed. One that
    another node took or ended before its key was held is not ours to judge."""
    turn = read_turn(tx, due.turn_id)
    assert turn is not None
    if turn.closed_ms is not None or turn.epoch != due.epoch or is_worked_on(tx, turn):
        return False
    return apply_verdict(tx, context, turn).kind is VerdictKind.RESUME
