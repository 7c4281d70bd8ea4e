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
from koboshi.domain.budget import OverBudget
from koboshi.domain.chain import AllBenched, NoneFits, Use
from koboshi.domain.errors import ModelBusy, ModelOverfull, ModelRefused
from koboshi.domain.outage import GiveUp, ModelFailure
from koboshi.domain.resource_exhaustion import shortage_in
from koboshi.domain.trouble import TROUBLE_RULES
from koboshi.domain.turn import Claim
from koboshi.ports.clock import Clock
from koboshi.ports.model import ModelReply, OnText, Request, ToolSpec
from koboshi.ports.store import Loaded, Store
from koboshi.runtime.drafts import Drafts
from koboshi.runtime.intake import storable
from koboshi.runtime.model_chain import ModelChain
from koboshi.runtime.picture_shelf import PictureShelf
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
    chain: ModelChain
    clock: Clock
    drafts: Drafts
    system: str
    context: ContextLimits
    zone: tzinfo = UTC
    """The zone that the model is told times in."""
    shelf: PictureShelf
    held_ms_max: int
    """A longer wait is stored with the turn, and its claim is given back meanwhile."""

    async def next_reply(
        self, claim: Claim, loaded: Loaded, tools: Sequence[ToolSpec], slot: Slot
    ) -> tuple[Outcome, Loaded]:
        """The model's next reply in a turn, and the turn with the summaries that were made on the
        way to it."""
        refused_tokens: int | None = None
        wished = loaded.session.settings.model
        while True:
            system = f"{self.system}\n\n{loaded.shown}" if loaded.shown else self.system
            request = build_request(loaded, claim.turn_id, system, tools, self.zone)
            request = await self.shelf.shown(request)
            plan = plan_summary(request, loaded, self.context, refused_tokens)
            if plan is None and refused_tokens is not None:
                return NoReply(reason=TOO_LONG), loaded
            if plan is None:
                try:
                    async with self.drafts.showing(loaded.session, claim.turn_id) as on_text:
                        return await self._ask(claim, request, slot, wished, on_text), loaded
                except ModelOverfull:
                    refused_tokens = tokens_in(request)
                    log.warning("model_overfull", tokens=refused_tokens, steps=len(request.steps))
                    continue
            said = await self._sum_up(claim, request, plan, slot, wished)
            if not isinstance(said, ModelReply):
                return said, loaded
            loaded = await self._store_summary(claim, loaded, plan, said)
            refused_tokens = None

    async def _sum_up(
        self, claim: Claim, request: Request, plan: Plan, slot: Slot, wished: str | None
    ) -> Outcome:
        """The reply with a summary; one without words, if the model gives none."""
        while True:
            shorter = summary_request(request, plan, self.context)
            if not shorter.steps:
                return ModelReply(text="")
            try:
                outcome = await self._ask(claim, shorter, slot, wished)
            except ModelOverfull:
                less = with_less(plan)
                if less is None:
                    return ModelReply(text="")
                plan = less
                continue
            return outcome

    async def _store_summary(
        self, claim: Claim, loaded: Loaded, plan: Plan, said: ModelReply
    ) -> Loaded:
        words = storable(said.text)
        summary = replace(
            summary_of(words, plan),
            model=said.model,
            tokens_in=said.tokens_in,
            tokens_out=said.tokens_out,
        )
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
        self,
        claim: Claim,
        request: Request,
        slot: Slot,
        wished: str | None,
        on_text: OnText | None = None,
    ) -> Outcome:
        """The reply to one request, of the first model of the chain that is well. Raises
        ModelOverfull, and ModelBusy when a resource of ours is missing."""
        since = self.clock.monotonic()
        while True:
            choice = await self.chain.choose(request, claim, wished)
            if isinstance(choice, NoneFits) and choice.is_too_long:
                raise ModelOverfull(choice.reason)
            if isinstance(choice, NoneFits) or (
                isinstance(choice, AllBenched) and choice.is_lasting
            ):
                return NoReply(reason=choice.reason)
            if isinstance(choice, Use):
                answer = await self._ask_one(claim, choice, request, on_text)
                if not isinstance(answer, ModelBusy):
                    return answer
                if await self.chain.pass_on(choice, answer):
                    continue
                reason, asked_ms = answer.reason, answer.retry_after_ms
            else:
                reason, asked_ms = choice.reason, choice.wait_ms
            now = self.clock.monotonic()
            spent_ms, since = round((now - since) * 1000), now
            failure = ModelFailure(reason=reason, spent_ms=spent_ms, asked_ms=asked_ms)
            given_up = await self._wait(claim, failure, slot)
            if given_up is not None:
                return given_up

    async def _ask_one(
        self, claim: Claim, use: Use, request: Request, on_text: OnText | None
    ) -> ModelReply | NoReply | SetDown | ModelBusy:
        """What one model says. A refusal that another model need not share is busy, too."""
        try:
            return await self.chain.ask(use, request, on_text)
        except OverBudget as over:
            return await self.hold(claim, over)
        except ModelOverfull:
            raise
        except ModelRefused as refusal:
            if self.chain.is_single or not TROUBLE_RULES[refusal.trouble].is_passed_on:
                return NoReply(reason=refusal.reason)
            return ModelBusy(refusal.reason, trouble=refusal.trouble)
        except ModelBusy as busy:
            if shortage_in(busy) is not None:
                raise  # the request was never sent: no failure of the model
            log.warning("model_busy", model=use.link.name, reason=busy.reason)
            return busy

    async def hold(self, claim: Claim, over: OverBudget) -> SetDown:
        """The turn waits for tomorrow, or for an owner."""
        await self.store.budget.hold(claim, over.wait_ms, over.words)
        log.warning("turn_held_by_budget", reason=over.words)
        return SetDown(wait_ms=over.wait_ms)

    async def _wait(
        self, claim: Claim, failure: ModelFailure, slot: Slot
    ) -> NoReply | SetDown | None:
        """Wait as long as the store decides; None once the model may be asked again."""
        decision = await self.store.turns.retry_model(claim, failure)
        if isinstance(decision, GiveUp):
            return NoReply(reason=decision.words)
        wait_ms = decision.wait_ms
        if wait_ms > self.held_ms_max or slot.is_closed:
            await self.store.turns.postpone(claim, wait_ms, f"model: {failure.reason}")
            return SetDown(wait_ms=wait_ms)
        slot.give_back()
        await sleep(wait_ms / 1000)
        await slot.take()
        return None
