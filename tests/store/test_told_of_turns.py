"""Every acknowledged message ends in words: what people hear of turns that are not continued."""

from koboshi.domain.ids import TurnId
from koboshi.domain.recovery import Policy, RecoveryPolicy
from koboshi.domain.session import Settings
from koboshi.domain.turn import TurnState
from tests.store.homes import HOOK, WEB, Home, a_world

OFF = a_world(policy=Policy(recovery=RecoveryPolicy.OFF))
ASK = a_world(policy=Policy(recovery=RecoveryPolicy.ASK))


async def heard(home: Home, chat: str = "ann") -> list[str]:
    """What arrives in the chat from here on."""
    return [delivery.text for delivery in await home.deliver(chat)]


async def set_aside(home: Home) -> TurnId:
    claim = await home.work_on("build it")
    await home.die_and_recover(claim.turn_id, world=OFF)
    return claim.turn_id


# ── set aside ───────────────────────────────────────────────────────────────────────────────────


async def test_the_person_hears_what_was_set_aside_and_how_to_go_on(home: Home) -> None:
    """Issue 13, A5: recovery is off and the gateway was killed."""
    await set_aside(home)

    (words,) = await heard(home)
    assert "«build it»" in words
    assert "/resume" in words
    assert "/drop" in words


async def test_what_was_set_aside_is_told_once_over_any_number_of_restarts(home: Home) -> None:
    """Issue 13, A5: each boot judges the turn again, and says nothing more."""
    turn_id = await set_aside(home)
    for _ in range(3):
        await home.die_and_recover(turn_id)

    assert len(await heard(home)) == 1
    await home.die_and_recover(turn_id)
    assert await heard(home) == []


async def test_a_turn_that_is_set_aside_again_after_resume_is_told_again(home: Home) -> None:
    """Issue 13, A5: the person wanted it to go on, and it was interrupted once more."""
    turn_id = await set_aside(home)
    await heard(home)
    await home.store.sessions.set(await home.session_id(), Settings(policy=RecoveryPolicy.AUTO))
    await home.recover(turn_id)
    claim = await home.claim()
    await home.store.sessions.set(await home.session_id(), Settings(policy=RecoveryPolicy.OFF))
    await home.die_and_recover(claim.turn_id)

    (words,) = await heard(home)
    assert "/resume" in words


async def test_where_nobody_can_be_asked_the_chat_still_hears_of_it(home: Home) -> None:
    """Issue 13, A5: recovery is `ask`, and the channel takes no answers."""
    await home.say("build it", channel=HOOK)
    claim = await home.claim()
    await home.die_and_recover(claim.turn_id, world=ASK)

    (told,) = await home.deliveries(claim.turn_id)
    assert "/resume" in told.text


async def test_nothing_is_said_into_a_channel_that_is_gone_but_the_operator_hears(
    home: Home,
) -> None:
    """Issue 13, A5: it would only arrive when it is no longer true."""
    claim = await home.work_on("build it")
    await home.die_and_recover(claim.turn_id, world=a_world(without=(WEB,)))

    assert await home.deliveries(claim.turn_id) == ()
    assert (await home.store.views.status()).turns_unheard == 1


async def test_a_channel_that_comes_back_where_recovery_is_off_is_told(home: Home) -> None:
    """Issue 13, A5: the turn stays set aside, now for a reason that the person can mend."""
    claim = await home.work_on("build it")
    await home.die_and_recover(claim.turn_id, world=a_world(without=(WEB,)))
    await home.die_and_recover(claim.turn_id, world=OFF)

    assert (await home.view(claim.turn_id)).state == TurnState.SUSPENDED
    assert len(await heard(home)) == 1


async def test_a_person_who_lost_the_right_is_not_told_but_the_operator_is(home: Home) -> None:
    """Issue 13, A5: what they asked for is none of their business any more."""
    claim = await home.work_on("build it")
    await home.die_and_recover(claim.turn_id, world=a_world(revoked=("ann",)))

    assert await home.deliveries(claim.turn_id) == ()
    assert await heard(home) == []
    assert (await home.store.views.status()).turns_unheard == 1
