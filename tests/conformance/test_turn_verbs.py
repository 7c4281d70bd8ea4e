"""A claimed turn: every effect sits between a committed intent and a committed outcome."""

import pytest
from anyio import create_task_group

from koboshi.domain.action import CallModel, RunCalls, next_action
from koboshi.domain.errors import Fenced
from koboshi.domain.ids import CallId
from koboshi.domain.outage import TryAgain
from koboshi.domain.session import Busy, Settings
from koboshi.domain.transcript import (
    Answer,
    Effect,
    Message,
    Need,
    Note,
    Reply,
    Result,
    ResultStatus,
    Tail,
)
from koboshi.domain.turn import Claim
from koboshi.ports.wakeups import OUTBOX, TURNS
from tests.harness.fake_time import DAY_MS, HOUR_MS, SECOND_MS
from tests.harness.homes import SILENT, Home, OpenHome, a_call

# ── claiming ────────────────────────────────────────────────────────────────────────────────────


async def test_a_claim_is_a_durable_record_of_who_works_on_what(home: Home) -> None:
    """S1: session, generation, epoch and worker are stored before any work is done."""
    claim = await home.work_on()
    worker = home.worker.worker_id
    await home.reopen(crash=True)

    turn = await home.view(claim.turn_id)
    assert (turn.state, turn.worker_id, turn.epoch) == ("running", worker, 1)
    assert (claim.worker_id, claim.epoch, claim.generation) == (worker, 1, 1)
    assert claim.session_id == await home.session_id()


async def test_turns_are_claimed_oldest_first_and_as_many_as_asked(home: Home) -> None:
    for chat in ("ann", "bob", "cat"):
        await home.say(chat=chat)

    claims = (*await home.claims(limit=2), *await home.claims(limit=2), *await home.claims())
    assert [claim.turn_id for claim in claims] == sorted(claim.turn_id for claim in claims)
    assert len(claims) == 3
    assert await home.claims(limit=0) == ()


async def test_many_who_claim_at_once_share_the_turns(home: Home) -> None:
    """S160: each turn is started once."""
    for number in range(20):
        await home.say(chat=f"chat {number}")
    taken: list[Claim] = []

    async def take() -> None:
        taken.extend(await home.claims(limit=3))

    async with create_task_group() as tasks:
        for _ in range(20):
            tasks.start_soon(take)

    assert len(taken) == 20
    assert len({claim.turn_id for claim in taken}) == 20


async def test_a_turn_is_due_at_once_and_nothing_is_due_without_one(home: Home) -> None:
    assert await home.store.turns.due_in_ms() is None
    await home.say()
    assert await home.store.turns.due_in_ms() == 0
    await home.claim()
    assert await home.store.turns.due_in_ms() is None


async def test_a_turn_that_was_never_claimed_is_not_stale(home: Home) -> None:
    """S50: however long no worker took it up, a person waits for it."""
    await home.say("still wanted")
    await home.reopen(crash=True)
    home.clock.move(3 * DAY_MS)

    claim = await home.claim()
    assert (await home.view(claim.turn_id)).request == "still wanted"
    assert await home.notes(claim.turn_id) == []


# ── what a turn starts from ─────────────────────────────────────────────────────────────────────


async def test_a_turn_starts_from_what_was_said_before_and_its_own_steps(home: Home) -> None:
    """S158, S62: the transcript is in the order in which it was made."""
    first = await home.work_on("one")
    await home.step(first)
    await home.answer(first, "that was one")
    second = await home.work_on("two")
    await home.reopen(crash=True)
    await home.recover(second.turn_id)
    await home.wait_until_due()

    loaded = await home.store.turns.load(await home.claim())
    assert [type(step.body) for step in loaded.context] == [Message, Reply, Result, Answer]
    assert [type(step.body) for step in loaded.steps] == [Message, Note]
    seqs = [step.seq for step in (*loaded.context, *loaded.steps)]
    assert seqs == sorted(seqs)
    assert loaded.session.session_id == second.session_id
    assert loaded.calls == ()


async def test_every_step_carries_its_real_time(home: Home) -> None:
    """S49."""
    claim = await home.work_on()
    home.clock.move(5 * SECOND_MS)
    await home.step(claim)
    await home.reopen()

    explained = await home.explain(claim.turn_id)
    times = [line.at_ms for line in explained.lines if line.subject == "step"]
    assert times == [home.clock.now_ms()] * 2


