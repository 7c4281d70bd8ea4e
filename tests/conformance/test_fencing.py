"""No write without a claim: the one who has lost it changes nothing any more.

Every verb that takes a claim is tried after every way in which a claim can be lost.
"""

from collections.abc import Awaitable, Callable
from typing import TypeAlias

import pytest

from koboshi.domain.errors import Fenced
from koboshi.domain.ids import CallId, Epoch, Seq, TurnId
from koboshi.domain.outbox import DeliveryChange, DeliveryState, Postpone, Reroute, Settle
from koboshi.domain.session import Busy, Settings
from koboshi.domain.transcript import Effect, Note, Reply, Result, ResultStatus, Summary
from koboshi.domain.turn import Claim
from koboshi.ports.store import Turns
from tests.harness.fake_time import HOUR_MS
from tests.harness.homes import SILENT, Home, a_call

Verb: TypeAlias = Callable[[Turns, Claim, CallId], Awaitable[object]]
Loss: TypeAlias = Callable[[Home, Claim], Awaitable[object]]

REPLY = Reply(text="too late")
SUMMARY = Summary(text="too late", covers=Seq(1))


def result_of(call_id: CallId) -> Result:
    return Result(call_id=call_id, status=ResultStatus.OK, text="too late")


VERBS: dict[str, Verb] = {
    "append": lambda turns, claim, _: turns.append(claim, REPLY, (a_call(),)),
    "note": lambda turns, claim, _: turns.note(claim, Note(cause="late", text="too late")),
    "start_call": lambda turns, claim, call_id: turns.start_call(claim, call_id),
    "finish_call": lambda turns, claim, call_id: turns.finish_call(claim, result_of(call_id)),
    "ask": lambda turns, claim, call_id: turns.ask(claim, call_id, "late?", (), HOUR_MS),
    "answer": lambda turns, claim, _: turns.answer(claim, REPLY, ("too late",)),
    "fail": lambda turns, claim, _: turns.fail(claim, "too late"),
    "retry_model": lambda turns, claim, _: turns.retry_model(claim, SILENT),
    "summarise": lambda turns, claim, _: turns.summarise(claim, SUMMARY),
    "postpone": lambda turns, claim, _: turns.postpone(claim, HOUR_MS, "too late"),
    "release": lambda turns, claim, _: turns.release(claim),
    "progress": lambda turns, claim, _: turns.progress(claim),
    "tell_progress": lambda turns, claim, _: turns.tell_progress(claim, 1, "too late"),
    "load": lambda turns, claim, _: turns.load(claim),
}


async def lost_to_the_next_worker(home: Home, claim: Claim) -> None:
    """Killed; the next boot has resumed the turn and works on it."""
    await home.resume(claim.turn_id)


async def lost_by_recovery(home: Home, claim: Claim) -> None:
    """Killed; the next boot has put the turn back into the queue."""
    await home.die_and_recover(claim.turn_id)


async def lost_to_a_question(home: Home, claim: Claim) -> None:
    """Killed long ago; the person is being asked whether they still want it."""
    home.clock.move(2 * HOUR_MS)
    assert (await home.die_and_recover(claim.turn_id)).rule == "stale"


async def lost_by_a_cut(home: Home, _claim: Claim) -> None:
    await home.stop()


async def lost_by_an_interruption(home: Home, _claim: Claim) -> None:
    home.configure(await home.session_id(), Settings(busy=Busy.INTERRUPT))
    await home.say("something else")


async def lost_by_release(home: Home, claim: Claim) -> None:
    await home.store.turns.release(claim)


async def lost_by_release_and_taken_again(home: Home, claim: Claim) -> None:
    await home.store.turns.release(claim)
    assert (await home.claim()).turn_id == claim.turn_id


async def lost_by_postponing(home: Home, claim: Claim) -> None:
    await home.store.turns.postpone(claim, HOUR_MS, "busy")


async def lost_by_answering(home: Home, claim: Claim) -> None:
    await home.answer(claim, "in time")


async def lost_by_delivering(home: Home, claim: Claim) -> None:
    await home.answer(claim, "in time")
    await home.deliver()


async def lost_by_failing(home: Home, claim: Claim) -> None:
    await home.store.turns.fail(claim, "it broke")


async def lost_by_asking(home: Home, claim: Claim) -> None:
    await home.ask(claim)


LOSSES: dict[str, Loss] = {
    name: loss for name, loss in globals().items() if name.startswith("lost_")
}


@pytest.mark.parametrize("loss", LOSSES.values(), ids=LOSSES)
@pytest.mark.parametrize("verb", VERBS.values(), ids=VERBS)
async def test_one_who_lost_the_claim_changes_nothing(home: Home, verb: Verb, loss: Loss) -> None:
    """S12, S13, S80, S87."""
    claim = await home.work_on()
    (call_id,) = await home.propose(claim, a_call("read", effect=Effect.NONE))
    await loss(home, claim)
    before = await home.everything()

    with pytest.raises(Fenced):
        await verb(home.store.turns, claim, call_id)

    assert await home.everything() == before
    assert not await home.store.turns.holds(claim)


