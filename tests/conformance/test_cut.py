"""A cut ends the generation: what was stopped never comes back, what was said before still goes
out."""

import pytest

from koboshi.domain.command import Command, CommandName
from koboshi.domain.errors import Fenced
from koboshi.domain.outbox import DeliveryState, Postpone, Settle
from koboshi.domain.route import Route
from koboshi.domain.session import Session
from koboshi.domain.transcript import Answer, Effect, Message, ResultStatus
from koboshi.domain.turn import Claim
from koboshi.ports.store import Arrival
from tests.harness.fake_time import DAY_MS, HOUR_MS
from tests.harness.homes import WEB, Home, a_call, a_world


async def session_of(home: Home, chat: str = "ann") -> Session:
    session = await home.store.sessions.find(Route(channel=WEB, chat=chat))
    assert session is not None
    return session


async def to_queued(home: Home) -> None:
    await home.say("one")


async def to_running(home: Home) -> None:
    await home.work_on("one")


async def to_waiting(home: Home) -> None:
    await home.ask(await home.work_on("one"))


async def to_suspended(home: Home) -> None:
    await home.say("one", person="eve")
    await home.reopen(crash=True, world=a_world(revoked=["eve"]))
    assert await home.claims() == ()


async def to_prompted(home: Home) -> None:
    claim = await home.work_on("one")
    home.clock.move(2 * HOUR_MS)
    await home.die_and_recover(claim.turn_id)


async def to_dead(home: Home) -> None:
    await home.work_on("one")
    await home.reopen(crash=True)


OPEN_STATES = {
    "queued": to_queued,
    "running": to_running,
    "waiting": to_waiting,
    "suspended": to_suspended,
    "prompted": to_prompted,
    "dead": to_dead,
}


@pytest.mark.parametrize("state", OPEN_STATES)
async def test_a_cut_stops_the_open_turn_for_good(home: Home, state: str) -> None:
    """S13, S80, S81, S83: whatever state it is in, and however many boots follow."""
    await OPEN_STATES[state](home)
    await home.stop()
    (turn,) = await home.turns()
    assert (turn.state, turn.event, turn.reason) == ("stopped", "cut", "stopped by the person")

    for _ in range(2):
        await home.reopen(crash=True, world=a_world())
        assert await home.store.turns.unowned(with_suspended=True) == ()
        assert await home.store.turns.recover(turn.turn_id) is None
        assert await home.claims() == ()
    assert (await home.turns())[0] == turn


@pytest.mark.parametrize("state", OPEN_STATES)
async def test_the_first_message_after_a_cut_is_served(home: Home, state: str) -> None:
    """S84: the lane is free at once, nothing of the stop is left over."""
    await OPEN_STATES[state](home)
    await home.stop()
    claim = await home.work_on("two")

    assert (await home.view(claim.turn_id)).request == "two"
    assert claim.generation == 2


async def test_each_cut_begins_a_generation_and_they_never_repeat(home: Home) -> None:
    """S86."""
    generations = []
    for name in (CommandName.STOP, CommandName.NEW, CommandName.STOP):
        claim = await home.work_on()
        generations.append(claim.generation)
        await home.command(name)
        await home.reopen(crash=True)

    assert generations == [1, 2, 3]
    assert (await session_of(home)).generation == 4


async def test_a_cut_drops_what_waits_and_says_how_much(home: Home) -> None:
    """S85, S162: counted in the same transaction, dropped with a reason."""
    await home.work_on("one")
    waiting = [await home.say("two"), await home.say("three")]
    await home.stop()

    entries = [await home.entry(receipt) for receipt in waiting]
    assert [(entry.state, entry.reason) for entry in entries] == [("dropped", "cut")] * 2
    (reply,) = await home.deliver()
    assert "waiting: 2" in reply.text
    assert await home.claims() == ()
    dropped = [event for event in await home.events() if event.line.event == "dropped"]
    assert len(dropped) == 2


async def test_a_cut_concerns_one_session(home: Home) -> None:
    """S52."""
    await home.work_on("one", chat="ann")
    other = await home.work_on("two", chat="bob")
    await home.stop(chat="ann")

    assert await home.store.turns.holds(other)
    assert (await session_of(home, "bob")).generation == 1


async def test_a_cut_takes_the_claim_away_and_says_so(home: Home) -> None:
    """S80, S87: the one who works on it is woken and can write nothing more."""
    claim = await home.work_on()
    home.wakeups.hints.clear()
    await home.stop()

    assert f"claim:{claim.turn_id}" in home.wakeups.hints
    with pytest.raises(Fenced):
        await home.answer(claim, "too late")
    (reply,) = await home.deliver()
    assert "too late" not in reply.text


async def test_a_cut_gives_every_open_call_a_result(home: Home) -> None:
    claim = await home.work_on()
    done, started, proposed = await home.propose(
        claim, a_call("a"), a_call("b", effect=Effect.ONCE), a_call("c")
    )
    await home.start(claim, done, started)
    await home.finish(claim, done, "kept")
    await home.stop()

    results = await home.results(claim.turn_id)
    assert [results[call].status for call in (done, started, proposed)] == [
        ResultStatus.OK,
        ResultStatus.UNKNOWN,
        ResultStatus.STOPPED,
    ]


