"""What becomes of calls that were under way when the gateway died."""

from collections.abc import Awaitable, Callable
from typing import TypeAlias

import pytest

from koboshi.domain.action import Ask, RunCalls, next_action
from koboshi.domain.ids import CallId
from koboshi.domain.recovery import VerdictKind
from koboshi.domain.transcript import CallRecord, Effect, Need, Result, ResultStatus
from koboshi.domain.turn import Claim
from tests.harness.fake_time import HOUR_MS, SECOND_MS
from tests.harness.homes import HOOK, WEB, Home, a_call, a_world

Way: TypeAlias = Callable[[Home, Claim], Awaitable[None]]


async def record_of(home: Home, claim: Claim, call_id: CallId) -> CallRecord:
    calls = (await home.store.turns.load(claim)).calls
    return next(record for record in calls if record.call.call_id == call_id)


async def runnable(home: Home, claim: Claim) -> list[CallId]:
    """The calls that the loop would run now."""
    loaded = await home.store.turns.load(claim)
    action = next_action(loaded.steps, loaded.calls)
    assert not isinstance(action, Ask)
    records = action.records if isinstance(action, RunCalls) else ()
    return [record.call.call_id for record in records]


async def under_way(home: Home, effect: Effect, **where: str) -> tuple[Claim, CallId]:
    claim = await home.work_on(**where)
    (call_id,) = await home.propose(claim, a_call("post", effect=effect))
    await home.start(claim, call_id)
    return claim, call_id


@pytest.mark.parametrize("effect", [Effect.NONE, Effect.REPEATABLE, Effect.RESUMABLE])
async def test_a_call_that_may_be_taken_up_again_stays_unresolved(
    home: Home, effect: Effect
) -> None:
    """S159: the loop runs it again, or re-attaches to it by its id."""
    claim, call_id = await under_way(home, effect)
    home.clock.move(SECOND_MS)
    await home.store.workers.beat(home.worker.worker_id)
    died_ms = home.clock.now_ms()
    claim = await home.resume(claim.turn_id)

    record = await record_of(home, claim, call_id)
    assert record.is_under_way
    assert record.died_ms == died_ms
    assert await runnable(home, claim) == [call_id]
    await home.finish(claim, call_id, "done in the second life")
    assert (await home.results(claim.turn_id))[call_id].status is ResultStatus.OK


async def test_a_call_that_was_only_proposed_may_run(home: Home) -> None:
    """S55: between proposed and started lies a commit; it has certainly not run."""
    claim = await home.work_on()
    (call_id,) = await home.propose(claim, a_call("post", effect=Effect.ONCE))
    claim = await home.resume(claim.turn_id)

    assert (await record_of(home, claim, call_id)).started_ms is None
    assert await runnable(home, claim) == [call_id]
    await home.start(claim, call_id)


async def test_of_parallel_calls_only_the_unfinished_one_is_taken_up(home: Home) -> None:
    """S159: a result that is durable stands."""
    claim = await home.work_on()
    first, second, third = await home.propose(claim, a_call("a"), a_call("b"), a_call("c"))
    await home.start(claim, first, second)
    await home.finish(claim, first, "kept")
    claim = await home.resume(claim.turn_id)

    assert await runnable(home, claim) == [second, third]
    assert (await home.results(claim.turn_id))[first].text == "kept"
    assert (await record_of(home, claim, first)).died_ms is None
    assert (await record_of(home, claim, third)).died_ms is None


async def test_of_parallel_calls_the_one_that_must_not_be_repeated_is_settled(home: Home) -> None:
    await home.say(channel=HOOK)
    claim = await home.claim()
    read, post = await home.propose(claim, a_call("read"), a_call("post", effect=Effect.ONCE))
    await home.start(claim, read, post)
    claim = await home.resume(claim.turn_id)

    assert await runnable(home, claim) == [read]
    result = (await home.results(claim.turn_id))[post]
    assert result.status is ResultStatus.UNKNOWN
    assert "outcome is unknown" in result.text
    assert (await record_of(home, claim, post)).died_ms is not None


# ── a `once` call is never left runnable ────────────────────────────────────────────────────────


