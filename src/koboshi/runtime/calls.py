"""One tool call: committed as started, run, committed as finished.

An error before the start is committed proves that the call did not run. After the commit of
`start_call`, only the tool itself reports a failure, by ToolFailed or in its answer. Any other
error is the gateway's and proves nothing about the call. Then the outcome is unknown, unless the
tool can resume the call by its id: it does so after a pause, as after a crash. A call that is safe
to repeat runs again after a shortage of resources.
"""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

import structlog
from anyio import create_task_group, sleep

from koboshi.domain import notes
from koboshi.domain.approval import seal_of
from koboshi.domain.call_fate import CallFate, fate_of
from koboshi.domain.errors import Fenced, RoleLost, StoreFailed, is_or_holds
from koboshi.domain.files import Parcel
from koboshi.domain.ids import CallId, ProcessId
from koboshi.domain.marks import unmarked
from koboshi.domain.phrases import clock_words
from koboshi.domain.resource_exhaustion import shortage_in
from koboshi.domain.role import Role
from koboshi.domain.route import Route
from koboshi.domain.transcript import Call, CallRecord, Need, Result, ResultStatus, Step
from koboshi.domain.turn import Claim
from koboshi.ports.files import NO_SHELF, FileShelf
from koboshi.ports.store import Store
from koboshi.ports.tool import (
    Load,
    Tool,
    ToolAnswer,
    ToolContext,
    ToolFailed,
    Tools,
    TurnSetDown,
    approval_of,
    load_of,
    need_of,
)
from koboshi.runtime.intake import storable
from koboshi.runtime.slots import Slot, lone_slot
from koboshi.runtime.trust import Trust

log = structlog.get_logger()

