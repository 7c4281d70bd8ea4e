"""A turn that died is found, judged once, and goes on from its last durable step."""

import pytest
from anyio import create_task_group

from koboshi.domain.ids import TurnId
from koboshi.domain.recovery import Interruption, Policy, Verdict, VerdictKind
from koboshi.domain.transcript import Message, Note, Reply, Result, Tail
from koboshi.domain.worker import EndedHow
from tests.harness.fake_time import DAY_MS, HOUR_MS, SECOND_MS
from tests.harness.homes import HOOK, SILENT, Home, OpenHome, a_call, a_world

MINUTE_MS = 60 * SECOND_MS


async def unowned(home: Home, *, with_suspended: bool = True) -> tuple[TurnId, ...]:
    return await home.store.turns.unowned(with_suspended=with_suspended)


# ── which turns died ────────────────────────────────────────────────────────────────────────────


async def test_exactly_the_turns_that_were_being_worked_on_are_found(home: Home) -> None:
    """S3, S5: queued, waiting, answered, done, stopped and failed ones are not interrupted."""
    claims = {}
    for chat in ("running 1", "waiting", "answered", "done", "stopped", "failed", "running 2"):
        claims[chat] = await home.work_on(chat=chat)
    await home.say(chat="queued")
    await home.ask(claims["waiting"])
    await home.answer(claims["answered"])
    await home.answer(claims["done"])
    await home.deliver("done")
    await home.stop(chat="stopped")
    await home.store.turns.fail(claims["failed"], "it broke")
    await home.reopen(crash=True)

    dead = (claims["running 2"].turn_id, claims["running 1"].turn_id)
    assert await unowned(home, with_suspended=True) == dead
    assert await unowned(home, with_suspended=False) == dead


async def test_an_empty_home_has_nothing_to_recover(home: Home) -> None:
    """S7, S9."""
    assert await unowned(home) == ()
    assert await home.claims() == ()


async def test_after_a_clean_end_nothing_is_to_be_recovered(home: Home) -> None:
    """S14."""
    claim = await home.work_on()
    await home.store.turns.release(claim)
    await home.store.workers.end(home.worker.worker_id, EndedHow.LEFTOVERS)
    await home.reopen(crash=False)

    assert await unowned(home) == ()
    assert (await home.claim()).turn_id == claim.turn_id


async def test_a_turn_is_found_however_long_ago_it_began(home: Home) -> None:
    """S4: hours of silence, and the gateway was alive until a moment ago."""
    claim = await home.work_on()
    home.clock.move(5 * HOUR_MS)
    await home.store.workers.beat(home.worker.worker_id)
    await home.reopen(crash=True)

    assert await unowned(home) == (claim.turn_id,)
    assert (await home.recover(claim.turn_id)).rule == "fresh"


async def test_an_interruption_is_dealt_with_once(home: Home) -> None:
    """S6: the second boot finds nothing that the first has dealt with."""
    claim = await home.work_on()
    await home.die_and_recover(claim.turn_id)
    await home.reopen(crash=True)

    assert await unowned(home) == ()
    turn = await home.view(claim.turn_id)
    assert (turn.state, turn.recoveries, turn.crash_streak) == ("queued", 1, 1)


async def test_twenty_rescuers_at_once_resume_a_turn_once(home: Home) -> None:
    """S37, S160: exactly one resumption, and no words that no one said."""
    claim = await home.work_on()
    await home.reopen(crash=True)
    verdicts: list[Verdict] = []

    async def rescue() -> None:
        verdicts.append(await home.recover(claim.turn_id))

    async with create_task_group() as tasks:
        for _ in range(20):
            tasks.start_soon(rescue)

    assert {verdict.rule for verdict in verdicts} == {"fresh"}
    assert (await home.view(claim.turn_id)).recoveries == 1
    assert len(await home.notes(claim.turn_id)) == 1
    lines = [line for line in await home.lines(claim.turn_id) if line.event == "resumed"]
    assert len(lines) == 1