async def crashed_and_confirmed(home: Home, claim: Claim) -> None:
    verdict = await home.die_and_recover(claim.turn_id)
    assert (verdict.kind, verdict.rule) == (VerdictKind.ASK_USER, "outcome-unknown")
    await home.say("yes")


async def crashed_and_the_person_wrote(home: Home, claim: Claim) -> None:
    await home.reopen(crash=True)
    await home.say("how far are you?")
    assert (await home.recover(claim.turn_id)).rule == "fresh"


async def crashed_twice_and_confirmed(home: Home, claim: Claim) -> None:
    await home.die_and_recover(claim.turn_id)
    await home.die_and_recover(claim.turn_id)
    await home.say("yes")


async def released_and_confirmed(home: Home, claim: Claim) -> None:
    await home.store.turns.release(claim)
    assert await home.claims() == (), "the person decides first"
    await home.say("yes")


async def released_and_the_person_wrote(home: Home, claim: Claim) -> None:
    await home.store.turns.release(claim)
    await home.reopen(crash=False)
    await home.say("how far are you?")


async def stale_and_confirmed(home: Home, claim: Claim) -> None:
    home.clock.move(2 * HOUR_MS)
    assert (await home.die_and_recover(claim.turn_id)).rule == "stale"
    await home.say("yes")


async def set_aside_and_confirmed(home: Home, claim: Claim) -> None:
    verdict = await home.die_and_recover(claim.turn_id, world=a_world(without=[WEB]))
    assert verdict.rule == "channel-unknown"
    assert (await home.die_and_recover(claim.turn_id, world=a_world())).rule == "outcome-unknown"
    await home.say("yes")


WAYS: dict[str, Way] = {
    way.__name__: way
    for way in (
        crashed_and_confirmed,
        crashed_and_the_person_wrote,
        crashed_twice_and_confirmed,
        released_and_confirmed,
        released_and_the_person_wrote,
        stale_and_confirmed,
        set_aside_and_confirmed,
    )
}


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
async def test_a_call_that_must_not_be_repeated_is_never_left_runnable(
    home: Home, way: Way
) -> None:
    """S159, S68: the one who claims the turn next finds its result, which is: unknown."""
    claim, call_id = await under_way(home, Effect.ONCE)
    await way(home, claim)
    await home.wait_until_due()
    claim = await home.claim()

    assert await runnable(home, claim) == []
    assert not (await record_of(home, claim, call_id)).is_unresolved
    result = (await home.results(claim.turn_id))[call_id]
    assert result.status is ResultStatus.UNKNOWN
    assert len(await home.notes(claim.turn_id)) == 1


@pytest.mark.parametrize("way", ["crash", "release"])
async def test_a_call_that_must_not_be_repeated_is_settled_where_no_person_can_be_asked(
    home: Home, way: str
) -> None:
    await home.say(channel=HOOK)
    claim = await home.claim()
    (call_id,) = await home.propose(claim, a_call("post", effect=Effect.ONCE))
    await home.start(claim, call_id)
    if way == "crash":
        await home.die_and_recover(claim.turn_id)
    else:
        await home.store.turns.release(claim)
        await home.reopen(crash=False)
    await home.wait_until_due()
    claim = await home.claim()

    assert await runnable(home, claim) == []
    assert (await home.results(claim.turn_id))[call_id].status is ResultStatus.UNKNOWN


@pytest.mark.parametrize("words", ["no", "something else"])
async def test_a_turn_that_is_not_continued_leaves_the_outcome_unknown(
    home: Home, words: str
) -> None:
    claim, call_id = await under_way(home, Effect.ONCE)
    await home.die_and_recover(claim.turn_id)
    await home.say(words)

    assert (await home.view(claim.turn_id)).state == "stopped"
    assert (await home.results(claim.turn_id))[call_id].status is ResultStatus.UNKNOWN


async def test_the_offer_names_the_call_whose_outcome_is_unknown(home: Home) -> None:
    """The one that was under way, not another that must not be repeated either."""
    claim = await home.work_on("pay the bill")
    _planned, paid = await home.propose(
        claim, a_call("tell", effect=Effect.ONCE), a_call("pay", effect=Effect.ONCE)
    )
    await home.start(claim, paid)
    await home.die_and_recover(claim.turn_id)

    (offer,) = await home.deliver()
    assert "`pay`" in offer.text


