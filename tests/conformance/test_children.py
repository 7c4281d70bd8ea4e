"""Children: a turn gives work away, and its conversation hears of the end once, whatever it is."""

import pytest

from koboshi.domain.child import ChildEnd, ChildLimits, ChildState, ChildTask
from koboshi.domain.command import ActionStanding, OperatorAction
from koboshi.domain.errors import Fenced
from koboshi.domain.phrases import YES_NO
from koboshi.domain.recovery import RecoveryPolicy
from koboshi.domain.role import Role
from koboshi.domain.session import Settings
from koboshi.domain.transcript import Message, Need, Note
from tests.harness.fake_time import DAY_MS
from tests.harness.family import (
    Heard,
    after_a_death,
    claim_of,
    delegates,
    heard,
    makes,
    proposes,
    read,
    replies,
    told_in,
)
from tests.harness.group import let_in, writes
from tests.harness.homes import Home, a_call

LIMITS = ChildLimits()


async def owed(home: Home) -> list[str]:
    rows = home.sql("SELECT text FROM outbox ORDER BY delivery_id")
    return [str(text) for (text,) in rows]


# ── from the call to the end ─────────────────────────────────────────────────────────────────────


async def test_a_child_works_beside_its_parent_and_its_answer_opens_the_next_turn(
    home: Home,
) -> None:
    parent = await home.work_on("how many stars?")
    child = await delegates(home, parent)
    assert child.state is ChildState.WORKING
    await home.answer(parent, "I have asked")
    work = await claim_of(home, child)
    loaded = await home.store.turns.load(work)
    said = [step.body for step in loaded.steps]
    assert [each.text for each in said if isinstance(each, Message)] == ["count the stars"]
    assert [each.cause for each in said if isinstance(each, Note)] == ["child"]
    assert not loaded.context, "it sees nothing of the conversation"
    assert loaded.standing.depth == 1

    await replies(home, work)

    assert await owed(home) == ["I have asked"], "no person is told what a child answers"
    (end,) = heard(home)
    assert (end.child, end.state) == ("a1", "attached")
    hears = await home.claim()
    assert hears.turn_id == end.turn
    (told,) = await told_in(home, hears)
    assert "a1" in told
    assert "as many as sand" in told
    ended = await read(home, child.child_id)
    assert (ended.state, ended.how) == (ChildState.ENDED, ChildEnd.ANSWERED)
    view = await home.view(work.turn_id)
    assert (view.state, view.event) == ("done", "silenced")


async def test_a_call_that_is_carried_out_again_finds_its_child(home: Home) -> None:
    parent = await home.work_on()
    call_id = await proposes(home, parent)
    first = await makes(home, parent, call_id)
    again = (await after_a_death(home))[parent.session_id]
    assert (await makes(home, again, call_id)).child_id == first.child_id
    assert home.sql("SELECT count(*) FROM children") == [(1,)]
    with pytest.raises(Fenced):
        await home.store.children.delegate(parent, call_id, ChildTask(name="x", task="x"))


async def test_an_end_joins_the_turn_that_is_at_work(home: Home) -> None:
    parent = await home.work_on()
    child = await delegates(home, parent)
    await replies(home, await claim_of(home, child))
    assert [each.state for each in heard(home)] == ["waiting"], (
        "its turn runs: at the next boundary"
    )
    (call_id,) = await home.propose(parent, a_call())
    await home.start(parent, call_id)
    joined = await home.finish(parent, call_id)
    assert len(joined) == 2
    assert heard(home) == [Heard("a1", "attached", parent.turn_id, None)]


async def test_an_end_waits_while_the_parent_waits_for_a_person(home: Home) -> None:
    parent = await home.work_on()
    child = await delegates(home, parent)
    await home.ask(parent, choices=YES_NO)
    await replies(home, await claim_of(home, child))
    assert [each.state for each in heard(home)] == ["waiting"]
    await home.say("yes")
    hears = await home.claim()
    assert hears.turn_id == parent.turn_id
    assert heard(home) == [Heard("a1", "attached", parent.turn_id, None)]