async def test_sessions_do_not_see_each_other(home: Home) -> None:
    ann = await home.work_on("my secret", chat="ann")
    await home.answer(ann, "kept")
    bob = await home.work_on("hello", chat="bob", person="bob")

    assert (await home.store.turns.load(bob)).context == ()


async def test_the_context_is_bounded_and_its_newest_steps_are_kept(open_home: OpenHome) -> None:
    home = await open_home(context_steps_max=3)
    for number in range(4):
        await home.answer(await home.work_on(f"question {number}"), f"answer {number}")

    loaded = await home.store.turns.load(await home.work_on())
    texts = [step.body.text for step in loaded.context if isinstance(step.body, Message | Answer)]
    assert texts == ["answer 2", "question 3", "answer 3"]


# ── replies and calls ───────────────────────────────────────────────────────────────────────────


async def test_a_reply_and_its_calls_are_stored_before_any_call_runs(home: Home) -> None:
    """S55, S159: proposed and not started has certainly not run."""
    claim = await home.work_on()
    call_ids = await home.propose(
        claim, a_call("read"), a_call("post", effect=Effect.ONCE, arguments='{"a": 1}')
    )
    await home.reopen(crash=True)

    assert len(set(call_ids)) == 2
    facts = (await home.explain(claim.turn_id)).facts
    assert facts is not None
    assert facts.tail is Tail.PROPOSED
    assert facts.under_way is None


async def test_call_ids_are_ours_and_never_repeat(home: Home) -> None:
    claim = await home.work_on()
    seen: list[CallId] = []
    for _ in range(3):
        (call_id,) = await home.propose(claim, a_call())
        await home.finish(claim, call_id)
        seen.append(call_id)

    assert len(set(seen)) == 3


async def test_a_call_goes_from_proposed_to_started_to_finished(home: Home) -> None:
    claim = await home.work_on()
    (call_id,) = await home.propose(claim, a_call("post", effect=Effect.ONCE))
    home.clock.move(SECOND_MS)
    started_ms = home.clock.now_ms()
    assert await home.store.turns.start_call(claim, call_id)
    home.clock.move(SECOND_MS)
    steps = await home.finish(claim, call_id, "posted")

    (record,) = (await home.store.turns.load(claim)).calls
    assert (record.started_ms, record.finished_ms) == (started_ms, home.clock.now_ms())
    assert [step.body for step in steps] == [
        Result(call_id=call_id, status=ResultStatus.OK, text="posted")
    ]


async def test_the_next_action_of_parallel_calls_is_those_that_are_left(home: Home) -> None:
    claim = await home.work_on()
    first, second = await home.propose(claim, a_call("a"), a_call("b"))
    await home.start(claim, first, second)
    await home.finish(claim, first)

    loaded = await home.store.turns.load(claim)
    action = next_action(loaded.steps, loaded.calls)
    assert isinstance(action, RunCalls)
    assert [record.call.call_id for record in action.records] == [second]
    await home.finish(claim, second)
    loaded = await home.store.turns.load(claim)
    assert isinstance(next_action(loaded.steps, loaded.calls), CallModel)


async def test_a_call_has_one_result(home: Home) -> None:
    """S159."""
    claim = await home.work_on()
    (call_id,) = await home.propose(claim, a_call())
    await home.start(claim, call_id)
    await home.finish(claim, call_id, "first")

    with pytest.raises(Fenced):
        await home.finish(claim, call_id, "second")
    assert (await home.results(claim.turn_id))[call_id].text == "first"


async def test_a_call_is_started_once(home: Home) -> None:
    claim = await home.work_on()
    (call_id,) = await home.propose(claim, a_call())
    await home.start(claim, call_id)

    with pytest.raises(Fenced):
        await home.start(claim, call_id)


@pytest.mark.parametrize("verb", ["start", "finish"])
async def test_a_call_that_no_one_proposed_is_refused(home: Home, verb: str) -> None:
    claim = await home.work_on()
    before = await home.everything()

    with pytest.raises(Fenced):
        await getattr(home, verb)(claim, CallId("99.0"))
    assert await home.everything() == before


async def test_a_call_that_is_refused_before_it_runs_is_skipped(home: Home) -> None:
    """Bad arguments: it has a result and was never started."""
    claim = await home.work_on()
    (call_id,) = await home.propose(claim, a_call("post", effect=Effect.ONCE))
    await home.finish(claim, call_id, "no such tool")

    (record,) = (await home.store.turns.load(claim)).calls
    assert (record.started_ms, record.skipped_ms) == (None, home.clock.now_ms())
    assert not record.is_unresolved
    with pytest.raises(Fenced):
        await home.start(claim, call_id)


