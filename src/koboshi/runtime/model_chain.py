"""The models of the chain: one is chosen for each request, and one that fails is benched.

All that the choice rests on is stored. A kill between a failure and its bench costs one more
failure; a kill between the bench and the next request costs nothing.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import structlog
from anyio import CancelScope

from koboshi.agent.size import tokens_in
from koboshi.domain.budget import OverBudget
from koboshi.domain.chain import (
    AllBenched,
    Choice,
    LinkFailure,
    ModelLink,
    Needs,
    NoneFits,
    Use,
    choose,
)
from koboshi.domain.errors import ModelBusy, ModelCut, ModelOverfull, ModelRefused
from koboshi.domain.phrases import REPLY_CUT, call_cut
from koboshi.domain.resource_exhaustion import shortage_in
from koboshi.domain.transcript import HeardPicture, Note
from koboshi.domain.trouble import TROUBLE_RULES, ModelTrouble
from koboshi.domain.turn import Claim
from koboshi.ports.model import Model, ModelReply, OnText, Request
from koboshi.ports.store import Store
from koboshi.runtime.billing import Billing

log = structlog.get_logger()

UNSEEN = "(You are not shown it now: the model that answers takes no pictures.)"


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelChain:
    store: Store
    links: tuple[ModelLink, ...]
    """In their order; at least one."""
    models: Mapping[str, Model]
    """By the names of the links."""
    on_benched: Callable[[str, str], None] = lambda _model, _trouble: None
    """Told of each bench."""
    billing: Billing | None = None
    """None: there is no budget."""

    @classmethod
    def of_one(cls, store: Store, model: Model, name: str = "") -> "ModelChain":
        return cls(store=store, links=(ModelLink(name=name, model=name),), models={name: model})

    @property
    def is_single(self) -> bool:
        """There is nothing to choose: nothing is read, and nothing is benched."""
        return len(self.links) == 1

    async def choose(
        self, request: Request, claim: Claim | None = None, wished: str | None = None
    ) -> Choice:
        """Which model the request goes to. That the turn leaves the first one is stored before the
        other is asked."""
        if self.is_single:
            return Use(link=self.links[0], because="")
        standing = await self.store.models.standing(claim)
        choice = choose(
            self.links,
            standing.benches,
            needs_of(request),
            now_ms=standing.now_ms,
            on=standing.on,
            wished=wished,
        )
        if isinstance(choice, Use) and claim is not None:
            name = choice.link.name
            is_moved = bool(choice.because) if standing.on is None else standing.on != name
            if is_moved:
                await self.store.models.put_on(claim, name, choice.because)
                log.info("model_taken", model=name, because=choice.because)
        return choice

    async def ask(self, use: Use, request: Request, on_text: OnText | None = None) -> ModelReply:
        """The reply of the chosen model. Raises what the model raises."""
        link = use.link
        if not self.is_single:
            request = fitted(request, link)
        reply = cut_told(request, await self._billed(link, request, on_text))
        if use.was_benched:
            await self.store.models.lift(link.name)
            log.info("model_well_again", model=link.name)
        return reply

    async def _billed(
        self, link: ModelLink, request: Request, on_text: OnText | None
    ) -> ModelReply:
        """The reply, between the reservation of its cost and the settlement. Where a limit counts
        it, it is no longer than was reserved. Raises OverBudget."""
        model = self.models[link.name]
        if self.billing is None:
            return await model.respond(request, on_text)
        name = link.model or link.name
        bill = await self.billing.reserve(
            request.session_id, request.turn_id, name, tokens_in(request)
        )
        if bill.is_limited:
            request = replace(request, tokens_out_max=self.billing.reply_tokens)
        reply: ModelReply | None = None
        trouble: ModelBusy | ModelRefused | None = None
        try:
            reply = await model.respond(request, on_text)
        except ModelCut as error:
            trouble = error
            if request.tokens_out_max is None:
                raise
            words = call_cut(request.tokens_out_max)
            raise ModelRefused(words, trouble=ModelTrouble.OURS) from error
        except (ModelBusy, ModelRefused) as error:
            trouble = error
            raise
        finally:
            with CancelScope(shield=True):
                if reply is None:
                    await self.billing.fail(bill, trouble)
                else:
                    await self.billing.settle(bill, name, reply.tokens_in, reply.tokens_out)
        return reply

    async def pass_on(self, use: Use, error: ModelBusy | ModelRefused) -> bool:
        """Whether another model is to be asked after this failure: the one that failed is benched
        then."""
        trouble = error.trouble
        if self.is_single or not TROUBLE_RULES[trouble].is_passed_on:
            return False
        asked_ms = error.retry_after_ms if isinstance(error, ModelBusy) else None
        failure = LinkFailure(
            model=use.link.name, trouble=trouble, reason=error.reason, asked_ms=asked_ms
        )
        made = await self.store.models.bench(failure)
        self.on_benched(made.model, trouble)
        log.warning(
            "model_benched",
            model=made.model,
            trouble=trouble,
            reason=made.reason,
            tries=made.tries,
            until_ms=made.until_ms,
        )
        return True


@dataclass(frozen=True, slots=True, kw_only=True)
class FirstWell:
    """A `ports.model.Model` for requests that belong to no claimed turn, such as a judge's."""

    chain: ModelChain

    async def respond(self, request: Request, on_text: OnText | None = None) -> ModelReply:
        while True:
            choice = await self.chain.choose(request)
            if isinstance(choice, AllBenched):
                raise ModelBusy(choice.reason, choice.wait_ms)
            if isinstance(choice, NoneFits):
                raise (ModelOverfull if choice.is_too_long else ModelRefused)(choice.reason)
            try:
                return await self.chain.ask(choice, request, on_text)
            except OverBudget as over:
                raise ModelBusy(over.words, over.wait_ms) from over
            except (ModelBusy, ModelRefused) as error:
                if shortage_in(error) is not None or not await self.chain.pass_on(choice, error):
                    raise


def cut_told(request: Request, reply: ModelReply) -> ModelReply:
    """The reply; one to a person that is not whole says so."""
    if not reply.is_cut or request.wants_summary or request.wants_verdict:
        return reply
    return replace(reply, text=f"{reply.text}\n\n{REPLY_CUT}".strip())


def needs_of(request: Request) -> Needs:
    """Pictures count while their turn runs; later they may be words."""
    own = (step.body for step in request.steps if step.turn_id == request.turn_id)
    return Needs(
        pictures=any(isinstance(body, HeardPicture) for body in own),
        tools=bool(request.tools),
        tokens=tokens_in(request),
    )


def fitted(request: Request, link: ModelLink) -> Request:
    """The request without what the model cannot take."""
    if not link.takes_tools and request.tools:
        request = replace(request, tools=())
    if link.sees_pictures:
        return request
    steps = tuple(
        replace(step, body=Note(cause=step.body.cause, text=f"{step.body.text} {UNSEEN}"))
        if isinstance(step.body, HeardPicture)
        else step
        for step in request.steps
    )
    return replace(request, steps=steps)
