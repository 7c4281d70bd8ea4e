"""Standing goals in the store: judged answers make steps, and nothing else does."""

import pytest

from koboshi.domain.command import CommandName, OperatorAction
from koboshi.domain.goal import (
    Goal,
    GoalClaim,
    GoalEvent,
    GoalState,
    Judgement,
    JudgeVerdict,
)
from koboshi.domain.ids import ProcessId
from koboshi.domain.process import ProcessState
from koboshi.domain.recovery import Policy
from koboshi.domain.transcript import Effect
from koboshi.domain.turn import TurnState
from koboshi.domain.wish import AddCriterion, BeginGoal, MoveGoal, WishStatus
from koboshi.ports.views import Page
from tests.harness.homes import Home, OpenHome, a_call, a_world
from tests.harness.timed import HOUR_MS, MINUTE_MS, Clockwork, a_clockwork

CONTINUE, DONE = JudgeVerdict.CONTINUE, JudgeVerdict.DONE


async def a_goal(home: Home, text: str = "make the tests pass") -> Clockwork:
    clock = await a_clockwork(home)
    outcome = await clock.wish(BeginGoal(text=text))
    assert outcome.status is WishStatus.DONE, outcome.words
    return clock


async def goal_of(home: Home) -> Goal:
    return (await home.store.goals.views(limit=10))[0].goal


async def judge(home: Home, verdict: JudgeVerdict, reason: str = "because", **more: int) -> None:
    (claim,) = await claims(home)
    process = more.get("process")
    judgement = Judgement(
        verdict=verdict,
        reason=reason,
        process_id=None if process is None else ProcessId(process),
        minutes=more.get("minutes"),
    )
    await home.store.goals.judged(claim, judgement, more.get("tokens", 0))


async def claims(home: Home) -> tuple[GoalClaim, ...]:
    return await home.store.goals.claim(home.worker.worker_id, 10)


async def test_a_goal_is_worked_on_judged_and_done(home: Home) -> None:
    clock = await a_goal(home)
    assert len(await clock.answer_all("one test fails")) == 1
    assert (await goal_of(home)).state is GoalState.JUDGING
    await judge(home, CONTINUE, "one fails")
    goal = await goal_of(home)
    assert (goal.state, goal.step) == (GoalState.ACTIVE, 2)
    assert len(await clock.answer_all("all pass")) == 1
    await judge(home, DONE, "all pass")
    assert (await goal_of(home)).state is GoalState.DONE
    assert any("is reached" in words for words in await clock.told())
    # Why a goal moved is no decision of recovery.
    decided = await home.store.views.journal(Page(limit=50, before=1 << 62, is_open=True))
    assert {line.subject for line in decided} == {"worker"}


async def test_a_criterion_that_is_added_while_the_judge_thinks_is_judged_too(home: Home) -> None:
    """The person was told that the goal is not reached before it is true."""
    clock = await a_goal(home)
    await clock.answer_all("all pass")
    (claim,) = await claims(home)
    await clock.wish(AddCriterion(text="nothing is left over"))
    await home.store.goals.judged(claim, Judgement(verdict=DONE, reason="all pass"), 0)
    assert (await goal_of(home)).state is GoalState.JUDGING
    (again,) = await claims(home)
    case = await home.store.goals.load(again)
    assert case is not None
    assert case.goal.criteria == ("nothing is left over",)


async def test_an_operator_moves_the_goal_that_was_named_and_no_other(home: Home) -> None:
    clock = await a_goal(home, "one")
    await clock.wish(MoveGoal(event=GoalEvent.REACHED))
    await clock.wish(BeginGoal(text="two"))
    two, one = (view.goal for view in await home.store.goals.views(limit=2))
    refused = await home.store.goals.move(one.goal_id, MoveGoal(event=GoalEvent.CLEARED), "op:1")
    assert (refused.status, refused.words) == (WishStatus.REFUSED, "«one» is done.")
    assert (await goal_of(home)).state is GoalState.ACTIVE
    done = await home.store.goals.move(two.goal_id, MoveGoal(event=GoalEvent.CLEARED), "op:2")
    assert (done.status, done.words) == (WishStatus.DONE, "Cleared: «two».")