async def test_a_call_that_wants_approval_cannot_be_started_without_it(home: Home) -> None:
    """S143: not by a bug, and not by a restart."""
    claim = await home.work_on()
    gated = a_call("rm", effect=Effect.ONCE, need=Need.APPROVAL)
    (call_id,) = await home.propose(claim, gated)
    before = await home.everything()

    with pytest.raises(Exception, match="CHECK"):
        await home.start(claim, call_id)
    assert await home.everything() == before


# ── progress ────────────────────────────────────────────────────────────────────────────────────


async def idle_ms(home: Home, claim: Claim) -> int:
    facts = (await home.explain(claim.turn_id)).facts
    assert facts is not None
    return facts.idle_ms


async def test_only_steps_are_progress(home: Home) -> None:
    """S48: neither starting a call, nor a note, nor a try of the model moves the clock."""
    claim = await home.work_on()
    (call_id,) = await home.propose(claim, a_call())
    home.clock.move(HOUR_MS)
    await home.start(claim, call_id)
    await home.store.turns.note(claim, Note(cause="empty-reply", text="say something"))
    await home.store.turns.retry_model(claim, SILENT)
    assert await idle_ms(home, claim) == HOUR_MS

    await home.finish(claim, call_id)
    assert await idle_ms(home, claim) == 0


async def test_unanswered_requests_are_counted_until_the_next_step(home: Home) -> None:
    claim = await home.work_on()
    assert [await home.store.turns.retry_model(claim, SILENT) for _ in range(3)] == [
        TryAgain(wait_ms=1_000),
        TryAgain(wait_ms=2_000),
        TryAgain(wait_ms=4_000),
    ]
    assert (await home.store.turns.load(claim)).model_tries == 3
    await home.step(claim)

    assert await home.store.turns.retry_model(claim, SILENT) == TryAgain(wait_ms=1_000)


async def test_the_count_of_unanswered_requests_survives_a_crash(home: Home) -> None:
    claim = await home.work_on()
    await home.store.turns.retry_model(claim, SILENT)
    claim = await home.resume(claim.turn_id)

    assert await home.store.turns.retry_model(claim, SILENT) == TryAgain(wait_ms=2_000)


async def test_a_note_is_in_the_transcript_and_is_not_the_tail(home: Home) -> None:
    """S53."""
    claim = await home.work_on()
    (step,) = await home.store.turns.note(claim, Note(cause="empty-reply", text="say something"))

    assert (await home.store.turns.load(claim)).steps[-1] == step
    facts = (await home.explain(claim.turn_id)).facts
    assert facts is not None
    assert facts.tail is Tail.TRIGGER


# ── steering ────────────────────────────────────────────────────────────────────────────────────


async def steer(home: Home) -> None:
    home.configure(await home.session_id(), Settings(busy=Busy.STEER))


async def test_a_message_that_steers_joins_at_the_next_step_boundary(home: Home) -> None:
    claim = await home.work_on("one")
    await steer(home)
    first, second = await home.propose(claim, a_call("a"), a_call("b"))
    receipt = await home.say("two")
    await home.start(claim, first, second)

    assert len(await home.finish(claim, first)) == 1, "a message came between call and result"
    result, joined = await home.finish(claim, second)
    assert isinstance(result.body, Result)
    assert isinstance(joined.body, Message)
    assert joined.body.text == "two"
    entry = await home.entry(receipt)
    assert (entry.state, entry.turn_id) == ("attached", claim.turn_id)
    assert (await home.store.turns.load(claim)).steps[-1] == joined


async def test_what_steers_is_answered_to_the_one_who_wrote_last(home: Home) -> None:
    claim = await home.work_on("one", person="ann")
    await steer(home)
    await home.say("two", person="bob", key="bobs")
    await home.step(claim)
    await home.answer(claim)

    (delivery,) = await home.deliver()
    assert delivery.anchor == "bobs"


async def test_a_message_that_steers_too_late_opens_the_next_turn(home: Home) -> None:
    claim = await home.work_on("one")
    await steer(home)
    await home.step(claim)
    await home.say("two")
    await home.answer(claim)

    assert (await home.view((await home.claim()).turn_id)).request == "two"


async def test_a_message_that_queues_does_not_join(home: Home) -> None:
    claim = await home.work_on("one")
    receipt = await home.say("two")
    await home.step(claim)

    assert (await home.entry(receipt)).state == "waiting"


