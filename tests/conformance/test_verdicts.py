"""The rules of recovery through the verbs: what the store does about each verdict."""

import pytest

from koboshi.domain.ids import DeliveryId
from koboshi.domain.inbox import EntryState
from koboshi.domain.notes import ENDED, NOT_AGAIN
from koboshi.domain.outbox import DeliveryState, Settle
from koboshi.domain.recovery import Policy, RecoveryPolicy, VerdictKind
from koboshi.domain.session import Settings
from koboshi.domain.transcript import Message, Note, Question
from tests.harness.fake_time import DAY_MS, HOUR_MS
from tests.harness.homes import HOOK, WEB, Home, OpenHome, a_world

LONG = 2 * HOUR_MS


async def set_policy(home: Home, policy: RecoveryPolicy) -> None:
    home.configure(await home.session_id(), Settings(policy=policy))


# ── stale ───────────────────────────────────────────────────────────────────────────────────────


async def test_a_stale_turn_asks_once(home: Home) -> None:
    """S38, S51: nothing old starts by itself; the person is told what happened, one time."""
    claim = await home.work_on("book a flight")
    home.clock.move(LONG)
    verdict = await home.die_and_recover(claim.turn_id)
    assert (verdict.kind, verdict.rule) == (VerdictKind.ASK_USER, "stale")
    for _ in range(3):
        await home.reopen(crash=True)
        assert (await home.recover(claim.turn_id)).kind is VerdictKind.STAND
        assert await home.claims() == ()

    (offer,) = await home.deliver()
    assert "book a flight" in offer.text
    assert [choice.choice_id for choice in offer.choices] == ["yes", "no"]
    questions = [body for body in await home.bodies(claim.turn_id) if isinstance(body, Question)]
    assert len(questions) == 1


async def test_a_yes_continues_a_stale_turn(home: Home) -> None:
    claim = await home.work_on("book a flight")
    home.clock.move(LONG)
    await home.die_and_recover(claim.turn_id)
    receipt = await home.say("yes")

    assert receipt.state is EntryState.ATTACHED
    facts = (await home.explain(claim.turn_id)).facts
    assert facts is not None
    assert facts.idle_ms == 0, "the person is there"
    resumed = await home.claim()
    assert (resumed.turn_id, resumed.epoch) == (claim.turn_id, claim.epoch + 1)
    assert len(await home.notes(claim.turn_id)) == 1


async def test_a_yes_counts_however_long_it_then_takes_to_come_back(home: Home) -> None:
    claim = await home.work_on()
    home.clock.move(LONG)
    await home.die_and_recover(claim.turn_id)
    await home.say("yes")
    home.clock.move(LONG)
    await home.reopen(crash=True)

    assert (await home.claim()).turn_id == claim.turn_id


async def test_a_no_ends_a_stale_turn(home: Home) -> None:
    claim = await home.work_on()
    home.clock.move(LONG)
    await home.die_and_recover(claim.turn_id)
    await home.say("no")

    turn = await home.view(claim.turn_id)
    assert (turn.state, turn.event, turn.reason) == ("stopped", "declined", "declined")
    assert await home.claims() == ()
    _offer, last = await home.deliver()
    assert "let it go" in last.text


async def test_other_words_end_a_stale_turn_and_open_a_new_one(home: Home) -> None:
    claim = await home.work_on("book a flight")
    home.clock.move(LONG)
    await home.die_and_recover(claim.turn_id)
    receipt = await home.say("what is the weather?")

    assert receipt.state is EntryState.ATTACHED
    stopped, opened = await home.turns()
    assert (stopped.state, stopped.event, stopped.reason) == ("stopped", "declined", "other words")
    assert opened.request == "what is the weather?"
    assert (await home.claim()).turn_id == opened.turn_id


async def test_a_message_after_the_death_ends_a_stale_turn_without_a_question(home: Home) -> None:
    """S64: the new turn is told of the old request, before the person's words."""
    claim = await home.work_on("book a flight")
    await home.step(claim)
    home.clock.move(LONG)
    await home.reopen(crash=True)
    assert (await home.say("what is the weather?")).state is EntryState.WAITING
    verdict = await home.recover(claim.turn_id)

    assert (verdict.kind, verdict.rule) == (VerdictKind.CLEAR, "stale-moved-on")
    cleared, opened = await home.turns()
    assert (cleared.state, cleared.event) == ("stopped", "cleared")
    loaded = await home.store.turns.load(await home.claim())
    note = loaded.context[-1].body
    assert isinstance(note, Note)
    assert note.cause == ENDED
    assert "book a flight" in note.text
    (message,) = (step.body for step in loaded.steps)
    assert isinstance(message, Message)
    assert message.text == opened.request == "what is the weather?"
    assert len(loaded.context) == 4, "the new turn sees the history"
    (left,) = await home.deliver()
    assert left.choices == (), "nothing is asked"
    assert "unfinished" in left.text