async def test_the_same_facts_lead_to_the_same_verdict_and_it_is_recorded(home: Home) -> None:
    """S61, S161: what `explain` says is what recovery does, with its reason in the journal."""
    claim = await home.work_on()
    await home.reopen(crash=True)
    foreseen = (await home.explain(claim.turn_id)).why
    again = (await home.explain(claim.turn_id)).why
    verdict = await home.recover(claim.turn_id)

    assert foreseen == again == verdict
    (line,) = [line for line in await home.lines(claim.turn_id) if line.event == "resumed"]
    assert (line.before, line.after, line.rule) == ("running", "queued", "fresh")
    assert line.reason == Interruption.CRASH


async def test_a_turn_goes_on_from_its_last_durable_step(home: Home) -> None:
    """S36, S57, S158: the same turn, the same transcript, nothing in a different order."""
    claim = await home.work_on("one")
    await home.step(claim)
    before = (await home.store.turns.load(claim)).steps
    resumed = await home.resume(claim.turn_id)

    loaded = await home.store.turns.load(resumed)
    assert loaded.steps[: len(before)] == before
    (note,) = loaded.steps[len(before) :]
    assert isinstance(note.body, Note)
    assert [type(step.body) for step in before] == [Message, Reply, Result]
    facts = (await home.explain(claim.turn_id)).facts
    assert facts is not None
    assert facts.tail is Tail.RESULT


@pytest.mark.parametrize("tail", [Tail.TRIGGER, Tail.PROPOSED, Tail.STARTED, Tail.RESULT])
async def test_whatever_it_ended_with_short_of_an_answer_it_is_resumed(
    home: Home, tail: Tail
) -> None:
    """S53, S55, S56, S57, S58."""
    claim = await home.work_on()
    if tail is not Tail.TRIGGER:
        (call_id,) = await home.propose(claim, a_call())
        if tail is not Tail.PROPOSED:
            await home.start(claim, call_id)
        if tail is Tail.RESULT:
            await home.finish(claim, call_id)
    await home.reopen(crash=True)

    explained = await home.explain(claim.turn_id)
    assert explained.facts is not None
    assert explained.facts.tail is tail
    assert (await home.recover(claim.turn_id)).kind is VerdictKind.RESUME


async def test_an_answered_turn_is_only_delivered(home: Home) -> None:
    """S5, S54, S147: the answer exists; there is no second run of the model."""
    claim = await home.work_on()
    await home.answer(claim, "forty-two")
    await home.reopen(crash=True)

    assert await unowned(home) == ()
    verdict = await home.recover(claim.turn_id)
    assert (verdict.kind, verdict.rule) == (VerdictKind.DELIVER, "answered")
    assert await home.claims() == ()
    (delivery,) = await home.deliver()
    assert (delivery.text, delivery.is_ambiguous) == ("forty-two", False)


async def test_a_closed_turn_is_not_judged(home: Home) -> None:
    """S2, S83."""
    claim = await home.work_on()
    await home.stop()
    await home.reopen(crash=True)

    assert await home.store.turns.recover(claim.turn_id) is None
    assert (await home.explain(claim.turn_id)).why is None


async def test_a_recovered_turn_wakes_those_who_claim(home: Home) -> None:
    claim = await home.work_on()
    await home.reopen(crash=True)
    home.wakeups.hints.clear()
    await home.recover(claim.turn_id)

    assert {"turns", f"claim:{claim.turn_id}"} <= set(home.wakeups.hints)


# ── the note ────────────────────────────────────────────────────────────────────────────────────


async def test_each_life_that_ended_early_leaves_exactly_one_note(home: Home) -> None:
    """S63, S59: also when the boot that wrote it dies and the next one looks again."""
    claim = await home.work_on()
    for _ in range(3):
        await home.step(claim)
        await home.reopen(crash=True)
        await home.recover(claim.turn_id)
        await home.reopen(crash=True)
        await home.recover(claim.turn_id)
        await home.wait_until_due()
        claim = await home.claim()

    notes = [
        step.epoch
        for step in (await home.store.turns.load(claim)).steps
        if isinstance(step.body, Note)
    ]
    assert notes == [1, 2, 3]


