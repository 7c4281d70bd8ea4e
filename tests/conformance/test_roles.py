"""Issue 15, item 6: owners and members in one gateway, on the channel where only ann is named."""

from collections.abc import Iterable
from dataclasses import replace

import pytest

from koboshi.commands.parse import message_in, parse_command
from koboshi.commands.run import respond
from koboshi.domain.errors import RoleLost
from koboshi.domain.ids import CallId, Seq
from koboshi.domain.outbox import Delivery, DeliveryState, Settle
from koboshi.domain.phrases import NO_RULING, YES_NO
from koboshi.domain.role import Role
from koboshi.domain.transcript import Need
from koboshi.domain.turn import Claim
from koboshi.ports.channel import Receipt
from koboshi.ports.store import Arrival
from tests.harness.backends import nth_code
from tests.harness.homes import FRONT, Home, a_call

GROUP = "room"
PRIVATE = frozenset({"ann", "bob", "cat"})


async def say(
    home: Home,
    text: str,
    *,
    person: str,
    chat: str = GROUP,
    question: int | None = None,
    choice: str | None = None,
) -> Receipt:
    """What the gateway makes of words, commands and buttons in a chat."""
    inbound = home.inbound(text, chat=chat, person=person, channel=FRONT)
    bound = Seq(question) if question is not None else None
    words = replace(inbound.words, question=bound, choice_id=choice)
    is_private = chat in PRIVATE
    inbound = replace(inbound, words=words, is_private=is_private, is_group=not is_private)
    command = parse_command(text) if text else None
    carried = None if command is None else message_in(command)
    if carried is not None:
        words = replace(words, text=carried[0], busy=carried[1])
        inbound, command = replace(inbound, words=words), None
    arrival = Arrival(inbound=inbound, command=command)
    (receipt,) = await home.accept(arrival, respond=respond)
    return receipt


async def let_in(home: Home, person: str, number: int, role: Role) -> None:
    await home.knock(person)
    assert await home.store.people.approve(nth_code(number), role)
    await home.deliver(person, FRONT)


async def settled(home: Home, chat: str) -> None:
    """An open turn of the chat is answered, and all of it arrives."""
    for claim in await home.claims():
        await home.answer(claim)
    await home.deliver(chat, FRONT)


async def gated(home: Home, *people: str) -> tuple[Claim, CallId, int]:
    """A turn of the group that waits for an approval; ann and bob have private chats."""
    await say(home, "hello", person="ann", chat="ann")
    await settled(home, "ann")
    await let_in(home, "bob", 1, Role.MEMBER)
    first, *others = people
    await say(home, "clean up", person=first)
    claim = await home.claim()
    for person in others:
        await say(home, f"/steer so says {person}", person=person)
    if others:
        await home.step(claim)
    (call_id,) = await home.propose(claim, a_call("terminal", need=Need.APPROVAL))
    await home.store.turns.ask(claim, call_id, "May I run it?", YES_NO, 60_000)
    ((question,),) = home.sql(f"SELECT question_seq FROM turns WHERE turn_id = {claim.turn_id}")
    assert isinstance(question, int)
    return claim, call_id, question


def approved_by(home: Home, claim: Claim) -> object:
    ((by,),) = home.sql(
        f"SELECT max(approved_by) FROM calls WHERE turn_id = {claim.turn_id} AND need = 'approval'"
    )
    return by


async def texts_to(home: Home, chat: str) -> list[str]:
    return [each.text for each in await home.deliver(chat, FRONT)]


async def test_named_people_own_and_paired_people_are_what_they_were_made(home: Home) -> None:
    await let_in(home, "bob", 1, Role.MEMBER)
    await let_in(home, "cat", 2, Role.OWNER)

    people = home.store.people
    found = [await people.role_of(FRONT, each) for each in ("ann", "bob", "cat", "eve")]

    assert found == [Role.OWNER, Role.MEMBER, Role.OWNER, None]