async def test_a_message_before_the_death_does_not_speak_for_a_stale_turn(home: Home) -> None:
    """It waits, and has its turn after the question is settled."""
    claim = await home.work_on("one")
    await home.say("two")
    home.clock.move(LONG)
    assert (await home.die_and_recover(claim.turn_id)).rule == "stale"
    await home.say("no")

    assert (await home.view((await home.claim()).turn_id)).request == "two"


async def test_other_words_do_not_overtake_what_waited_before_them(home: Home) -> None:
    """S97."""
    claim = await home.work_on("one")
    await home.say("two")
    home.clock.move(LONG)
    await home.die_and_recover(claim.turn_id)
    assert (await home.say("three")).state is EntryState.WAITING

    for request in ("two", "three"):
        claim = await home.claim()
        assert (await home.view(claim.turn_id)).request == request
        await home.answer(claim)


async def test_a_stale_turn_ends_where_no_person_can_be_asked(home: Home) -> None:
    await home.say("nightly report", channel=HOOK)
    claim = await home.claim()
    home.clock.move(LONG)
    verdict = await home.die_and_recover(claim.turn_id)

    assert (verdict.kind, verdict.rule) == (VerdictKind.GIVE_UP, "stale-unattended")
    (apology,) = await home.deliveries(claim.turn_id)
    assert "nightly report" in apology.text


async def test_the_next_words_after_an_end_are_served_as_ever(home: Home) -> None:
    """S46, S51, S84."""
    claim = await home.work_on()
    home.clock.move(LONG)
    await home.die_and_recover(claim.turn_id)
    await home.say("no")

    claim = await home.work_on("again, please")
    await home.answer(claim)
    assert (await home.view(claim.turn_id)).state == "answered"


# ── policy ──────────────────────────────────────────────────────────────────────────────────────


async def test_a_session_can_ask_first(home: Home) -> None:
    """S168."""
    claim = await home.work_on()
    await set_policy(home, RecoveryPolicy.ASK)
    verdict = await home.die_and_recover(claim.turn_id)

    assert (verdict.kind, verdict.rule) == (VerdictKind.ASK_USER, "policy-ask")
    assert (await home.view(claim.turn_id)).state == "waiting"


async def test_a_session_can_switch_recovery_off(home: Home) -> None:
    """S168, S39."""
    claim = await home.work_on()
    await set_policy(home, RecoveryPolicy.OFF)
    verdict = await home.die_and_recover(claim.turn_id)

    assert (verdict.kind, verdict.rule) == (VerdictKind.SUSPEND, "policy-off")
    turn = await home.view(claim.turn_id)
    assert (turn.state, turn.reason, turn.worker_id) == ("suspended", verdict.because, None)
    assert await home.claims() == ()


async def test_the_configured_policy_counts_where_the_session_says_nothing(
    open_home: OpenHome,
) -> None:
    home = await open_home(a_world(policy=Policy(recovery=RecoveryPolicy.OFF)))
    claim = await home.work_on("one")
    other = await home.work_on("two", chat="bob")
    home.configure(other.session_id, Settings(policy=RecoveryPolicy.AUTO))
    await home.reopen(crash=True)

    assert (await home.recover(claim.turn_id)).rule == "policy-off"
    assert (await home.recover(other.turn_id)).rule == "fresh"


async def test_a_policy_concerns_only_what_was_begun(open_home: OpenHome) -> None:
    home = await open_home(a_world(policy=Policy(recovery=RecoveryPolicy.OFF)))
    await home.say()
    await home.reopen(crash=True)

    await home.claim()


async def test_settings_survive_and_are_replaced_as_a_whole(home: Home) -> None:
    claim = await home.work_on()
    await set_policy(home, RecoveryPolicy.OFF)
    await home.reopen(crash=True)
    home.configure(claim.session_id, Settings())

    assert (await home.recover(claim.turn_id)).rule == "fresh"


async def test_a_message_ends_a_turn_that_was_set_aside(home: Home) -> None:
    """S79: the session stays; the next message opens a new turn in it that sees the history."""
    claim = await home.work_on("one")
    await set_policy(home, RecoveryPolicy.OFF)
    await home.die_and_recover(claim.turn_id)
    receipt = await home.say("two")

    cleared, opened = await home.turns()
    assert (cleared.state, cleared.event) == ("stopped", "cleared")
    assert (opened.state, opened.request) == ("queued", "two")
    assert receipt.state is EntryState.ATTACHED


