"""Schedules beside the rest: roles, erasing, retention, commands without a model."""

from dataclasses import replace

import pytest

from koboshi.commands.run import respond
from koboshi.domain.command import Command, CommandName
from koboshi.domain.recovery import BootConfig
from koboshi.domain.schedule import ScheduleEvent, ScheduleState
from koboshi.domain.transcript import Reply
from koboshi.domain.wish import BeginGoal, MakeSchedule, MoveSchedule, WishStatus
from koboshi.ports.store import Arrival
from tests.harness.homes import WEB, Home, OpenHome, a_world
from tests.harness.timed import AT, DAY_MS, EVERY, HOUR_MS, Clockwork, a_clockwork, an_order


def members_world(*owners: str) -> BootConfig:
    return replace(a_world(), is_owner=lambda _channel, person: person in owners)


async def types(home: Home, text: str, *, person: str = "ann") -> str:
    """A person types a command; what they are told."""
    name, _, argument = text.removeprefix("/").partition(" ")
    command = Command(name=CommandName(name), said=text, argument=argument)
    inbound = home.inbound(text, person=person)
    await home.accept(Arrival(inbound=inbound, command=command), respond=respond)
    return (await home.deliver())[-1].text


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
    assert "is paused" in await types(home, "/cron pause c2")
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


async def test_goal_commands_need_no_model(home: Home) -> None:
    await a_clockwork(home)
    assert "There is no goal" in await types(home, "/goal")
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
