"""The verbs of schedules and goals, one after the other, for the story that is killed at each."""

from collections.abc import AsyncIterator

from koboshi.domain.goal import GoalEvent, Judgement, JudgeVerdict
from koboshi.domain.transcript import Reply
from koboshi.domain.wish import BeginGoal, MakeSchedule, MoveGoal
from tests.harness.homes import Home
from tests.harness.timed import DAY_MS, EVERY, HOUR_MS, an_order

CHAT = "tim"


async def with_time(home: Home) -> AsyncIterator[str]:
    """Each verb changes something."""
    await home.say("tick", chat=CHAT)
    yield "inbox.accept"
    claim = await home.claim()
    yield "turns.claim"
    await home.answer(claim, "tock")
    yield "turns.answer"
    session_id, schedules = await home.session_id(CHAT), home.store.schedules
    await schedules.wish(session_id, "ann", MakeSchedule(order=an_order(EVERY)), "call:1")
    yield "schedules.wish"
    await schedules.order(session_id, "every day at 7:00 send me the news", "operator:1")
    yield "schedules.order"
    for _ in range(2):
        home.clock.move(HOUR_MS)
        assert (await schedules.fire(64)).decided
        yield "schedules.fire"
        (claim,) = await home.claims()
        yield "turns.claim"
        await home.store.turns.answer(claim, an_answer(), (), is_silent=True)
        yield "turns.answer"
    (old, *_) = await schedules.old(0, home.clock.now_ms() + 1, 10)
    assert await schedules.forget(old, home.clock.now_ms() + 1)
    yield "schedules.forget"
    await schedules.begin("other rules of zones")
    yield "schedules.begin"
    await schedules.wish(session_id, "ann", MakeSchedule(order=an_order(EVERY)), "call:3")
    yield "schedules.wish"
    assert await schedules.reckon(64)
    yield "schedules.reckon"
    async for verb in _with_a_goal(home):
        yield verb


async def _with_a_goal(home: Home) -> AsyncIterator[str]:
    session_id, goals = await home.session_id(CHAT), home.store.goals
    await home.store.schedules.wish(session_id, "ann", BeginGoal(text="tidy up"), "call:2")
    yield "schedules.wish"
    (claim,) = await home.claims()
    yield "turns.claim"
    await home.answer(claim, "halfway")
    yield "turns.answer"
    (judging,) = await goals.claim(home.worker.worker_id, 10)
    yield "goals.claim"
    await goals.unjudged(judging, "busy", is_unreadable=False)
    yield "goals.unjudged"
    home.clock.move(DAY_MS // 24)
    (judging,) = await goals.claim(home.worker.worker_id, 10)
    yield "goals.claim"
    waits = Judgement(verdict=JudgeVerdict.WAIT, reason="later", minutes=5)
    await goals.judged(judging, waits, 7)
    yield "goals.judged"
    home.clock.move(HOUR_MS)
    assert await goals.wake(10) == 1
    yield "goals.wake"
    goal_id = judging.goal_id
    await goals.move(goal_id, MoveGoal(event=GoalEvent.CLEARED), "operator:2")
    yield "goals.move"


def an_answer() -> Reply:
    return Reply(text="nothing new")