async def test_a_call_that_only_waits_to_be_started_asks_nothing(home: Home) -> None:
    claim = await home.work_on()
    read, _post = await home.propose(claim, a_call("read"), a_call("post", effect=Effect.ONCE))
    await home.start(claim, read)

    assert (await home.die_and_recover(claim.turn_id)).rule == "fresh"


async def test_a_crash_while_the_offer_stands_changes_nothing(home: Home) -> None:
    claim, _call_id = await under_way(home, Effect.ONCE)
    await home.die_and_recover(claim.turn_id)
    before = await home.explain(claim.turn_id)
    verdict = await home.die_and_recover(claim.turn_id)

    assert verdict.kind is VerdictKind.STAND
    after = await home.explain(claim.turn_id)
    assert (after.lines, after.deliveries) == (before.lines, before.deliveries)


async def test_giving_up_leaves_no_call_without_a_result(home: Home) -> None:
    claim = await home.work_on()
    started, proposed = await home.propose(claim, a_call("a"), a_call("b"))
    claim = await home.resume(claim.turn_id)
    await home.start(claim, started)
    claim = await home.resume(claim.turn_id)
    assert (await home.die_and_recover(claim.turn_id)).rule == "exhausted"

    results = await home.results(claim.turn_id)
    assert results[started].status is ResultStatus.UNKNOWN
    assert results[proposed].status is ResultStatus.STOPPED


# ── a call that died with the gateway is not started a second time ──────────────────────────────


SELF = '{"what": "gateway"}'


async def propose_again(
    home: Home, claim: Claim, *, tool: str = "restart", arguments: str = SELF
) -> tuple[CallId, bool]:
    """The model proposes it once more; whether it may start."""
    (call_id,) = await home.propose(claim, a_call(tool, effect=Effect.ONCE, arguments=arguments))
    return call_id, await home.store.turns.start_call(claim, call_id)


async def died_in(home: Home, effect: Effect, *, ran_ms: int = 0) -> Claim:
    """A call was under way for `ran_ms` when the gateway died; the turn goes on."""
    await home.say(channel=HOOK)
    claim = await home.claim()
    deadly = a_call("restart", effect=effect, arguments=SELF)
    (call_id,) = await home.propose(claim, deadly)
    await home.start(claim, call_id)
    home.clock.move(ran_ms)
    await home.store.workers.beat(home.worker.worker_id)
    claim = await home.resume(claim.turn_id)
    if effect is not Effect.ONCE:
        await home.finish(claim, call_id)
    return claim


@pytest.mark.parametrize(
    "effect, ran_ms",
    [(Effect.ONCE, 0), (Effect.ONCE, HOUR_MS), (Effect.RESUMABLE, 0)],
    ids=["young", "unknown", "taken-up"],
)
async def test_a_call_that_may_have_killed_the_gateway_is_not_started_again(
    home: Home, effect: Effect, ran_ms: int
) -> None:
    """S159: the loop of an agent that restarts its own gateway ends in its second life."""
    claim = await died_in(home, effect, ran_ms=ran_ms)
    call_id, may_start = await propose_again(home, claim)

    assert not may_start
    assert (await record_of(home, claim, call_id)).started_ms is None
    await home.finish(claim, call_id, "not repeated")
    assert not (await record_of(home, claim, call_id)).is_unresolved


async def test_the_same_arguments_in_another_order_are_the_same_call(home: Home) -> None:
    await home.say(channel=HOOK)
    claim = await home.claim()
    (call_id,) = await home.propose(
        claim, a_call("restart", effect=Effect.ONCE, arguments='{"a": 1, "b": 2}')
    )
    await home.start(claim, call_id)
    claim = await home.resume(claim.turn_id)

    _, may_start = await propose_again(home, claim, arguments='{"b": 2, "a": 1}')
    assert not may_start


async def test_another_call_may_start(home: Home) -> None:
    claim = await died_in(home, Effect.ONCE)

    assert (await propose_again(home, claim, tool="look"))[1]
    assert (await propose_again(home, claim, arguments="{}"))[1]


