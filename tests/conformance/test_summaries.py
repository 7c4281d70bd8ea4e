"""A summary stands for the steps before it; waiting for the model is no interruption."""

import pytest

from koboshi.domain.command import CommandName
from koboshi.domain.ids import Seq
from koboshi.domain.outage import TryAgain
from koboshi.domain.recovery import Policy, RecoveryPolicy
from koboshi.domain.session import Busy, Settings
from koboshi.domain.transcript import Answer, Message, Reply, Result, Step, Summary, Tail
from koboshi.domain.turn import Claim
from koboshi.ports.store import Loaded
from tests.harness.fake_time import DAY_MS, HOUR_MS, SECOND_MS
from tests.harness.homes import SILENT, Home, a_world

# ── summaries ───────────────────────────────────────────────────────────────────────────────────


async def talked(home: Home, *texts: str) -> None:
    for text in texts:
        await home.answer(await home.work_on(text), f"about {text}")


async def sum_up(home: Home, claim: Claim, covers: int, text: str = "so far") -> Step:
    (step,) = await home.store.turns.summarise(claim, Summary(text=text, covers=Seq(covers)))
    return step


def words_in(loaded: Loaded) -> list[str]:
    return [step.body.text for step in loaded.context if isinstance(step.body, Message | Answer)]


async def test_with_a_summary_only_the_steps_behind_it_are_loaded(home: Home) -> None:
    await talked(home, "one", "two", "three")
    claim = await home.work_on("four")
    before = await home.store.turns.load(claim)
    assert before.summary is None
    end = next(step.seq for step in before.context if step.body == Answer(text="about two"))

    made = await sum_up(home, claim, end)
    await home.answer(claim, "about four")

    loaded = await home.store.turns.load(await home.work_on("five"))
    assert loaded.summary == made
    assert words_in(loaded) == ["three", "about three", "four", "about four"]
    assert loaded.session == before.session, "it is the same conversation"


async def test_a_summary_survives_a_crash_and_is_used_by_the_turn_that_made_it(home: Home) -> None:
    await talked(home, "one")
    claim = await home.work_on("two")
    made = await sum_up(home, claim, 2)

    claim = await home.resume(claim.turn_id)

    loaded = await home.store.turns.load(claim)
    assert loaded.summary == made
    assert loaded.context == ()
    assert made in loaded.steps
    assert len(await home.notes(claim.turn_id)) == 1


async def test_the_turn_itself_is_always_loaded_whole(home: Home) -> None:
    """Its steps are counted, and its messages are shown, whatever is covered."""
    claim = await home.work_on("long work")
    await home.step(claim)
    await home.step(claim)
    steps = (await home.store.turns.load(claim)).steps

    await sum_up(home, claim, steps[2].seq)

    loaded = await home.store.turns.load(claim)
    kinds = [type(step.body) for step in loaded.steps]
    assert kinds == [Message, Reply, Result, Reply, Result, Summary]


async def test_the_newest_summary_counts(home: Home) -> None:
    await talked(home, "one", "two")
    claim = await home.work_on("three")
    await sum_up(home, claim, 2, "first")
    newer = await sum_up(home, claim, 4, "second")

    loaded = await home.store.turns.load(claim)
    assert loaded.summary == newer
    assert loaded.context == ()


@pytest.mark.parametrize("covers", [1, 2, 99])
async def test_a_summary_that_covers_nothing_more_is_refused(home: Home, covers: int) -> None:
    """So that no loop can make endlessly many; neither can one cover what is not there."""
    await talked(home, "one", "two")
    claim = await home.work_on("three")
    await sum_up(home, claim, 2)
    before = await home.everything()

    with pytest.raises(ValueError, match="covers nothing more"):
        await sum_up(home, claim, covers)

    assert await home.everything() == before


async def test_a_new_conversation_does_not_see_the_summary_of_the_old_one(home: Home) -> None:
    await talked(home, "one")
    claim = await home.work_on("two")
    await sum_up(home, claim, 2)
    await home.command(CommandName.NEW)

    loaded = await home.store.turns.load(await home.work_on("three"))
    assert loaded.summary is None
    assert loaded.context == ()


async def test_after_a_stop_the_summary_still_stands(home: Home) -> None:
    await talked(home, "one")
    made = await sum_up(home, await home.work_on("two"), 2)
    await home.stop()

    loaded = await home.store.turns.load(await home.work_on("three"))
    assert loaded.summary == made
    assert words_in(loaded) == ["two"]


async def test_sessions_have_their_own_summaries(home: Home) -> None:
    await talked(home, "one")
    await sum_up(home, await home.work_on("two"), 2, "ann's secret")
    bob = await home.work_on("hello", chat="bob", person="bob")

    assert (await home.store.turns.load(bob)).summary is None