@pytest.mark.parametrize("is_dead", [False, True])
async def test_a_child_that_fails_is_heard_of_once(home: Home, is_dead: bool) -> None:
    parent = await home.work_on()
    child = await delegates(home, parent)
    await home.answer(parent, "asked")
    work = await claim_of(home, child)
    if is_dead:
        for _ in range(home.world.policy.deaths_max):
            await home.die_and_recover(work.turn_id)
            await home.wait_until_due()
            await home.claims()
    else:
        await home.store.turns.fail(work, "the model is gone")
    (end,) = heard(home)
    assert end.state == "attached"
    assert (await read(home, child.child_id)).how is ChildEnd.FAILED
    assert await owed(home) == ["asked"], "its apology is its parent's to make"


async def test_a_dropped_turn_ends_its_child(home: Home) -> None:
    parent = await home.work_on()
    child = await delegates(home, parent)
    work = await claim_of(home, child)
    await home.reopen()
    assert await home.store.turns.will(work.turn_id, OperatorAction.DROP) is ActionStanding.LEFT
    assert (await read(home, child.child_id)).how is ChildEnd.INTERRUPTED
    assert len(heard(home)) == 1


async def test_a_policy_that_goes_on_with_nothing_ends_a_child_that_died(home: Home) -> None:
    parent = await home.work_on()
    home.configure(parent.session_id, Settings(policy=RecoveryPolicy.OFF))
    child = await delegates(home, parent)
    await home.answer(parent, "asked")
    work = await claim_of(home, child)
    await home.die_and_recover(work.turn_id)
    assert (await read(home, child.child_id)).how is ChildEnd.INTERRUPTED
    assert [each.state for each in heard(home)] == ["attached"]


# ── questions ────────────────────────────────────────────────────────────────────────────────────


async def test_a_childs_question_is_asked_in_the_chat_and_its_button_reaches_the_child(
    home: Home,
) -> None:
    parent = await home.work_on()
    child = await delegates(home, parent)
    await home.answer(parent, "asked")
    work = await claim_of(home, child)
    await home.ask(work, need=Need.APPROVAL, choices=YES_NO)
    ((question, session_id),) = home.sql(
        "SELECT question, session_id FROM outbox WHERE question IS NOT NULL"
    )
    assert session_id == work.session_id
    talk = await home.work_on("something else")
    assert talk.session_id == parent.session_id, "words alone go to the conversation"
    await home.answer(talk)
    await home.say("", question=int(str(question)), choice=YES_NO[0].choice_id)
    again = await home.claim()
    assert again.turn_id == work.turn_id
    await replies(home, again)
    assert [each.state for each in heard(home)] == ["attached"]


async def test_a_question_of_a_child_that_expires_ends_it(home: Home) -> None:
    parent = await home.work_on()
    child = await delegates(home, parent)
    await home.answer(parent, "asked")
    await home.ask(await claim_of(home, child), choices=YES_NO)
    home.clock.move(DAY_MS + 1)
    assert await home.store.turns.expire(10) == 1
    assert (await read(home, child.child_id)).how is ChildEnd.EXPIRED
    assert [each.state for each in heard(home)] == ["attached"]


async def test_a_late_press_on_an_ended_childs_question_is_answered_and_opens_nothing(
    home: Home,
) -> None:
    parent = await home.work_on()
    child = await delegates(home, parent)
    await home.ask(await claim_of(home, child), choices=YES_NO)
    ((question,),) = home.sql("SELECT question FROM outbox WHERE question IS NOT NULL")
    await home.stop()
    await home.say("", question=int(str(question)), choice=YES_NO[0].choice_id)
    assert await home.claims() == ()
    assert "too late" in (await owed(home))[-1]


# ── limits ───────────────────────────────────────────────────────────────────────────────────────


async def test_the_fifth_waits_and_begins_when_one_has_ended(home: Home) -> None:
    parent = await home.work_on()
    made = [await delegates(home, parent, f"task {n}") for n in range(LIMITS.at_once + 2)]
    states = [(await read(home, each.child_id)).state for each in made]
    assert states == [ChildState.WORKING] * 4 + [ChildState.WAITING] * 2
    await home.answer(parent, "asked")
    claims = await home.claims()
    assert len(claims) == 4
    await replies(home, claims[0])
    states = [(await read(home, each.child_id)).state for each in made]
    assert states == [ChildState.ENDED] + [ChildState.WORKING] * 4 + [ChildState.WAITING]


