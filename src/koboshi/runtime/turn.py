"""One claimed turn: derive the next action from the transcript, perform it, append the result."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import assert_never

import structlog
from anyio import (
    CancelScope,
    create_task_group,
    get_cancelled_exc_class,
    move_on_after,
    sleep,
)

from koboshi.domain import notes
from koboshi.domain.action import (
    BY_GATEWAY,
    Ask,
    CallModel,
    Fail,
    Finish,
    Nudge,
    RunCalls,
    RunOwnCommand,
    TurnLimits,
    next_action,
)
from koboshi.domain.approval import Unaskable
from koboshi.domain.budget import OverBudget
from koboshi.domain.errors import Fenced, StoreFailed, is_or_holds
from koboshi.domain.ids import ProcessId
from koboshi.domain.resource_exhaustion import shortage_in
from koboshi.domain.role import RoleStanding
from koboshi.domain.transcript import (
    CallRecord,
    Effect,
    Need,
    Note,
    ProposedCall,
    Reply,
    Result,
    Step,
)
from koboshi.domain.turn import Claim
from koboshi.ports.clock import Clock
from koboshi.ports.model import CallRequest, ModelReply
from koboshi.ports.store import NO_SIZES, Loaded, Store
from koboshi.ports.tool import Tool, Tools, TurnSetDown, need_of
from koboshi.ports.wakeups import Wakeups, claim_topic
from koboshi.runtime.agent_turn import AgentTurns
from koboshi.runtime.approval_cards import ApprovalCards
from koboshi.runtime.attachments import Attachments
from koboshi.runtime.calls import CallRunner
from koboshi.runtime.drain import Drain
from koboshi.runtime.intake import storable
from koboshi.runtime.model_caller import ModelCaller, NoReply, Outcome, SetDown
from koboshi.runtime.progress import Progress
from koboshi.runtime.readings import Readings
from koboshi.runtime.recollection import Recollection
from koboshi.runtime.shipping import Shipping
from koboshi.runtime.slots import Slot
from koboshi.runtime.trust import Trust

log = structlog.get_logger()

PAUSE_S_MIN, PAUSE_S_MAX = 0.5, 5.0
"""The pause before a turn goes on after a shortage of a resource."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnRunner:
    store: Store
    asking: ModelCaller
    tools: Tools
    calls: CallRunner
    wakeups: Wakeups
    clock: Clock
    shipping: Shipping
    log_size_of: Callable[[ProcessId], int]
    limits: TurnLimits
    cards: ApprovalCards
    poll_seconds: float
    release_seconds: float
    drain: Drain
    progress: Progress
    attachments: Attachments
    readings: Readings
    recollection: Recollection
    trust: Trust = field(default_factory=Trust)
    foreign: AgentTurns | None = None
    """What works with agents of other makers; None: none is configured."""

    async def run(self, claim: Claim, slot: Slot) -> None:
        """Run the turn until it is answered, waits, has failed, or is no longer ours. The slot is
        given back while the turn only waits, and by the caller at the end."""
        with structlog.contextvars.bound_contextvars(turn=claim.turn_id, epoch=claim.epoch):
            try:
                async with create_task_group() as tasks:
                    # Counted before the turn is loaded, which fails where the claim is lost by
                    # then: what is lost later is hinted at.
                    seen = self.wakeups.count(claim_topic(claim.turn_id))
                    tasks.start_soon(self._watch_claim, claim, tasks.cancel_scope, seen)
                    tasks.start_soon(self.progress.keep_showing, claim)
                    await self._work_or_fail(claim, slot)
                    tasks.cancel_scope.cancel()
            except get_cancelled_exc_class():
                # A courtesy: recovery does not need it. Without trust it is no longer ours to give.
                if self.trust.is_held:
                    with move_on_after(self.release_seconds, shield=True):
                        await self._release(claim)
                raise
            finally:
                self.wakeups.forget(claim_topic(claim.turn_id))

    async def _work_or_fail(self, claim: Claim, slot: Slot) -> None:
        """Run the turn. A shortage of our own resources ends no turn: it goes on from its
        transcript after a pause, as after a crash."""
        pause_s = PAUSE_S_MIN
        while (missing := await self._what_was_missing(claim, slot)) is not None:
            log.warning("turn_waits", reason=missing, seconds=pause_s)
            slot.give_back()
            await sleep(pause_s)
            pause_s = min(2 * pause_s, PAUSE_S_MAX)

    async def _what_was_missing(self, claim: Claim, slot: Slot) -> str | None:
        """Run the turn until it is no longer ours. Returns the missing resource, if any."""
        try:
            await self._work(claim, slot)
        except Exception as error:  # one turn's bug must not take the others down
            if is_or_holds(error, StoreFailed):
                raise
            if is_or_holds(error, TurnSetDown):
                await self._release(claim)
                return None
            if is_or_holds(error, Fenced):
                log.info("turn_fenced", reason=str(error))
                return None
            missing = shortage_in(error)
            if missing is None:
                log.error("turn_broke", exc_info=True)
                await self._fail(claim, "an error of mine; the log says more")
            return missing
        return None

    async def _watch_claim(self, claim: Claim, scope: CancelScope, seen: int) -> None:
        """End the work when the claim was lost: stopped, interrupted, or claimed anew. The turn's
        own end is a hint, too, and then there is nothing to look at."""
        topic = claim_topic(claim.turn_id)
        while True:
            await self.wakeups.wait(topic, self.poll_seconds, since=seen)
            if scope.cancel_called:
                return
            seen = self.wakeups.count(topic)
            if not await self.store.turns.holds(claim):
                scope.cancel()
                return

    async def _work(self, claim: Claim, slot: Slot) -> None:
        loaded = await self.store.turns.load(claim)
        agent = None
        if self.foreign is not None:
            agent = await self.foreign.agent_of(claim.turn_id, loaded)
        if self.foreign is not None and agent is not None:
            await self.foreign.run(claim, loaded, agent, slot)
            return
        await self._as(loaded.standing)._go_on(claim, loaded, slot)

    def _as(self, standing: RoleStanding) -> "TurnRunner":
        """The runner with the tools and the folder that the turn has by its role."""
        tools = self.tools.within(standing)
        return replace(
            self, tools=tools, calls=replace(self.calls, tools=tools, role=standing.role)
        )

    async def _go_on(self, claim: Claim, loaded: Loaded, slot: Slot) -> None:
        proposed: Reply | None = None
        while True:
            action = next_action(loaded.steps, loaded.calls, proposed, self.limits)
            if isinstance(action, CallModel):
                await slot.take()
            is_leaving = self.drain.ends_steps or slot.is_closed
            if is_leaving and isinstance(action, CallModel | RunCalls | RunOwnCommand | Nudge):
                await self._release(claim)
                return
            match action:
                case CallModel():
                    outcome, loaded = await self._ask_model(claim, loaded, slot)
                    if not isinstance(outcome, ModelReply):
                        await self._give_up(claim, outcome)
                        return
                    proposed, loaded = await self._take_reply(claim, loaded, outcome)
                case RunCalls(records=records):
                    loaded = await self._run_calls(claim, loaded, records, slot)
                    standing = await self.store.turns.standing(claim)
                    if (
                        standing != loaded.standing
                    ):  # a person with another role joined, or lost one
                        loaded = replace(loaded, standing=standing)
                        await self._as(standing)._go_on(claim, loaded, slot)
                        return
                case Ask(record=record):
                    tool = self.tools.find(record.call.tool)
                    if tool is None:
                        # The tool is no longer configured: the result says so.
                        loaded = await self._run_calls(claim, loaded, (record,), slot)
                        continue
                    asked = await self._ask(claim, loaded, tool, record)
                    if asked is None:
                        return
                    loaded = asked
                case RunOwnCommand(command=command):
                    _, loaded = await self._take_reply(claim, loaded, _command_of(command))
                case Finish(reply=reply, is_silent=is_silent):
                    await self._answer(claim, loaded, reply, is_silent=is_silent)
                    return
                case Nudge(cause=cause):
                    note = Note(cause=cause, text=notes.empty_reply())
                    steps = await self.store.turns.note(claim, note)
                    loaded, proposed = replace(loaded, steps=(*loaded.steps, *steps)), None
                case Fail(reason=reason):
                    await self._fail(claim, reason)
                    return
                case _:
                    assert_never(action)

    async def _ask_model(self, claim: Claim, loaded: Loaded, slot: Slot) -> tuple[Outcome, Loaded]:
        await self.tools.settle()
        loaded = await self.attachments.bring(claim, loaded)
        try:
            loaded = await self.readings.take(claim, loaded)
        except OverBudget as over:
            return await self.asking.hold(claim, over), loaded
        loaded = await self.recollection.bring(claim, loaded)
        specs = self.tools.specs()
        is_child = loaded.session.is_child  # what it has to say is for its parent
        if is_child or not self.shipping.takes_files(loaded.session.route.channel):
            specs = tuple(spec for spec in specs if not spec.sends_files)
        return await self.asking.next_reply(claim, loaded, specs, slot)

    async def _give_up(self, claim: Claim, outcome: NoReply | SetDown) -> None:
        match outcome:
            case NoReply(reason=reason):
                await self._fail(claim, reason)
            case SetDown(wait_ms=wait_ms):
                log.info("turn_postponed", wait_ms=wait_ms)
            case _:
                assert_never(outcome)

    async def _take_reply(
        self, claim: Claim, loaded: Loaded, reply: ModelReply
    ) -> tuple[Reply | None, Loaded]:
        """Store a reply with calls; one without is only proposed until it becomes the answer."""
        words = Reply(
            text=storable(reply.text),
            model=reply.model,
            tokens_in=reply.tokens_in,
            tokens_out=reply.tokens_out,
            raw=reply.raw,
        )
        if not reply.calls:
            return words, loaded
        proposed = [
            await self._proposed(call.tool, call.arguments, call.provider_id)
            for call in reply.calls
        ]
        steps = await self.store.turns.append(claim, words, proposed)
        calls = [
            CallRecord(call=call)
            for step in steps
            if isinstance(step.body, Reply)
            for call in step.body.calls
        ]
        return None, replace(loaded, steps=(*loaded.steps, *steps), calls=(*loaded.calls, *calls))

    async def _proposed(self, name: str, arguments: str, provider_id: str) -> ProposedCall:
        tool = self.tools.find(name)
        is_usable = tool is not None and tool.complaint_about(arguments) is None
        return ProposedCall(
            tool=name,
            arguments=arguments,
            effect=tool.effect_of(arguments) if tool is not None and is_usable else Effect.NONE,
            need=await need_of(tool, arguments) if tool is not None and is_usable else Need.NOBODY,
            provider_id=provider_id,
        )

    async def _run_calls(
        self, claim: Claim, loaded: Loaded, records: tuple[CallRecord, ...], slot: Slot
    ) -> Loaded:
        steps = await self.calls.run_all(claim, loaded.session.route, records, slot)
        return _with_results(loaded, steps, self.clock.now_ms())

    async def _answer(
        self, claim: Claim, loaded: Loaded, reply: Reply, *, is_silent: bool = False
    ) -> None:
        sizes = await self._log_sizes(claim, loaded)
        if is_silent or loaded.session.is_child:
            await self.store.turns.answer(claim, reply, (), sizes, is_silent=True)
            log.info("turn_silenced", steps=len(loaded.steps))
            return
        channel = loaded.session.route.channel
        parts, file = await self.shipping.ship(channel, claim.turn_id, reply.text)
        await self.store.turns.answer(claim, reply, parts, sizes, file)
        log.info("turn_answered", steps=len(loaded.steps), parts=len(parts))

    async def _log_sizes(self, claim: Claim, loaded: Loaded) -> Mapping[ProcessId, int]:
        """How much its background processes have printed until now."""
        if not any(record.call.effect is Effect.RESUMABLE for record in loaded.calls):
            return NO_SIZES
        started = await self.store.processes.of_turn(claim.turn_id)
        return {process_id: self.log_size_of(process_id) for process_id in started}

    async def _ask(
        self, claim: Claim, loaded: Loaded, tool: Tool, record: CallRecord
    ) -> Loaded | None:
        """Ask the person, and the turn waits: None. Else the turn as it goes on without a
        question."""
        call, age_ms_max = record.call, self.cards.age_ms_max
        if call.need is not Need.APPROVAL:
            text, choices = tool.question_of(call.arguments)
            await self.store.turns.ask(claim, call.call_id, text, choices, age_ms_max)
            log.info("turn_asked", call=call.call_id)
            return None
        card = await self.cards.card(loaded.session.route.channel, tool, call, loaded.steps)
        if isinstance(card, Unaskable):
            steps = await self.calls.refuse(claim, call, card)
            return _with_results(loaded, steps, self.clock.now_ms())
        is_asked = await self.store.turns.ask(
            claim,
            call.call_id,
            card.text,
            card.choices,
            age_ms_max,
            sealed=card.sealed,
            chat_text=card.chat_text,
        )
        log.info("turn_asked" if is_asked else "turn_spared", call=call.call_id)
        # A rule of the chat has approved it: the stored call says so.
        return None if is_asked else await self.store.turns.load(claim)

    async def _fail(self, claim: Claim, reason: str) -> None:
        try:
            await self.store.turns.fail(claim, reason)
        except Fenced as fence:
            log.info("turn_fenced", reason=str(fence))
            return
        log.warning("turn_failed", reason=reason)

    async def _release(self, claim: Claim) -> None:
        try:
            await self.store.turns.release(claim)
        except (Fenced, StoreFailed) as error:
            log.info("turn_not_released", reason=str(error))
            return
        self.drain.released += 1
        log.info("turn_released")


def _command_of(command: str) -> ModelReply:
    """The one call that the gateway makes itself for a schedule with a command."""
    arguments = json.dumps({"command": command})
    call = CallRequest(provider_id=BY_GATEWAY, tool="terminal", arguments=arguments)
    return ModelReply(text="", calls=(call,), model=BY_GATEWAY)


def _with_results(loaded: Loaded, steps: tuple[Step, ...], now_ms: int) -> Loaded:
    """The turn with the results that were just stored."""
    resolved = {step.body.call_id for step in steps if isinstance(step.body, Result)}
    calls = tuple(
        replace(record, started_ms=record.started_ms or now_ms, finished_ms=now_ms)
        if record.call.call_id in resolved
        else record
        for record in loaded.calls
    )
    return replace(loaded, steps=(*loaded.steps, *steps), calls=calls)