def test_every_verb_that_takes_a_claim_is_tried() -> None:
    taking = {name for name, verb in vars(Turns).items() if "claim" in annotations_of(verb)}

    assert taking == {*VERBS, "holds", "standing"}


def annotations_of(verb: object) -> dict[str, object]:
    found = getattr(verb, "__annotations__", {})
    return {name: kind for name, kind in found.items() if kind in (Claim, "Claim")}


@pytest.mark.parametrize("verb", VERBS.values(), ids=VERBS)
@pytest.mark.parametrize("ahead", [1, -1], ids=["ahead", "behind"])
async def test_a_claim_of_an_epoch_that_is_not_the_turns_is_worthless(
    home: Home, verb: Verb, ahead: int
) -> None:
    claim = await home.work_on()
    (call_id,) = await home.propose(claim, a_call())
    before = await home.everything()
    forged = Claim(
        turn_id=claim.turn_id,
        session_id=claim.session_id,
        generation=claim.generation,
        epoch=Epoch(claim.epoch + ahead),
        worker_id=claim.worker_id,
    )

    with pytest.raises(Fenced):
        await verb(home.store.turns, forged, call_id)
    assert await home.everything() == before


@pytest.mark.parametrize("verb", VERBS.values(), ids=VERBS)
async def test_a_claim_on_nothing_is_worthless(home: Home, verb: Verb) -> None:
    """S9: an unknown turn is no reason to fall over."""
    claim = await home.work_on()
    unknown = Claim(
        turn_id=TurnId(99),
        session_id=claim.session_id,
        generation=claim.generation,
        epoch=Epoch(1),
        worker_id=claim.worker_id,
    )

    with pytest.raises(Fenced):
        await verb(home.store.turns, unknown, CallId("1.0"))
    assert await home.store.turns.recover(TurnId(99)) is None
    assert await home.store.views.explain(TurnId(99)) is None


async def test_a_late_completion_does_not_touch_the_turn_that_follows(home: Home) -> None:
    """S12: turn N unwinds after turn N+1 has begun."""
    first = await home.work_on("one")
    await home.stop()
    second = await home.work_on("two")

    with pytest.raises(Fenced):
        await home.answer(first, "too late")
    assert await home.store.turns.holds(second)
    assert (await home.view(second.turn_id)).state == "running"


async def test_epochs_grow_with_every_claim_over_all_lives(home: Home) -> None:
    """S86."""
    claim, epochs = await home.work_on(), [1]
    for _ in range(4):
        claim = await home.resume(claim.turn_id)
        await home.step(claim)
        epochs.append(claim.epoch)

    assert epochs == [1, 2, 3, 4, 5]


# ── deliveries ──────────────────────────────────────────────────────────────────────────────────

CHANGES: dict[str, DeliveryChange] = {
    "delivered": Settle(state=DeliveryState.DELIVERED, platform_id="p1"),
    "rejected": Settle(state=DeliveryState.REJECTED, reason="gone"),
    "postponed": Postpone(wait_ms=0, is_ambiguous=False, reason="busy"),
    "moved": Reroute(chat="elsewhere"),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
async def test_a_worker_that_died_settles_nothing(home: Home, change: DeliveryChange) -> None:
    """S87: the new worker is sending; what the old one learnt comes too late."""
    await home.answer(await home.work_on())
    delivery, dead = await home.take_delivery(), home.worker.worker_id
    await home.reopen(crash=True)
    await home.take_delivery()
    before = await home.everything()

    with pytest.raises(Fenced):
        await home.store.outbox.settle(delivery, dead, change)
    with pytest.raises(Fenced):
        await home.store.outbox.label(delivery, dead)
    assert await home.everything() == before


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
async def test_a_delivery_is_settled_once(home: Home, change: DeliveryChange) -> None:
    """S146: confirmed is confirmed."""
    await home.answer(await home.work_on())
    delivery, worker = await home.take_delivery(), home.worker.worker_id
    await home.store.outbox.settle(delivery, worker, CHANGES["delivered"])
    before = await home.everything()

    with pytest.raises(Fenced):
        await home.store.outbox.settle(delivery, worker, change)
    assert await home.everything() == before


async def test_a_delivery_that_no_one_took_cannot_be_settled(home: Home) -> None:
    await home.answer(await home.work_on())
    delivery, worker = await home.take_delivery(), home.worker.worker_id
    await home.store.outbox.settle(delivery, worker, CHANGES["postponed"])

    with pytest.raises(Fenced):
        await home.store.outbox.settle(delivery, worker, CHANGES["delivered"])
