"""Schedules beside the rest: roles, erasing, retention, commands without a model."""

from dataclasses import replace

import pytest

from koboshi.domain.goal import Judgement, JudgeVerdict
from koboshi.domain.recovery import BootConfig
from koboshi.domain.schedule import Overlap, ScheduleEvent, ScheduleState
from koboshi.domain.transcript import Reply
from koboshi.domain.wish import (
    BeginGoal,
    ChangeSchedule,
    MakeSchedule,
    MoveSchedule,
    RunSchedule,
    TimedWish,
    WishStatus,
)
from koboshi.ports.store import Arrival
from tests.harness.homes import FRONT, WEB, Home, OpenHome, a_world
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
    types,
)


def members_world(*owners: str) -> BootConfig:
    return replace(a_world(), is_owner=lambda _channel, person: person in owners)


async def test_a_member_has_at_most_twenty_schedules_of_their_own_and_no_command(
    open_home: OpenHome,
) -> None:
    home = await open_home(members_world("bob"))
    clock = await a_clockwork(home)
    theirs = await clock.make(an_order(name="the owner's"), person="bob")
    for _ in range(20):
        await clock.make()
    refused = await clock.wish(MakeSchedule(order=an_order()))
    assert refused.status is WishStatus.REFUSED
    command = await clock.wish(MakeSchedule(order=an_order(command="ls")))
    assert command.status is WishStatus.REFUSED
    touched = await clock.wish(
        MoveSchedule(schedule_id=theirs.schedule_id, event=ScheduleEvent.REMOVED)
    )
    assert touched.status is WishStatus.REFUSED
    by_owner = await clock.wish(MakeSchedule(order=an_order(command="ls")), person="bob")
    assert by_owner.status is WishStatus.DONE
    listed = await types(home, "/cron")
    assert "the owner's" not in listed


async def test_commands_need_no_model(home: Home) -> None:
    await a_clockwork(home)
    assert "c1 «tea»: once, Fri 15 Jan 10:00 UTC" in await types(home, "/remind in 2 hours tea")
    assert "«send me the news»" in await types(
        home, "/cron add every weekday at 7:00 send me the news"
    )
    listed = await types(home, "/cron")
    assert listed.count("\n") == 1
    assert "is paused" in await types(home, "/cron pause C2")
    assert "Next: Mon 18 Jan 07:00 UTC" in await types(home, "/cron resume c2")
    assert "runs now" in await types(home, "/cron run c2")
    assert "is removed" in await types(home, "/cron remove c2")
    assert "no such schedule" in await types(home, "/cron remove c2")
    assert "Europe/Vienna" in await types(home, "/cron zone Europe/Vienna")
    assert "no time zone" in await types(home, "/cron zone Mars/Olympus")
    assert "09:00 CET" in await types(home, "/remind tomorrow 9:00 the report")
    assert "once a minute" in await types(home, "/cron add every 5 seconds spin")
    assert "Say when" in await types(home, "/remind tea")


async def test_the_zone_is_asked_for_once(home: Home) -> None:
    await a_clockwork(home)
    first = await types(home, "/remind tomorrow 9:00 the report")
    assert "/cron zone" in first
    assert "/cron zone" not in await types(home, "/remind tomorrow 10:00 the other")
    for schedule in ("c1", "c2"):
        await types(home, f"/cron remove {schedule}")
    assert "/cron zone" not in await types(home, "/remind tomorrow 9:00 the report")
    assert "/cron zone" not in await types(home, "/remind tomorrow 9:00 it", chat="another")
    assert "/cron zone" in await types(home, "/remind tomorrow 9:00 it", person="bob")


async def test_goal_commands_need_no_model(home: Home) -> None:
    await a_clockwork(home)
    assert "There is no goal" in await types(home, "/goal")
    assert "Say what must be true" in await types(home, "/goal add")
    assert "g1" in await types(home, "/goal make the tests pass")
    assert "There is a goal already" in await types(home, "/goal another")
    assert "Added" in await types(home, "/goal add coverage is whole")
    status = await types(home, "/goal")
    assert "coverage is whole" in status
    assert "step 1 of 20" in status
    assert "Paused" in await types(home, "/goal pause")
    assert "go on" in await types(home, "/goal resume")
    assert "does not go on by itself" in await types(home, "/stop")
    assert "Done" in await types(home, "/goal done")
    assert "There is no goal" in await types(home, "/goal clear")