async def test_a_message_ends_a_turn_that_was_set_aside_whatever_the_clock_says(
    home: Home,
) -> None:
    """S169: what came after is told by the order of the commits, not by the time of day."""
    claim = await home.work_on("one")
    await set_policy(home, RecoveryPolicy.OFF)
    await home.die_and_recover(claim.turn_id)
    home.clock.move(-DAY_MS)

    assert (await home.say("two")).state is EntryState.ATTACHED
    assert (await home.view(claim.turn_id)).state == "stopped"


async def test_words_from_before_it_was_set_aside_get_their_turn(home: Home) -> None:
    """S92, S97: what waited behind a turn that is not continued does not wait for ever. The model
    is told what was left unfinished, and /retry can still ask it again."""
    claim = await home.work_on("one")
    await home.say("two")
    await home.say("three")
    await set_policy(home, RecoveryPolicy.OFF)
    verdict = await home.die_and_recover(claim.turn_id)

    assert verdict is not None
    assert verdict.rule == "policy-behind"
    assert (await home.view(claim.turn_id)).state == "stopped"
    next_claim = await home.claim()
    assert (await home.view(next_claim.turn_id)).request == "two (and 1 more)"
    context = (await home.store.turns.load(next_claim)).context
    (note,) = (step.body.text for step in context if isinstance(step.body, Note))
    assert "«one»" in note
    assert NOT_AGAIN in note


async def test_words_of_no_one_do_not_end_it(home: Home) -> None:
    """Only a message of a person who is still allowed makes it give way."""
    claim = await home.work_on("one")
    await home.say("two", person="eve")
    await set_policy(home, RecoveryPolicy.OFF)
    verdict = await home.die_and_recover(claim.turn_id, world=a_world(revoked=["eve"]))

    assert verdict is not None
    assert verdict.rule == "policy-off"


async def test_a_question_holds_up_what_waits_only_until_it_is_answered(home: Home) -> None:
    """With `ask` a person decides first: a no lets the next message have its turn."""
    claim = await home.work_on("one")
    await home.say("two")
    await set_policy(home, RecoveryPolicy.ASK)
    verdict = await home.die_and_recover(claim.turn_id)

    assert verdict is not None
    assert verdict.rule == "policy-ask"
    await home.say("no")
    assert (await home.view((await home.claim()).turn_id)).request == "two"


async def test_a_released_turn_whose_person_moved_on_is_cleared_when_it_is_claimed(
    home: Home,
) -> None:
    claim = await home.work_on("one")
    await home.store.turns.release(claim)
    await set_policy(home, RecoveryPolicy.ASK)
    await home.say("two")

    assert await home.claims() == ()
    assert (await home.view(claim.turn_id)).state == "stopped"
    assert (await home.view((await home.claim()).turn_id)).request == "two"


# ── people and channels ─────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("began", [True, False], ids=["begun", "never-claimed"])
async def test_the_turn_of_a_person_who_is_no_longer_allowed_is_set_aside(
    home: Home, began: bool
) -> None:
    """S43: fail closed, whether a person had worked on it or not."""
    await home.say(person="eve")
    if began:
        claim = await home.claim()
        await home.reopen(crash=True, world=a_world(revoked=["eve"]))
        verdict = await home.recover(claim.turn_id)
        assert (verdict.kind, verdict.rule) == (VerdictKind.SUSPEND, "person-not-allowed")
    else:
        await home.reopen(crash=True, world=a_world(revoked=["eve"]))

    assert await home.claims() == ()
    (turn,) = await home.turns()
    assert turn.state == "suspended"
    await home.reopen(crash=True, world=a_world())
    assert (await home.recover(turn.turn_id)).kind is VerdictKind.RESUME
    await home.wait_until_due()
    assert (await home.claim()).turn_id == turn.turn_id


@pytest.mark.parametrize("began", [True, False], ids=["begun", "never-claimed"])
async def test_a_turn_without_a_channel_waits_for_it(home: Home, began: bool) -> None:
    """S40, S42: not lost, and not run for no one."""
    await home.say()
    if began:
        await home.claim()
    await home.reopen(crash=True, world=a_world(without=[WEB]))
    for turn_id in await home.store.turns.unowned(with_suspended=True):
        assert (await home.recover(turn_id)).rule == "channel-unknown"

    assert await home.claims() == ()
    (turn,) = await home.turns()
    assert turn.state == "suspended"
    await home.reopen(crash=True, world=a_world())
    unowned = await home.store.turns.unowned(with_suspended=True)
    assert unowned == (turn.turn_id,)
    await home.recover(turn.turn_id)
    await home.wait_until_due()
    assert (await home.claim()).turn_id == turn.turn_id


