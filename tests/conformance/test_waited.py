"""What the model is told about the time that words lay here before it was asked."""

from koboshi.domain.notes import WAITED, WAITED_MS, waited
from tests.harness.fake_time import HOUR_MS
from tests.harness.homes import Home


async def test_a_turn_that_lay_in_the_queue_is_told_how_long(home: Home) -> None:
    """Issue 13, B9: with the first claim, so that it is stored before the model is asked."""
    await home.say("hello")
    await home.reopen(crash=True)
    home.clock.move(2 * HOUR_MS)

    claim = await home.claim()

    (note,) = await home.notes(claim.turn_id, WAITED)
    assert note.text == waited("2 h")


async def test_it_is_told_once_however_often_the_turn_dies(home: Home) -> None:
    """Issue 13, B9: the same request is made after a crash."""
    await home.say("hello")
    home.clock.move(2 * WAITED_MS)
    claim = await home.claim()
    await home.die_and_recover(claim.turn_id)

    assert len(await home.notes(claim.turn_id, WAITED)) == 1


async def test_a_turn_that_is_taken_up_soon_has_no_such_note(home: Home) -> None:
    """Issue 13, B9."""
    await home.say("hello")
    home.clock.move(WAITED_MS)

    claim = await home.claim()

    assert await home.notes(claim.turn_id, WAITED) == []