async def test_a_cut_abandons_what_the_stopped_turn_still_owed(home: Home) -> None:
    """A question that was not delivered yet is not asked any more."""
    claim = await home.work_on()
    await home.ask(claim)
    await home.stop()

    (question,) = await home.deliveries(claim.turn_id)
    assert (question.state, question.reason) == ("abandoned", "stopped by the person")
    assert [delivery.cause for delivery in await home.deliver()] == ["command:2"]


async def test_answers_of_earlier_turns_still_go_out(home: Home) -> None:
    """S93: in order, before the reply to the command."""
    await home.answer(await home.work_on("one"), "answer one")
    await home.work_on("two")
    await home.stop()

    first, second = await home.deliver()
    assert first.text == "answer one"
    assert second.cause.startswith("command:")
    assert [turn.state for turn in await home.turns()] == ["done", "stopped"]


async def test_what_may_already_be_on_its_way_is_not_abandoned(home: Home) -> None:
    """S146: it is settled by what the platform says."""
    claim = await home.work_on()
    await home.ask(claim)
    delivery = await home.take_delivery()
    await home.stop()
    arrived = Settle(state=DeliveryState.DELIVERED, platform_id="p1")
    await home.store.outbox.settle(delivery, home.worker.worker_id, arrived)

    (question,) = await home.deliveries(claim.turn_id)
    assert question.state == "delivered"
    assert (await home.view(claim.turn_id)).state == "stopped"


async def test_what_may_have_arrived_is_not_abandoned(home: Home) -> None:
    claim = await home.work_on()
    await home.ask(claim)
    delivery = await home.take_delivery()
    unsure = Postpone(wait_ms=0, is_ambiguous=True, reason="timeout")
    await home.store.outbox.settle(delivery, home.worker.worker_id, unsure)
    await home.stop()

    assert (await home.take_delivery()).is_ambiguous


async def test_a_cut_with_nothing_open_still_ends_the_generation(home: Home) -> None:
    await home.answer(await home.work_on())
    await home.command(CommandName.NEW)

    assert (await session_of(home)).generation == 2
    assert [turn.state for turn in await home.turns()] == ["answered"]


async def test_an_answered_turn_is_not_touched_by_a_new_conversation(home: Home) -> None:
    """S93, S145. A stop ends an answer that is going out: issue 12, B15."""
    claim = await home.work_on()
    await home.answer(claim, "forty-two")
    await home.command(CommandName.NEW)
    await home.reopen(crash=True)

    assert (await home.recover(claim.turn_id)).rule == "answered"
    assert "forty-two" in [delivery.text for delivery in await home.deliver()]
    assert (await home.view(claim.turn_id)).state == "done"


async def context_of(home: Home, claim: Claim) -> list[str]:
    context = (await home.store.turns.load(claim)).context
    return [step.body.text for step in context if isinstance(step.body, Message | Answer)]


async def test_stop_keeps_the_conversation(home: Home) -> None:
    await home.answer(await home.work_on("one"), "answer one")
    await home.work_on("two")
    await home.stop()

    claim = await home.work_on("three")
    assert await context_of(home, claim) == ["one", "answer one", "two"]


async def test_new_begins_without_it_and_deletes_nothing(home: Home) -> None:
    await home.answer(await home.work_on("one"), "answer one")
    stopped = await home.work_on("two")
    await home.propose(stopped, a_call())
    await home.command(CommandName.NEW)
    await home.reopen(crash=True)

    claim = await home.work_on("three")
    assert (await home.store.turns.load(claim)).context == ()
    assert [turn.request for turn in await home.turns()] == ["one", "two", "three"]


async def test_stop_after_new_does_not_bring_the_old_conversation_back(home: Home) -> None:
    await home.answer(await home.work_on("one"), "answer one")
    await home.command(CommandName.NEW)
    await home.answer(await home.work_on("two"), "answer two")
    await home.stop()

    claim = await home.work_on("three")
    assert await context_of(home, claim) == ["two", "answer two"]


async def test_a_message_and_a_stop_in_one_batch_are_taken_in_order(home: Home) -> None:
    """S163: the platform delivered both at once."""
    await home.accept(
        Arrival(inbound=home.inbound("one")),
        Arrival(inbound=home.inbound("two")),
        Arrival(
            inbound=home.inbound("/stop"), command=Command(name=CommandName.STOP, said="/stop")
        ),
        Arrival(inbound=home.inbound("three")),
    )

    assert [(turn.request, turn.state) for turn in await home.turns()] == [
        ("one", "stopped"),
        ("three", "queued"),
    ]
    (reply,) = await home.deliver()
    assert reply.text == "open: True, waiting: 1, owed: 0"


async def test_a_stop_is_served_while_a_turn_is_being_recovered(home: Home) -> None:
    """S52: a stop before the verdict; the verdict finds nothing to do."""
    claim = await home.work_on()
    home.clock.move(DAY_MS)
    await home.reopen(crash=True)
    await home.stop()

    assert await home.store.turns.recover(claim.turn_id) is None
    assert len(await home.deliver()) == 1