async def test_three_restarts_after_a_goal_is_done_are_silent(home: Home) -> None:
    """Must show."""
    clock = await a_goal(home)
    await clock.answer_all()
    await judge(home, DONE)
    await clock.told()
    for _ in range(3):
        await home.reopen(crash=True)
        assert await claims(home) == ()
        assert await home.store.goals.wake(10) == 0
        assert await home.claims() == ()
    assert await clock.told() == []
    assert (await goal_of(home)).state is GoalState.DONE


async def test_a_thousand_provider_errors_make_no_step(home: Home) -> None:
    """Must show: neither a turn that fails nor a judge that does not answer is progress."""
    clock = await a_goal(home)
    await clock.answer_all()
    before = len(await clock.turns())
    errors = 0
    while errors < 1_000:
        for claim in await claims(home):
            await home.store.goals.unjudged(claim, "the provider is down", is_unreadable=False)
            errors += 1
        home.clock.move(HOUR_MS)
        if (await goal_of(home)).state is GoalState.PAUSED:
            await clock.wish(MoveGoal(event=GoalEvent.RESUMED))
    assert len(await clock.turns()) == before
    assert (await goal_of(home)).step == 1


async def test_a_turn_that_failed_pauses_the_goal_with_words(home: Home) -> None:
    clock = await a_goal(home)
    assert await clock.fail_all("the provider could not be reached") == 1
    goal = await goal_of(home)
    assert (goal.state, goal.step) == (GoalState.PAUSED, 1)
    assert any("I have paused the goal" in words for words in await clock.told())
    for _ in range(3):
        await home.reopen(crash=True)
        assert await claims(home) == ()
        assert await home.claims() == ()