async def test_erasing_a_person_ends_and_empties_what_they_ordered(home: Home) -> None:
    clock = await a_clockwork(home)
    schedule = await clock.make(an_order(name="a secret name", prompt="a secret prompt"))
    await clock.wish(BeginGoal(text="a secret goal"))
    home.clock.move(HOUR_MS)
    await clock.fire()
    await home.store.erasures.erase(WEB, "ann", "ann")
    assert (await clock.get(schedule)).state is ScheduleState.REMOVED
    home.clock.move(DAY_MS)
    assert await clock.fire() == []
    for table, columns in (
        ("schedules", "name || prompt || command"),
        ("goals", "text || criteria || coalesce(reason, '')"),
        ("inbox", "body"),
        ("steps", "body"),
    ):
        rows = home.sql(f"SELECT {columns} FROM {table}")
        assert not [row for row in rows if "secret" in str(row)], table


async def test_deleting_a_chat_leaves_no_schedule_and_no_goal_behind(home: Home) -> None:
    clock = await a_clockwork(home)
    schedule = await clock.make(an_order(name="a secret name", prompt="a secret prompt"))
    await clock.make(an_order(place="fresh", name="a secret name"))
    await clock.wish(BeginGoal(text="a secret goal"))
    home.clock.move(HOUR_MS)
    assert len(await clock.fire()) == 2
    assert await home.store.chats.delete(WEB, "ann", "the operator") is not None
    assert (await clock.get(schedule)).state is ScheduleState.REMOVED
    assert [view.goal.state for view in await home.store.goals.views(limit=5)] == ["cleared"]
    home.clock.move(DAY_MS)
    assert await clock.fire() == []
    assert await home.claims() == ()
    for table, columns in (
        ("schedules", "name || prompt || command"),
        ("goals", "text || criteria || coalesce(reason, '')"),
        ("inbox", "body"),
        ("steps", "body"),
        ("outbox", "text"),
    ):
        rows = home.sql(f"SELECT {columns} FROM {table}")
        assert not [row for row in rows if "secret" in str(row)], table


@pytest.mark.parametrize("kind", [AT, EVERY])
async def test_a_schedule_of_a_command_carries_it_in_the_transcript(
    home: Home, kind: object
) -> None:
    clock = await a_clockwork(home)
    await clock.make(an_order(kind, command="date"))  # type: ignore[arg-type]
    home.clock.move(HOUR_MS)
    await clock.fire()
    loaded = await home.store.turns.load(await home.claim())
    said = [str(getattr(step.body, "command", "")) for step in loaded.steps]
    assert "date" in said
    assert loaded.standing.is_scheduled
    assert not loaded.standing.is_quiet


async def test_only_a_quiet_schedule_may_report_nothing(home: Home) -> None:
    clock: Clockwork = await a_clockwork(home)
    await clock.make(an_order(quiet=True))
    home.clock.move(HOUR_MS)
    await clock.fire()
    claim = await home.claim()
    loaded = await home.store.turns.load(claim)
    assert loaded.standing.is_quiet
    await home.store.turns.answer(claim, reply(), (), is_silent=True)
    assert await clock.told() == []
    assert (await clock.turns())[-1].state == "done"


def reply() -> Reply:
    return Reply(text="(nothing to report)")


async def zoned(home: Home, zone: str) -> str:
    """A person whose platform tells this zone asks for their own."""
    inbound = replace(home.inbound("hello"), zone=zone)
    await home.accept(Arrival(inbound=inbound))
    return await types(home, "/cron zone")


async def test_the_zone_of_the_platform_counts_until_the_person_tells_one(home: Home) -> None:
    await a_clockwork(home)
    assert "no time zone" in await zoned(home, "Mars/Olympus")
    assert "Europe/Vienna" in await zoned(home, "Europe/Vienna")
    assert "09:00 CET" in await types(home, "/remind tomorrow 9:00 the report")
    assert "America/New_York" in await zoned(home, "America/New_York")
    await types(home, "/cron zone Asia/Tokyo")
    assert "Asia/Tokyo" in await zoned(home, "Europe/Vienna")


async def test_a_zone_that_vanishes_keeps_no_schedule_from_its_time(home: Home) -> None:
    clock = await a_clockwork(home)
    lost = await clock.make(an_order(CRON))
    other = await clock.make(an_order(CRON))
    home.sql(f"UPDATE schedules SET zone = 'Gone/City' WHERE schedule_id = {lost.schedule_id}")
    home.sql("INSERT INTO zones (channel, person, zone) VALUES ('web:main', 'ann', 'Gone/City')")
    home.clock.move(HOUR_MS)
    assert await clock.fire() == ["due", "due"]
    assert (await clock.get(other)).due_ms is not None
    assert "«my cron»" in await types(home, "/cron")