# ── the end ─────────────────────────────────────────────────────────────────────────────────────


async def test_answer_state_and_deliveries_are_one_transaction(home: Home) -> None:
    """S2, S45, S145: durable before the first send."""
    claim = await home.work_on()
    home.wakeups.hints.clear()
    await home.answer(claim, "part one, ", "part two")
    assert OUTBOX in home.wakeups.hints
    await home.reopen(crash=True)

    turn = await home.view(claim.turn_id)
    assert (turn.state, turn.worker_id, turn.closed_ms) == ("answered", None, None)
    deliveries = await home.deliveries(claim.turn_id)
    assert [(row.part, row.parts, row.text, row.state) for row in deliveries] == [
        (1, 2, "part one, ", "owed"),
        (2, 2, "part two", "owed"),
    ]
    (answer,) = [body for body in await home.bodies(claim.turn_id) if isinstance(body, Answer)]
    assert answer.text == "part one, part two"


async def test_an_answer_has_at_least_one_part(home: Home) -> None:
    claim = await home.work_on()

    with pytest.raises(ValueError, match="at least one part"):
        await home.store.turns.answer(claim, Reply(text=""), ())
    assert await home.store.turns.holds(claim)


async def test_an_answer_opens_the_next_turn_in_the_same_transaction(home: Home) -> None:
    """S93, S162."""
    claim = await home.work_on("one")
    await home.say("two")
    home.wakeups.hints.clear()
    await home.answer(claim)
    await home.reopen(crash=True)

    assert TURNS in home.wakeups.hints
    assert [(turn.state, turn.request) for turn in await home.turns()] == [
        ("answered", "one"),
        ("queued", "two"),
    ]


async def test_an_answer_gives_a_result_to_every_call_that_has_none(home: Home) -> None:
    """Whatever brought it about, the next request to the model must be valid."""
    claim = await home.work_on()
    started, proposed = await home.propose(claim, a_call(effect=Effect.ONCE), a_call())
    await home.start(claim, started)
    await home.answer(claim)

    results = await home.results(claim.turn_id)
    assert results[started].status is ResultStatus.UNKNOWN
    assert results[proposed].status is ResultStatus.STOPPED
    assert isinstance((await home.bodies(claim.turn_id))[-1], Answer)
    assert (await home.explain(claim.turn_id)).why is not None


async def test_a_turn_has_one_answer(home: Home) -> None:
    """S149."""
    claim = await home.work_on()
    await home.answer(claim, "first")

    with pytest.raises(Fenced):
        await home.answer(claim, "second")
    (delivery,) = await home.deliver()
    assert delivery.text == "first"


async def test_a_turn_that_fails_ends_with_one_apology(home: Home) -> None:
    claim = await home.work_on("one")
    (call_id,) = await home.propose(claim, a_call())
    await home.say("two")
    await home.store.turns.fail(claim, "too-many-steps")
    await home.reopen(crash=True)

    turn = await home.view(claim.turn_id)
    assert (turn.state, turn.reason) == ("failed", "too-many-steps")
    assert turn.closed_ms is not None
    (apology,) = await home.deliver()
    assert "took too many steps" in apology.text
    assert (await home.results(claim.turn_id))[call_id].status is ResultStatus.STOPPED
    assert (await home.view((await home.claim()).turn_id)).request == "two"


async def test_a_claim_that_is_given_back_can_be_taken_again(home: Home) -> None:
    """S23: a release counts as a recovery, not as a death."""
    claim = await home.work_on()
    await home.store.turns.release(claim)

    turn = await home.view(claim.turn_id)
    assert (turn.state, turn.recoveries, turn.crash_streak) == ("queued", 1, 0)
    assert not await home.store.turns.holds(claim)
    again = await home.claim()
    assert (again.turn_id, again.epoch) == (claim.turn_id, claim.epoch + 1)
    (note,) = await home.notes(claim.turn_id)
    assert "was restarted" in note.text


async def test_a_claim_is_held_until_it_is_given_up(home: Home) -> None:
    claim = await home.work_on()
    assert await home.store.turns.holds(claim)
    await home.answer(claim)

    assert not await home.store.turns.holds(claim)


async def test_a_running_turn_of_this_boot_is_not_unowned(home: Home) -> None:
    claim = await home.work_on()

    for with_suspended in (True, False):
        unowned = home.store.turns.unowned(with_suspended=with_suspended)
        assert await unowned == ()
    assert await home.store.turns.recover(claim.turn_id) is None
