"""Children are ended with what gave them the work: cuts, lost rights, erasures, deleted chats."""

from dataclasses import replace

import pytest

from koboshi.domain.child import ChildEnd, ChildState
from koboshi.domain.command import CommandName
from koboshi.domain.errors import Fenced
from koboshi.domain.wish import BeginGoal
from koboshi.ports.store import Arrival
from koboshi.ports.views import Page
from tests.harness.family import (
    Heard,
    claim_of,
    delegates,
    heard,
    read,
    replies,
)
from tests.harness.group import let_in, revoke, writes
from tests.harness.homes import WEB, Home, a_call, a_world
from tests.harness.timed import a_clockwork

# ── ending what was begun ────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("name", [CommandName.STOP, CommandName.NEW])
@pytest.mark.parametrize("is_answered", [False, True])
async def test_a_cut_ends_all_children_and_their_children(
    home: Home, name: CommandName, is_answered: bool
) -> None:
    parent = await home.work_on()
    child = await delegates(home, parent)
    waiting = [await delegates(home, parent, f"task {n}") for n in range(5)][-1]
    work = next(each for each in await home.claims() if each.session_id == child.own_session)
    below = await delegates(home, work, "below")
    (call_id,) = await home.propose(work, a_call("terminal"))
    await home.start(work, call_id)
    await home.store.processes.begin(
        work, call_id, command="make", workdir="/", is_foreground=False
    )
    if is_answered:
        await home.answer(parent, "asked")

    await home.command(name)

    for each in (child, waiting, below):
        now = await read(home, each.child_id)
        assert (now.state, now.how) == (ChildState.ENDED, ChildEnd.STOPPED), each.shown
    assert {each.state for each in heard(home)} == {"dropped"}
    assert {each.reason for each in heard(home)} == {"cut"}
    assert len(heard(home)) == 7
    assert await home.claims() == ()
    assert home.sql("SELECT count(*) FROM processes WHERE end_asked_ms IS NULL") == [(0,)]
    with pytest.raises(Fenced):
        await home.finish(work, call_id)


async def test_what_a_child_left_running_is_asked_to_end_with_it(home: Home) -> None:
    parent = await home.work_on()
    child = await delegates(home, parent)
    work = await claim_of(home, child)
    (call_id,) = await home.propose(work, a_call("terminal"))
    await home.start(work, call_id)
    await home.store.processes.begin(
        work, call_id, command="make", workdir="/", is_foreground=False
    )
    await home.finish(work, call_id)
    await replies(home, work)
    assert home.sql("SELECT count(*) FROM processes WHERE end_asked_ms IS NULL") == [(0,)]


async def test_a_person_who_loses_the_right_takes_their_children_along(home: Home) -> None:
    await let_in(home)
    await writes(home, "eve", "work")
    parent = await home.claim()
    child = await delegates(home, parent)
    work = await claim_of(home, child)
    await home.answer(parent, "asked")
    await revoke(home)
    ended = await read(home, child.child_id)
    assert (ended.state, ended.how) == (ChildState.ENDED, ChildEnd.NOT_ALLOWED)
    assert heard(home) == [Heard("a1", "dropped", None, "child-not-allowed")]
    with pytest.raises(Fenced):
        await replies(home, work)
    assert await home.claims() == ()


async def test_a_child_of_a_person_who_lost_the_right_over_a_restart_is_not_run(
    home: Home,
) -> None:
    parent = await home.work_on()
    child = await delegates(home, parent)
    await home.answer(parent, "asked")
    await home.reopen(world=a_world(revoked=("ann",)))
    assert await home.claims() == ()
    assert (await read(home, child.child_id)).how is ChildEnd.NOT_ALLOWED
    assert [each.state for each in heard(home)] == ["dropped"]


async def test_an_erasure_ends_children_and_empties_what_they_said(home: Home) -> None:
    inbound = replace(home.inbound("my secret"), is_private=True)
    await home.accept(Arrival(inbound=inbound))
    parent = await home.claim()
    first = await delegates(home, parent, "the secret task")
    await replies(home, await claim_of(home, first), "the secret answer")
    child = await delegates(home, parent, "another secret task")
    await home.store.erasures.erase(inbound.route.channel, "ann", "operator")
    assert (await read(home, child.child_id)).state is ChildState.ENDED
    for table, columns in {
        "inbox": "body",
        "steps": "body",
        "outbox": "text",
        "calls": "arguments",
        "children": "name || task",
    }.items():
        rows = home.sql(f"SELECT {columns} FROM {table}")
        assert not [row for row in rows if "secret" in str(row)], table
    assert await home.claims() == ()


async def test_a_deleted_chat_takes_its_children_along(home: Home) -> None:
    parent = await home.work_on()
    child = await delegates(home, parent, "the secret task")
    below = await delegates(home, await claim_of(home, child), "a deeper secret")
    assert await home.store.chats.delete(WEB, "ann", "operator")
    for each in (child, below):
        ended = await read(home, each.child_id)
        assert (ended.state, ended.how) == (ChildState.ENDED, ChildEnd.STOPPED)
        assert "secret" not in ended.name + ended.task
    assert {each.state for each in heard(home)} == {"dropped"}
    assert await home.claims() == ()


async def test_a_goal_is_judged_when_its_children_have_ended(home: Home) -> None:
    clock = await a_clockwork(home)
    await clock.wish(BeginGoal(text="make the tests pass"))
    claim = await home.claim()
    child = await delegates(home, claim)
    await home.answer(claim, "under way")
    judged = "SELECT state FROM goals"
    assert home.sql(judged) == [("active",)], "what is under way is not judged"
    await replies(home, await claim_of(home, child))
    await home.answer(await home.claim(), "all is done")
    assert home.sql(judged) == [("judging",)]


# ── what an operator sees ────────────────────────────────────────────────────────────────────────


async def test_the_tree_is_shown_from_every_turn_of_it(home: Home) -> None:
    parent = await home.work_on("how many stars?")
    child = await delegates(home, parent)
    work = await claim_of(home, child)
    await delegates(home, work, "count the dark ones")
    families = [(await home.explain(claim.turn_id)).family for claim in (parent, work)]
    for family in families:
        assert [(each.depth, each.name) for each in family] == [(0, "t1"), (1, "a1"), (2, "a2")]
        assert family[1].words == "«count the stars» working"
    assert (await home.view(work.turn_id)).aside == "a1"
    assert await home.store.views.child_turn(child.child_id) == work.turn_id


async def test_ended_children_are_not_listed_among_sessions(home: Home) -> None:
    parent = await home.work_on()
    first, _ = [await delegates(home, parent, f"task {n}") for n in range(2)]
    await replies(home, next(c for c in await home.claims() if c.session_id == first.own_session))
    views = await home.store.views.sessions(Page(before=1_000_000, limit=10))
    assert sorted(view.aside for view in views) == ["", "a2"]


async def test_a_person_who_follows_the_chat_hears_questions_and_no_work_of_a_child(
    home: Home,
) -> None:
    parent = await home.work_on()
    work = await claim_of(home, await delegates(home, parent))
    await home.answer(parent, "asked")
    await home.step(work)
    await replies(home, work, "a word for the parent only")
    told = await home.store.views.events(WEB, "ann", after=0, limit=1_000)
    assert not [each for each in told if each.line.session_id == work.session_id]
