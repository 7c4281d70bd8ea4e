"""One short story for each transition of a turn, told by real verbs of the store."""

from collections.abc import Awaitable, Callable
from typing import TypeAlias

from koboshi.domain.command import ActionStanding, OperatorAction
from koboshi.domain.ids import TurnId
from koboshi.domain.recovery import RecoveryPolicy
from koboshi.domain.session import Busy, Settings
from koboshi.domain.transcript import Reply
from koboshi.domain.turn import TurnEvent, TurnState
from tests.harness.fake_time import DAY_MS, HOUR_MS
from tests.harness.homes import HOOK, WEB, Home, a_world

Story: TypeAlias = Callable[[Home], Awaitable[TurnId]]
LONG = 2 * HOUR_MS


async def claimed(home: Home) -> TurnId:
    return (await home.work_on()).turn_id


async def stepped(home: Home) -> TurnId:
    claim = await home.work_on()
    await home.step(claim)
    return claim.turn_id


async def asked(home: Home) -> TurnId:
    claim = await home.work_on()
    await home.ask(claim)
    return claim.turn_id


async def replied(home: Home) -> TurnId:
    turn_id = await asked(home)
    await home.say("that one")
    return turn_id


async def declined(home: Home) -> TurnId:
    turn_id = await prompted_from_running(home)
    await home.say("no")
    return turn_id


async def expired(home: Home) -> TurnId:
    turn_id = await asked(home)
    home.clock.move(DAY_MS)
    await home.store.turns.expire(1)
    return turn_id


async def answered(home: Home) -> TurnId:
    claim = await home.work_on()
    await home.answer(claim)
    return claim.turn_id


async def silenced(home: Home) -> TurnId:
    claim = await home.work_on()
    await home.store.turns.answer(claim, Reply(text="nothing new"), (), is_silent=True)
    return claim.turn_id


async def settled(home: Home) -> TurnId:
    turn_id = await answered(home)
    await home.deliver()
    return turn_id


async def released(home: Home) -> TurnId:
    claim = await home.work_on()
    await home.store.turns.release(claim)
    return claim.turn_id


async def interrupted(home: Home) -> TurnId:
    claim = await home.work_on()
    home.configure(claim.session_id, Settings(busy=Busy.INTERRUPT))
    await home.say("something else")
    return claim.turn_id


async def postponed(home: Home) -> TurnId:
    claim = await home.work_on()
    await home.store.turns.postpone(claim, 60_000, "busy")
    return claim.turn_id


async def interrupted_while_postponed(home: Home) -> TurnId:
    turn_id = await postponed(home)
    home.configure(await home.session_id(), Settings(busy=Busy.INTERRUPT))
    await home.say("something else")
    return turn_id


async def erred(home: Home) -> TurnId:
    claim = await home.work_on()
    await home.store.turns.fail(claim, "it broke")
    return claim.turn_id


async def cut_while_queued(home: Home) -> TurnId:
    await home.say()
    return await cut(home, (await home.turns())[0].turn_id)


async def cut_while_running(home: Home) -> TurnId:
    return await cut(home, await claimed(home))


async def cut_while_waiting(home: Home) -> TurnId:
    return await cut(home, await asked(home))


async def cut_while_suspended(home: Home) -> TurnId:
    return await cut(home, await parked_from_running(home))


async def cut(home: Home, turn_id: TurnId) -> TurnId:
    await home.stop()
    return turn_id


async def resumed_from_running(home: Home) -> TurnId:
    turn_id = await claimed(home)
    await home.die_and_recover(turn_id)
    return turn_id


async def resumed_from_suspended(home: Home) -> TurnId:
    turn_id = await parked_from_running(home)
    await home.die_and_recover(turn_id, world=a_world())
    return turn_id


async def resumed_from_waiting(home: Home) -> TurnId:
    turn_id = await prompted_from_running(home)
    await home.say("yes")
    return turn_id


async def prompted_from_queued(home: Home) -> TurnId:
    turn_id = await released(home)
    home.clock.move(LONG)
    assert await home.claims() == ()
    return turn_id


async def prompted_from_running(home: Home) -> TurnId:
    turn_id = await claimed(home)
    home.clock.move(LONG)
    await home.die_and_recover(turn_id)
    return turn_id


async def prompted_from_suspended(home: Home) -> TurnId:
    turn_id = await parked_from_running(home)
    home.clock.move(LONG)
    await home.die_and_recover(turn_id, world=a_world())
    return turn_id


async def parked_from_queued(home: Home) -> TurnId:
    turn_id = await released(home)
    await home.reopen(world=a_world(without=[WEB]))
    assert await home.claims() == ()
    return turn_id


async def parked_from_running(home: Home) -> TurnId:
    turn_id = await claimed(home)
    await home.die_and_recover(turn_id, world=a_world(without=[WEB]))
    return turn_id


async def cleared_from_queued(home: Home) -> TurnId:
    turn_id = await released(home)
    home.clock.move(LONG)
    await home.say("something else")
    assert await home.claims() == ()
    return turn_id


