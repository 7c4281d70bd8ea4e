"""A chain of three models, with every failure at every place."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from itertools import product
from pathlib import Path

import pytest

from koboshi.domain.chain import ModelLink
from koboshi.domain.errors import ModelBusy, ModelRefused
from koboshi.domain.ids import SessionId, TurnId
from koboshi.domain.outage import Patience, outage_notice
from koboshi.domain.trouble import ModelTrouble
from koboshi.models.scripted import ScriptedModel
from koboshi.ports.model import Model, ModelReply, OnText, Request
from koboshi.ports.store import Store
from koboshi.runtime.model_chain import FirstWell, ModelChain
from tests.harness.invariants import answers, check_rows
from tests.harness.tally import WANTS_ALL
from tests.runtime.gateway import Setting, living

NAMES = ("one", "two", "three")
LINKS = tuple(ModelLink(name=name) for name in NAMES)
ILLS: dict[str, Callable[[], Exception]] = {
    "busy": lambda: ModelBusy("busy", status=429),
    "overloaded": lambda: ModelBusy("overloaded", status=529),
    "failed": lambda: ModelBusy("failed", status=500),
    "unreachable": lambda: ModelBusy("unreachable", trouble=ModelTrouble.UNREACHABLE),
    "quota": lambda: ModelRefused("quota", status=402),
    "key": lambda: ModelRefused("key", status=401),
}
LASTING = {"quota", "key"}
"""Waiting is no use if all have one of these."""
ALL_ILLS = ("content", *ILLS)
ALL_WAYS = tuple(product(("", *ALL_ILLS), repeat=3))
EACH_AT_EACH_PLACE = (
    *((*["busy"] * place, ill, *[""] * (2 - place)) for place in range(3) for ill in ALL_ILLS),
    ("busy", "busy", ""),
)


@dataclass(slots=True)
class IllModel:
    """The scripted model, while it is well."""

    ill: str = ""
    requests: list[Request] = field(default_factory=list)

    async def respond(self, request: Request, on_text: OnText | None = None) -> ModelReply:
        self.requests.append(request)
        if self.ill:
            raise ILLS[self.ill]() if self.ill in ILLS else ModelRefused("not that")
        return await ScriptedModel().respond(request)


@dataclass(slots=True)
class Three:
    models: dict[str, IllModel] = field(
        default_factory=lambda: {name: IllModel() for name in NAMES}
    )

    def chain(self, store: Store) -> ModelChain:
        models: dict[str, Model] = {**self.models}
        return ModelChain(store=store, links=LINKS, models=models)

    def are(self, *ills: str) -> None:
        for model, ill in zip(self.models.values(), ills, strict=True):
            model.ill = ill

    @property
    def asked(self) -> list[int]:
        return [len(model.requests) for model in self.models.values()]

    def were_all_asked(self, before: list[int]) -> bool:
        return all(a < b for a, b in zip(before, self.asked, strict=True))


@pytest.fixture
def three() -> Three:
    return Three()


@pytest.fixture
def setting(home: Path, three: Three) -> Setting:
    return Setting(home=home, model=three.chain)


REQUEST = Request(
    session_id=SessionId(1), turn_id=TurnId(1), system="", steps=(), tools=(), wants_summary=True
)


async def test_every_failure_at_every_place_is_answered_by_the_first_that_is_well(
    setting: Setting, three: Three
) -> None:
    """Issue 21: 343 ways in which three models can be; each asked once, none while benched."""
    async with living(setting) as life:
        store = life.tracked.as_store()
        model = FirstWell(chain=three.chain(store))
        for ills in product(("", *ILLS), repeat=3):
            three.are(*ills)
            before = three.asked
            if "" in ills:
                await model.respond(REQUEST)
                first = ills.index("")
            else:
                with pytest.raises(ModelBusy):
                    await model.respond(REQUEST)
                first = 2
            now = [1] * (first + 1) + [0] * (2 - first)
            assert [b - a for a, b in zip(before, three.asked, strict=True)] == now, ills
            await _while_benched(model, three, ills)
            for name in NAMES:
                await store.models.lift(name)


async def _while_benched(model: FirstWell, three: Three, ills: tuple[str, ...]) -> None:
    """Those that failed are not asked again."""
    before = three.asked
    if "" not in ills:
        with pytest.raises(ModelBusy):
            await model.respond(REQUEST)
        assert three.asked == before
        return
    await model.respond(REQUEST)
    well = ills.index("")
    assert [b - a for a, b in zip(before, three.asked, strict=True)] == [
        int(place == well) for place in range(3)
    ]


async def test_whole_turns_with_every_failure_at_every_place(
    setting: Setting, three: Three
) -> None:
    """Issue 21. The first model that can be asked answers, or refuses what was said; if all are
    ill, the turn waits for the first that is well again, or ends if waiting is no use."""
    async with living(setting) as life:
        store = life.tracked.as_store()
        for number, ills in enumerate(ALL_WAYS if WANTS_ALL else EACH_AT_EACH_PLACE):
            three.are(*ills)
            before, room = three.asked, f"room-{number}"
            is_answered = not set(ills) <= LASTING
            await life.says(room, "echo fine")
            if set(ills) <= set(ILLS) and is_answered:
                await life.until(partial(three.were_all_asked, before), f"{ills} are asked")
                three.are(*(ill if ill in LASTING else "" for ill in ills))
                await life.until(partial(_is_answered, setting, room), f"{ills} are waited for")
            elif is_answered:
                first = next(place for place, ill in enumerate(ills) if ill not in ILLS)
                is_answered = ills[first] == ""
                await life.until(partial(setting.platform.texts, room), f"the end of {ills}")
                asked = [b - a for a, b in zip(before, three.asked, strict=True)]
                assert asked == [1] * (first + 1) + [0] * (2 - first), ills
            await life.until(partial(setting.platform.texts, room), f"the end of {ills}")
            assert _is_answered(setting, room) is is_answered, ills
            assert len(setting.platform.texts(room)) == 1, ills
            for name in NAMES:
                await store.models.lift(name)
        await life.rests()
    check_rows(setting.rows())


def _is_answered(setting: Setting, room: str) -> bool:
    return "fine" in setting.platform.texts(room)


@pytest.mark.parametrize("ill", ALL_ILLS)
async def test_a_turn_goes_on_with_the_next_model_and_the_person_hears_only_the_answer(
    setting: Setting, three: Three, ill: str
) -> None:
    three.are(ill, ill, "")
    async with living(setting) as life:
        await life.says("room", "echo fine")
        if ill == "content":
            await life.until(lambda: setting.platform.texts("room"), "the apology")
            assert three.asked == [1, 0, 0]
            return
        await life.shows("room", "fine")
        assert three.asked == [1, 1, 1]
        await life.says("other", "echo again")
        await life.shows("other", "again")
        assert three.asked == [1, 1, 2]

    rows = setting.rows()
    check_rows(rows)
    assert answers(rows, "room") == ["fine"]


async def test_a_bench_is_kept_over_a_restart_and_ends_by_itself(
    setting: Setting, three: Three
) -> None:
    three.are("overloaded", "", "")
    async with living(setting) as life:
        await life.says("room", "echo one")
        await life.shows("room", "one")
    three.are("", "", "")
    async with living(setting) as life:
        await life.says("room", "echo two")
        await life.shows("room", "one", "two")
        assert three.asked == [1, 2, 0]
        await life.passes(16)
        await life.says("room", "echo three")
        await life.shows("room", "one", "two", "three")
        assert three.asked == [2, 2, 0]
        assert await life.tracked.models.benches() == ()


async def test_when_all_are_benched_the_turn_waits_for_the_first_and_is_told_once(
    setting: Setting, three: Three
) -> None:
    """The patience of one model holds for all of them together."""
    three.are("busy", "failed", "unreachable")
    async with living(setting) as life:
        await life.says("room", "echo late")
        await life.passes(120)
        assert setting.platform.texts("room") == [outage_notice(Patience())]
        assert max(three.asked) <= 5
        three.are("failed", "", "failed")
        await life.shows("room", outage_notice(Patience()), "late")


async def test_when_no_model_can_help_for_long_the_turn_ends_at_once(
    setting: Setting, three: Three
) -> None:
    three.are("quota", "key", "quota")
    async with living(setting) as life:
        await life.says("room", "echo never")
        await life.until(lambda: setting.platform.texts("room"), "the apology")
        assert life.clock.monotonic() < 5
    (apology,) = setting.platform.texts("room")
    assert "one: quota; two: key; three: quota" in apology


async def test_a_chat_has_its_own_first_model_by_a_press(setting: Setting, three: Three) -> None:
    """Issue 21: `/model` is a list to press, and a press is the command."""
    setting.models = NAMES
    async with living(setting) as life:
        await life.says("room", "/model")
        await life.until(lambda: setting.platform.texts("room"), "the list")
        await life.channel.bring("room", "", "press", question=0, choice="/model three")
        await life.until(lambda: len(setting.platform.texts("room")) == 2, "the reply")
        await life.says("room", "echo hi")
        await life.until(lambda: setting.platform.texts("room")[2:] == ["hi"], "the answer")
        await life.says("other", "echo ho")
        await life.shows("other", "ho")
    assert three.asked == [1, 0, 1]
    assert setting.platform.texts("room")[1].startswith("three answers here first.")