async def test_a_question_of_a_members_turn_goes_to_the_owner_and_is_settled_once(
    home: Home,
) -> None:
    claim, _, question = await gated(home, "bob")

    (in_group,) = await texts_to(home, GROUP)
    for_whom, card = await texts_to(home, "ann")
    assert "owner" in in_group
    assert "May I" not in in_group
    assert "bob" in for_whom
    assert card == "May I run it?"

    await say(home, "", person="ann", chat="ann", question=question, choice="yes")
    await say(home, "", person="ann", chat="ann", question=question, choice="no")

    assert approved_by(home, claim) == "ann"
    assert (await home.claim()).turn_id == claim.turn_id
    first, second = await texts_to(home, "ann")
    assert first.startswith("Allowed")
    assert "no longer open" in second


async def test_the_owner_can_write_approve_where_it_was_shown(home: Home) -> None:
    claim, _, _ = await gated(home, "bob")

    await say(home, "/approve", person="ann", chat="ann")

    assert approved_by(home, claim) == "ann"


async def test_what_was_not_shown_in_a_chat_is_not_approved_there(home: Home) -> None:
    claim, _, _ = await gated(home, "bob")

    await say(home, "/approve", person="ann")
    await say(home, "yes", person="ann")

    assert approved_by(home, claim) is None
    assert NO_RULING["asked-elsewhere"] in await texts_to(home, GROUP)


async def test_what_the_platform_refused_to_show_is_not_approved_by_its_owner(home: Home) -> None:
    claim, _, _ = await gated(home, "bob")
    chat, worker = await home.session_id("ann", FRONT), home.worker.worker_id
    while isinstance(card := await home.store.outbox.claim(chat, worker), Delivery):
        refused = Settle(state=DeliveryState.REJECTED, reason="too long")
        await home.store.outbox.settle(card, worker, refused)

    await say(home, "/approve", person="ann", chat="ann")

    assert approved_by(home, claim) is None
    assert NO_RULING["asked-elsewhere"] in await texts_to(home, "ann")


async def test_one_word_of_a_member_makes_it_a_members_turn(home: Home) -> None:
    claim, _, _ = await gated(home, "ann", "bob")

    assert (await home.store.turns.standing(claim)).role is Role.MEMBER
    assert "May I run it?" not in await texts_to(home, GROUP)


