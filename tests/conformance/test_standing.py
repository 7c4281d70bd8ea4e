"""The words about where a turn stands, read by every view from the same facts."""

from dataclasses import replace

from koboshi.commands.parse import parse_command
from koboshi.commands.run import respond
from koboshi.domain.ids import TurnId
from koboshi.domain.recovery import Policy
from koboshi.ports.store import Arrival
from koboshi.ports.views import Page
from tests.harness.homes import WEB, Home, a_world

HELD = "held back: the gateway keeps dying"
ALL = Page(limit=10, before=1 << 62, is_open=True)
ALL_OF_THEM = replace(ALL, is_open=False)
WITH_BREAKER = a_world(policy=Policy(deaths_max=100, has_breaker=True))


async def held_back(home: Home) -> TurnId:
    """A turn that five boots died over, with progress in each."""
    claim = await home.work_on("build it")
    for _ in range(4):
        await home.step(claim)
        await home.reopen(world=a_world())
        await home.recover(claim.turn_id)
        await home.wait_until_due()
        claim = await home.claim()
    await home.step(claim)
    verdict = await home.die_and_recover(claim.turn_id, world=WITH_BREAKER)
    assert verdict.rule == "boot-breaker"
    return claim.turn_id


async def test_a_turn_that_the_breaker_holds_back_is_told_alike_everywhere(home: Home) -> None:
    """Issue 13, B8: lists, the session, the sidebar, the inbox of the page, `explain`, the chat."""
    turn_id = await held_back(home)
    views = home.store.views

    told = {
        "turns": (await views.turns(ALL))[0].stands,
        "session": (await views.turns_of(await home.session_id(), 1))[0].stands,
        "inbox": (await views.turns_named([turn_id]))[0].stands,
        "explain": (await home.explain(turn_id)).turn.stands,
        "sidebar": (await views.chats(WEB, 5))[0].stands,
        "messages": (await views.entries(ALL_OF_THEM))[0].stands,
        "message": (await home.explain(turn_id)).entries[0].stands,
    }
    assert told == dict.fromkeys(told, HELD)
    status = await views.status()
    assert {stand: count for stand, count in status.stands.items() if count} == {"held-back": 1}
    for command in ("/status", "/why"):
        arrival = Arrival(inbound=home.inbound(command), command=parse_command(command))
        await home.accept(arrival, respond=respond)
        words = (await home.deliver())[-1].text
        assert words.startswith("Held back: the gateway keeps dying: «build it»")


async def test_a_turn_at_work_is_told_alike_everywhere(home: Home) -> None:
    """Issue 13, B8: this boot holds the claim, so nothing was interrupted."""
    claim = await home.work_on("build it")

    (turn,) = await home.store.views.turns(ALL)
    assert turn == replace(turn, turn_id=claim.turn_id, stands="being worked on")
    assert (await home.store.views.status()).stands == {"running": 1}


async def test_a_turn_whose_gateway_died_is_counted_as_interrupted(home: Home) -> None:
    """Issue 13, B8: red before, `koboshi status` and the metrics counted it as running."""
    claim = await home.work_on("build it")
    await home.work_on("and this", chat="bob")
    await home.reopen()

    counts = (await home.store.views.status()).stands
    assert {stand: count for stand, count in counts.items() if count} == {"interrupted": 2}
    await home.recover(claim.turn_id)
    counts = (await home.store.views.status()).stands
    assert {stand: count for stand, count in counts.items() if count} == {
        "interrupted": 1,
        "queued": 1,
    }


async def test_a_message_that_is_in_no_turn_has_words_of_its_own(home: Home) -> None:
    """Issue 13, B8."""
    await home.work_on("build it")
    await home.say("and then test it")

    told = [entry.stands for entry in await home.store.views.entries(ALL_OF_THEM)]
    assert told == ["waiting for its turn", "being worked on"]
