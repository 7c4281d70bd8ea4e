"""Schedules in the store: fired once, never missed in silence."""

import pytest

from koboshi.domain.recovery import Policy
from koboshi.domain.schedule import Late, Overlap, ScheduleEvent, ScheduleKind, ScheduleState
from koboshi.domain.turn import TurnState
from koboshi.domain.wish import ChangeSchedule, MakeSchedule, MoveSchedule, RunSchedule, WishStatus
from tests.harness.homes import Home, OpenHome, a_world
from tests.harness.timed import (
    AT,
    CRON,
    DAY_MS,
    EVERY,
    HOUR_MS,
    MINUTE_MS,
    Clockwork,
    a_clockwork,
    an_order,
)

AWAY = {"5 min": 5 * MINUTE_MS, "6 h": 6 * HOUR_MS, "3 days": 3 * DAY_MS}


@pytest.mark.parametrize("kind", ScheduleKind)
async def test_what_is_due_opens_a_turn_once(home: Home, kind: ScheduleKind) -> None:
    clock = await a_clockwork(home)
    schedule = await clock.make(an_order(kind))
    assert await clock.fire() == []
    home.clock.move(HOUR_MS)

    assert await clock.fire() == ["due"]
    assert await clock.fire() == []

    assert await clock.verdicts(schedule) == [("fired", "due", 1)]
    turn = (await clock.turns())[-1]
    assert turn.state is TurnState.QUEUED
    after = await clock.get(schedule)
    is_spent = kind is AT
    assert (after.state, after.due_ms is None) == (
        ScheduleState.SPENT if is_spent else ScheduleState.ARMED,
        is_spent,
    )


