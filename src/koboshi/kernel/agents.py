"""The verbs of foreign agents: what is said to them, what they told, and how they end.

Theory of operation. An agent is a process under a runner, and outlives the gateway. Both directions
of its wire are durable: a message to it is a row before it is a file, and what it writes stays in a
spool until it is stored. The id of a message is its number in the process. So at every moment:

* A prompt is in at most one row of a process (a unique index), its row makes one file, and the
  runner feeds a file once. No prompt reaches one process twice, whatever dies.
* `take` applies what was read and moves the stored place in one transaction, and only from the
  place that the reader had seen. Two readers cannot apply the same line.
* Steps are written only while the turn is held: the turn's state and epoch are read in the
  transaction. What a closed turn's agent still says is kept as events.
* An agent that has ended is *drained* when all that it wrote is stored. Only then is its death
  decided about (`domain/agent_death.py`), and its calls without an end become unknown.
"""

from collections.abc import Sequence
from functools import partial

from koboshi.domain import phrases
from koboshi.domain.agent import AgentMessage, AgentRequest, AgentStanding, MessageKind
from koboshi.domain.agent_death import death_words
from koboshi.domain.agent_talk import Heard
from koboshi.domain.agent_words import died_note
from koboshi.domain.errors import Fenced
from koboshi.domain.ids import CallId, ProcessId, TurnId
from koboshi.domain.process import Process
from koboshi.domain.sandbox import Boundary
from koboshi.domain.transcript import (
    Author,
    Call,
    Effect,
    Need,
    Note,
    Question,
    Reply,
    Result,
    fingerprint,
)
from koboshi.domain.turn import CLOSED, Claim, TurnEvent, TurnState
from koboshi.kernel.agent_effects import (
    end_terminals,
    finish_permission,
    keep_words,
    open_agent_session,
    tell_of_bounds,
)
from koboshi.kernel.agent_hearing import SpoolHearing, say_to, store_place
from koboshi.kernel.agent_rows import (
    read_agent_process,
)
from koboshi.kernel.agent_views import living_of, open_prompt, read_standing, turn_worked_on
from koboshi.kernel.claims import anchor_of, fail_turn, is_held, leave, own_step, progress
from koboshi.kernel.context import VerbContext
from koboshi.kernel.decode import maybe_text, number, text
from koboshi.kernel.enqueue import enqueue_delivery
from koboshi.kernel.keys import lock_found, of_sessions
from koboshi.kernel.loading import fenced
from koboshi.kernel.purses import charge_turn
from koboshi.kernel.record import (
    ask_end,
    insert_process,
    resolve_calls,
)
from koboshi.kernel.rows import read_turn
from koboshi.kernel.transaction import Readers, Reading, Transaction, Writer
from koboshi.ports.agents import LivingAgent

DIED = "the agent ended before it did"


