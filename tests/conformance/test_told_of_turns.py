"""Every acknowledged message ends in words: what people hear of turns that are not continued."""

from koboshi.domain.ids import TurnId
from koboshi.domain.recovery import Policy, RecoveryPolicy
from koboshi.domain.session import Settings
from koboshi.domain.turn import TurnState
from tests.harness.fake_time import HOUR_MS
from tests.harness.homes import HOOK, WEB, Home, a_world

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
    home.configure(await home.session_id(), Settings(policy=RecoveryPolicy.AUTO))
    await home.recover(turn_id)
    claim = await home.claim()
    home.configure(await home.session_id(), Settings(policy=RecoveryPolicy.OFF))
    await home.die_and_recover(claim.turn_id)

    (words,) = await heard(home)
    assert "/resume" in words


async def test_where_no_person_can_be_asked_the_chat_still_hears_of_it(home: Home) -> None:
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


# ── left for a newer message ────────────────────────────────────────────────────────────────────

BREAKER = a_world(policy=Policy(deaths_max=100, has_breaker=True))


async def test_who_writes_again_behind_a_stale_turn_hears_what_was_left(home: Home) -> None:
    """Issue 13, B22: rule stale-moved-on; the new message is answered behind that line."""
    claim = await home.work_on("build it")
    await home.reopen()
    home.clock.move(2 * HOUR_MS)
    await home.say("something else")
    verdict = await home.recover(claim.turn_id)
    assert verdict.rule == "stale-moved-on"
    await home.answer(await home.claim(), "here")

    left, answer = await heard(home)
    assert "«build it»" in left
    assert "unfinished" in left
    assert "\n" not in left
    assert answer == "here"


async def test_who_writes_again_while_the_breaker_holds_hears_what_was_left(home: Home) -> None:
    """Issue 13, B22: rule breaker-moved-on."""
    claim = await home.work_on("build it")
    for _ in range(4):
        await home.step(claim)
        claim = await home.resume(claim.turn_id)
    await home.step(claim)
    await home.reopen(world=BREAKER)
    await home.say("something else")
    verdict = await home.recover(claim.turn_id)
    assert verdict.rule == "breaker-moved-on"

    (left,) = await heard(home)
    assert "«build it»" in left


async def test_who_writes_again_where_recovery_is_off_hears_both_lines_once(home: Home) -> None:
    """Issue 13, B22: rule policy-moved-on; first that it was set aside, then that it has ended."""
    turn_id = await set_aside(home)
    assert len(await heard(home)) == 1
    await home.say("something else")

    (left,) = await heard(home)
    assert "unfinished" in left
    await home.reopen()
    assert (await home.view(turn_id)).event == "cleared"
    assert await heard(home) == []


async def test_what_waited_behind_a_turn_does_not_hide_that_it_was_left(home: Home) -> None:
    """Issue 13, B22: rule policy-behind."""
    claim = await home.work_on("build it")
    await home.say("and then this")
    verdict = await home.die_and_recover(claim.turn_id, world=OFF)
    assert verdict.rule == "policy-behind"

    (left,) = await heard(home)
    assert "«build it»" in left


async def test_what_a_person_without_the_right_asked_is_not_told_of(home: Home) -> None:
    """Issue 13, B22: rule not-allowed-behind; none of the words were of those who are left."""
    claim = await home.work_on("build it", person="eve")
    await home.say("and me?", person="ann")
    verdict = await home.die_and_recover(claim.turn_id, world=a_world(revoked=("eve",)))
    assert verdict.rule == "not-allowed-behind"

    assert await heard(home) == []