@pytest.mark.parametrize("late", Late)
@pytest.mark.parametrize("kind", ScheduleKind)
@pytest.mark.parametrize("away", AWAY)
async def test_downtimes_over_every_kind_with_each_late(
    home: Home, kind: ScheduleKind, late: Late, away: str
) -> None:
    """Must show: 5 min, 6 h and 3 days over `at`, `every`, `cron` with each `late`."""
    clock = await a_clockwork(home)
    schedule = await clock.make(an_order(kind, late=late))
    home.clock.move(HOUR_MS + AWAY[away])
    await home.reopen(crash=True)

    (rule,) = await clock.fire()

    verdicts = await clock.verdicts(schedule)
    missed = {"5 min": 0, "6 h": 6, "3 days": 72}[away] if kind is EVERY else 0
    if kind is CRON:
        missed = 3 if away == "3 days" else 0
    if missed:
        assert verdicts[0] == ("missed", "newer-due", missed)
    newest_late = {EVERY: 5 * MINUTE_MS if away == "5 min" else 0}.get(kind)
    if kind is CRON and away == "3 days":
        newest_late = 0
    if newest_late is None:
        newest_late = AWAY[away]
    limit = {AT: DAY_MS, EVERY: HOUR_MS // 2, CRON: 2 * HOUR_MS}[kind]
    if newest_late > limit and late is not Late.RUN:
        expected = {Late.ASK: "too-late-ask", Late.SKIP: "too-late"}[late]
    else:
        expected = "late" if newest_late >= MINUTE_MS else "due"
    assert rule == expected
    assert await clock.fire() == [], "never twice"
    turns = (await clock.turns())[1:]
    states = [turn.state for turn in turns]
    assert states == {"too-late": [], "too-late-ask": [TurnState.WAITING]}.get(
        rule, [TurnState.QUEUED]
    )
    told = await clock.told()
    assert sum("Not done" in words for words in told) == int(bool(missed) or rule == "too-late")
    assert sum("was due at" in words for words in told) == int(rule == "too-late-ask")


async def test_a_kill_before_the_commit_decides_anew_and_after_it_changes_nothing(
    home: Home,
) -> None:
    clock = await a_clockwork(home)
    schedule = await clock.make(an_order(AT))
    home.clock.move(HOUR_MS)
    await home.reopen(crash=True)
    assert await clock.fire() == ["due"]
    await home.reopen(crash=True)
    assert await clock.fire() == []
    assert len(await clock.verdicts(schedule)) == 1
    assert len(await clock.turns()) == 2


async def test_an_asked_reminder_runs_when_the_person_says_so(home: Home) -> None:
    """Must show: asked → run."""
    clock = await a_clockwork(home)
    schedule = await clock.make(an_order(AT, name="tea"))
    home.clock.move(HOUR_MS + 2 * DAY_MS)
    await home.reopen(crash=True)
    assert await clock.fire() == ["too-late-ask"]
    (asked,) = await home.deliver()
    assert "«tea» was due at" in asked.text
    assert [choice.label for choice in asked.choices] == ["Run now", "Skip"]
    turn = (await clock.turns())[-1]
    verdict = await home.store.turns.recover(turn.turn_id)
    assert verdict is not None
    assert verdict.rule == "question-open"

    await home.say("Run now")

    (claim,) = await home.claims()
    assert claim.turn_id == turn.turn_id
    await home.answer(claim, "tea is ready")
    assert await clock.told() == ["tea is ready"]
    assert await clock.verdicts(schedule) == [("asked", "too-late-ask", 1)]


async def test_an_asked_reminder_that_is_skipped_or_answered_by_other_words_is_named(
    home: Home,
) -> None:
    clock = await a_clockwork(home)
    await clock.make(an_order(AT, name="tea"))
    home.clock.move(HOUR_MS + 2 * DAY_MS)
    await clock.fire()
    await home.deliver()
    await home.say("what is the weather?")
    await home.answer(await home.claim(), "rain")
    told = await clock.told()
    assert any("«tea»" in words for words in told)
    assert told[-1] == "rain"


async def test_messages_wait_behind_an_occasion_and_an_asked_one_behind_messages(
    home: Home,
) -> None:
    clock = await a_clockwork(home)
    await clock.make(an_order(AT, name="tea"))
    claim = await home.work_on("long work")
    home.clock.move(HOUR_MS + 2 * DAY_MS)
    await clock.fire()
    await home.say("and this")
    await home.answer(claim)
    first = (await clock.turns())[-1]
    assert first.state is TurnState.QUEUED, "the message comes before our question"
    await home.answer(await home.claim())
    assert (await clock.turns())[-1].state is TurnState.WAITING


async def test_an_occasion_never_steers_or_interrupts(open_home: OpenHome) -> None:
    for busy in ("queue", "steer", "interrupt"):
        home = await open_home(a_world(busy=busy))
        clock = await a_clockwork(home)
        await clock.make()
        claim = await home.work_on("long work")
        home.clock.move(HOUR_MS)
        assert await clock.fire() == ["due"]
        await home.step(claim)
        turns = await clock.turns()
        assert [turn.state for turn in turns[1:]] == [TurnState.RUNNING]
        await home.answer(claim)
        assert len(await clock.answer_all()) == 1


@pytest.mark.parametrize("overlap", Overlap)
async def test_an_occasion_whose_previous_one_is_open(home: Home, overlap: Overlap) -> None:
    clock = await a_clockwork(home)
    schedule = await clock.make(an_order(EVERY, overlap=overlap))
    home.clock.move(HOUR_MS)
    await clock.fire()
    open_turn = (await clock.turns())[-1].turn_id
    home.clock.move(HOUR_MS)
    (rule,) = await clock.fire()
    assert rule == ("still-open" if overlap is Overlap.SKIP else "due")
    if overlap is Overlap.SKIP:
        assert (await clock.verdicts(schedule))[-1] == ("skipped", f"still-open:t{open_turn}", 1)
    assert len(await clock.answer_all()) == (1 if overlap is Overlap.SKIP else 2)


async def test_a_person_who_lost_the_right_pauses_the_schedule(home: Home) -> None:
    clock = await a_clockwork(home)
    schedule = await clock.make()
    home.clock.move(HOUR_MS)
    await home.reopen(world=a_world(revoked=["ann"]))
    assert await clock.fire() == ["person-not-allowed"]
    assert (await clock.get(schedule)).state is ScheduleState.PAUSED
    assert len(await clock.turns()) == 1


async def test_nothing_fires_while_the_boot_breaker_is_open(open_home: OpenHome) -> None:
    home = await open_home(a_world(policy=Policy(has_breaker=True)))
    clock = await a_clockwork(home)
    schedule = await clock.make(an_order(AT))
    for each in range(5):
        await home.work_on(f"deadly {each}", chat=f"c{each}")
        await home.reopen(crash=True)
    home.clock.move(HOUR_MS - 1)
    for each in range(5):
        await home.work_on(f"deadly again {each}", chat=f"d{each}")
        await home.reopen(crash=True)
    home.clock.move(1)
    fired = await home.store.schedules.fire(64)
    assert fired.stood
    assert (await clock.get(schedule)).state is ScheduleState.ARMED
    home.clock.move(10 * MINUTE_MS)
    assert await clock.fire() == ["late"]


async def test_an_edit_drops_a_waiting_occasion_of_the_old_revision(home: Home) -> None:
    """Must show: an edit on a waiting reminder."""
    clock = await a_clockwork(home)
    schedule = await clock.make(an_order(AT, name="tea"))
    claim = await home.work_on("long work")
    home.clock.move(HOUR_MS)
    await clock.fire()
    order = an_order(AT, "2027-01-15T11:00:00+00:00", name="tea later")
    outcome = await clock.wish(ChangeSchedule(schedule_id=schedule.schedule_id, order=order))
    assert outcome.status is WishStatus.DONE
    await home.answer(claim)
    assert await home.claims() == (), "the old one is dropped"
    assert await clock.verdicts(schedule) == [("dropped", "taken-away", 1)]
    home.clock.move(2 * HOUR_MS)
    assert await clock.fire() == ["due"]
    assert len(await clock.answer_all()) == 1


@pytest.mark.parametrize("by", ["stop", "drop"])
async def test_a_waiting_reminder_that_is_taken_away_is_offered(home: Home, by: str) -> None:
    """Must show: `/stop` on a waiting reminder. Schedules survive it."""
    clock = await a_clockwork(home)
    once = await clock.make(an_order(AT, name="tea"))
    again = await clock.make(an_order(EVERY, name="news"))
    claim = await home.work_on("long work")
    home.clock.move(HOUR_MS)
    await clock.fire()
    await home.deliver()
    if by == "stop":
        await home.stop()
    else:
        for entry in home.sql("SELECT entry_id FROM inbox WHERE state = 'waiting'"):
            assert await home.store.inbox.drop(entry[0])  # type: ignore[arg-type]
        await home.answer(claim)
    told = await clock.told()
    assert any("«tea»" in words and "Run it now?" in words for words in told)
    assert await clock.verdicts(once) == [("asked", "taken-away", 1)]
    assert await clock.verdicts(again) == [("dropped", "taken-away", 1)]
    assert (await clock.get(again)).state is ScheduleState.ARMED
    await home.say("yes")
    assert len(await clock.answer_all()) == 1


async def test_run_now_is_done_once_for_each_wish(home: Home) -> None:
    """Must show: run-now."""
    clock = await a_clockwork(home)
    schedule = await clock.make()
    wish = RunSchedule(schedule_id=schedule.schedule_id)
    said = [(await clock.wish(wish, by="entry:77")).status for _ in range(3)]
    assert said == [WishStatus.DONE, WishStatus.SAME, WishStatus.SAME]
    assert (await clock.get(schedule)).due_ms == schedule.due_ms
    assert len(await clock.answer_all()) == 1
    await clock.wish(wish, by="entry:78")
    assert len(await clock.answer_all()) == 1
    assert await clock.verdicts(schedule) == [("fired", "run-now", 1)] * 2


async def test_retries_are_made_while_the_model_cannot_be_reached_and_told_once(
    home: Home,
) -> None:
    """Must show: retries. One message when it begins to fail, one when it works again."""
    clock = await a_clockwork(home)
    schedule = await clock.make(an_order(AT, name="tea"))
    home.clock.move(HOUR_MS)
    await clock.fire()
    waits = [5, 15, 30]
    for minutes in waits:
        assert await clock.fail_all() == 1
        assert (await clock.get(schedule)).state is ScheduleState.ARMED
        home.clock.move(minutes * MINUTE_MS - 1)
        await home.reopen(crash=True)
        assert await clock.fire() == []
        home.clock.move(1)
        assert await clock.fire() == ["due"]
    assert len(await clock.told()) == 1, "the beginning of it"
    assert await clock.fail_all() == 1
    assert (await clock.get(schedule)).state is ScheduleState.SPENT
    assert await clock.verdicts(schedule) == [("fired", "tried-again", 1)]
    assert await clock.told() == []


async def test_due_times_that_pass_while_a_retry_waits_are_told(home: Home) -> None:
    """A retry is not made past the next due time, and takes no due time with it."""
    clock = await a_clockwork(home)
    schedule = await clock.make(an_order(EVERY, name="news"))
    home.clock.move(HOUR_MS)
    await clock.fire()
    assert await clock.fail_all() == 1
    assert (await clock.get(schedule)).due_ms == home.clock.now_ms() + 5 * MINUTE_MS
    await clock.told()
    await home.reopen(crash=True)
    home.clock.move(3 * HOUR_MS)
    assert await clock.fire() == ["due"]
    fired, missed = ("fired", "due", 1), ("missed", "newer-due", 2)
    assert await clock.verdicts(schedule) == [fired, missed, fired]
    assert ", 2 times" in (await clock.told())[0]
    assert (await clock.get(schedule)).due_ms == home.clock.now_ms() + HOUR_MS


async def test_a_schedule_that_works_again_says_so_once(home: Home) -> None:
    clock = await a_clockwork(home)
    schedule = await clock.make(an_order(EVERY, "7200", name="news"))
    home.clock.move(2 * HOUR_MS)
    await clock.fire()
    await clock.fail_all()
    await clock.told()
    home.clock.move(5 * MINUTE_MS)
    await clock.fire()
    await clock.answer_all("news!")
    assert sorted(await clock.told()) == ["news!", "«news» works again; it had failed once."]
    assert (await clock.get(schedule)).failures == 0
    home.clock.move(2 * HOUR_MS - 5 * MINUTE_MS)
    await clock.fire()
    await clock.answer_all("news!")
    assert await clock.told() == ["news!"]


async def test_a_turn_that_reached_the_model_is_not_tried_again_and_ten_failures_switch_off(
    home: Home,
) -> None:
    clock = await a_clockwork(home)
    schedule = await clock.make(an_order(EVERY, name="news"))
    for count in range(1, 11):
        home.clock.move(HOUR_MS)
        assert await clock.fire() == ["due"]
        claim = await home.claim()
        await home.step(claim)
        await home.store.turns.fail(claim, "no luck")
        assert (await clock.get(schedule)).failures == count
    assert (await clock.get(schedule)).state is ScheduleState.DISABLED
    told = await clock.told()
    assert len(told) == 2
    assert "switched" in told[-1]
    outcome = await clock.wish(
        MoveSchedule(schedule_id=schedule.schedule_id, event=ScheduleEvent.RESUMED)
    )
    assert outcome.status is WishStatus.DONE
    assert (await clock.get(schedule)).failures == 0


@pytest.mark.parametrize("kind", [EVERY, CRON])
@pytest.mark.parametrize("jump", [-DAY_MS, DAY_MS])
async def test_a_clock_that_jumps_a_day_repeats_nothing_and_loses_nothing(
    home: Home, kind: ScheduleKind, jump: int
) -> None:
    """Must show: clock ±1 day, and a clock that was ahead."""
    clock = await a_clockwork(home)
    schedule = await clock.make(an_order(kind))
    home.clock.move(HOUR_MS)
    await clock.fire()
    await clock.answer_all()
    await clock.told()
    home.clock.wall_ms += jump
    await home.store.workers.beat(home.worker.worker_id)
    while await home.store.schedules.reckon(64):
        pass
    due_ms = (await clock.get(schedule)).due_ms
    assert due_ms is not None
    if jump > 0:
        assert len(await clock.fire()) == 1, "what passed is judged as late"
    else:
        assert due_ms <= home.clock.wall_ms + DAY_MS, "it is reckoned from now"
        fired = len(await clock.turns())
        for _ in range(24):
            home.clock.move(HOUR_MS)
            await clock.fire()
            await clock.answer_all()
        again = [rule for _, rule, _ in await clock.verdicts(schedule)]
        assert again.count("due") == len(again)
        if kind is CRON:
            assert len(await clock.turns()) == fired, "that time was run: not again"
            told = await clock.told()
            assert any("when my clock was ahead" in words for words in told)


@pytest.mark.parametrize("kind, expression", [(EVERY, "3600"), (CRON, "0 * * * *")])
async def test_due_times_behind_a_clock_that_was_ahead_are_told_once_and_all(
    home: Home, kind: ScheduleKind, expression: str
) -> None:
    """The first due time of a downtime was decided before the clock went back; others were not."""
    clock = await a_clockwork(home)
    schedule = await clock.make(an_order(kind, expression))
    for _ in range(5):
        home.clock.move(HOUR_MS)
        assert await clock.fire() == ["due"]
        await clock.answer_all()
    home.clock.wall_ms -= 3 * HOUR_MS
    await home.store.workers.beat(home.worker.worker_id)
    while await home.store.schedules.reckon(64):
        pass
    await clock.told()
    home.clock.move(90 * MINUTE_MS)
    assert await clock.fire() == ["already-run"]
    await clock.told()
    home.clock.move(4 * HOUR_MS + 30 * MINUTE_MS)
    await home.reopen(crash=True)
    assert await clock.fire() == ["due"]
    due = ("fired", "due", 1)
    assert await clock.verdicts(schedule) == [*[due] * 5, ("missed", "newer-due", 2), due]
    assert ", 2 times" in (await clock.told())[0]


async def test_a_machine_that_slept_finds_what_is_due_and_says_how_late_it_is(home: Home) -> None:
    """Must show: a suspended machine. The wall clock went on, ours stood still."""
    clock = await a_clockwork(home)
    await clock.make(an_order(AT))
    home.clock.wall_ms += HOUR_MS + 41 * MINUTE_MS
    await home.store.workers.beat(home.worker.worker_id)
    assert "schedules" in home.wakeups.hints
    assert await clock.fire() == ["late"]
    turn = (await clock.turns())[-1]
    (note,) = await home.notes(turn.turn_id, "timed")
    assert "Due 09:00, it is Fri 15 Jan 09:41 UTC. That is 41 min late." in note.text


async def test_other_rules_of_zones_are_picked_up_and_what_is_due_is_not_skipped(
    home: Home,
) -> None:
    clock = await a_clockwork(home)
    one = await clock.make(an_order(CRON))
    two = await clock.make(an_order(CRON, "0 12 * * *"))
    home.sql(
        f"UPDATE schedules SET due_ms = due_ms + 7200000, zone_rules = 'old' "
        f"WHERE schedule_id = {two.schedule_id}",
        f"UPDATE schedules SET zone_rules = 'old' WHERE schedule_id = {one.schedule_id}",
    )
    home.clock.move(HOUR_MS)
    await home.reopen()
    await home.store.schedules.begin()
    assert await home.store.schedules.due_in_ms() == 0
    assert await home.store.schedules.reckon(64) == 2
    assert (await clock.get(two)).due_ms == two.due_ms
    assert await clock.fire() == ["due"]


async def test_the_same_call_makes_one_schedule(home: Home) -> None:
    clock = await a_clockwork(home)
    first = await clock.wish(MakeSchedule(order=an_order()), by="call:5.0")
    again = await clock.wish(MakeSchedule(order=an_order()), by="call:5.0")
    assert (first.status, again.status) == (WishStatus.DONE, WishStatus.SAME)
    assert first.schedule == again.schedule
    assert len(first.times) == 3


async def test_a_channel_that_is_gone_keeps_its_schedules_and_finds_them_late(home: Home) -> None:
    clock = await a_clockwork(home)
    await clock.make(an_order(AT))
    home.clock.move(2 * HOUR_MS)
    await home.reopen(world=a_world(without=["web:main"]))  # type: ignore[list-item]
    assert await clock.fire() == []
    assert await home.store.schedules.due_in_ms() is None
    await home.reopen(world=a_world())
    assert await clock.fire() == ["late"]


async def test_what_was_missed_is_told_in_one_line_for_a_chat(home: Home) -> None:
    clock = await a_clockwork(home)
    for name in ("one", "two", "three"):
        await clock.make(an_order(CRON, name=name))
    home.clock.move(9 * HOUR_MS)
    await home.reopen()
    assert await clock.fire() == ["too-late"] * 3
    (line,) = await clock.told()
    assert all(f"«{name}»" in line for name in ("one", "two", "three"))


async def test_a_removed_schedule_leaves_its_number_and_its_occasions(home: Home) -> None:
    clock = await a_clockwork(home)
    schedule = await clock.make()
    home.clock.move(HOUR_MS)
    await clock.fire()
    await clock.answer_all()
    await clock.wish(MoveSchedule(schedule_id=schedule.schedule_id, event=ScheduleEvent.REMOVED))
    home.clock.move(DAY_MS)
    assert await clock.fire() == []
    assert (await clock.make()).schedule_id > schedule.schedule_id


async def test_old_occasions_are_forgotten_and_the_newest_stays(home: Home) -> None:
    clock = await a_clockwork(home)
    schedule = await clock.make()
    for _ in range(3):
        home.clock.move(HOUR_MS)
        await clock.fire()
        await clock.answer_all()
        await clock.told()
    now_ms = home.clock.now_ms()
    assert await home.store.schedules.old(0, now_ms, 10) == (schedule.schedule_id,)
    assert await home.store.schedules.forget(schedule.schedule_id, now_ms + 1) == 2
    assert len(await clock.verdicts(schedule)) == 1


async def work_apart(clock: Clockwork, text: str) -> list[str]:
    """What a turn of a fresh schedule sees of the conversation."""
    home = clock.home
    claim = await home.claim()
    loaded = await home.store.turns.load(claim)
    await home.answer(claim, text)
    return [str(getattr(step.body, "text", "")) for step in loaded.context]


async def test_fresh_has_a_context_of_its_own_and_leaves_the_conversation_alone(
    home: Home,
) -> None:
    clock = await a_clockwork(home)
    await clock.make(an_order(EVERY, place="fresh"))
    home.clock.move(HOUR_MS)
    await clock.fire()
    assert await work_apart(clock, "the news of today") == []
    claim = await home.work_on("and you?")
    loaded = await home.store.turns.load(claim)
    seen = [str(getattr(step.body, "text", "")) for step in loaded.context]
    assert "hello" in seen
    assert "the news of today" not in seen