async def test_a_verdict_that_cannot_be_read_twice_pauses(home: Home) -> None:
    clock = await a_goal(home)
    await clock.answer_all()
    for _ in range(2):
        (claim,) = await claims(home)
        await home.store.goals.unjudged(claim, "unreadable", is_unreadable=True, tokens=5)
        home.clock.move(HOUR_MS // 2)
    goal = await goal_of(home)
    assert (goal.state, goal.tokens) == (GoalState.PAUSED, 10)
    assert any("could not judge" in words for words in await clock.told())


@pytest.mark.parametrize("moment", ["step", "judge", "wait"])
async def test_stop_in_the_middle_pauses_and_stays_paused_over_restarts(
    home: Home, moment: str
) -> None:
    """Must show: `/stop` in the middle of a judge, a step, a wait."""
    await a_goal(home)
    (turn,) = await home.claims()
    claim = None
    if moment != "step":
        await home.answer(turn)
        (claim,) = await claims(home)
    if moment == "wait":
        assert claim is not None
        waits = Judgement(verdict=JudgeVerdict.WAIT, reason="later", minutes=5)
        await home.store.goals.judged(claim, waits, 0)
        assert (await goal_of(home)).state is GoalState.WAITING
    await home.stop()
    assert (await goal_of(home)).state is GoalState.PAUSED
    if claim is not None:  # the judge comes too late
        await home.store.goals.judged(claim, Judgement(verdict=CONTINUE, reason="x"), 0)
    for _ in range(3):
        home.clock.move(10 * MINUTE_MS)
        await home.reopen(crash=True)
        assert await home.store.goals.wake(10) == 0
        assert await claims(home) == ()
        assert await home.claims() == ()
    goal = await goal_of(home)
    assert (goal.state, goal.step) == (GoalState.PAUSED, 1)


async def test_resume_takes_the_generation_of_the_present(home: Home) -> None:
    clock = await a_goal(home)
    await home.stop()
    await clock.wish(MoveGoal(event=GoalEvent.RESUMED))
    await judge(home, CONTINUE, "go on")
    assert len(await clock.answer_all()) == 1
    assert (await goal_of(home)).state is GoalState.JUDGING


async def test_a_new_conversation_clears_the_goal(home: Home) -> None:
    clock = await a_goal(home)
    await clock.answer_all()
    await home.command(CommandName.NEW)
    assert (await goal_of(home)).state is GoalState.CLEARED
    assert await claims(home) == ()


async def test_a_message_goes_first_and_the_goal_is_judged_behind_it(home: Home) -> None:
    clock = await a_goal(home)
    await clock.answer_all()
    (claim,) = await claims(home)
    message = await home.work_on("look at this first")
    await home.store.goals.judged(claim, Judgement(verdict=CONTINUE, reason="more"), 0)
    goal = await goal_of(home)
    assert (goal.state, goal.rule, goal.step) == (GoalState.ACTIVE, "person-first", 1)
    await home.answer(message)
    assert (await goal_of(home)).state is GoalState.JUDGING, "a person's turn is judged, too"
    await judge(home, CONTINUE)
    assert (await goal_of(home)).step == 2, "and uses up no step"


@pytest.mark.parametrize("ends", ["answered", "failed", "dropped"])
async def test_a_goal_whose_step_gave_way_to_another_turn_is_judged_behind_it(
    home: Home, ends: str
) -> None:
    """The end of a schedule's turn, or of one that a person drops, says nothing about the goal, and
    nothing else would ever go on with it."""
    clock = await a_goal(home)
    await clock.make()
    await clock.answer_all()
    (claim,) = await claims(home)
    if ends == "dropped":
        turn = await home.work_on("look at this first")
    else:
        home.clock.move(HOUR_MS)
        await clock.fire()
        turn = await home.claim()
    await home.store.goals.judged(claim, Judgement(verdict=CONTINUE, reason="more"), 0)
    assert (await goal_of(home)).rule == "person-first"
    match ends:
        case "answered":
            await home.answer(turn)
        case "failed":
            await home.store.turns.fail(turn, "no luck")
        case _:
            await home.reopen(crash=True)
            await home.store.turns.will(turn.turn_id, OperatorAction.DROP)
    await judge(home, CONTINUE, "more")
    goal = await goal_of(home)
    assert (goal.state, goal.step) == (GoalState.ACTIVE, 2)
    assert len(await clock.answer_all()) == 1


async def test_a_step_that_waits_is_dropped_when_its_goal_has_moved(home: Home) -> None:
    clock = await a_clockwork(home)
    working = await home.work_on("long work")
    await clock.wish(BeginGoal(text="tidy up"))
    await clock.wish(AddCriterion(text="nothing is left over"))
    await home.answer(working)
    assert await home.claims() == ()
    dropped = home.sql("SELECT reason FROM inbox WHERE kind = 'goal'")
    assert dropped == [("goal-moved",)]


@pytest.mark.parametrize("ends", ["answered", "failed"])
async def test_what_was_under_way_when_the_goal_was_set_is_not_taken_for_its_first_step(
    home: Home, ends: str
) -> None:
    """The answer to another question says nothing about the goal, and its error neither."""
    clock = await a_clockwork(home)
    working = await home.work_on("what is the time?")
    await clock.wish(BeginGoal(text="tidy up"))
    if ends == "answered":
        await home.answer(working, "noon")
    else:
        await home.store.turns.fail(working, "no luck")
    assert (await goal_of(home)).state is GoalState.ACTIVE
    (claim,) = await home.claims()
    await home.answer(claim, "tidied")
    goal = await goal_of(home)
    assert (goal.state, goal.judged_turn) == (GoalState.JUDGING, claim.turn_id)


async def test_a_schedule_in_between_is_not_judged(home: Home) -> None:
    clock = await a_goal(home)
    await clock.answer_all()
    await judge(home, JudgeVerdict.WAIT, minutes=600)
    await clock.make()
    home.clock.move(HOUR_MS)
    await clock.fire()
    await clock.answer_all()
    assert (await goal_of(home)).state is GoalState.WAITING


@pytest.mark.parametrize("when", ["before", "after"])
async def test_a_killed_judge_is_asked_again_and_makes_one_step(home: Home, when: str) -> None:
    clock = await a_goal(home)
    await clock.answer_all()
    (claim,) = await claims(home)
    if when == "after":
        await home.store.goals.judged(claim, Judgement(verdict=CONTINUE, reason="x"), 0)
    await home.reopen(crash=True)
    if when == "before":
        (again,) = await claims(home)
        assert again.epoch > claim.epoch
        late = Judgement(verdict=CONTINUE, reason="of the dead worker")
        await home.store.goals.judged(claim, late, 0)
        assert (await goal_of(home)).state is GoalState.JUDGING, "fenced"
        await home.store.goals.judged(again, Judgement(verdict=CONTINUE, reason="x"), 0)
    assert (await goal_of(home)).step == 2
    assert len(await clock.answer_all()) == 1


async def test_a_goal_waits_for_a_process_and_its_end_wakes_it_once(home: Home) -> None:
    clock = await a_goal(home)
    (turn,) = await home.claims()
    call = a_call("terminal", effect=Effect.RESUMABLE)
    (call_id,) = await home.propose(turn, call)
    await home.start(turn, call_id)
    process = await home.store.processes.begin(
        turn, call_id, command="make test", workdir="/", is_foreground=False
    )
    await home.finish(turn, call_id)
    await home.answer(turn)
    await judge(home, JudgeVerdict.WAIT, process=process.process_id)
    assert await home.store.goals.wake(10) == 0
    await home.reopen(crash=True)
    assert await home.store.goals.wake(10) == 0, "the process lives on"
    await home.store.processes.ended(
        process.process_id, ProcessState.EXITED, exit_code=0, reason="exited", ended_ms=1
    )
    assert await home.store.goals.wake(10) == 1
    assert await home.store.goals.wake(10) == 0
    assert (await goal_of(home)).state is GoalState.JUDGING
    assert clock.session_id


async def test_blocked_asks_the_person_and_is_not_done(home: Home) -> None:
    clock = await a_goal(home)
    await clock.answer_all()
    await clock.told()
    await judge(home, JudgeVerdict.BLOCKED, "no key")
    (asked,) = await home.deliver()
    assert "no key" in asked.text
    assert [choice.label for choice in asked.choices] == ["Yes", "Pause"]
    await home.reopen(crash=True)
    await home.say("the key is under the mat")
    assert len(await clock.answer_all()) == 1
    assert (await goal_of(home)).state is GoalState.JUDGING
    await judge(home, JudgeVerdict.BLOCKED, "still no key")
    await home.deliver()
    await home.say("Pause")
    assert (await goal_of(home)).state is GoalState.PAUSED


async def test_a_goal_that_was_idle_over_a_downtime_is_offered(open_home: OpenHome) -> None:
    home = await open_home(a_world(policy=Policy(fresh_ms=HOUR_MS)))
    clock = await a_goal(home)
    await clock.answer_all()
    await clock.told()
    home.clock.move(3 * HOUR_MS)
    await home.reopen(crash=True)
    assert await claims(home) == ()
    (asked,) = await home.deliver()
    assert "Go on with it?" in asked.text
    await home.say("yes")
    assert len(await clock.answer_all()) == 1
    assert (await goal_of(home)).state is GoalState.JUDGING


async def test_no_goal_goes_on_while_the_boot_breaker_is_open(open_home: OpenHome) -> None:
    home = await open_home(a_world(policy=Policy(has_breaker=True)))
    clock = await a_goal(home)
    await clock.answer_all()
    for each in range(5):
        await home.work_on(f"deadly {each}", chat=f"c{each}")
        await home.reopen(crash=True)
    assert await claims(home) == ()
    home.clock.move(11 * MINUTE_MS)
    assert len(await claims(home)) == 1


async def test_steps_and_tokens_are_bounded(home: Home) -> None:
    clock = await a_goal(home)
    for _ in range(30):
        await clock.answer_all()
        if (await goal_of(home)).state is not GoalState.JUDGING:
            break
        await judge(home, CONTINUE, "more", tokens=10)
    goal = await goal_of(home)
    assert (goal.state, goal.rule, goal.step) == (GoalState.PAUSED, "steps-used-up", 20)
    await clock.wish(MoveGoal(event=GoalEvent.RESUMED))
    await judge(home, CONTINUE, "more", tokens=3_000_000)
    assert (await goal_of(home)).rule == "tokens-used-up"


async def test_a_question_of_the_agent_leaves_the_goal_as_it_is(home: Home) -> None:
    await a_goal(home)
    (turn,) = await home.claims()
    await home.ask(turn)
    assert (await goal_of(home)).state is GoalState.ACTIVE
    assert await claims(home) == ()
    assert (await home.turns())[-1].state is TurnState.WAITING