async def test_a_call_that_ran_for_long_and_was_taken_up_may_start_again(home: Home) -> None:
    """Its outcome is known, and it did not die young: it is not what kills the gateway."""
    claim = await died_in(home, Effect.RESUMABLE, ran_ms=20 * SECOND_MS)

    assert (await propose_again(home, claim))[1]


async def test_the_same_call_in_another_turn_may_start(home: Home) -> None:
    claim = await died_in(home, Effect.ONCE)
    await home.answer(claim)
    await home.say(channel=HOOK)

    assert (await propose_again(home, await home.claim()))[1]


async def test_a_person_may_allow_it(home: Home) -> None:
    claim, _call_id = await under_way(home, Effect.ONCE)
    await home.reopen(crash=True)
    await home.say("how far are you?")
    await home.recover(claim.turn_id)
    await home.wait_until_due()
    claim = await home.claim()
    gated = a_call("post", effect=Effect.ONCE, need=Need.APPROVAL)
    (call_id,) = await home.propose(claim, gated)
    await home.store.turns.ask(claim, call_id, "once more?", (), HOUR_MS)
    await home.say("yes")

    await home.start(await home.claim(), call_id)


async def test_a_call_that_changes_nothing_may_be_repeated_for_ever(home: Home) -> None:
    await home.say(channel=HOOK)
    claim = await home.claim()
    (call_id,) = await home.propose(claim, a_call("read"))
    await home.start(claim, call_id)
    claim = await home.resume(claim.turn_id)
    await home.finish(claim, call_id)
    (again,) = await home.propose(claim, a_call("read"))

    await home.start(claim, again)


# ── it is unknown what a call did, and the gateway lives on ──────────────────────────────────────


async def of_unknown_outcome(home: Home, effect: Effect, *, need: Need = Need.NOBODY) -> Claim:
    """The server of a call went away while it ran; the gateway did not."""
    claim = await home.work_on()
    call = a_call("restart", effect=effect, need=need, arguments=SELF)
    (call_id,) = await home.propose(claim, call)
    if need is Need.APPROVAL:
        claim = await allowed(home, claim, call_id)
    await home.start(claim, call_id)
    unknown = Result(call_id=call_id, status=ResultStatus.UNKNOWN, text="who knows")
    await home.store.turns.finish_call(claim, unknown)
    return claim


async def allowed(home: Home, claim: Claim, call_id: CallId) -> Claim:
    await home.store.turns.ask(claim, call_id, "may I?", (), HOUR_MS)
    await home.say("yes")
    return await home.claim()


@pytest.mark.parametrize("effect", [Effect.ONCE, Effect.RESUMABLE])
async def test_a_call_of_unknown_outcome_is_not_repeated_in_a_gateway_that_lived_on(
    home: Home, effect: Effect
) -> None:
    claim = await of_unknown_outcome(home, effect)
    call_id, may_start = await propose_again(home, claim)

    assert not may_start
    assert (await record_of(home, claim, call_id)).started_ms is None


async def test_a_call_of_unknown_outcome_is_not_repeated_after_a_death_either(home: Home) -> None:
    claim = await of_unknown_outcome(home, Effect.ONCE)
    claim = await home.resume(claim.turn_id)

    assert not (await propose_again(home, claim))[1]


@pytest.mark.parametrize("effect", [Effect.NONE, Effect.REPEATABLE])
async def test_a_call_that_does_no_harm_is_repeated_whatever_became_of_it(
    home: Home, effect: Effect
) -> None:
    claim = await of_unknown_outcome(home, effect)

    assert (await propose_again(home, claim))[1]


async def test_a_yes_to_the_first_call_is_not_one_to_the_second(home: Home) -> None:
    claim = await of_unknown_outcome(home, Effect.ONCE, need=Need.APPROVAL)

    assert not (await propose_again(home, claim))[1]


async def test_a_person_may_allow_what_is_of_unknown_outcome(home: Home) -> None:
    claim = await of_unknown_outcome(home, Effect.ONCE)
    gated = a_call("restart", effect=Effect.ONCE, need=Need.APPROVAL, arguments=SELF)
    (call_id,) = await home.propose(claim, gated)

    await home.start(await allowed(home, claim, call_id), call_id)
