"""The chain of models: benches and the model of a turn are rows."""

from dataclasses import replace

import pytest

from koboshi.domain.chain import Bench, LinkFailure, ModelLink, Needs, Use, choose
from koboshi.domain.command import Command, CommandName, Response, SessionFacts
from koboshi.domain.errors import Fenced
from koboshi.domain.ids import Seq
from koboshi.domain.transcript import Note, Reply, Summary
from koboshi.domain.trouble import ModelTrouble
from koboshi.domain.usage import Usage
from koboshi.ports.store import Arrival
from tests.harness.fake_time import HOUR_MS
from tests.harness.family import claim_of, delegates
from tests.harness.homes import Home

MODEL = "openai:gpt"


def busy(trouble: ModelTrouble = ModelTrouble.BUSY, asked_ms: int | None = None) -> LinkFailure:
    return LinkFailure(model=MODEL, trouble=trouble, reason="too much to do", asked_ms=asked_ms)


async def here(home: Home) -> tuple[Bench, ...]:
    return (await home.store.models.standing(None)).benches


async def test_a_bench_outlives_a_kill_and_grows_with_each_failure(home: Home) -> None:
    """Issue 21: a restart neither forgets nor hammers."""
    first = await home.store.models.bench(busy())
    await home.reopen(crash=True)

    assert await here(home) == (first,)
    home.clock.move(15_000)
    second = await home.store.models.bench(busy())
    await home.reopen(crash=True)
    assert await here(home) == (second,)
    assert (second.tries, second.until_ms - home.clock.now_ms()) == (2, 30_000)
    assert second.since_ms == first.since_ms


async def test_a_reply_lifts_the_bench(home: Home) -> None:
    await home.store.models.bench(busy())
    await home.store.models.lift(MODEL)
    assert await here(home) == ()
    assert (await home.store.models.bench(busy())).tries == 1


async def test_what_one_node_cannot_reach_others_ask(home: Home) -> None:
    """Issue 21: unreachable benches per node; a busy provider is busy for all."""
    await home.store.models.bench(busy(ModelTrouble.UNREACHABLE))
    assert len(await here(home)) == 1
    home.sql("UPDATE model_benches SET node = 'elsewhere'")
    assert await here(home) == ()
    assert len(await home.store.models.benches()) == 1
    await home.store.models.lift(MODEL)
    assert len(await home.store.models.benches()) == 1
    await home.store.models.bench(busy())
    assert [bench.node for bench in await here(home)] == [""]


async def test_a_clock_that_was_set_back_makes_no_bench_longer(home: Home) -> None:
    await home.store.models.bench(busy())
    home.clock.move(-HOUR_MS)
    await home.reopen(crash=True)
    (bench,) = await here(home)
    assert bench.until_ms - home.clock.now_ms() <= 15_000


async def test_the_model_of_a_turn_is_kept_over_a_kill_and_told_in_its_story(home: Home) -> None:
    claim = await home.work_on()
    models = home.store.models
    await models.put_on(claim, "b:2", "a:1: busy")
    await models.put_on(claim, "c:3", "b:2: busy")
    await home.reopen(crash=True)

    standing = await home.store.models.standing(claim)
    assert standing.on == "c:3"
    choice = choose(
        [ModelLink(name="a:1"), ModelLink(name="c:3")],
        standing.benches,
        Needs(),
        now_ms=standing.now_ms,
        on=standing.on,
    )
    assert isinstance(choice, Use)
    assert choice.link.name == "c:3"
    told = home.sql("SELECT after, reason FROM journal WHERE subject = 'model' ORDER BY seq")
    assert [tuple(line) for line in told] == [("b:2", "a:1: busy"), ("c:3", "b:2: busy")]


async def test_only_the_holder_of_a_turn_puts_it_on_another_model(home: Home) -> None:
    claim = await home.work_on()
    await home.die_and_recover(claim.turn_id)
    with pytest.raises(Fenced):
        await home.store.models.put_on(claim, "b:2", "late")
    assert (await home.store.models.standing(claim)).on is None


async def test_a_choice_of_a_chat_is_kept_and_lifts_the_bench(home: Home) -> None:
    """An owner's word: the model is asked again at once."""
    await home.store.models.bench(busy(ModelTrouble.KEY))

    def chooses(_command: Command, facts: SessionFacts) -> Response:
        return Response(reply="done", settings=replace(facts.session.settings, model=MODEL))

    command = Command(name=CommandName.MODEL, said="/model")
    inbound = home.inbound("/model")
    await home.accept(Arrival(inbound=inbound, command=command), respond=chooses)
    session = await home.store.sessions.find(inbound.route)
    assert session is not None
    assert session.settings.model == MODEL
    assert await home.store.models.benches() == ()


async def test_usage_is_summed_by_chat_person_and_model(home: Home) -> None:
    reply = Reply(text="hello", calls=(), model=MODEL, tokens_in=7, tokens_out=5)
    for _ in range(2):
        claim = await home.work_on()
        await home.store.turns.answer(claim, reply, ("hello",))
    (used,) = await home.store.models.usage(0)
    assert (used.line.model, used.line.calls) == (MODEL, 2)
    assert (used.line.tokens_in, used.line.tokens_out) == (14, 10)
    assert await home.store.models.usage(home.clock.now_ms() + 1) == ()


async def test_usage_of_a_chat_has_recordings_summaries_and_what_works_beside_it(
    home: Home,
) -> None:
    """Issue 21: the budget counts them, and so does `/usage`. What cost nothing is not listed."""
    claim = await home.work_on()
    voice = Note(cause="voice:1:0", text="said", model="voice:w", tokens_in=9, seconds=61)
    for note in (voice, Note(cause="voice:1:1", text="not heard"), Note(cause="x", text="y")):
        await home.store.turns.note(claim, note)
    summary = Summary(text="so far", covers=Seq(1), model=MODEL, tokens_in=3, tokens_out=2)
    await home.store.turns.summarise(claim, summary)
    child = await claim_of(home, await delegates(home, claim))
    reply = Reply(text="hello", model="other", tokens_in=7, tokens_out=5)
    await home.store.turns.answer(child, reply, ("hello",))
    found = Usage()

    def looks(_command: Command, facts: SessionFacts) -> Response:
        nonlocal found
        found = facts.chain.usage
        return Response(reply="done")

    command = Command(name=CommandName.USAGE, said="/usage")
    arrival = Arrival(inbound=home.inbound("/usage"), command=command)
    await home.accept(arrival, respond=looks)

    # The reply that gave the work away names no model, and no tokens.
    lines = [each for each in found.today if each.model]
    assert [(e.model, e.calls, e.tokens_in, e.tokens_out, e.seconds) for e in lines] == [
        (MODEL, 1, 3, 2, 0),
        ("other", 1, 7, 5, 0),
        ("voice:w", 1, 9, 0, 61),
    ]
    assert found.month == found.today
    assert [each.line for each in await home.store.models.usage(0)] == list(found.today)
