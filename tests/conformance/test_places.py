"""Who is claimed first: what a person waits for, and behind it what was interrupted."""

from koboshi.domain.turn import Claim
from tests.harness.homes import Home


async def claimed(home: Home, limit: int, recovered_max: int | None) -> list[Claim]:
    turns = home.store.turns
    return list(await turns.claim(home.worker.worker_id, limit, recovered_max=recovered_max))


async def released(home: Home, *chats: str) -> None:
    """Turns that were at work when the gateway was restarted."""
    for claim in [await home.work_on(chat=chat) for chat in chats]:
        await home.store.turns.release(claim)


async def test_a_new_message_goes_before_what_was_released_before_it(home: Home) -> None:
    """S52, S164: a drain gave three turns back; the one who writes afterwards is served first."""
    await released(home, "old 1", "old 2", "old 3")
    await home.say(chat="new")
    new = await home.session_id("new")

    first, second = await claimed(home, 2, None)

    assert (first.session_id, first.is_recovered) == (new, False)
    assert (second.session_id, second.is_recovered) == (await home.session_id("old 1"), True)


async def test_no_more_recovered_turns_are_claimed_than_there_is_room_for(home: Home) -> None:
    """S164: and new ones take no part of their share."""
    await released(home, "old 1", "old 2", "old 3")
    await home.say(chat="new 1")
    await home.say(chat="new 2")

    taken = await claimed(home, 8, 1)

    assert [claim.is_recovered for claim in taken] == [False, False, True]
    assert await claimed(home, 8, 0) == []
    assert [claim.is_recovered for claim in await claimed(home, 8, 2)] == [True, True]


async def test_a_turn_that_died_counts_as_recovered(home: Home) -> None:
    claim = await home.work_on()
    assert not claim.is_recovered
    assert (await home.resume(claim.turn_id)).is_recovered


async def test_a_turn_that_a_person_replied_to_is_theirs_again(home: Home) -> None:
    """S52: it was interrupted once, then it asked; the reply is a message like any other."""
    claim = await home.resume((await home.work_on()).turn_id)
    await home.ask(claim)
    await released(home, "old")
    await home.say("the first one")

    (taken,) = await claimed(home, 8, 0)

    assert (taken.turn_id, taken.is_recovered) == (claim.turn_id, False)


async def test_what_there_is_no_room_for_is_not_due(home: Home) -> None:
    """Or a caller that asks how long to sleep would not sleep at all."""
    await released(home, "old")

    turns = home.store.turns
    assert await turns.due_in_ms() == 0
    assert await turns.due_in_ms(with_recovered=False) is None
    await home.say(chat="new")
    assert await turns.due_in_ms(with_recovered=False) == 0