async def test_a_turn_with_the_greatest_role_would_be_seen(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A planted bug: an owner who joins a conversation lends it their rights. The test above sees
    both things that go wrong."""

    def greatest_role(roles: Iterable[Role | None]) -> Role:
        return Role.OWNER if Role.OWNER in set(roles) else Role.MEMBER

    monkeypatch.setattr("koboshi.kernel.facts.least_role", greatest_role)
    claim, _, _ = await gated(home, "ann", "bob")

    assert (await home.store.turns.standing(claim)).role is Role.OWNER
    assert "May I run it?" in await texts_to(home, GROUP)


async def test_an_owners_own_turn_in_a_group_is_asked_there(home: Home) -> None:
    claim, _, question = await gated(home, "ann")

    assert "May I run it?" in await texts_to(home, GROUP)
    await say(home, "", person="bob", question=question, choice="yes")
    assert approved_by(home, claim) is None
    assert NO_RULING["not-an-owner"] in await texts_to(home, GROUP)

    await say(home, "", person="ann", question=question, choice="yes")
    assert approved_by(home, claim) == "ann"


async def test_other_words_of_a_member_wait_and_answer_nothing_after_a_crash(home: Home) -> None:
    claim, _, _ = await gated(home, "ann")
    receipt = await say(home, "what is it about?", person="bob")

    await home.reopen(crash=True)
    await home.store.turns.recover(claim.turn_id)

    assert (await home.entry(receipt)).state == "waiting"
    assert approved_by(home, claim) is None
    ((state,),) = home.sql(f"SELECT state FROM turns WHERE turn_id = {claim.turn_id}")
    assert state == "waiting"


async def test_a_role_that_is_lost_stops_the_call_that_needs_it(home: Home) -> None:
    await let_in(home, "cat", 1, Role.OWNER)
    await say(home, "clean up", person="cat", chat="cat")
    claim = await home.claim()
    (call_id,) = await home.propose(claim, a_call())
    await home.store.people.set_role(FRONT, "cat", Role.MEMBER)

    with pytest.raises(RoleLost):
        await home.store.turns.start_call(claim, call_id, None, Role.OWNER)

    assert await home.store.turns.start_call(claim, call_id, None, Role.MEMBER)


async def test_a_late_press_of_a_former_owner_is_in_vain(home: Home) -> None:
    await let_in(home, "cat", 1, Role.OWNER)
    await say(home, "hello", person="cat", chat="cat")
    await settled(home, "cat")
    await home.knock("bob")
    assert await home.store.people.approve(nth_code(2))
    await say(home, "clean up", person="bob")
    claim = await home.claim()
    (call_id,) = await home.propose(claim, a_call("terminal", need=Need.APPROVAL))
    await home.store.turns.ask(claim, call_id, "May I run it?", YES_NO, 60_000)
    ((question,),) = home.sql(f"SELECT question_seq FROM turns WHERE turn_id = {claim.turn_id}")
    assert isinstance(question, int)
    assert "May I run it?" in await texts_to(home, "cat")

    await home.store.people.set_role(FRONT, "cat", Role.MEMBER)
    await say(home, "", person="cat", chat="cat", question=question, choice="yes")

    assert approved_by(home, claim) is None
    assert NO_RULING["not-an-owner"] in await texts_to(home, "cat")


async def test_a_turn_of_a_revoked_person_is_not_allowed_from_another_chat(home: Home) -> None:
    """A yes would be told as one, and the turn would end without the call."""
    claim, _, question = await gated(home, "bob")
    await texts_to(home, "ann")
    await home.store.people.revoke(FRONT, "bob")

    await say(home, "", person="ann", chat="ann", question=question, choice="yes")
    await say(home, "/approve", person="ann", chat="ann")

    assert approved_by(home, claim) is None
    assert await texts_to(home, "ann") == [NO_RULING["sender-not-allowed"]] * 2
    ((state,),) = home.sql(f"SELECT state FROM turns WHERE turn_id = {claim.turn_id}")
    assert state == "waiting", "it stays open until bob is let in again, or its time is over"


async def test_words_of_a_member_stay_a_members_when_an_owner_asks_them_again(home: Home) -> None:
    await let_in(home, "bob", 1, Role.MEMBER)
    await say(home, "clean up", person="bob")
    await home.store.turns.fail(await home.claim(), "broken")

    await say(home, "/retry", person="ann")

    assert (await home.store.turns.standing(await home.claim())).role is Role.MEMBER


async def test_private_chats_of_owners_share_the_folder_and_others_do_not(home: Home) -> None:
    await let_in(home, "bob", 1, Role.MEMBER)
    await say(home, "hi", person="ann", chat="ann")
    await say(home, "hi", person="bob", chat="bob")
    await say(home, "hi", person="ann")

    folders = [(await home.store.turns.standing(each)).folder for each in await home.claims()]

    bob, group = await home.session_id("bob", FRONT), await home.session_id(GROUP, FRONT)
    assert folders == ["", f"people/s{bob}", f"people/s{group}"]


async def test_owners_are_told_once_who_became_a_member(home: Home) -> None:
    await say(home, "hello", person="ann", chat="ann")
    await settled(home, "ann")
    await let_in(home, "bob", 1, Role.MEMBER)
    home.sql("UPDATE people SET role_ms = NULL")

    assert await home.store.people.tell_of_roles() == (f"{FRONT} bob",)
    await home.reopen(crash=True)
    assert await home.store.people.tell_of_roles() == ()

    (words,) = await texts_to(home, "ann")
    assert "bob" in words
    assert "koboshi people role" in words


@pytest.mark.parametrize("command", ["/restart", "/listen all"])
async def test_a_member_does_not_operate_the_gateway(home: Home, command: str) -> None:
    await let_in(home, "bob", 1, Role.MEMBER)

    await say(home, command, person="bob")

    (words,) = await texts_to(home, GROUP)
    assert "owner" in words
    assert home.sql("SELECT restart_by FROM workers WHERE restart_by IS NOT NULL") == []