async def test_what_a_turn_with_words_of_a_member_orders_is_the_members(
    open_home: OpenHome,
) -> None:
    """In a group an owner may speak last: what the agent orders then has no more rights than the
    turn had, and touches nothing of the owner's."""
    home = await open_home(members_world("bob"))
    clock = await a_clockwork(home)
    theirs = await clock.make(an_order(name="the owner's"), person="bob")
    claim = await home.work_on("schedule something")
    home.sql(f"UPDATE turns SET person = 'bob' WHERE turn_id = {claim.turn_id}")
    wish, place = home.store.schedules.wish, clock.session_id
    made = await wish(place, "", MakeSchedule(order=an_order()), "call:x", turn_id=claim.turn_id)
    assert made.schedule is not None
    assert made.schedule.person == "ann"
    remove = MoveSchedule(schedule_id=theirs.schedule_id, event=ScheduleEvent.REMOVED)
    touched = await wish(place, "", remove, "call:y", turn_id=claim.turn_id)
    assert touched.status is WishStatus.REFUSED


async def test_who_has_the_same_name_on_another_channel_is_another_person(
    open_home: OpenHome,
) -> None:
    home = await open_home(members_world("bob"))
    clock = await a_clockwork(home)
    theirs = await clock.make()
    await home.say("hello", channel=FRONT)
    there = await home.session_id(channel=FRONT)
    remove = MoveSchedule(schedule_id=theirs.schedule_id, event=ScheduleEvent.REMOVED)
    touched = await home.store.schedules.wish(there, "ann", remove, "call:x")
    assert (touched.status, touched.words) == (WishStatus.REFUSED, "c1 is not yours.")
    assert (await clock.wish(remove)).status is WishStatus.DONE


async def test_an_order_is_checked_by_its_own_zone_whatever_zone_its_person_has_now(
    home: Home,
) -> None:
    """Where it is later than where the person is now, the time of a reminder is over."""
    clock = await a_clockwork(home)
    made = await clock.make(an_order(AT, "2027-01-15T18:00", zone="Asia/Tokyo"))
    home.clock.move(HOUR_MS)
    assert await clock.fire() == ["due"]
    await types(home, "/cron zone America/New_York")
    other = ChangeSchedule(schedule_id=made.schedule_id, order=replace(made.order, name="other"))
    outcome = await clock.wish(other)
    assert (outcome.status, outcome.words) == (WishStatus.REFUSED, "That time is over.")


@pytest.mark.parametrize("how", ["changed", "removed"])
async def test_a_waiting_occasion_that_goes_with_its_order_is_named(home: Home, how: str) -> None:
    """None is lost in silence: the reply says that the due time before is not made up for."""
    clock = await a_clockwork(home)
    made = await clock.make(an_order(EVERY, name="news"))
    change: TimedWish = ChangeSchedule(
        schedule_id=made.schedule_id, order=replace(made.order, expression="7200")
    )
    if how == "removed":
        change = MoveSchedule(schedule_id=made.schedule_id, event=ScheduleEvent.REMOVED)
    claim = await home.work_on("long work")
    home.clock.move(HOUR_MS)
    await clock.fire()
    said = (await clock.wish(change)).words
    assert "«news», due at 09:00, waited for its turn: it is not done" in said
    await home.answer(claim)
    assert await home.claims() == ()
    assert await clock.verdicts(made) == [("dropped", "taken-away", 1)]


async def test_the_owners_are_told_once_of_a_schedule_that_its_person_may_not_have_any_more(
    open_home: OpenHome,
) -> None:
    home = await open_home(members_world("bob"))
    private = replace(home.inbound("hello", chat="bob", person="bob"), is_private=True)
    await home.accept(Arrival(inbound=private))
    await home.answer(await home.claim())
    clock = await a_clockwork(home)
    await home.deliver("bob")
    await clock.make()
    home.clock.move(HOUR_MS)
    await home.reopen(world=replace(a_world(revoked=["ann"]), is_owner=home.world.is_owner))
    assert await clock.fire() == ["person-not-allowed"]
    home.clock.move(DAY_MS)
    await home.reopen()
    assert await clock.fire() == []
    (told,) = await home.deliver("bob")
    assert "I have paused c1 «my every»: its person (ann on web:main)" in told.text