async def test_more_than_so_many_are_refused_in_words(home: Home) -> None:
    parent = await home.work_on()
    for number in range(LIMITS.open_max):
        await delegates(home, parent, f"task {number}")
    call_id = await proposes(home, parent)
    made = await home.store.children.delegate(parent, call_id, ChildTask(name="x", task="x"))
    assert made.child is None
    assert "16 sub-agents" in made.refusal


async def test_a_conversation_does_not_delegate_for_ever_without_a_person(home: Home) -> None:
    claim = await home.work_on()
    for number in range(LIMITS.made_max):
        child = await delegates(home, claim, f"task {number}")
        await home.answer(claim, "asked")
        await replies(home, await claim_of(home, child))
        claim = await home.claim()
    call_id = await proposes(home, claim)
    refused = await home.store.children.delegate(claim, call_id, ChildTask(name="x", task="x"))
    assert "since a person last wrote" in refused.refusal
    await home.finish(claim, call_id)
    await home.answer(claim, "may I?")
    await delegates(home, await home.work_on("yes, go on"))


async def test_a_child_has_children_and_they_have_none(home: Home) -> None:
    parent = await home.work_on()
    child = await delegates(home, parent)
    await home.answer(parent, "asked")
    work = await claim_of(home, child)
    below = await delegates(home, work, "count the dark ones")
    assert below.depth == 2
    await replies(home, work, "it is under way")
    assert heard(home) == [], "a child with children at work has not ended"
    deep = await claim_of(home, below)
    call_id = await proposes(home, deep)
    made = await home.store.children.delegate(deep, call_id, ChildTask(name="x", task="x"))
    assert "this deep" in made.refusal
    await home.finish(deep, call_id)
    await replies(home, deep, "seven dark ones")
    assert [each.child for each in heard(home)] == ["a2"]
    hears = await home.claim()
    assert hears.session_id == work.session_id
    await replies(home, hears, "seven in all")
    assert [each.child for each in heard(home)] == ["a2", "a1"]
    (told,) = await told_in(home, await home.claim())
    assert "seven in all" in told


# ── roles ────────────────────────────────────────────────────────────────────────────────────────


async def test_a_child_has_the_least_role_of_all_whose_words_its_parent_holds(
    home: Home,
) -> None:
    await let_in(home)
    await writes(home, "eve", "work")
    parent = await home.claim()
    child = await delegates(home, parent)
    work = await claim_of(home, child)
    standing = await home.store.turns.standing(work)
    assert standing.role is Role.MEMBER
    assert standing.folder == (await home.store.turns.standing(parent)).folder
    await home.answer(parent, "asked")
    await replies(home, work)
    hears = await home.claim()
    assert (await home.store.turns.standing(hears)).role is Role.MEMBER


async def test_what_works_for_a_schedule_or_a_chat_keeps_the_key_of_the_chat(home: Home) -> None:
    parent = await home.work_on()
    await delegates(home, parent)
    assert home.sql("SELECT count(DISTINCT lock_key) FROM sessions") == [(1,)]


async def test_nothing_is_lost_or_doubled_by_deaths_on_the_way(home: Home) -> None:
    """The parent dies behind its call, the child in its work, and the parent before it hears."""
    parent = await home.work_on()
    call_id = await proposes(home, parent)
    child = await makes(home, parent, call_id)
    claims = await after_a_death(home)
    again = claims[parent.session_id]
    assert (await makes(home, again, call_id)).child_id == child.child_id
    await home.finish(again, call_id)
    await home.answer(again, "asked")
    assert child.own_session is not None
    await replies(home, (await after_a_death(home))[child.own_session])
    claims = await after_a_death(home)
    assert heard(home) == [Heard("a1", "attached", claims[parent.session_id].turn_id, None)]
