"""A budget over the lives of a gateway: asked once, kept over kills, and people go on."""

from dataclasses import dataclass, field
from pathlib import Path

import pytest
from anyio import Event

from koboshi.domain.budget import BudgetLimits, BudgetUnit
from koboshi.domain.errors import ModelCut
from koboshi.domain.phrases import REPLY_CUT
from koboshi.domain.price import Price
from koboshi.models.scripted import ScriptedModel
from koboshi.ports.model import Model, ModelReply, OnText, Request
from koboshi.ports.store import Store
from koboshi.runtime.billing import Billing
from koboshi.runtime.model_chain import ModelChain
from tests.harness.invariants import check_rows
from tests.runtime.gateway import Life, Setting, living

LIMIT = 1_000_000
COST = 200_000
QUESTION = "1,000,000 tokens of today's 1,000,000 tokens used. A request waits."


@dataclass(slots=True)
class CostlyModel:
    """The scripted model; each reply costs the same."""

    replies: int = 0
    requests: list[Request] = field(default_factory=list)

    async def respond(self, request: Request, on_text: OnText | None = None) -> ModelReply:
        self.replies += 1
        said = await ScriptedModel().respond(request)
        return ModelReply(text=said.text, calls=said.calls, model="m", tokens_in=COST)


@pytest.fixture
def model() -> CostlyModel:
    return CostlyModel()


@pytest.fixture
def setting(home: Path, model: CostlyModel) -> Setting:
    return setting_of(home, model)


def setting_of(home: Path, model: Model) -> Setting:
    def chain(store: Store) -> ModelChain:
        made = ModelChain.of_one(store, model, "m")
        billing = Billing(
            budget=store.budget,
            unit=BudgetUnit.TOKENS,
            price_of=lambda _: None,
            unpriced=Price(input=10, output=10),
            reply_tokens=COST,
        )
        return ModelChain(store=store, links=made.links, models=made.models, billing=billing)

    limits = BudgetLimits(unit=BudgetUnit.TOKENS, day=LIMIT)
    return Setting(home=home, model=chain, budget=limits)


async def test_the_last_reply_of_a_day_is_followed_by_a_question_and_then_by_tomorrow(
    setting: Setting, model: CostlyModel
) -> None:
    async with living(setting) as life:
        for number in range(5):
            await life.says("room", f"echo {number}")
            answers = [str(each) for each in range(number + 1)]
            await life.shows("room", *answers)
        await life.says("room", "echo more")
        await life.until(lambda: QUESTION in setting.platform.texts("room"), "the question")
        assert model.replies == 5
    async with living(setting) as life:
        await life.passes(60)
        assert model.replies == 5
        await life.channel.bring("room", "", "press", question=0, choice="/budget more 1")
        await life.until(lambda: setting.platform.texts("room")[-1] == "more", "the answer")

    rows = setting.rows()
    check_rows(rows)
    assert setting.platform.texts("room").count(QUESTION) == 1
    assert model.replies == 6


@pytest.mark.parametrize("verb", ["budget.reserve", "budget.settle", "turns.answer"])
async def test_kills_at_every_step_never_pass_the_limit_by_more_than_one_reply(
    setting: Setting, model: CostlyModel, verb: str
) -> None:
    """Whatever was lost is counted, and what the model really gave is never more than that."""
    is_used = False
    for number in range(8):
        async with living(setting) as life:

            def dies(name: str, life: Life = life) -> None:
                life.tracked.is_dead |= name == verb

            def is_over(life: Life = life, room: str = f"room-{number}") -> bool:
                return life.tracked.is_dead or "used" in "".join(setting.platform.texts(room))

            life.tracked.on_verb = dies
            await life.says(f"room-{number}", "echo hello")
            await life.until(is_over, "its end")
            is_used = not life.tracked.is_dead
        if is_used:
            break
    assert is_used or verb == "budget.reserve"
    assert model.replies * COST <= LIMIT + COST


@dataclass(slots=True)
class LongModel:
    """Each reply is as long as it may be. It waits until `expected` requests are there."""

    expected: int
    requests: list[Request] = field(default_factory=list)
    paid: int = 0
    is_calling: bool = False
    all_there: Event = field(default_factory=Event)

    async def respond(self, request: Request, on_text: OnText | None = None) -> ModelReply:
        self.requests.append(request)
        if len(self.requests) >= self.expected:
            self.all_there.set()
        await self.all_there.wait()
        written = request.tokens_out_max or 10 * COST
        self.paid += written
        if self.is_calling:
            raise ModelCut("cut")
        return ModelReply(text="So", model="m", tokens_out=written, is_cut=True)


async def test_many_long_replies_at_once_pass_a_limit_by_one_at_most_and_say_that_they_are_cut(
    home: Path,
) -> None:
    """Issue 21: what is reserved for a call is the longest that its provider may write."""
    model = LongModel(expected=4)
    setting = setting_of(home, model)
    rooms = [f"room-{number}" for number in range(8)]

    def said() -> list[str]:
        return [setting.platform.texts(room)[-1] for room in rooms if setting.platform.texts(room)]

    async with living(setting) as life:
        for room in rooms:
            await life.says(room, "tell me all")
        await life.until(lambda: len(said()) == len(rooms), "answers and questions")

    assert {request.tokens_out_max for request in model.requests} == {COST}
    assert model.paid <= LIMIT + COST
    assert said().count(f"So\n\n{REPLY_CUT}") == len(model.requests)


async def test_a_call_that_was_cut_at_what_was_reserved_is_told_and_not_repeated(
    home: Path,
) -> None:
    model = LongModel(expected=1, is_calling=True)
    setting = setting_of(home, model)
    async with living(setting) as life:
        await life.says("room", "write a book")
        await life.until(lambda: setting.platform.texts("room"), "words")
        await life.rests()

    assert len(model.requests) == 1
    assert "200,000 tokens that the budget reserves" in setting.platform.texts("room")[0]