async def test_a_life_that_was_released_and_then_judged_has_one_note(home: Home) -> None:
    claim = await home.work_on()
    await home.store.turns.release(claim)
    home.clock.move(2 * HOUR_MS)
    await home.reopen(crash=True)
    assert await home.claims() == (), "it is stale: the person is asked first"
    await home.say("yes")
    await home.claim()

    assert len(await home.notes(claim.turn_id)) == 1


async def test_a_note_says_what_happened_and_who_is_there(home: Home) -> None:
    """S64, S65."""
    crashed = await home.work_on(chat="ann")
    written = await home.work_on(chat="bob")
    await home.say(channel=HOOK)
    unattended = await home.claim()
    await home.reopen(crash=True)
    await home.say("are you there?", chat="bob")
    texts = []
    for claim in (crashed, written, unattended):
        await home.recover(claim.turn_id)
        (note,) = await home.notes(claim.turn_id)
        texts.append(note.text)

    assert "without warning" in texts[0]
    assert "Go on from the last step" in texts[0]
    assert "has written again" in texts[1]
    assert "Questions cannot be answered here" in texts[2]


async def test_a_turn_that_never_ran_gets_no_note(home: Home) -> None:
    """S66, S67."""
    await home.say("one")
    await home.reopen(crash=True)
    claim = await home.claim()

    assert await home.notes(claim.turn_id) == []


# ── how often ───────────────────────────────────────────────────────────────────────────────────


async def test_the_third_death_without_a_step_is_the_last(home: Home) -> None:
    """S59, S71, S72: a restart loop ends by the turn's own count, with one apology."""
    claim = await home.work_on("dangerous")
    await home.say("harmless")
    for streak in (1, 2):
        claim = await home.resume(claim.turn_id)
        assert (await home.view(claim.turn_id)).crash_streak == streak

    verdict = await home.die_and_recover(claim.turn_id)
    assert (verdict.kind, verdict.rule) == (VerdictKind.GIVE_UP, "exhausted")
    turn = await home.view(claim.turn_id)
    assert (turn.state, turn.event, turn.reason) == ("failed", "gave-up", verdict.because)
    assert (await home.view((await home.claim()).turn_id)).request == "harmless"
    (apology,) = await home.deliver()
    assert "3 times in a row" in apology.text


async def test_one_apology_is_owed_whatever_dies_around_it(home: Home) -> None:
    """S149."""
    claim = await home.work_on()
    claim = await home.resume(claim.turn_id)
    claim = await home.resume(claim.turn_id)
    await home.die_and_recover(claim.turn_id)
    for _ in range(3):
        await home.reopen(crash=True)
        assert await home.store.turns.recover(claim.turn_id) is None

    assert len(await home.deliver()) == 1


@pytest.mark.parametrize("progress", ["step", "reply", "result"])
async def test_a_step_clears_the_count_of_deaths(home: Home, progress: str) -> None:
    """S71: six deaths, each with a new durable step before it."""
    claim = await home.work_on()
    call_ids = await home.propose(claim, *[a_call() for _ in range(6)])
    for call_id in call_ids:
        match progress:
            case "step":
                await home.step(claim)
            case "reply":
                await home.propose(claim, a_call())
            case _:
                await home.finish(claim, call_id)
        assert (await home.view(claim.turn_id)).crash_streak == 0
        claim = await home.resume(claim.turn_id)

    turn = await home.view(claim.turn_id)
    assert (turn.recoveries, turn.crash_streak) == (6, 1)


async def test_work_that_leaves_no_step_does_not_clear_the_count(home: Home) -> None:
    claim = await home.work_on()
    (call_id,) = await home.propose(claim, a_call())
    claim = await home.resume(claim.turn_id)
    await home.start(claim, call_id)
    claim = await home.resume(claim.turn_id)
    await home.store.turns.note(claim, Note(cause="empty-reply", text="say something"))
    await home.store.turns.retry_model(claim, SILENT)

    assert (await home.die_and_recover(claim.turn_id)).rule == "exhausted"


