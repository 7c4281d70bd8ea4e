"""Calling the model: again when it is busy, with less when the conversation is too long.

Every bound of this is durable. How often and how long the model has failed is in the turn's row, a
long wait is stored with the turn, and each summary covers more than the one before: a crash resets
nothing. No slot is held while the turn waits.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, tzinfo
from typing import TypeAlias

import structlog
from anyio import sleep

from koboshi.agent.context import build_request
from koboshi.agent.size import tokens_in
from koboshi.agent.summary import (
    ContextLimits,
    Plan,
    plan_summary,
    summary_of,
    summary_request,
    with_less,
)
from koboshi.domain.errors import ModelBusy, ModelOverfull, ModelRefused
from koboshi.domain.outage import GiveUp, ModelFailure
from koboshi.domain.resource_exhaustion import shortage_in
from koboshi.domain.turn import Claim
from koboshi.ports.clock import Clock
from koboshi.ports.model import Model, ModelReply, OnText, Request, ToolSpec
from koboshi.ports.store import Loaded, Store
from koboshi.runtime.drafts import Drafts
from koboshi.runtime.intake import storable
from koboshi.runtime.slots import Slot

log = structlog.get_logger()

TOO_LONG = "the conversation has grown too long for the model, even summed up"


@dataclass(frozen=True, slots=True, kw_only=True)
class NoReply:
    """The model does not answer, and the turn has to end."""

    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SetDown:
    """The model asks for a wait: the turn is back in the queue, and no longer ours."""

    wait_ms: int


Outcome: TypeAlias = ModelReply | NoReply | SetDown


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelCaller:
    store: Store
    model: Model
    clock: Clock
    drafts: Drafts
    system: str
    context: ContextLimits
    zone: tzinfo = UTC
    """The zone that the model is told times in."""
    held_ms_max: int
    """A longer wait is stored with the turn, and its claim is given back meanwhile."""

    async def next_reply(
        self, claim: Claim, loaded: Loaded, tools: Sequence[ToolSpec], slot: Slot
    ) -> tuple[Outcome, Loaded]:
        """The model's next reply in a turn, and the turn with the summaries that were made on the
        way to it."""
        refused_tokens: int | None = None
        while True:
            request = build_request(loaded, claim.turn_id, self.system, tools, self.zone)
            plan = plan_summary(request, loaded, self.context, refused_tokens)
            if plan is None and refused_tokens is not None:
                return NoReply(reason=TOO_LONG), loaded
            if plan is None:
                try:
                    async with self.drafts.showing(loaded.session.route, claim.turn_id) as on_text:
                        return await self._ask(claim, request, slot, on_text), loaded
                except ModelOverfull:
                    refused_tokens = tokens_in(request)
                    log.warning("model_overfull", tokens=refused_tokens, steps=len(request.steps))
                    continue
            words = await self._sum_up(claim, request, plan, slot)
            if not isinstance(words, str):
                return words, loaded
            loaded = await self._store_summary(claim, loaded, plan, words)
            refused_tokens = None

    async def _sum_up(
        self, claim: Claim, request: Request, plan: Plan, slot: Slot
    ) -> str | NoReply | SetDown:
        """The text of a summary; empty, if the model gives none."""
        while True:
            shorter = summary_request(request, plan, self.context)
            if not shorter.steps:
                return ""
            try:
                outcome = await self._ask(claim, shorter, slot)
            except ModelOverfull:
                less = with_less(plan)
                if less is None:
                    return ""
                plan = less
                continue
            return storable(outcome.text) if isinstance(outcome, ModelReply) else outcome

    async def _store_summary(self, claim: Claim, loaded: Loaded, plan: Plan, words: str) -> Loaded:
        summary = summary_of(words, plan)
        steps = await self.store.turns.summarise(claim, summary)
        log.info(
            "conversation_summed_up",
            covers=plan.covers,
            steps=len(plan.steps),
            chars=len(summary.text),
            is_enough=plan.is_enough,
            has_words=bool(words.strip()),
        )
        return replace(loaded, steps=(*loaded.steps, *steps), summary=steps[0])

    async def _ask(
        self, claim: Claim, request: Request, slot: Slot, on_text: OnText | None = None
    ) -> Outcome:
        """The reply to one request. Raises ModelOverfull, and ModelBusy when a resource of ours is
        missing."""
        since = self.clock.monotonic()
        while True:
            try:
                return await self.model.respond(request, on_text)
            except ModelOverfull:
                raise
            except ModelRefused as refusal:
                return NoReply(reason=refusal.reason)
            except ModelBusy as busy:
                if shortage_in(busy) is not None:
                    raise  # the request was never sent: no failure of the model
                now = self.clock.monotonic()
                spent_ms, since = round((now - since) * 1000), now
                failure = ModelFailure(
                    reason=busy.reason, spent_ms=spent_ms, asked_ms=busy.retry_after_ms
                )
                decision = await self.store.turns.retry_model(claim, failure)
                log.warning("model_busy", reason=busy.reason)
                if isinstance(decision, GiveUp):
                    return NoReply(reason=decision.words)
                wait_ms = decision.wait_ms
                if wait_ms > self.held_ms_max or slot.is_closed:
                    await self.store.turns.postpone(claim, wait_ms, f"model: {busy.reason}")
                    return SetDown(wait_ms=wait_ms)
                slot.give_back()
                await sleep(wait_ms / 1000)
                await slot.take()