async def cleared_from_running(home: Home) -> TurnId:
    turn_id = await claimed(home)
    home.clock.move(LONG)
    await home.reopen(crash=True)
    await home.say("something else")
    await home.recover(turn_id)
    return turn_id


async def cleared_from_suspended(home: Home) -> TurnId:
    claim = await home.work_on()
    off = Settings(policy=RecoveryPolicy.OFF)
    home.configure(claim.session_id, off)
    await home.die_and_recover(claim.turn_id)
    await home.say("something else")
    return claim.turn_id


async def cleared_from_waiting(home: Home) -> TurnId:
    turn_id = await asked(home)
    await home.reopen(world=a_world(revoked=["ann"]))
    await home.say("something else", person="bob")
    return turn_id


async def gave_up_from_queued(home: Home) -> TurnId:
    await home.say(channel=HOOK)
    claim = await home.claim()
    await home.store.turns.release(claim)
    home.clock.move(LONG)
    assert await home.claims() == ()
    return claim.turn_id


async def gave_up_from_running(home: Home) -> TurnId:
    claim = await home.work_on()
    claim = await home.resume(claim.turn_id)
    claim = await home.resume(claim.turn_id)
    await home.die_and_recover(claim.turn_id)
    return claim.turn_id


async def gave_up_from_suspended(home: Home) -> TurnId:
    await home.say(channel=HOOK)
    claim = await home.claim()
    await home.die_and_recover(claim.turn_id, world=a_world(without=[HOOK]))
    home.clock.move(LONG)
    await home.die_and_recover(claim.turn_id, world=a_world())
    return claim.turn_id


async def resumed_from_queued(home: Home) -> TurnId:
    return await willed(home, await postponed(home), OperatorAction.RESUME)


async def dropped_while_queued(home: Home) -> TurnId:
    return await willed(home, await released(home), OperatorAction.DROP)


async def dropped_while_running(home: Home) -> TurnId:
    turn_id = await claimed(home)
    await home.reopen(crash=True)
    return await willed(home, turn_id, OperatorAction.DROP)


async def dropped_while_waiting(home: Home) -> TurnId:
    return await willed(home, await prompted_from_running(home), OperatorAction.DROP)


async def dropped_while_suspended(home: Home) -> TurnId:
    return await willed(home, await parked_from_running(home), OperatorAction.DROP)


async def willed(home: Home, turn_id: TurnId, will: OperatorAction) -> TurnId:
    assert await home.store.turns.will(turn_id, will) is ActionStanding.LEFT
    return turn_id


S, E = TurnState, TurnEvent
STORIES: dict[tuple[TurnState, TurnEvent], Story] = {
    (S.QUEUED, E.CLAIMED): claimed,
    (S.RUNNING, E.STEPPED): stepped,
    (S.RUNNING, E.ASKED): asked,
    (S.WAITING, E.REPLIED): replied,
    (S.WAITING, E.DECLINED): declined,
    (S.WAITING, E.EXPIRED): expired,
    (S.RUNNING, E.ANSWERED): answered,
    (S.ANSWERED, E.SETTLED): settled,
    (S.ANSWERED, E.SILENCED): silenced,
    (S.RUNNING, E.RELEASED): released,
    (S.RUNNING, E.POSTPONED): postponed,
    (S.RUNNING, E.INTERRUPTED): interrupted,
    (S.QUEUED, E.INTERRUPTED): interrupted_while_postponed,
    (S.RUNNING, E.ERRED): erred,
    (S.QUEUED, E.CUT): cut_while_queued,
    (S.RUNNING, E.CUT): cut_while_running,
    (S.WAITING, E.CUT): cut_while_waiting,
    (S.SUSPENDED, E.CUT): cut_while_suspended,
    (S.QUEUED, E.DROPPED): dropped_while_queued,
    (S.RUNNING, E.DROPPED): dropped_while_running,
    (S.WAITING, E.DROPPED): dropped_while_waiting,
    (S.SUSPENDED, E.DROPPED): dropped_while_suspended,
    (S.QUEUED, E.RESUMED): resumed_from_queued,
    (S.RUNNING, E.RESUMED): resumed_from_running,
    (S.SUSPENDED, E.RESUMED): resumed_from_suspended,
    (S.WAITING, E.RESUMED): resumed_from_waiting,
    (S.QUEUED, E.PROMPTED): prompted_from_queued,
    (S.RUNNING, E.PROMPTED): prompted_from_running,
    (S.SUSPENDED, E.PROMPTED): prompted_from_suspended,
    (S.QUEUED, E.PARKED): parked_from_queued,
    (S.RUNNING, E.PARKED): parked_from_running,
    (S.QUEUED, E.CLEARED): cleared_from_queued,
    (S.RUNNING, E.CLEARED): cleared_from_running,
    (S.SUSPENDED, E.CLEARED): cleared_from_suspended,
    (S.WAITING, E.CLEARED): cleared_from_waiting,
    (S.QUEUED, E.GAVE_UP): gave_up_from_queued,
    (S.RUNNING, E.GAVE_UP): gave_up_from_running,
    (S.SUSPENDED, E.GAVE_UP): gave_up_from_suspended,
}