class AgentVerbs:
    def __init__(self, writer: Writer, readers: Readers, context: VerbContext) -> None:
        self._writer = writer
        self._readers = readers
        self._context = context

    async def standing(self, claim: Claim, agent: str) -> AgentStanding:
        return await self._readers.read(lambda tx: read_standing(tx, self._context, claim, agent))

    async def is_prompted(self, turn_id: TurnId) -> str | None:
        def look(tx: Reading) -> str | None:
            row = tx.row("agent_session_of_turn", turn_id=turn_id)
            if row is None:
                return None
            found = tx.row("agent_session_by_id", agent_session_id=number(row[0]))
            return None if found is None else text(found[1])

        return await self._readers.read(look)

    async def begin(
        self,
        claim: Claim,
        agent: str,
        greeting: str,
        *,
        command: str,
        workdir: str,
        boundary: Boundary,
    ) -> Process:
        def operation(tx: Transaction) -> Process:
            _hold(tx, claim)
            opened = open_agent_session(tx, claim.session_id, agent)
            count = tx.number("agent_process_begun_count", turn_id=claim.turn_id)
            call_id = CallId(f"agent:{count + 1}")
            process = insert_process(
                tx,
                self._context,
                claim,
                call_id,
                command=command,
                workdir=workdir,
                is_foreground=False,
                boundary=boundary,
                agent=agent,
            )
            tx.change(
                "agent_process_insert",
                process_id=process.process_id,
                session_id=claim.session_id,
                agent_session_id=opened,
                now=tx.now_ms,
            )
            row = read_agent_process(tx, process.process_id)
            assert row is not None
            say_to(tx, row, MessageKind.INITIALIZE, greeting)
            return process

        return await self._writer.write("agents.begin", operation, of_sessions(claim.session_id))

    async def say(
        self,
        claim: Claim,
        process_id: ProcessId,
        kind: MessageKind,
        body: str,
        *,
        rule: str | None = None,
        note: Note | None = None,
        told: str = "",
    ) -> None:
        def operation(tx: Transaction) -> None:
            _hold(tx, claim)
            row = read_agent_process(tx, process_id)
            if row is None or row.drained_ms is not None:
                raise Fenced(f"process {process_id} has no agent any more")
            is_prompt = kind is MessageKind.PROMPT
            turn_id = claim.turn_id if is_prompt else None
            place = say_to(tx, row, kind, body, turn_id=turn_id, rule=rule)
            if place is None or not is_prompt:
                return
            tx.change("agent_process_used", process_id=process_id, now=tx.now_ms)
            if note is not None:
                own_step(tx, claim, note.cause, note)
            if told:
                cause = f"agent:{process_id}:{claim.turn_id}"
                enqueue_delivery(
                    tx,
                    claim.session_id,
                    claim.turn_id,
                    cause,
                    (told,),
                    anchor=anchor_of(tx, claim),
                )

        await self._writer.write("agents.say", operation, of_sessions(claim.session_id))

    async def bodies(
        self, process_id: ProcessId, number_from: int
    ) -> tuple[tuple[int, MessageKind, str], ...]:
        rows = await self._readers.read(
            lambda tx: tx.rows("agent_message_bodies", process_id=process_id, number=number_from)
        )
        return tuple((number(at), MessageKind(text(kind)), text(body)) for at, kind, body in rows)

    async def take(
        self,
        process_id: ProcessId,
        before: int,
        after: int,
        heard: Sequence[Heard],
        claim: Claim | None = None,
        *,
        is_alive: bool = True,
    ) -> int | None:
        def operation(tx: Transaction) -> int | None:
            lock_found(tx, "process_key", process_id=process_id)
            row = read_agent_process(tx, process_id)
            if row is None or row.read_offset != before or row.drained_ms is not None:
                return None
            turn = turn_worked_on(tx, process_id)
            is_over = turn is None or turn.state in CLOSED or turn.state is TurnState.ANSWERED
            if claim is None and not is_over:
                return None
            if claim is not None:
                progress(tx, claim)
            is_ours = claim is not None and turn is not None and turn.turn_id == claim.turn_id
            found = tx.row("agent_session_by_id", agent_session_id=row.agent_session_id)
            assert found is not None
            hearing = SpoolHearing(
                tx=tx,
                row=row,
                agent=text(found[1]),
                external_id=maybe_text(found[2]),
                turn=turn if is_ours else None,
                charge=partial(charge_turn, tx, self._context),
            )
            stopped_at = hearing.hear(heard, is_bounded=claim is not None and is_alive)
            if claim is not None:
                tell_of_bounds(
                    tx,
                    claim,
                    hearing.agent,
                    asks=stopped_at is not None,
                    does=hearing.does_too_much,
                )
            place = after if stopped_at is None else stopped_at
            is_moved = store_place(tx, row, hearing.row._replace(read_offset=place))
            return place if is_moved and place > before else None

        return await self._writer.write("agents.take", operation)

    async def drained(self, process_id: ProcessId, *, begun: bool, is_away: bool = False) -> None:
        def operation(tx: Transaction) -> None:
            lock_found(tx, "process_key", process_id=process_id)
            if not tx.change("agent_process_drained", process_id=process_id, now=tx.now_ms):
                return
            if is_away:
                ask_end(tx, process_id)
            row = read_agent_process(tx, process_id)
            assert row is not None
            end_terminals(tx, row)
            tx.change("agent_replies_forget", process_id=process_id)
            prompt = open_prompt(tx, process_id)
            if prompt is None or prompt.turn_id is None:
                return
            values = {"process_id": process_id, "number": prompt.number, "begun": int(begun)}
            tx.change("agent_prompt_begun", **values)
            turn = read_turn(tx, prompt.turn_id)
            if turn is not None and turn.state is TurnState.RUNNING:
                keep_words(tx, turn, process_id)
                resolve_calls(tx, turn.session_id, turn.turn_id, turn.epoch, DIED)

        await self._writer.write("agents.drained", operation)

    async def reply(
        self, request: AgentRequest, body: str, note: str, result: Result | None = None
    ) -> None:
        def operation(tx: Transaction) -> None:
            process_id = request.process_id
            lock_found(tx, "process_key", process_id=process_id)
            row = read_agent_process(tx, process_id)
            if row is None:
                return
            place = tx.number("agent_message_next", process_id=process_id)
            answered = tx.change(
                "agent_request_answer",
                process_id=process_id,
                spool_offset=request.offset,
                number=place,
                note=note,
            )
            if not answered:
                return
            say_to(tx, row, MessageKind.REPLY, body)
            if result is not None and request.turn_id is not None:
                turn = read_turn(tx, request.turn_id)
                if turn is not None and turn.state is TurnState.RUNNING:
                    finish_permission(tx, turn, result)

        await self._writer.write("agents.reply", operation)

    async def propose(
        self, claim: Claim, request: AgentRequest, tool: str, arguments: str
    ) -> CallId:
        def operation(tx: Transaction) -> CallId:
            _hold(tx, claim)
            seq = tx.next_step()
            call = Call(
                call_id=CallId(f"{seq}.0"),
                tool=tool,
                arguments=arguments,
                effect=Effect.NONE,
                need=Need.APPROVAL,
            )
            own_step(tx, claim, "agent", Reply(text="", calls=(call,), model=tool), seq)
            tx.insert(
                "call_insert",
                turn_id=claim.turn_id,
                call_id=call.call_id,
                place=seq * 1_000,
                tool=tool,
                arguments=arguments,
                effect=call.effect,
                need=call.need,
                provider_id="",
                args_hash=fingerprint(tool, arguments),
            )
            tx.change(
                "agent_request_call",
                process_id=request.process_id,
                spool_offset=request.offset,
                call_id=call.call_id,
            )
            return call.call_id

        return await self._writer.write("agents.propose", operation, of_sessions(claim.session_id))

    async def ask(self, claim: Claim, prompt: AgentMessage, words: str, age_ms_max: int) -> None:
        def operation(tx: Transaction) -> None:
            _hold(tx, claim)
            place = {"process_id": prompt.process_id, "number": prompt.number}
            tx.change("agent_prompt_asked", **place, now=tx.now_ms)
            question = Question(author=Author.GATEWAY, text=words, choices=phrases.YES_NO)
            step = own_step(tx, claim, "agent-died", question)
            anchor = anchor_of(tx, claim)
            leave(
                tx,
                claim,
                TurnEvent.PROMPTED,
                question_seq=step.seq,
                expires_ms=tx.now_ms + age_ms_max,
            )
            enqueue_delivery(
                tx,
                claim.session_id,
                claim.turn_id,
                f"step:{step.seq}",
                (words,),
                anchor=anchor,
                choices=phrases.YES_NO,
                question=step.seq,
            )

        await self._writer.write("agents.ask", operation, of_sessions(claim.session_id))

    async def cancel(self, process_id: ProcessId, turn_id: TurnId, body: str) -> None:
        def operation(tx: Transaction) -> None:
            lock_found(tx, "process_key", process_id=process_id)
            row, prompt = read_agent_process(tx, process_id), open_prompt(tx, process_id)
            if row is None or prompt is None or prompt.turn_id != turn_id:
                return
            turn = read_turn(tx, turn_id)
            if turn is not None and turn.closed_ms is not None:
                say_to(tx, row, MessageKind.CANCEL, body, turn_id=turn_id)
                end_terminals(tx, row, turn_id)

        await self._writer.write("agents.cancel", operation)

    async def give_up(
        self, claim: Claim, process_id: ProcessId | None, rule: str, reason: str
    ) -> None:
        def operation(tx: Transaction) -> None:
            _hold(tx, claim)
            own_step(tx, claim, f"agent:{rule}", died_note(rule, death_words(rule)))
            if process_id is not None:
                ask_end(tx, process_id)
            fail_turn(tx, self._context, claim, reason)

        await self._writer.write("agents.give_up", operation, of_sessions(claim.session_id))

    async def end(self, process_id: ProcessId) -> None:
        await self._writer.write("agents.end", lambda tx: ask_end(tx, process_id))

    async def living(self) -> tuple[LivingAgent, ...]:
        home = self._context.home
        rows = await self._readers.read(lambda tx: tx.rows("agent_processes_undrained", home=home))
        return tuple(living_of(*row) for row in rows)

    async def external_id(self, process_id: ProcessId) -> str | None:
        def look(tx: Reading) -> str | None:
            row = read_agent_process(tx, process_id)
            if row is None:
                return None
            found = tx.row("agent_session_by_id", agent_session_id=row.agent_session_id)
            return None if found is None else maybe_text(found[2])

        return await self._readers.read(look)

    async def running(self) -> int:
        home = self._context.home
        return await self._readers.read(lambda tx: tx.number("agents_running_count", home=home))


def _hold(tx: Reading, claim: Claim) -> None:
    if not is_held(tx, claim):
        raise fenced(claim)