async def test_a_release_is_no_death_and_does_not_clear_the_count_either(home: Home) -> None:
    claim = await home.work_on()
    claim = await home.resume(claim.turn_id)
    await home.store.turns.release(claim)
    claim = await home.claim()
    turn = await home.view(claim.turn_id)
    assert (turn.recoveries, turn.crash_streak) == (2, 1)
    claim = await home.resume(claim.turn_id)

    assert (await home.die_and_recover(claim.turn_id)).rule == "exhausted"


async def test_a_crash_loop_is_slowed_down(home: Home) -> None:
    claim = await home.work_on()
    waits = []
    for _ in range(2):
        await home.store.workers.beat(home.worker.worker_id)
        await home.die_and_recover(claim.turn_id)
        assert await home.claims() == ()
        waits.append(await home.store.turns.due_in_ms())
        await home.wait_until_due()
        claim = await home.claim()

    assert waits == [2 * SECOND_MS, 30 * SECOND_MS]


async def test_a_gateway_that_was_down_for_a_while_does_not_wait(home: Home) -> None:
    claim = await home.work_on()
    home.clock.move(60 * SECOND_MS)
    await home.die_and_recover(claim.turn_id)

    assert (await home.claim()).turn_id == claim.turn_id


async def test_a_clock_that_went_back_does_not_make_a_turn_wait_for_a_day(home: Home) -> None:
    """S169: the pause is at most the pause."""
    claim = await home.work_on()
    home.clock.move(-DAY_MS)
    await home.die_and_recover(claim.turn_id)

    due_in_ms = await home.store.turns.due_in_ms()
    assert due_in_ms is not None
    assert due_in_ms <= 2 * SECOND_MS


@pytest.mark.parametrize("why", ["back-off", "postponed"])
async def test_a_clock_that_goes_back_while_a_turn_waits_does_not_make_it_wait_for_a_day(
    home: Home, why: str
) -> None:
    """S169: no wait is longer than ten minutes, so one that is was set by another clock."""
    claim = await home.work_on()
    if why == "back-off":
        await home.die_and_recover(claim.turn_id)
    else:
        await home.store.turns.postpone(claim, MINUTE_MS, "the model is busy")
    home.clock.move(-DAY_MS)
    await home.store.workers.beat(home.worker.worker_id)

    due_in_ms = await home.store.turns.due_in_ms()
    assert due_in_ms is not None
    assert due_in_ms <= 10 * MINUTE_MS


async def test_a_heartbeat_leaves_an_honest_wait_alone(home: Home) -> None:
    claim = await home.work_on()
    await home.store.turns.postpone(claim, 10 * MINUTE_MS, "it is busy")
    await home.store.workers.beat(home.worker.worker_id)

    assert await home.store.turns.due_in_ms() == 10 * MINUTE_MS


async def test_the_tenth_recovery_asks_and_a_yes_starts_the_count_again(home: Home) -> None:
    claim = await home.work_on("restart yourself")
    for _ in range(9):
        await home.step(claim)
        claim = await home.resume(claim.turn_id)
    await home.step(claim)
    await home.die_and_recover(claim.turn_id)
    await home.wait_until_due()

    assert await home.claims() == ()
    turn = await home.view(claim.turn_id)
    assert (turn.state, turn.recoveries) == ("waiting", 10)
    (question,) = await home.deliver()
    assert "interrupted many times" in question.text
    await home.say("yes")
    turn = await home.view((await home.claim()).turn_id)
    assert (turn.turn_id, turn.recoveries, turn.crash_streak) == (claim.turn_id, 0, 0)


async def test_ten_restarts_on_purpose_ask_as_well(home: Home) -> None:
    claim = await home.work_on()
    for _ in range(9):
        await home.store.turns.release(claim)
        claim = await home.claim()
    await home.store.turns.release(claim)

    assert await home.claims() == ()
    turn = await home.view(claim.turn_id)
    assert (turn.state, turn.event, turn.crash_streak) == ("waiting", "prompted", 0)


async def test_too_many_recoveries_end_where_no_person_can_be_asked(open_home: OpenHome) -> None:
    home = await open_home(a_world(policy=Policy(recoveries_max=1)))
    await home.say(channel=HOOK)
    claim = await home.claim()
    await home.store.turns.release(claim)

    assert await home.claims() == ()
    assert (await home.view(claim.turn_id)).state == "failed"


