"""One tool call: committed as started, run, committed as finished."""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

import structlog
from anyio import create_task_group

from koboshi.domain import notes
from koboshi.domain.errors import Fenced, StoreFailed
from koboshi.domain.files import Parcel
from koboshi.domain.ids import CallId, ProcessId
from koboshi.domain.phrases import clock_words
from koboshi.domain.recovery import CallFate, fate_of
from koboshi.domain.route import Route
from koboshi.domain.transcript import CallRecord, Need, Result, ResultStatus, Step
from koboshi.domain.turn import Claim
from koboshi.ports.store import Store
from koboshi.ports.tool import (
    Load,
    Tool,
    ToolContext,
    ToolFailed,
    Tools,
    TurnSetDown,
    load_of,
)
from koboshi.runtime.intake import storable
from koboshi.runtime.slots import Slot, lone_slot

log = structlog.get_logger()


@dataclass(frozen=True, slots=True, kw_only=True)
class _End:
    """How a call ended, and what follows from it."""

    result: Result
    exits_read: tuple[ProcessId, ...] = ()
    parcel: Parcel | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CallRunner:
    store: Store
    tools: Tools
    result_chars_max: int
    redact: Callable[[str], str] = lambda text: text
    """Takes out secrets that the configuration knows."""
    side_by_side_max: int = 16

    async def run_all(
        self,
        claim: Claim,
        route: Route,
        records: tuple[CallRecord, ...],
        slot: Slot | None = None,
    ) -> tuple[Step, ...]:
        """Run calls, so many side by side and the others in their order as soon as one is over.
        Returns the new steps, in the order they were stored. In a gateway that leaves, calls that
        were not started are left as they are."""
        slot = slot or lone_slot()
        steps: list[Step] = []
        first, others = records[: self.side_by_side_max], deque(records[self.side_by_side_max :])

        async def run_in_order(record: CallRecord | None) -> None:
            while record is not None:
                steps.extend(await self._run_one(claim, route, record, slot))
                ended = self._load_of(record)
                record = others.popleft() if others and not slot.is_closed else None
                begun = None if record is None else self._load_of(record)
                await slot.go_on_with(ended=ended, begun=begun)

        await slot.begin_calls(map(self._load_of, first))
        async with create_task_group() as tasks:
            for record in first:
                tasks.start_soon(run_in_order, record)
        return tuple(sorted(steps, key=lambda step: step.seq))

    async def _run_one(
        self, claim: Claim, route: Route, record: CallRecord, slot: Slot
    ) -> tuple[Step, ...]:
        if self._load_of(record) is not Load.COMMAND:
            return await self._finished(claim, route, record)
        call_id, is_started = record.call.call_id, record.started_ms is not None
        async with slot.command(claim, call_id, is_started=is_started) as may_run:
            return await self._finished(claim, route, record) if may_run else ()

    async def _finished(self, claim: Claim, route: Route, record: CallRecord) -> tuple[Step, ...]:
        end = await self._result_of(claim, route, record)
        finish = self.store.turns.finish_call
        return await finish(claim, end.result, end.exits_read, end.parcel)

    def _load_of(self, record: CallRecord) -> Load:
        call = record.call
        return load_of(self.tools.find(call.tool), call.arguments)

    async def _result_of(self, claim: Claim, route: Route, record: CallRecord) -> _End:
        call, started_ms = record.call, record.started_ms
        if started_ms is not None and fate_of(call.effect) is CallFate.UNKNOWN:
            # The tool is not asked for: it may be gone for good, and this is true all the same.
            return _End(result=_unknown(record, started_ms))
        try:
            tool = await self.tools.reach(call.tool)
        except ToolFailed as error:
            return _End(result=self._failure(call.call_id, call.tool, str(error)))
        if tool is None:
            words = notes.unknown_tool(call.tool, ", ".join(self.tools.names))
            return _End(result=_error(call.call_id, words))
        complaint = tool.complaint_about(call.arguments)
        if complaint is not None:
            return _End(result=_error(call.call_id, notes.tool_failed(call.tool, complaint)))
        context = ToolContext(claim=claim, call_id=call.call_id, route=route)
        is_stricter = tool.effect_of(call.arguments).is_stricter_than(call.effect)
        if started_ms is not None:
            if is_stricter:
                return _End(result=_unknown(record, started_ms))
            is_resumed = fate_of(call.effect) is CallFate.REATTACH
            return await self._run(tool, call.arguments, context, is_resumed=is_resumed)
        needs_more = tool.need_of(call.arguments) is not Need.NOBODY and call.need is Need.NOBODY
        if is_stricter or needs_more or record.waits_for_person:
            # What was stored with the call decides after a crash, so it must not be too little.
            return _End(result=_error(call.call_id, notes.tool_changed(call.tool)))
        # The intent is committed before the tool runs, so a crash from here on means "started,
        # outcome unknown".
        if not await self.store.turns.start_call(claim, call.call_id):
            return _End(result=_error(call.call_id, notes.not_repeated(call.tool)))
        return await self._run(tool, call.arguments, context, is_resumed=False)

    async def _run(
        self, tool: Tool, arguments: str, context: ToolContext, *, is_resumed: bool
    ) -> _End:
        name, call_id = tool.spec.name, context.call_id
        try:
            work = tool.resume if is_resumed else tool.run
            answer = await work(arguments, context)
        except (ToolFailed, Fenced) as error:
            return _End(result=self._failure(call_id, name, str(error)))
        except (StoreFailed, TurnSetDown):
            raise
        except Exception as error:  # a tool's bug is told to the model and to the log
            log.error("tool_failed", tool=name, call=call_id, exc_info=True)
            return _End(result=self._failure(call_id, name, f"{type(error).__name__}: {error}"))
        status = ResultStatus.UNKNOWN if answer.is_unknown else ResultStatus.OK
        text = self._bounded(answer.text)
        return _End(
            result=Result(call_id=call_id, status=status, text=text),
            exits_read=answer.exits_read,
            parcel=answer.parcel,
        )

    def _failure(self, call_id: CallId, tool: str, words: str) -> Result:
        """A tool may quote others in its words, and they what they were given."""
        return _error(call_id, self._bounded(notes.tool_failed(tool, words)))

    def _bounded(self, text: str) -> str:
        text = self.redact(storable(text))
        if len(text) <= self.result_chars_max:
            return text
        left_out = len(text) - self.result_chars_max
        return f"{text[: self.result_chars_max]}\n… {left_out} more characters left out"


def _unknown(record: CallRecord, started_ms: int) -> Result:
    words = notes.outcome_unknown(record.call.tool, started=clock_words(started_ms))
    return Result(call_id=record.call.call_id, status=ResultStatus.UNKNOWN, text=words)


def _error(call_id: CallId, words: str) -> Result:
    return Result(call_id=call_id, status=ResultStatus.ERROR, text=storable(words))