async def test_a_summary_is_not_progress_and_not_the_tail(home: Home) -> None:
    """S48, S53: nothing was done for the person yet; a turn that dies each time is given up."""
    await talked(home, "one")
    claim = await home.work_on("two")
    claim = await home.resume(claim.turn_id)
    home.clock.move(HOUR_MS)
    await sum_up(home, claim, 2)

    facts = (await home.explain(claim.turn_id)).facts
    assert facts is not None
    assert facts.idle_ms >= HOUR_MS
    assert facts.tail is Tail.TRIGGER
    assert (await home.view(claim.turn_id)).crash_streak == 1


async def test_after_a_summary_the_tries_of_the_model_are_counted_anew(home: Home) -> None:
    """They are counted for each request, and the model has answered one."""
    await talked(home, "one")
    claim = await home.work_on("two")
    await home.store.turns.retry_model(claim, SILENT)
    await home.store.turns.retry_model(claim, SILENT)
    await sum_up(home, claim, 2)

    assert await home.store.turns.retry_model(claim, SILENT) == TryAgain(wait_ms=1_000)


async def test_no_notice_is_sent_of_a_summary(home: Home) -> None:
    await talked(home, "one")
    await home.deliver()
    claim = await home.work_on("two")
    await sum_up(home, claim, 2)

    assert await home.deliver() == []


# ── waiting for the model ───────────────────────────────────────────────────────────────────────

MINUTE_MS = 60 * SECOND_MS


async def wait_for_the_model(home: Home, wait_ms: int = MINUTE_MS) -> Claim:
    claim = await home.work_on()
    await home.store.turns.retry_model(claim, SILENT)
    await home.store.turns.postpone(claim, wait_ms, "model: full")
    return claim


async def test_a_postponed_turn_is_due_when_the_wait_is_over(home: Home) -> None:
    claim = await wait_for_the_model(home)

    assert await home.claims() == ()
    assert await home.store.turns.due_in_ms() == MINUTE_MS
    home.clock.move(MINUTE_MS)
    again = await home.claim()
    assert (again.turn_id, again.epoch) == (claim.turn_id, claim.epoch + 1)
    decision = await home.store.turns.retry_model(again, SILENT)
    assert decision == TryAgain(wait_ms=2_000, is_told=True), "the tries and the wait count"


async def test_a_wait_is_neither_a_death_nor_a_recovery_and_leaves_no_note(home: Home) -> None:
    """S63: notes are for epochs that were interrupted."""
    claim = await wait_for_the_model(home)
    await home.wait_until_due()
    claim = await home.claim()

    turn = await home.view(claim.turn_id)
    assert (turn.recoveries, turn.crash_streak) == (0, 0)
    assert await home.notes(claim.turn_id) == []


async def test_a_crash_keeps_the_wait(home: Home) -> None:
    """The provider does not care that we died; and no one has to recover anything."""
    claim = await wait_for_the_model(home)
    await home.reopen(crash=True)

    unowned = home.store.turns.unowned(with_suspended=True)
    assert await unowned == ()
    assert await home.claims() == ()
    home.clock.move(MINUTE_MS)
    assert (await home.claim()).turn_id == claim.turn_id
    assert await home.notes(claim.turn_id) == []


@pytest.mark.parametrize("policy", [RecoveryPolicy.ASK, RecoveryPolicy.OFF])
async def test_what_recovery_may_do_does_not_concern_a_wait(
    home: Home, policy: RecoveryPolicy
) -> None:
    """No one was interrupted, so no question is asked whether to go on."""
    claim = await home.work_on()
    settings = Settings(policy=policy)
    home.configure(claim.session_id, settings)
    await home.store.turns.postpone(claim, MINUTE_MS, "model: full")
    home.clock.move(MINUTE_MS)

    assert (await home.claim()).turn_id == claim.turn_id


async def test_the_wait_itself_makes_nothing_stale(home: Home) -> None:
    home.world = a_world(policy=Policy(fresh_ms=10 * SECOND_MS))
    await home.reopen(crash=False)
    claim = await wait_for_the_model(home)
    home.clock.move(MINUTE_MS + SECOND_MS)

    assert (await home.claim()).turn_id == claim.turn_id


async def test_a_wait_that_no_one_ended_for_long_is_stale(home: Home) -> None:
    """S50: the gateway was down meanwhile; the person decides whether they still want it."""
    claim = await wait_for_the_model(home)
    await home.reopen(crash=True)
    home.clock.move(DAY_MS // 2)

    assert await home.claims() == ()
    assert (await home.view(claim.turn_id)).state == "waiting"


async def test_a_person_can_stop_a_wait(home: Home) -> None:
    claim = await wait_for_the_model(home)
    await home.stop()

    assert (await home.view(claim.turn_id)).state == "stopped"


async def test_a_message_that_interrupts_ends_a_wait(home: Home) -> None:
    claim = await wait_for_the_model(home)
    home.configure(claim.session_id, Settings(busy=Busy.INTERRUPT))
    await home.say("something else")

    assert (await home.view(claim.turn_id)).state == "stopped"
    assert (await home.view((await home.claim()).turn_id)).request == "something else"