async def test_being_set_aside_is_no_death_and_coming_back_no_recovery(home: Home) -> None:
    """S28, S77: only lives that were resumed count."""
    claim = await home.work_on()
    await home.die_and_recover(claim.turn_id, world=a_world(without=[WEB]))
    await home.die_and_recover(claim.turn_id, world=a_world())

    turn = await home.view(claim.turn_id)
    assert (turn.state, turn.recoveries, turn.crash_streak) == ("queued", 0, 0)
    assert len(await home.notes(claim.turn_id)) == 1


async def test_a_turn_that_was_set_aside_is_as_old_as_its_last_sign_of_life(home: Home) -> None:
    """S48: not as old as its last step, and not as young as the day it was set aside."""
    claim = await home.work_on()
    home.clock.move(LONG)
    await home.store.workers.beat(home.worker.worker_id)
    home.clock.move(1_000)
    await home.die_and_recover(claim.turn_id, world=a_world(without=[WEB]))
    home.clock.move(1_000)
    await home.reopen(crash=True, world=a_world())

    facts = (await home.explain(claim.turn_id)).facts
    assert facts is not None
    assert facts.idle_ms == 2_000
    assert (await home.recover(claim.turn_id)).rule == "fresh"


async def test_other_chats_are_served_while_one_is_set_aside(home: Home) -> None:
    """S52."""
    await home.say(chat="ann", person="eve")
    await home.say(chat="bob", person="bob")
    await home.reopen(crash=True, world=a_world(revoked=["eve"]))

    claim = await home.claim()
    assert (await home.view(claim.turn_id)).route.chat == "bob"


async def test_a_turn_that_was_set_aside_is_judged_only_when_it_is_asked_for(home: Home) -> None:
    await home.say(person="eve")
    await home.reopen(world=a_world(revoked=["eve"]))
    assert await home.claims() == ()

    assert await home.store.turns.unowned(with_suspended=False) == ()
    assert len(await home.store.turns.unowned(with_suspended=True)) == 1


async def test_a_turn_that_was_set_aside_stays_as_it_is_while_nothing_changes(home: Home) -> None:
    """S6, S28: judging it again writes nothing."""
    await home.say(person="eve")
    await home.reopen(world=a_world(revoked=["eve"]))
    await home.claims()
    (turn,) = await home.turns()
    before = await home.everything()

    for _ in range(3):
        assert (await home.recover(turn.turn_id)).kind is VerdictKind.SUSPEND
    assert await home.everything() == before


async def test_a_turn_that_comes_back_too_late_asks(home: Home) -> None:
    claim = await home.work_on()
    await home.die_and_recover(claim.turn_id, world=a_world(without=[WEB]))
    home.clock.move(LONG)
    verdict = await home.die_and_recover(claim.turn_id, world=a_world())

    assert (verdict.kind, verdict.rule) == (VerdictKind.ASK_USER, "stale")


async def test_a_turn_that_comes_back_too_late_ends_where_no_person_can_be_asked(
    home: Home,
) -> None:
    await home.say(channel=HOOK)
    claim = await home.claim()
    await home.die_and_recover(claim.turn_id, world=a_world(without=[HOOK]))
    home.clock.move(LONG)
    await home.die_and_recover(claim.turn_id, world=a_world())

    assert (await home.view(claim.turn_id)).state == "failed"


async def test_an_answer_waits_for_its_channel(home: Home) -> None:
    """S147, S148: the knowledge is not thrown away."""
    claim = await home.work_on()
    await home.answer(claim, "forty-two")
    await home.reopen(world=a_world(without=[WEB]))
    assert (await home.recover(claim.turn_id)).kind is VerdictKind.DELIVER
    await home.reopen(world=a_world())

    (delivery,) = await home.deliver()
    assert delivery.text == "forty-two"


async def test_a_route_names_the_channel_even_when_it_is_gone(home: Home) -> None:
    await home.say()
    await home.reopen(world=a_world(without=[WEB, HOOK]))
    await home.stop()

    (due,) = await home.store.outbox.due(DeliveryId(0))
    assert due.route.channel == WEB


async def test_deliveries_do_not_wait_for_recovery(home: Home) -> None:
    """S52: an earlier answer goes out while a later turn of the same chat is being asked about."""
    await home.answer(await home.work_on("one"), "answer one")
    claim = await home.work_on("two")
    home.clock.move(LONG)
    await home.die_and_recover(claim.turn_id)

    delivery = await home.take_delivery()
    arrived = Settle(state=DeliveryState.DELIVERED, platform_id="p")
    await home.store.outbox.settle(delivery, home.worker.worker_id, arrived)
    assert delivery.text == "answer one"
    assert (await home.stop()).state is EntryState.HANDLED