# ── how long ago ────────────────────────────────────────────────────────────────────────────────


async def idle_ms(home: Home, turn_id: TurnId) -> int:
    facts = (await home.explain(turn_id)).facts
    assert facts is not None
    return facts.idle_ms


async def test_a_dead_turn_is_idle_since_the_last_sign_of_life_of_its_worker(home: Home) -> None:
    """S48, seed 003: a three-hour command that ran when we were killed a minute ago is fresh."""
    claim = await home.work_on()
    home.clock.move(3 * HOUR_MS)
    await home.store.workers.beat(home.worker.worker_id)
    home.clock.move(60 * SECOND_MS)
    await home.reopen(crash=True)

    assert await idle_ms(home, claim.turn_id) == 60 * SECOND_MS


async def test_a_dead_turn_is_idle_since_its_last_step_if_that_is_later(home: Home) -> None:
    claim = await home.work_on()
    home.clock.move(HOUR_MS)
    await home.step(claim)
    home.clock.move(SECOND_MS)
    await home.reopen(crash=True)

    assert await idle_ms(home, claim.turn_id) == SECOND_MS


async def test_a_released_turn_is_idle_since_its_release(home: Home) -> None:
    claim = await home.work_on()
    home.clock.move(3 * HOUR_MS)
    await home.store.turns.release(claim)
    home.clock.move(SECOND_MS)
    await home.reopen(crash=False)

    assert await idle_ms(home, claim.turn_id) == SECOND_MS


async def test_restarts_do_not_make_an_old_turn_fresh(home: Home) -> None:
    """S48, seed 004: boots that did not work on it leave its age alone."""
    claim = await home.work_on()
    for _ in range(5):
        home.clock.move(HOUR_MS // 2)
        await home.reopen(crash=True)
        await home.store.workers.beat(home.worker.worker_id)

    assert await idle_ms(home, claim.turn_id) == 5 * HOUR_MS // 2
    assert (await home.recover(claim.turn_id)).rule == "stale"


async def test_being_put_back_into_the_queue_does_not_make_a_turn_fresh(home: Home) -> None:
    """S48, S61: recovered in time, and then no worker came to claim it."""
    claim = await home.work_on()
    await home.die_and_recover(claim.turn_id)
    home.clock.move(HOUR_MS + 1)

    assert await home.claims() == ()
    turn = await home.view(claim.turn_id)
    assert (turn.state, turn.event) == ("waiting", "prompted")


@pytest.mark.parametrize(
    "idle, fresh_ms, rule",
    [
        (HOUR_MS, HOUR_MS, "fresh"),
        (HOUR_MS + 1, HOUR_MS, "stale"),
        (30 * DAY_MS, 0, "fresh"),
        (30 * DAY_MS, -1, "fresh"),
    ],
)
async def test_the_limit_belongs_to_what_is_fresh(
    open_home: OpenHome, idle: int, fresh_ms: int, rule: str
) -> None:
    """S47, S38."""
    home = await open_home(a_world(policy=Policy(fresh_ms=fresh_ms)))
    claim = await home.work_on()
    home.clock.move(idle)

    assert (await home.die_and_recover(claim.turn_id)).rule == rule


async def test_a_person_who_came_back_after_hours_is_fresh(home: Home) -> None:
    """S50: the transcript before is old, the turn itself is not."""
    await home.answer(await home.work_on("in the morning"))
    await home.deliver()
    home.clock.move(8 * HOUR_MS)
    claim = await home.work_on("in the evening")

    assert (await home.die_and_recover(claim.turn_id)).rule == "fresh"


async def test_a_clock_that_went_back_makes_nothing_stale(home: Home) -> None:
    """S169."""
    claim = await home.work_on()
    home.clock.move(-DAY_MS)
    await home.reopen(crash=True)

    assert await idle_ms(home, claim.turn_id) == 0
    assert (await home.recover(claim.turn_id)).rule == "fresh"