async def test_what_is_missed_later_in_the_same_boot_is_told_too(home: Home) -> None:
    """A machine that sleeps twice a day."""
    clock = await a_clockwork(home)
    await clock.make(an_order(CRON, "0 9 * * *", name="one"))
    await clock.make(an_order(CRON, "0 14 * * *", name="two"))
    for name in ("one", "two"):
        home.clock.wall_ms += 5 * HOUR_MS
        await home.store.workers.beat(home.worker.worker_id)
        home.clock.move(1)
        assert await clock.fire() == ["too-late"]
        (line,) = await clock.told()
        assert f"«{name}»" in line


async def test_a_run_by_hand_at_the_moment_of_a_due_time_does_not_stand_for_it(home: Home) -> None:
    clock = await a_clockwork(home)
    schedule = await clock.make(an_order(EVERY))
    home.clock.move(HOUR_MS)
    await clock.wish(RunSchedule(schedule_id=schedule.schedule_id))
    await clock.answer_all()
    assert await clock.fire() == ["due"]
    assert len(await clock.answer_all()) == 1
    assert await clock.verdicts(schedule) == [("fired", "due", 1), ("fired", "run-now", 1)]


async def set_back_a_day(home: Home) -> None:
    home.clock.wall_ms -= DAY_MS
    await home.store.workers.beat(home.worker.worker_id)
    while await home.store.schedules.reckon(64):
        pass


async def test_a_clock_that_is_set_back_makes_no_retry_wait_longer(home: Home) -> None:
    """Else the schedule would stand still until then, with all of its due times."""
    clock = await a_clockwork(home)
    schedule = await clock.make(an_order(EVERY))
    home.clock.move(HOUR_MS)
    await clock.fire()
    assert await clock.fail_all() == 1
    await set_back_a_day(home)
    assert (await clock.get(schedule)).due_ms == home.clock.now_ms() + 5 * MINUTE_MS
    home.clock.move(5 * MINUTE_MS)
    assert await clock.fire() == ["due"]
    assert await clock.verdicts(schedule) == [("fired", "tried-again", 1)]


async def test_a_clock_that_is_set_back_makes_no_goal_wait_longer(home: Home) -> None:
    clock = await a_clockwork(home)
    await clock.wish(BeginGoal(text="tidy up"))
    await clock.answer_all()
    (claim,) = await home.store.goals.claim(home.worker.worker_id, 1)
    waits = Judgement(verdict=JudgeVerdict.WAIT, reason="later", minutes=10)
    await home.store.goals.judged(claim, waits, 0)
    await set_back_a_day(home)
    home.clock.move(9 * MINUTE_MS)
    assert await home.store.goals.wake(1) == 0
    home.clock.move(MINUTE_MS)
    assert await home.store.goals.wake(1) == 1


async def test_occasions_wait_for_each_other_if_it_is_ordered_so(home: Home) -> None:
    await a_clockwork(home)
    await types(home, "/cron add queue every 2 hours look")
    await types(home, "/cron add every 2 hours look")
    views = await home.store.schedules.views(limit=2)
    assert [view.schedule.order.overlap for view in views] == [Overlap.SKIP, Overlap.QUEUE]


async def test_an_operator_orders_nothing_more_often_than_people_can(home: Home) -> None:
    clock = await a_clockwork(home)
    order = home.store.schedules.order
    refused = await order(clock.session_id, "every 5 seconds spin", "operator:1")
    assert refused.status is WishStatus.REFUSED
    assert "once a minute" in refused.words


async def test_in_a_group_a_member_adds_nothing_to_the_goal_of_another(
    open_home: OpenHome,
) -> None:
    """Its steps have the rights of the person who set it. All can pause it."""
    home = await open_home(members_world("bob"))
    await a_clockwork(home)
    await types(home, "/goal tidy up", person="bob")
    assert "is not yours" in await types(home, "/goal add run my program", person="ann")
    assert "is not yours" in await types(home, "/goal done", person="ann")
    assert "Paused" in await types(home, "/goal pause", person="ann")
    assert "is not yours" in await types(home, "/goal resume", person="ann")
    assert "I go on" in await types(home, "/goal resume", person="bob")
    assert "Added" in await types(home, "/goal add nothing is left", person="bob")
