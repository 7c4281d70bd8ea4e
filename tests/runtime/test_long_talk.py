"""A conversation that has become too long for the model, and a model that asks for patience."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from anyio import Event

from koboshi.agent.size import tokens_in
from koboshi.agent.summary import ContextLimits
from koboshi.domain.errors import ModelBusy, ModelOverfull, ModelRefused
from koboshi.domain.outage import Patience, outage_notice
from koboshi.domain.recovery import Policy, RecoveryPolicy
from koboshi.domain.transcript import HeardMessage, Message, Note, Reply, Result, Summary
from koboshi.models.scripted import ScriptedModel
from koboshi.ports.model import ModelReply, OnText, Request
from tests.harness.compose import Bounds
from tests.harness.invariants import answers, check_rows
from tests.runtime.gateway import Life, Setting, living
from tests.runtime.scripts import calls, says, script

SMALL = ContextLimits(tokens_max=1_000)
LONG = "long " * 160
"""Two hundred tokens."""


@dataclass(slots=True)
class LimitedModel:
    """The scripted model behind a window: longer requests are refused, as by a provider."""

    tokens_max: int = 1_000_000
    summary: Callable[[int], str | Exception | None] = lambda _: None
    """What is said instead of the scripted summary, given its number from 1."""
    before: Callable[[int], Exception | None] = lambda _: None
    """Raised instead of a reply, given the number of the request that is no summary, from 1."""
    replies: list[Request] = field(default_factory=list)
    summaries: list[Request] = field(default_factory=list)

    async def respond(self, request: Request, on_text: OnText | None = None) -> ModelReply:
        kept = self.summaries if request.wants_summary else self.replies
        kept.append(request)
        if tokens_in(request) > self.tokens_max:
            raise ModelOverfull("the conversation has grown too long for the model")
        said = self.summary(len(kept)) if request.wants_summary else self.before(len(kept))
        if isinstance(said, Exception):
            raise said
        if said is not None:
            return ModelReply(text=said, model="m", tokens_in=7, tokens_out=3)
        return await ScriptedModel().respond(request)


@pytest.fixture
def model() -> LimitedModel:
    return LimitedModel()


@pytest.fixture
def setting(home: Path, model: LimitedModel) -> Setting:
    return Setting(home=home, model=model, bounds=Bounds(context=SMALL))


async def talk(life: Life, first: int, last: int) -> None:
    for number in range(first, last + 1):
        await life.says("room", f"echo {number} {LONG}")
        await life.until(lambda n=number: len(life.setting.platform.texts("room")) >= n, "it")  # type: ignore[misc]


def kinds(request: Request) -> list[type]:
    return [type(step.body) for step in request.steps]


async def test_a_long_conversation_is_summed_up_and_goes_on_in_the_same_session(
    setting: Setting, model: LimitedModel
) -> None:
    async with living(setting) as life:
        await talk(life, 1, 6)

    rows = setting.rows()
    check_rows(rows)
    assert len(rows.sessions) == 1
    assert rows.sessions[0]["generation"] == 1
    assert len(setting.platform.texts("room")) == 6, "no notice is sent of it"
    assert len(model.summaries) == len(rows.of("steps", kind="summary")) >= 1
    assert all(tokens_in(each) <= SMALL.tokens_max for each in model.replies)
    last = model.replies[-1]
    assert isinstance(last.steps[0].body, Summary)
    assert isinstance(last.steps[-1].body, Message)
    assert Summary not in kinds(last)[1:]


async def test_the_next_life_uses_the_summary_that_was_made(
    setting: Setting, model: LimitedModel
) -> None:
    setting.bounds = Bounds(context=ContextLimits(tokens_max=2_000))
    async with living(setting) as life:
        await talk(life, 1, 5)
    made = len(model.summaries)
    async with living(setting) as life:
        await life.says("room", "echo hello")
        await life.until(lambda: "hello" in setting.platform.texts("room"), "the answer")

    assert made == len(model.summaries) == 1
    assert isinstance(model.replies[-1].steps[0].body, Summary)


async def test_a_new_conversation_has_no_summary(setting: Setting, model: LimitedModel) -> None:
    async with living(setting) as life:
        await talk(life, 1, 4)
        await life.says("room", "/new")
        await life.says("room", "echo hello")
        await life.until(lambda: "hello" in setting.platform.texts("room"), "the answer")

    assert kinds(model.replies[-1]) == [HeardMessage]


async def test_a_long_turn_is_summed_up_while_it_works(
    setting: Setting, model: LimitedModel
) -> None:
    """The model goes on where it was, and sees every word of the person."""
    setting.world.results["do_once"] = LONG
    items = [calls("do_once")] * 12
    async with living(setting) as life:
        await life.says("room", script(*items, says("through")))
        await life.shows("room", "through")

    check_rows(setting.rows())
    assert setting.world.ran == ["do_once"] * 12
    assert model.summaries
    for request in model.replies:
        bodies = [step.body for step in request.steps]
        assert sum(isinstance(body, Message) for body in bodies) == 1
        asked = [call.call_id for body in bodies if isinstance(body, Reply) for call in body.calls]
        assert asked == [body.call_id for body in bodies if isinstance(body, Result)]


@pytest.mark.parametrize("moment", ["turns.summarise", "turns.answer"])
async def test_a_death_around_the_summary_loses_nothing(
    setting: Setting, model: LimitedModel, moment: str
) -> None:
    """Before it is stored it is made again; after that it is used. S63: one note for one death."""
    async with living(setting) as life:
        await talk(life, 1, 2)
        life.tracked.on_verb = lambda verb: life.lose_power() if verb == moment else None
        await life.says("room", f"echo 3 {LONG}")
        await life.until(life.is_over.is_set, "the end")
    stored = len(setting.rows().of("steps", kind="summary"))
    async with living(setting) as life:
        await life.until(lambda: len(setting.platform.texts("room")) == 3, "the answer")
        await life.rests()

    rows = setting.rows()
    check_rows(rows)
    assert stored == int(moment == "turns.answer")
    assert len(rows.of("steps", kind="summary")) == 1
    assert len(model.summaries) == 2 - stored
    (note,) = rows.of("steps", cause="recovery")
    assert sum(isinstance(step.body, Note) for step in model.replies[-1].steps) == 1
    assert rows.of("turns", turn_id=note["turn_id"])[0]["recoveries"] == 1


@pytest.mark.parametrize("said", ["", "  \n "])
async def test_a_model_without_words_for_it_leaves_a_mark(
    setting: Setting, model: LimitedModel, said: str
) -> None:
    model.summary = lambda _: said
    async with living(setting) as life:
        await talk(life, 1, 4)

    summary = model.replies[-1].steps[0].body
    assert isinstance(summary, Summary)
    assert "Earlier conversation left out" in summary.text
    assert (summary.model, summary.tokens_in, summary.tokens_out) == ("m", 7, 3), "for `/usage`"
    check_rows(setting.rows())


async def test_what_the_model_says_at_length_is_cut(setting: Setting, model: LimitedModel) -> None:
    model.summary = lambda _: "word " * 100_000
    async with living(setting) as life:
        await talk(life, 1, 4)

    assert all(tokens_in(each) <= SMALL.tokens_max for each in model.replies)


async def test_a_busy_model_is_asked_for_the_summary_again(
    setting: Setting, model: LimitedModel
) -> None:
    model.summary = lambda number: ModelBusy("full") if number < 4 else None
    async with living(setting) as life:
        await talk(life, 1, 3)

    assert len(model.summaries) == 4
    check_rows(setting.rows())


async def test_a_model_that_stays_busy_with_the_summary_fails_the_turn(
    setting: Setting, model: LimitedModel
) -> None:
    """Nothing is lost: the next turn tries again."""
    setting.patience = Patience(total_ms=15_000)
    model.summary = lambda number: ModelBusy("full") if number <= 5 else None
    async with living(setting) as life:
        await talk(life, 1, 3)
        assert "the model did not answer for 15 s (full)" in setting.platform.texts("room")[-1]
        await talk(life, 4, 4)

    assert len(model.summaries) == 6
    rows = setting.rows()
    check_rows(rows)
    assert [turn["state"] for turn in rows.turns] == ["done", "done", "failed", "done"]


async def test_a_model_that_will_not_sum_up_fails_the_turn(
    setting: Setting, model: LimitedModel
) -> None:
    model.summary = lambda _: ModelRefused("the key was refused")
    async with living(setting) as life:
        await talk(life, 1, 3)

    assert "the key was refused" in setting.platform.texts("room")[-1]
    assert setting.rows().of("steps", kind="summary") == []


# ── the provider knows better ───────────────────────────────────────────────────────────────────


async def test_a_model_that_takes_less_than_we_thought_is_given_less(
    setting: Setting, model: LimitedModel
) -> None:
    setting.bounds = Bounds()
    model.tokens_max = 1_100
    async with living(setting) as life:
        await talk(life, 1, 12)

    rows = setting.rows()
    check_rows(rows)
    assert [turn["state"] for turn in rows.turns] == ["done"] * 12
    refused = [each for each in model.replies if tokens_in(each) > model.tokens_max]
    assert 1 <= len(refused) < 12, "half of it is left out each time"


async def test_a_long_turn_that_the_model_refuses_goes_on(
    setting: Setting, model: LimitedModel
) -> None:
    """Even its newest round is summed up if nothing else helps."""
    setting.bounds = Bounds(result_chars_max=100_000)
    setting.world.results["do_once"] = LONG * 5
    model.tokens_max = 1_000
    async with living(setting) as life:
        await life.says("room", script(calls("do_once"), calls("do_once"), says("through")))
        await life.shows("room", "through")

    assert setting.world.ran == ["do_once"] * 2
    check_rows(setting.rows())


async def test_a_message_that_is_too_long_by_itself_is_refused_in_plain_words(
    setting: Setting, model: LimitedModel
) -> None:
    setting.bounds = Bounds()
    model.tokens_max = 1_000
    async with living(setting) as life:
        await talk(life, 1, 2)
        await life.says("room", f"echo {LONG * 8}")
        await life.until(lambda: len(setting.platform.texts("room")) == 3, "the apology")
        await talk(life, 4, 4)

    apology = setting.platform.texts("room")[2]
    assert "too long for the model, even summed up" in apology
    rows = setting.rows()
    check_rows(rows)
    assert [turn["state"] for turn in rows.turns] == ["done", "done", "failed", "done"]
    assert len(model.replies) < 10


async def test_a_model_that_finds_everything_too_long_is_given_up(
    setting: Setting, model: LimitedModel
) -> None:
    setting.bounds = Bounds()
    async with living(setting) as life:
        await talk(life, 1, 3)
        model.tokens_max = 0
        await life.says("room", "echo hello")
        await life.until(lambda: len(setting.platform.texts("room")) == 4, "the apology")

    assert "too long for the model, even summed up" in setting.platform.texts("room")[3]
    check_rows(setting.rows())


async def test_a_death_after_the_refusal_starts_nothing_anew(
    setting: Setting, model: LimitedModel
) -> None:
    """What bounds the tries is the summary on the disk, not a count in memory."""
    setting.bounds = Bounds()
    async with living(setting) as life:
        await talk(life, 1, 3)
        model.tokens_max = 0
        stored: list[str] = []

        def die_at_the_second(verb: str) -> None:
            if verb in ("turns.summarise", "turns.fail"):
                stored.append(verb)
                if len(stored) > 1:
                    life.lose_power()

        life.tracked.on_verb = die_at_the_second
        await life.says("room", "echo hello")
        await life.until(life.is_over.is_set, "the end")
    async with living(setting) as life:
        await life.until(lambda: len(setting.platform.texts("room")) == 4, "the apology")

    rows = setting.rows()
    check_rows(rows)
    covers = [rows.body(step)["covers"] for step in rows.of("steps", kind="summary")]
    assert covers == sorted(set(covers))


# ── patience ────────────────────────────────────────────────────────────────────────────────────


async def test_a_long_wait_for_the_model_leaves_its_place_to_others(
    setting: Setting, model: LimitedModel
) -> None:
    setting.bounds = Bounds(turns_max=1)
    model.before = lambda number: ModelBusy("full", 300_000) if number == 1 else None
    async with living(setting) as life:
        await life.says("room", "echo late")
        await life.until(lambda: model.replies, "the first try")
        began = life.clock.monotonic()
        await life.says("other", "echo hello")
        await life.shows("other", "hello")
        assert life.clock.monotonic() - began < 60
        await life.shows("room", outage_notice(Patience()), "late")
        assert 299 < life.clock.monotonic() - began < 310

    rows = setting.rows()
    check_rows(rows)
    (turn,) = rows.of("turns", session_id=rows.session("room"))
    assert (turn["recoveries"], turn["crash_streak"], turn["epoch"]) == (0, 0, 2)
    assert rows.of("steps", kind="note") == []


async def test_a_short_wait_keeps_its_place(setting: Setting, model: LimitedModel) -> None:
    model.before = lambda number: ModelBusy("full", 5_000) if number == 1 else None
    async with living(setting) as life:
        await life.says("room", "echo late")
        await life.shows("room", "late")

    assert setting.rows().turns[0]["epoch"] == 1


@pytest.mark.parametrize("policy", RecoveryPolicy)
async def test_a_death_keeps_the_wait_and_needs_no_recovery(
    setting: Setting, model: LimitedModel, policy: RecoveryPolicy
) -> None:
    """S63: there was no interruption, so the model is told nothing and no person is asked."""
    setting.policy = Policy(recovery=policy)
    model.before = lambda number: ModelBusy("full", 300_000) if number == 1 else None
    async with living(setting) as life:
        await life.says("room", "echo late")
        await life.until(lambda: model.replies, "the first try")
        await life.passes(100)
    setting.time_passes(minutes=2)
    async with living(setting) as life:
        began = life.clock.monotonic()
        await life.shows("room", outage_notice(Patience()), "late")
        assert 60 <= life.clock.monotonic() - began < 300

    rows = setting.rows()
    check_rows(rows)
    assert answers(rows, "room") == ["late"]
    assert rows.turns[0]["recoveries"] == 0
    assert rows.of("steps", kind="note") == []


async def test_a_waiting_caller_can_be_stopped(setting: Setting, model: LimitedModel) -> None:
    model.before = lambda number: ModelBusy("full", 300_000) if number == 1 else None
    async with living(setting) as life:
        await life.says("room", "echo late")
        await life.until(lambda: model.replies, "the first try")
        await life.passes(1)
        await life.says("room", "/stop")
        await life.passes(400)

    assert len(model.replies) == 1
    check_rows(setting.rows())


class PausingModel(LimitedModel):
    """It takes its time for a summary."""

    def __init__(self) -> None:
        super().__init__()
        self.goes_on = Event()

    async def respond(self, request: Request, on_text: OnText | None = None) -> ModelReply:
        if request.wants_summary:
            self.summaries.append(request)
            await self.goes_on.wait()
            self.summaries.pop()
        return await super().respond(request, on_text)


async def test_a_message_during_a_summary_waits_for_its_turn(setting: Setting) -> None:
    """S98: work without a request to interrupt is not interrupted; the summary is made once."""
    model = setting.model = PausingModel()
    async with living(setting) as life:
        await talk(life, 1, 2)
        await life.says("room", f"echo 3 {LONG}")
        await life.until(lambda: model.summaries, "it is summed up")
        assert (await life.says("room", "echo behind")).state == "waiting"
        model.goes_on.set()
        await life.until(lambda: "behind" in setting.platform.texts("room"), "the next")

    rows = setting.rows()
    check_rows(rows)
    (_, summary, *_) = [step for step in rows.steps if step["turn_id"] == rows.turns[2]["turn_id"]]
    assert summary["kind"] == "summary"
    assert answers(rows, "room")[2:] == [f"3 {LONG}".strip(), "behind"]
    assert not rows.of("journal", event="interrupted")
