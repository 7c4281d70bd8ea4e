"""What an agent told becomes steps, in the transaction that moves its place in the spool.

At every moment the stored place and what is stored of it agree: whatever lies below was applied
once, and whatever lies above was not applied. So a gateway that dies anywhere reads on and neither
loses nor repeats a step.

* Words and calls count for the turn of the prompt that has no answer yet, if the turn is held. They
  are kept as events otherwise: no person is told what an agent says outside of a turn.
* Between a load and its answer everything is a replay. Only the marks of turns in it matter.
* A call of the agent is stored as started: it runs already. It can be taken up together with its
  agent, so it counts as resumable, and becomes unknown when the agent is found dead.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import assert_never

from koboshi.domain.agent import (
    REQUEST_BYTES_MAX,
    REQUESTS_MAX,
    AgentMessage,
    MessageKind,
)
from koboshi.domain.agent_talk import (
    CALLS_MAX,
    EVENT_CHARS_MAX,
    LEFT_OUT,
    SAID_CHARS_MAX,
    Asked,
    CallBegan,
    CallEnded,
    Echoed,
    Heard,
    Said,
    Settled,
    ToldMore,
    marks_in,
)
from koboshi.domain.ids import CallId, ProcessId, TurnId
from koboshi.domain.transcript import Call, Effect, Reply, Result, ResultStatus, fingerprint
from koboshi.kernel.agent_rows import AgentProcessRow, messages_of, requests_waiting
from koboshi.kernel.decode import first_text
from koboshi.kernel.record import add_result, add_step
from koboshi.kernel.rows import TurnRow
from koboshi.kernel.transaction import Transaction

EVENTS_MAX = 5_000
"""How many events of one process are kept."""
NAMELESS = "its answer names no session"


@dataclass(slots=True, kw_only=True)
class SpoolHearing:
    """One look at the spool. Changes rows as it goes; `row` is written once, by the caller."""

    tx: Transaction
    row: AgentProcessRow
    agent: str
    external_id: str | None
    turn: TurnRow | None
    """The turn that the agent works on; None if none is held."""
    messages: dict[int, AgentMessage] = field(default_factory=dict)
    """Those without an answer, by their numbers."""
    prompt: AgentMessage | None = None
    """The prompt that the agent works on."""
    is_replay: bool = False
    updates: int = 0
    waiting: int = 0
    waiting_bytes: int = 0
    calls: int = -1
    """How many calls the turn has; -1: it was not looked."""
    does_too_much: bool = False
    """A call was not kept: the turn has too many."""
    charge: Callable[[TurnId, int], None] = lambda _turn, _cost: None
    """Told what a prompt cost."""

    def hear(self, heard: Sequence[Heard], *, is_bounded: bool) -> int | None:
        """Apply what was heard. A request beyond those that may wait is left, with all behind it:
        returns its place. Where nothing will be answered, it is noted instead."""
        self._look()
        self.waiting, self.waiting_bytes = requests_waiting(self.tx, self.row.process_id)
        for each in heard:
            match each:
                case Settled():
                    self._settle(each)
                case Asked() if is_bounded and self._has_no_room(each):
                    self._count_updates()
                    return each.offset
                case Asked():
                    self._ask(each)
                case Echoed(text=text):
                    self._echo(text)
                case _ if self.is_replay:
                    continue
                case ToldMore():
                    self._tell(each.offset, each.kind, each.text)
                case Said() | CallBegan() | CallEnded() if not self._counts(each.session):
                    self._tell(each.offset, "outside", _words_of(each))
                case Said(text=text):
                    self._say(text)
                case CallBegan():
                    self._begin_call(each)
                case CallEnded():
                    self._end_call(each)
                case _:
                    assert_never(each)
        self._count_updates()
        return None

    def _look(self) -> None:
        """See which messages have no answer yet."""
        found = messages_of(self.tx, self.row.process_id)
        self.messages = {each.number: each for each in found if not each.is_settled}
        waiting = self.messages.values()
        prompts = (each for each in waiting if each.kind is MessageKind.PROMPT)
        self.prompt = next(prompts, None)
        self.is_replay = any(each.kind is MessageKind.LOAD for each in waiting)

    def _counts(self, session: str) -> bool:
        """Whether what the agent tells now is of the turn that it works on."""
        prompt = self.prompt
        is_ours = prompt is not None and session == (self.external_id or session)
        if is_ours:
            self.updates += 1
        return is_ours and self.turn is not None

    def _count_updates(self) -> None:
        prompt = self.prompt
        if prompt is not None and self.updates:
            self.tx.change(
                "agent_prompt_updates",
                process_id=prompt.process_id,
                number=prompt.number,
                updates=self.updates,
            )
        self.updates = 0

    def _echo(self, text: str) -> None:
        if self.is_replay:
            for turn_id in marks_in(text):
                newest = max(turn_id, self.row.replayed_turn or 0)
                self.row = self.row._replace(replayed_turn=TurnId(newest))

    def _say(self, text: str) -> None:
        room = SAID_CHARS_MAX - len(self.row.said)
        if room <= 0:
            return
        said = text if len(text) <= room else text[:room] + LEFT_OUT
        self.row = self.row._replace(said=self.row.said + said)

    def _tell(self, offset: int, kind: str, text: str) -> None:
        turn_id = self.prompt.turn_id if self.prompt else None
        if kind == "plan" and turn_id is not None:
            place = {"process_id": self.row.process_id, "turn_id": turn_id}
            forgotten = self.tx.change("agent_plan_forget", **place)
            self.row = self.row._replace(events=self.row.events - forgotten)
        if self.row.events >= EVENTS_MAX:
            return
        self.row = self.row._replace(events=self.row.events + 1)
        self.tx.change(
            "agent_event_insert",
            process_id=self.row.process_id,
            spool_offset=offset,
            session_id=self.row.session_id,
            turn_id=turn_id,
            kind=kind,
            body=text[:EVENT_CHARS_MAX],
            now=self.tx.now_ms,
        )

    def _begin_call(self, began: CallBegan) -> None:
        turn, tx = self.turn, self.tx
        assert turn is not None
        if self._open_call(turn.turn_id, began.external_id) is not None:
            return
        if self._calls_of(turn.turn_id) >= CALLS_MAX:
            self.does_too_much = True
            return
        self.calls += 1
        seq = tx.next_step()
        call = Call(
            call_id=CallId(f"{seq}.0"),
            tool=began.kind,
            arguments=began.arguments,
            effect=Effect.RESUMABLE,
            provider_id=began.external_id,
        )
        reply = Reply(text=self._take_words(), calls=(call,), model=self.agent)
        add_step(tx, turn.session_id, turn.turn_id, turn.epoch, "agent", reply, seq)
        tx.insert(
            "call_insert",
            turn_id=turn.turn_id,
            call_id=call.call_id,
            place=seq * 1_000,
            tool=call.tool,
            arguments=call.arguments,
            effect=call.effect,
            need=call.need,
            provider_id=call.provider_id,
            args_hash=fingerprint(call.tool, call.arguments),
        )
        tx.change(
            "call_start",
            turn_id=turn.turn_id,
            call_id=call.call_id,
            epoch=turn.epoch,
            seal=None,
            now=tx.now_ms,
        )

    def _calls_of(self, turn_id: TurnId) -> int:
        if self.calls < 0:
            self.calls = self.tx.number("agent_calls_count", turn_id=turn_id)
        return self.calls

    def _end_call(self, ended: CallEnded) -> None:
        turn = self.turn
        assert turn is not None
        call_id = self._open_call(turn.turn_id, ended.external_id)
        if call_id is None:
            return
        status = ResultStatus.OK if ended.is_ok else ResultStatus.ERROR
        result = Result(call_id=call_id, status=status, text=ended.text)
        add_result(self.tx, turn.session_id, turn.turn_id, turn.epoch, result)

    def _open_call(self, turn_id: TurnId, provider_id: str) -> CallId | None:
        row = self.tx.row("agent_call_by_provider", turn_id=turn_id, provider_id=provider_id)
        found = first_text(row)
        return None if found is None else CallId(found)

    def _take_words(self) -> str:
        words = self.row.said
        self.row = self.row._replace(said="")
        return words

    def _settle(self, settled: Settled) -> None:
        message = self.messages.get(settled.number)
        if message is None:
            return
        self._count_updates()
        tx, process_id, error = self.tx, self.row.process_id, settled.error
        if message.kind is MessageKind.NEW and settled.external_id is None:
            error = error or NAMELESS
        tx.change(
            "agent_message_settle",
            process_id=process_id,
            number=settled.number,
            error=error,
            stop=settled.stop,
            tokens_in=settled.tokens_in,
            tokens_out=settled.tokens_out,
            now=tx.now_ms,
        )
        if settled.cost and message.turn_id is not None:
            self.charge(message.turn_id, settled.cost)
        if message.kind is MessageKind.INITIALIZE:
            self.row = self.row._replace(can_load=int(settled.can_load))
        if message.kind is MessageKind.NEW and settled.external_id is not None:
            self.external_id = settled.external_id
            tx.change(
                "agent_session_named",
                agent_session_id=self.row.agent_session_id,
                external_id=settled.external_id,
            )
        self._look()

    def _has_no_room(self, asked: Asked) -> bool:
        has_room = self.waiting_bytes + len(asked.params) <= REQUEST_BYTES_MAX
        return self.waiting >= REQUESTS_MAX or (self.waiting > 0 and not has_room)

    def _ask(self, asked: Asked) -> None:
        if self._has_no_room(asked):
            self._tell(asked.offset, "too-many-requests", asked.method)
            return
        self.waiting += 1
        self.waiting_bytes += len(asked.params)
        turn_id = self.turn.turn_id if self.turn is not None and self.prompt else None
        self.tx.change(
            "agent_request_insert",
            process_id=self.row.process_id,
            spool_offset=asked.offset,
            session_id=self.row.session_id,
            turn_id=turn_id,
            external_id=asked.external_id,
            method=asked.method,
            params=asked.params,
            now=self.tx.now_ms,
        )


def store_place(tx: Transaction, before: AgentProcessRow, after: AgentProcessRow) -> bool:
    """Move the stored place. False if another reader did so first."""
    touched = tx.change(
        "agent_process_read",
        process_id=before.process_id,
        before_offset=before.read_offset,
        after_offset=after.read_offset,
        said=after.said,
        can_load=after.can_load,
        replayed_turn=after.replayed_turn,
        events=after.events,
        now=tx.now_ms,
    )
    return bool(touched)


def say_to(
    tx: Transaction,
    process: AgentProcessRow,
    kind: MessageKind,
    body: str,
    *,
    turn_id: TurnId | None = None,
    rule: str | None = None,
) -> int | None:
    """Store a message to an agent; its number, or None if there is such a prompt already. The shell
    puts the number into the message where it is fed."""
    process_id: ProcessId = process.process_id
    place = tx.number("agent_message_next", process_id=process_id)
    inserted = tx.change(
        "agent_message_insert",
        process_id=process_id,
        number=place,
        session_id=process.session_id,
        kind=kind,
        turn_id=turn_id,
        rule=rule,
        body=body,
        now=tx.now_ms,
    )
    return place if inserted else None


def _words_of(heard: Said | CallBegan | CallEnded) -> str:
    match heard:
        case Said(text=text) | CallEnded(text=text):
            return text
        case CallBegan(title=title):
            return title
