"""Turns under a claim: every write is conditional on its epoch."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from koboshi.domain import phrases
from koboshi.domain.errors import Fenced
from koboshi.domain.ids import (
    CallId,
    Epoch,
    Generation,
    ProcessId,
    Seq,
    SessionId,
    TurnId,
    WorkerId,
)
from koboshi.domain.recovery import Verdict, VerdictKind
from koboshi.domain.transcript import (
    Answer,
    Author,
    Call,
    Choice,
    Note,
    ProposedCall,
    Question,
    Reply,
    Result,
    Step,
    fingerprint,
)
from koboshi.domain.turn import Claim, TurnEvent, TurnState
from koboshi.ports.store import NO_SIZES, Loaded
from koboshi.ports.wakeups import JOURNAL
from koboshi.stores.sqlite.facts import facts_of
from koboshi.stores.sqlite.ground import Ground
from koboshi.stores.sqlite.judge import judge
from koboshi.stores.sqlite.loading import fenced, load_turn
from koboshi.stores.sqlite.processes import mark_exit_read, mark_log_size
from koboshi.stores.sqlite.reader import Readers
from koboshi.stores.sqlite.replies import expire_question
from koboshi.stores.sqlite.resume import leave_note
from koboshi.stores.sqlite.rows import number, text
from koboshi.stores.sqlite.transaction import Reading, Transaction
from koboshi.stores.sqlite.writer import Writer
from koboshi.stores.sqlite.writes import (
    add_result,
    add_step,
    attach_at_boundary,
    is_unresolved,
    move_turn,
    open_next,
    owe,
    read_request,
    read_session,
    read_turn,
    readmit_reports,
    resolve_calls,
)

DEADLY_MS = 20_000
"""A call that began this shortly before the gateway died may be what killed it."""


class SqliteTurns:
    def __init__(self, writer: Writer, readers: Readers, ground: Ground) -> None:
        self._writer = writer
        self._readers = readers
        self._ground = ground

    async def claim(self, worker_id: WorkerId, limit: int) -> tuple[Claim, ...]:
        def operation(tx: Transaction) -> tuple[Claim, ...]:
            rows = tx.rows("turns_due", now=tx.now_ms, limit=limit)
            claims = []
            for turn_id, session_id, generation, epoch, person, channel in rows:
                claim = Claim(
                    turn_id=TurnId(number(turn_id)),
                    session_id=SessionId(number(session_id)),
                    generation=Generation(number(generation)),
                    epoch=Epoch(number(epoch) + 1),
                    worker_id=worker_id,
                )
                is_plain = epoch == 0 and self._ground.serves(text(channel), text(person))
                if is_plain or _lets_through(tx, self._ground, claim.turn_id):
                    _take(tx, claim)
                    claims.append(claim)
            return tuple(claims)

        return await self._writer.write("turns.claim", operation)

    async def due_in_ms(self) -> int | None:
        def look(tx: Reading) -> int | None:
            row = tx.row("turns_next_due")
            return None if row is None else max(0, number(row[0]) - tx.now_ms)

        return await self._readers.read(look)

    async def load(self, claim: Claim) -> Loaded:
        return await self._readers.read(lambda tx: load_turn(tx, self._ground, claim))

    async def holds(self, claim: Claim) -> bool:
        return await self._readers.read(lambda tx: _is_held(tx, claim))

    async def append(
        self, claim: Claim, reply: Reply, calls: Sequence[ProposedCall]
    ) -> tuple[Step, ...]:
        def operation(tx: Transaction) -> tuple[Step, ...]:
            _progress(tx, claim)
            seq = tx.number("step_next")
            stored = tuple(_call(seq, place, call) for place, call in enumerate(calls))
            step = _step(tx, claim, "model", replace(reply, calls=stored))
            for place, call in enumerate(stored):
                _propose(tx, claim, seq * 1_000 + place, call)
            return (step,)

        return await self._writer.write("turns.append", operation)

    async def note(self, claim: Claim, note: Note) -> tuple[Step, ...]:
        def operation(tx: Transaction) -> tuple[Step, ...]:
            if not _is_held(tx, claim):
                raise fenced(claim)
            return (_step(tx, claim, note.cause, note),)

        return await self._writer.write("turns.note", operation)

    async def start_call(self, claim: Claim, call_id: CallId) -> bool:
        def operation(tx: Transaction) -> bool:
            if tx.row("call_is_deadly", turn_id=claim.turn_id, call_id=call_id, quiet_ms=DEADLY_MS):
                return False
            if not _start(tx, claim, call_id):
                raise fenced(claim)
            return True

        return await self._writer.write("turns.start_call", operation)

    async def finish_call(
        self, claim: Claim, result: Result, exits_read: Sequence[ProcessId] = ()
    ) -> tuple[Step, ...]:
        def operation(tx: Transaction) -> tuple[Step, ...]:
            _progress(tx, claim)
            for process_id in exits_read:
                mark_exit_read(tx, process_id, result.call_id)
            step = add_result(tx, claim.session_id, claim.turn_id, claim.epoch, result)
            joined = attach_at_boundary(
                tx, self._ground, claim.session_id, claim.turn_id, claim.epoch
            )
            return (step, *joined)

        return await self._writer.write("turns.finish_call", operation)

    async def ask(
        self, claim: Claim, call_id: CallId, text: str, choices: Sequence[Choice], age_ms_max: int
    ) -> None:
        def operation(tx: Transaction) -> None:
            if not is_unresolved(tx, claim.turn_id, call_id):
                raise Fenced(f"call {call_id} of turn {claim.turn_id} has nothing to ask")
            tx.change("call_ask", turn_id=claim.turn_id, call_id=call_id, now=tx.now_ms)
            question = Question(
                author=Author.MODEL, text=text, choices=tuple(choices), call_id=call_id
            )
            step = _step(tx, claim, f"call:{call_id}", question)
            _leave(
                tx,
                claim,
                TurnEvent.ASKED,
                question_seq=step.seq,
                expires_ms=tx.now_ms + age_ms_max,
            )
            readmit_reports(tx, self._ground, claim.session_id)
            owe(
                tx,
                claim.session_id,
                claim.turn_id,
                f"step:{step.seq}",
                (text,),
                anchor=_anchor(tx, claim),
                choices=tuple(choices),
                question=step.seq,
            )

        await self._writer.write("turns.ask", operation)

    async def answer(
        self,
        claim: Claim,
        reply: Reply,
        parts: Sequence[str],
        log_sizes: Mapping[ProcessId, int] = NO_SIZES,
    ) -> None:
        if not parts:
            raise ValueError("an answer has at least one part")

        def operation(tx: Transaction) -> None:
            answer = Answer(
                text=reply.text,
                model=reply.model,
                tokens_in=reply.tokens_in,
                tokens_out=reply.tokens_out,
                raw=reply.raw,
            )
            _leave(tx, claim, TurnEvent.ANSWERED)
            by = "the answer came first"
            resolve_calls(tx, claim.session_id, claim.turn_id, claim.epoch, by)
            step = _step(tx, claim, "model", answer)
            cause, anchor = f"step:{step.seq}", _anchor(tx, claim)
            owe(tx, claim.session_id, claim.turn_id, cause, parts, anchor=anchor)
            for process_id, size in log_sizes.items():
                mark_log_size(tx, claim.turn_id, process_id, size)
            open_next(tx, self._ground, claim.session_id)

        await self._writer.write("turns.answer", operation)

    async def fail(self, claim: Claim, reason: str) -> None:
        def operation(tx: Transaction) -> None:
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
            words = phrases.failed(read_request(tx, turn), phrases.failure(reason))
            cause = f"failure:{claim.turn_id}"
            owe(tx, claim.session_id, claim.turn_id, cause, (words,), anchor=turn.anchor)
            open_next(tx, self._ground, claim.session_id)

        await self._writer.write("turns.fail", operation)

    async def retry_model(self, claim: Claim) -> int:
        def operation(tx: Transaction) -> int:
            row = tx.row("turn_tried_model", turn_id=claim.turn_id, epoch=claim.epoch)
            if row is None:
                raise fenced(claim)
            return number(row[0])

        return await self._writer.write("turns.retry_model", operation)

    async def release(self, claim: Claim) -> None:
        def operation(tx: Transaction) -> None:
            turn = read_turn(tx, claim.turn_id)
            if turn is None:
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
            leave_note(tx, released, facts_of(tx, self._ground, released, session))

        await self._writer.write("turns.release", operation)

    async def unowned(self, worker_id: WorkerId, *, with_suspended: bool) -> tuple[TurnId, ...]:
        query = "turns_to_judge" if with_suspended else "turns_unowned"
        rows = await self._readers.read(lambda tx: tx.rows(query, worker_id=worker_id))
        return tuple(TurnId(number(row[0])) for row in rows)

    async def recover(self, turn_id: TurnId, worker_id: WorkerId) -> Verdict | None:
        def operation(tx: Transaction) -> Verdict | None:
            turn = read_turn(tx, turn_id)
            if turn is None or turn.closed_ms is not None:
                return None
            if turn.state is TurnState.RUNNING and turn.worker_id == worker_id:
                return None
            return judge(tx, self._ground, turn)

        return await self._writer.write("turns.recover", operation)

    async def expire(self, limit: int) -> int:
        def operation(tx: Transaction) -> int:
            rows = tx.rows("turns_expired", now=tx.now_ms, limit=limit)
            for row in rows:
                expire_question(tx, self._ground, TurnId(number(row[0])))
            return len(rows)

        return await self._writer.write("turns.expire", operation)


def _lets_through(tx: Transaction, ground: Ground, turn_id: TurnId) -> bool:
    """A turn that was worked on before is judged again, so that nothing stale slips in."""
    turn = read_turn(tx, turn_id)
    assert turn is not None
    return judge(tx, ground, turn).kind is VerdictKind.RESUME


def _take(tx: Transaction, claim: Claim) -> None:
    touched = tx.change(
        "turn_claim",
        turn_id=claim.turn_id,
        epoch=claim.epoch - 1,
        worker_id=claim.worker_id,
        now=tx.now_ms,
    )
    if not touched:
        raise fenced(claim)
    tx.hints.add(JOURNAL)


def _is_held(tx: Reading, claim: Claim) -> bool:
    return tx.row("turn_held", turn_id=claim.turn_id, epoch=claim.epoch) is not None


def _progress(tx: Transaction, claim: Claim) -> None:
    touched = tx.change("turn_progress", turn_id=claim.turn_id, epoch=claim.epoch, now=tx.now_ms)
    if not touched:
        raise fenced(claim)


def _start(tx: Transaction, claim: Claim, call_id: CallId) -> int:
    return tx.change(
        "call_start",
        turn_id=claim.turn_id,
        call_id=call_id,
        epoch=claim.epoch,
        now=tx.now_ms,
    )


def _leave(
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


def _step(
    tx: Transaction, claim: Claim, cause: str, body: Note | Reply | Question | Answer
) -> Step:
    return add_step(tx, claim.session_id, claim.turn_id, claim.epoch, cause, body)


def _anchor(tx: Transaction, claim: Claim) -> str:
    turn = read_turn(tx, claim.turn_id)
    assert turn is not None
    return turn.anchor


def _call(seq: int, place: int, call: ProposedCall) -> Call:
    return Call(
        call_id=CallId(f"{seq}.{place}"),
        tool=call.tool,
        arguments=call.arguments,
        effect=call.effect,
        need=call.need,
        provider_id=call.provider_id,
    )


def _propose(tx: Transaction, claim: Claim, place: int, call: Call) -> None:
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