PAUSE_S_MIN, PAUSE_S_MAX = 0.5, 30.0
"""The pause before a call is resumed after an error of the gateway."""


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
    role: Role = Role.MEMBER
    """The role of the turn for which these tools were chosen."""
    trust: Trust = field(default_factory=Trust)
    shelf: FileShelf = NO_SHELF

    async def run_all(
        self,
        claim: Claim,
        route: Route,
        records: tuple[CallRecord, ...],
        slot: Slot | None = None,
    ) -> tuple[Step, ...]:
        """Run calls, a limited number at once, the others in their order. Returns the new steps in
        the order they were stored. When the gateway shuts down, calls that were not started are
        left as they are."""
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
        if end.parcel is not None:
            await self.shelf.keep(end.parcel.file.path)
        finish = self.store.turns.finish_call
        return await finish(claim, end.result, end.exits_read, end.parcel)

    def _load_of(self, record: CallRecord) -> Load:
        call = record.call
        return load_of(self.tools.find(call.tool), call.arguments)

    async def _result_of(self, claim: Claim, route: Route, record: CallRecord) -> _End:
        call, started_ms = record.call, record.started_ms
        seal = record.seal or "" if call.need is Need.APPROVAL else None
        context = ToolContext(claim=claim, call_id=call.call_id, route=route, seal=seal)
        if started_ms is not None:
            return await self._take_up(record, started_ms, context)
        tool = await self._usable(call)
        if isinstance(tool, Result):
            return _End(result=tool)
        is_stricter = tool.effect_of(call.arguments).is_stricter_than(call.effect)
        needs_more = call.need is Need.NOBODY and (
            await need_of(tool, call.arguments) is not Need.NOBODY
        )
        if is_stricter or needs_more or record.waits_for_person:
            # Recovery decides by what is stored with the call, which must not understate it.
            return _End(result=_error(call.call_id, notes.tool_changed(call.tool)))
        if seal is not None and seal != await self._seal_now(tool, call):
            # What would happen now is not what the person was shown.
            return _End(result=_error(call.call_id, notes.not_as_approved(call.tool)))
        # The intent is committed before the tool runs, so a crash from here on means "started,
        # outcome unknown".
        try:
            is_started = await self.store.turns.start_call(claim, call.call_id, seal, self.role)
        except RoleLost:
            return _End(result=_error(call.call_id, notes.role_lost(call.tool)))
        if not is_started:
            return _End(result=_error(call.call_id, notes.not_repeated(call.tool)))
        return await self._run(tool, call, context, is_resumed=False)

    async def refuse(self, claim: Claim, call: Call, why: str) -> tuple[Step, ...]:
        """The call gets a result without having run: no person can be asked about it."""
        result = _error(call.call_id, notes.not_asked(call.tool, why))
        return await self.store.turns.finish_call(claim, result)

    async def _is_still_allowed(self, tool: Tool, call: Call, context: ToolContext) -> bool:
        """Whether to run it again would do what was allowed, or needs no person."""
        if context.seal is not None:
            return context.seal == await self._seal_now(tool, call)
        return await need_of(tool, call.arguments) is Need.NOBODY

    async def _seal_now(self, tool: Tool, call: Call) -> str:
        return seal_of(call.tool, call.arguments, await approval_of(tool, call.arguments))

    async def _take_up(self, record: CallRecord, started_ms: int, context: ToolContext) -> _End:
        """Continue a call that was running when an earlier run of the turn ended."""
        call, fate = record.call, fate_of(record.call.effect)
        if fate is CallFate.UNKNOWN:
            # No tool is needed: it may be gone for good, and the result is still true.
            return _End(result=_unknown(record, started_ms))
        tool = await self._usable(call)
        if isinstance(tool, Result):
            # A tool that is gone cannot resume its call. The call did start.
            is_over = fate is CallFate.REATTACH
            return _End(result=_unknown(record, started_ms) if is_over else tool)
        if tool.effect_of(call.arguments).is_stricter_than(call.effect):
            return _End(result=_unknown(record, started_ms))
        if fate is CallFate.RUN_AGAIN and not await self._is_still_allowed(tool, call, context):
            return _End(result=_unknown(record, started_ms))
        return await self._run(tool, call, context, is_resumed=fate is CallFate.REATTACH)

    async def _usable(self, call: Call) -> Tool | Result:
        """The tool of a call, if it accepts these arguments; else the result that says why not."""
        try:
            tool = await self.tools.reach(call.tool)
        except ToolFailed as error:
            return self._failure(call.call_id, call.tool, str(error))
        if tool is None:
            words = notes.unknown_tool(call.tool, ", ".join(self.tools.names))
            return _error(call.call_id, words)
        complaint = tool.complaint_about(call.arguments)
        if complaint is not None:
            return _error(call.call_id, notes.tool_failed(call.tool, complaint))
        return tool

    async def _run(self, tool: Tool, call: Call, context: ToolContext, *, is_resumed: bool) -> _End:
        """Run a call that is committed as started, until its outcome is known or known as lost."""
        pause_s = PAUSE_S_MIN
        while True:
            await self.trust.wait()
            try:
                work = tool.resume if is_resumed else tool.run
                return self._end_of(call, await work(call.arguments, context))
            except ToolFailed as error:
                return _End(result=self._failure(call.call_id, call.tool, str(error)))
            except (StoreFailed, TurnSetDown):
                raise
            except Exception as error:
                if is_or_holds(error, StoreFailed) or is_or_holds(error, TurnSetDown):
                    raise
                if is_or_holds(error, Fenced) and not await self.store.turns.holds(context.claim):
                    raise  # the turn is no longer ours, nor is the result
                log.error("tool_broke", tool=call.tool, call=call.call_id, exc_info=True)
                match fate_of(call.effect):
                    case CallFate.RUN_AGAIN if shortage_in(error) is not None:
                        pass  # the resource comes back, and the call is safe to repeat
                    case CallFate.RUN_AGAIN:
                        words = f"{type(error).__name__}: {error}"
                        return _End(result=self._failure(call.call_id, call.tool, words))
                    case CallFate.UNKNOWN:
                        return _End(result=self._lost(call, error))
                    case CallFate.REATTACH:
                        is_resumed = True
            await sleep(pause_s)
            pause_s = min(pause_s * 2, PAUSE_S_MAX)

    def _end_of(self, call: Call, answer: ToolAnswer) -> _End:
        """A tool's answer as it is stored. An answer that cannot be shown is lost: resuming the
        call would bring the same one."""
        status = ResultStatus.UNKNOWN if answer.is_unknown else ResultStatus.OK
        try:
            # A program, a file or a server that prints our mark does not speak for us.
            text = unmarked(self._bounded(answer.text))
        except Exception as error:
            log.error("result_lost", tool=call.tool, call=call.call_id, exc_info=True)
            return _End(result=self._lost(call, error))
        return _End(
            result=Result(call_id=call.call_id, status=status, text=text),
            exits_read=answer.exits_read,
            parcel=answer.parcel,
        )

    def _lost(self, call: Call, error: Exception) -> Result:
        """The result of a call that ran, or may have run, and whose outcome was lost."""
        text = notes.outcome_lost(call.tool, self._shown(f"{type(error).__name__}: {error}"))
        return Result(call_id=call.call_id, status=ResultStatus.UNKNOWN, text=storable(text))

    def _failure(self, call_id: CallId, tool: str, words: str) -> Result:
        """A tool's error message may quote its input, secrets included."""
        return _error(call_id, notes.tool_failed(tool, self._shown(words)))

    def _shown(self, words: str) -> str:
        """An error message without secrets; a stand-in if it cannot be made."""
        try:
            return self._bounded(words)
        except Exception:
            log.error("words_lost", exc_info=True)
            return "the gateway could not put it into words; its log says more"

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
