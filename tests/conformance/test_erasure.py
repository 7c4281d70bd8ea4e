"""An erasure closes every turn with words of the person, wherever the turn stands."""

from dataclasses import replace

import pytest

from koboshi.domain.erasure import ERASED
from koboshi.domain.outbox import DeliveryState, Settle
from koboshi.domain.schedule import WorkPlace
from koboshi.domain.turn import Claim, TurnState
from koboshi.ports.store import Arrival
from tests.harness.homes import WEB, Home, a_world
from tests.harness.timed import HOUR_MS, Clockwork, an_order, said_in

SECRET = "xylophone-4711"


async def asked(home: Home, *, is_private: bool) -> Claim:
    inbound = home.inbound(f"remember {SECRET}", chat="bob", person="bob")
    await home.accept(Arrival(inbound=replace(inbound, is_private=is_private)))
    return await home.claim()


async def state_of(home: Home, claim: Claim) -> str:
    return (await home.view(claim.turn_id)).state


def is_gone(home: Home) -> bool:
    said = home.sql("SELECT body FROM inbox"), home.sql("SELECT body FROM steps")
    return SECRET not in str((*said, home.sql("SELECT text FROM outbox")))


@pytest.mark.parametrize("is_private", [True, False])
async def test_an_answer_that_is_owed_is_withdrawn(home: Home, is_private: bool) -> None:
    claim = await asked(home, is_private=is_private)
    await home.answer(claim, f"noted {SECRET}")

    await home.store.erasures.erase(WEB, "bob", "operator")

    assert await state_of(home, claim) == TurnState.DONE
    assert await home.deliver("bob") == []
    assert is_gone(home)


@pytest.mark.parametrize("is_private", [True, False])
async def test_a_part_on_its_way_closes_the_turn_when_it_arrives(
    home: Home, is_private: bool
) -> None:
    claim = await asked(home, is_private=is_private)
    await home.answer(claim, f"noted {SECRET}", "and more")
    sending = await home.take_delivery("bob")

    await home.store.erasures.erase(WEB, "bob", "operator")

    assert await state_of(home, claim) == TurnState.ANSWERED
    arrived = Settle(state=DeliveryState.DELIVERED, platform_id="p1")
    await home.store.outbox.settle(sending, home.worker.worker_id, arrived)
    assert await state_of(home, claim) == TurnState.DONE
    assert await home.deliver("bob") == []
    assert is_gone(home)


@pytest.mark.parametrize("is_private", [True, False])
async def test_an_answer_that_may_have_arrived_says_no_more_what_it_was(
    home: Home, is_private: bool
) -> None:
    claim = await asked(home, is_private=is_private)
    await home.answer(claim, f"noted {SECRET}")
    await home.take_delivery("bob")
    await home.reopen(crash=True)
    assert is_gone(home) is False

    await home.store.erasures.erase(WEB, "bob", "operator")

    said = await home.deliver("bob")
    assert {each.text for each in said} <= {ERASED}
    assert await state_of(home, claim) == TurnState.DONE
    assert is_gone(home)


@pytest.mark.parametrize("is_private", [True, False])
async def test_a_turn_that_waits_for_the_person_is_ended(home: Home, is_private: bool) -> None:
    claim = await asked(home, is_private=is_private)
    await home.ask(claim)

    await home.store.erasures.erase(WEB, "bob", "operator")

    assert await state_of(home, claim) == TurnState.STOPPED
    assert await home.deliver("bob") == []
    assert is_gone(home)


async def test_a_turn_that_was_set_aside_is_ended(home: Home) -> None:
    claim = await asked(home, is_private=False)
    await home.die_and_recover(claim.turn_id, world=a_world(revoked=("bob",)))
    assert await state_of(home, claim) == TurnState.SUSPENDED

    await home.store.erasures.erase(WEB, "bob", "operator")

    assert await state_of(home, claim) == TurnState.STOPPED
    assert is_gone(home)


async def test_the_others_of_a_group_are_served_behind_it(home: Home) -> None:
    """Also where the answer of the person's turn is still owed."""
    await home.say(SECRET, chat="room", person="bob")
    first = await home.claim()
    await home.answer(first, f"noted {SECRET}")
    await home.say("and me?", chat="room", person="ann")
    second = await home.claim()

    await home.store.erasures.erase(WEB, "bob", "operator")

    assert await state_of(home, first) == TurnState.DONE
    await home.answer(second, "you too")
    assert [each.text for each in await home.deliver("room")] == ["you too"]
    assert is_gone(home)


@pytest.mark.parametrize("is_private", [True, False])
@pytest.mark.parametrize("place", [WorkPlace.HERE, WorkPlace.FRESH])
async def test_what_a_schedule_of_the_person_owes_is_withdrawn(
    home: Home, place: WorkPlace, is_private: bool
) -> None:
    """Also where it worked beside the chat."""
    first = await asked(home, is_private=is_private)
    await home.answer(first)
    await home.deliver("bob")
    clock = Clockwork(home=home, session_id=first.session_id)
    await clock.make(an_order(place=place), person="bob")
    home.clock.move(HOUR_MS)
    assert await clock.fire()
    claim = await home.claim()
    assert (claim.session_id != clock.session_id) == (place is WorkPlace.FRESH)
    await home.answer(claim, f"about {SECRET}")

    await home.store.erasures.erase(WEB, "bob", "operator")

    assert await state_of(home, claim) == TurnState.DONE
    assert await said_in(home, claim.session_id) == []
    assert is_gone(home)
