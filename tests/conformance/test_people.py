"""Strangers, codes and rights, as an enemy would try them: ids decide, and only what is stored."""

import pytest

from koboshi.domain.command import Command, CommandName
from koboshi.domain.ids import ChannelName
from koboshi.domain.outbox import Delivery, DeliveryState, Settle
from koboshi.domain.people import PairingLimits
from koboshi.domain.recovery import Policy, RecoveryPolicy
from koboshi.domain.route import Route
from koboshi.ports.store import Arrival
from koboshi.ports.wakeups import claim_topic
from tests.harness.backends import nth_code
from tests.harness.fake_time import DAY_MS, HOUR_MS
from tests.harness.homes import FRONT, WEB, Home, OpenHome, a_call, a_world


async def told(home: Home, chat: str) -> list[str]:
    """The open deliveries of a chat, oldest first; they all arrive."""
    session_id = await home.store.views.session_of(Route(channel=FRONT, chat=chat))
    words: list[str] = []
    if session_id is None:
        return words
    arrived = Settle(state=DeliveryState.DELIVERED, platform_id="p")
    while delivery := await home.store.outbox.claim(session_id, home.worker.worker_id):
        assert isinstance(delivery, Delivery)
        await home.store.outbox.settle(delivery, home.worker.worker_id, arrived)
        words.append(delivery.text)
    return words


def number_from(home: Home, statement: str) -> int:
    ((found,),) = home.sql(statement)
    assert isinstance(found, int)
    return found


def rows_in(home: Home, table: str) -> int:
    return number_from(home, f"SELECT count(*) FROM {table}")


async def let_in(home: Home, person: str, number: int = 1) -> None:
    await home.knock(person)
    assert await home.store.people.approve(nth_code(number))


# ── strangers ────────────────────────────────────────────────────────────────────────────────────


async def test_a_stranger_gets_one_code_and_nothing_done(home: Home) -> None:
    first = await home.knock("eve")
    second = await home.knock("eve", "are you there?")

    for receipt in (first, second):
        entry = await home.entry(receipt)
        assert (entry.kind, entry.reason, entry.session_id) == ("ignored", "not-allowed", None)
    (words,) = await told(home, "eve")
    assert nth_code(1) in words
    assert not await home.claims()


async def test_the_code_is_committed_with_the_message(home: Home) -> None:
    """S6: killed right after the message was stored, the next life owes the answer, once."""
    await home.knock("eve", key="k1")
    await home.reopen(crash=True)

    redelivered = await home.knock("eve", key="k1")

    assert redelivered.is_duplicate
    (words,) = await told(home, "eve")
    assert nth_code(1) in words
    assert await home.store.people.approve(nth_code(1))


async def test_no_one_gets_a_code_in_a_group(home: Home) -> None:
    await home.knock("eve", chat="group", is_private=False)

    assert await told(home, "group") == []
    assert await home.store.people.strangers(10) == ()


async def test_a_command_of_a_stranger_does_nothing(home: Home) -> None:
    """Also `/stop` in a chat of a person who is allowed: commands are looked at later."""
    await home.say("hello", chat="room", channel=FRONT)
    inbound = home.inbound("/stop", chat="room", person="eve", channel=FRONT)
    command = Command(name=CommandName.STOP, said="/stop", argument="")

    (receipt,) = await home.accept(Arrival(inbound=inbound, command=command))

    assert (await home.entry(receipt)).reason == "not-allowed"
    assert [turn.state for turn in await home.turns("room", FRONT)] == ["queued"]


async def test_a_code_said_in_a_chat_lets_no_person_in(home: Home) -> None:
    await home.knock("eve")

    await home.knock("eve", nth_code(1))
    await home.knock("eve", f"/pairing approve {nth_code(1)}")
    await home.say(nth_code(1), chat="room", channel=FRONT)

    assert not await home.store.people.is_allowed(FRONT, "eve")


async def test_a_flood_of_strangers_is_bounded_in_rows_and_answers(open_home: OpenHome) -> None:
    """S165, S170: ten thousand strangers would not fill the disk, nor make us speak."""
    home = await open_home(pairing=PairingLimits(codes_max=3, ignored_max=20))
    before = rows_in(home, "journal")

    for number in range(200):
        await home.knock(f"eve-{number}", "x" * 50_000)

    assert rows_in(home, "inbox") == 20
    assert rows_in(home, "outbox") == rows_in(home, "sessions") == 3
    assert rows_in(home, "pairings") == 3
    assert rows_in(home, "journal") == before
    assert number_from(home, "SELECT sum(length(body)) FROM inbox") < 20 * 1_000


async def test_a_flood_without_words_is_bounded_as_well(open_home: OpenHome) -> None:
    """Issue 15, V8: stickers and service messages of strangers, each with a reason of its own."""
    home = await open_home(pairing=PairingLimits(codes_max=3, ignored_max=20))
    journal = rows_in(home, "journal")
    for number in range(60):
        inbound = home.inbound("", chat=f"c{number}", person=f"p{number}", channel=FRONT)
        await home.accept(
            Arrival(inbound=inbound, ignored=("blank", "service", "edit")[number % 3])
        )

    assert rows_in(home, "inbox") <= 21
    assert rows_in(home, "journal") == journal
    assert rows_in(home, "outbox") == 0


async def test_a_channel_has_room_for_strangers_again_when_codes_are_over(
    open_home: OpenHome,
) -> None:
    home = await open_home(pairing=PairingLimits(codes_max=1))
    await home.knock("eve")
    await home.knock("bob")
    assert await told(home, "bob") == []

    home.clock.move(HOUR_MS)
    await home.knock("bob")

    assert len(await told(home, "bob")) == 1
    assert [stranger.person for stranger in await home.store.people.strangers(10)] == ["bob"]


async def test_a_clock_that_was_set_back_does_not_keep_a_code_for_ever(home: Home) -> None:
    """S169"""
    await home.knock("eve")
    home.clock.move(-30 * DAY_MS)

    await home.knock("eve")

    assert len(await told(home, "eve")) == 2


async def test_an_id_that_is_no_id_gets_no_code(home: Home) -> None:
    await home.knock("e" * 10_000, chat="eve")

    assert await home.store.people.strangers(10) == ()


# ── codes ────────────────────────────────────────────────────────────────────────────────────────


async def test_one_who_was_given_the_code_is_let_in_and_told_once(home: Home) -> None:
    await home.knock("eve")
    code = nth_code(1).lower()

    person = await home.store.people.approve(f" {code[:4]}-{code[4:]} ")

    assert person is not None
    assert (person.channel, person.person) == (FRONT, "eve")
    assert await home.store.people.is_allowed(FRONT, "eve")
    assert [words.startswith("You have been let in") for words in await told(home, "eve")] == [
        False,
        True,
    ]
    await home.knock("eve", "hello")
    assert len(await home.claims()) == 1


async def test_a_right_survives_a_kill_and_belongs_to_one_channel(home: Home) -> None:
    await let_in(home, "eve")
    await home.reopen(crash=True)

    assert await home.store.people.is_allowed(FRONT, "eve")
    assert not await home.store.people.is_allowed(ChannelName("front:other"), "eve")


@pytest.mark.parametrize("verb", ["approve", "deny"])
async def test_a_code_can_be_used_once(home: Home, verb: str) -> None:
    await home.knock("eve")
    use = getattr(home.store.people, verb)

    assert await use(nth_code(1)) is not None

    assert await home.store.people.approve(nth_code(1)) is None
    assert await home.store.people.deny(nth_code(1)) is None
    assert await home.store.people.is_allowed(FRONT, "eve") == (verb == "approve")


async def test_a_code_that_is_over_lets_no_person_in(home: Home) -> None:
    await home.knock("eve")
    home.clock.move(HOUR_MS)

    assert await home.store.people.approve(nth_code(1)) is None
    assert await home.store.people.strangers(10) == ()


async def test_guessing_makes_every_code_worthless_before_one_fits(home: Home) -> None:
    """The guesses are counted in the store: a new process for each does not help."""
    await home.knock("eve")
    for number in range(10):
        assert await home.store.people.approve(f"GUESS{number:03}") is None
        if number == 4:
            await home.reopen(crash=True)

    assert await home.store.people.approve(nth_code(1)) is None
    home.clock.move(HOUR_MS)
    await home.knock("eve")
    assert await home.store.people.approve(nth_code(2))


@pytest.mark.parametrize("code", ["", "*", "%", "' OR 1=1 --", "\0", "A" * 60_000, "あ"])
async def test_nonsense_is_no_code(home: Home, code: str) -> None:
    await home.knock("eve")

    assert await home.store.people.approve(code) is None
    assert await home.store.people.deny(code) is None


async def test_who_was_denied_hears_nothing_for_a_day(home: Home) -> None:
    await home.knock("eve")
    await told(home, "eve")

    await home.store.people.deny(nth_code(1))
    for _ in range(3):
        home.clock.move(7 * HOUR_MS)
        await home.knock("eve")

    assert await told(home, "eve") == []
    home.clock.move(4 * HOUR_MS)
    await home.knock("eve")
    assert len(await told(home, "eve")) == 1


async def test_a_code_belongs_to_the_id_and_not_to_the_name(home: Home) -> None:
    """Two who look alike: the code of one lets that one in."""
    await home.knock("1", name="Ann")
    await home.knock("2", name="Ann")

    person = await home.store.people.approve(nth_code(2))

    assert person is not None
    assert person.person == "2"
    assert not await home.store.people.is_allowed(FRONT, "1")
    assert not await home.store.people.is_allowed(FRONT, "Ann")


@pytest.mark.parametrize("person", ["ANN", "ann ", " ann", "аnn", "ann\u200b", "*", "%"])
async def test_an_id_that_only_looks_like_an_allowed_one_is_another(
    home: Home, person: str
) -> None:
    """The fourth begins with a Cyrillic letter."""
    receipt = await home.knock(person, chat="x")

    assert (await home.entry(receipt)).reason == "not-allowed"


async def test_a_long_name_is_kept_short(home: Home) -> None:
    await home.knock("eve", name="n" * 10_000)

    (stranger,) = await home.store.people.strangers(10)
    assert len(stranger.name) == 64


# ── rights that are taken away ───────────────────────────────────────────────────────────────────


async def test_a_queued_turn_stops_with_the_right_and_goes_on_with_it(home: Home) -> None:
    """The right to resume is checked again: rule `person-not-allowed`."""
    await let_in(home, "eve")
    await home.knock("eve", "work")

    revoked = await home.store.people.revoke(FRONT, "eve")

    (turn,) = await home.turns("eve", FRONT)
    assert (revoked.turns_set_aside, turn.state) == (1, "suspended")
    assert not await home.claims()
    await home.reopen(crash=True)
    assert (await home.recover(turn.turn_id)).rule == "person-not-allowed"

    await let_in(home, "eve", 2)
    claim = await home.claim()
    assert claim.turn_id == turn.turn_id


async def test_a_running_turn_loses_its_claim_with_the_right(home: Home) -> None:
    await let_in(home, "eve")
    await home.knock("eve", "work")
    claim = await home.claim()
    (call_id,) = await home.propose(claim, a_call())
    await home.start(claim, call_id)

    revoked = await home.store.people.revoke(FRONT, "eve")

    assert revoked.turns_set_aside == 1
    assert not await home.store.turns.holds(claim)
    assert claim_topic(claim.turn_id) in home.wakeups.hints
    assert (await home.view(claim.turn_id)).state == "suspended"

    await let_in(home, "eve", 2)
    again = await home.claim()
    assert (again.turn_id, again.epoch) == (claim.turn_id, claim.epoch + 1)
    assert (await home.explain(again.turn_id)).turn.crash_streak == 0


async def test_a_question_has_no_one_to_answer_it_without_the_right(home: Home) -> None:
    await let_in(home, "eve")
    await home.knock("eve", "work")
    claim = await home.claim()
    await home.ask(claim)

    await home.store.people.revoke(FRONT, "eve")
    await home.knock("eve", "the first")

    assert (await home.view(claim.turn_id)).state == "waiting"
    await let_in(home, "eve", 2)
    await home.knock("eve", "the second")
    assert (await home.claim()).turn_id == claim.turn_id


async def test_a_message_that_waits_opens_nothing_that_runs_without_the_right(home: Home) -> None:
    await let_in(home, "eve")
    await home.knock("eve", "one")
    claim = await home.claim()
    await home.knock("eve", "two")
    await home.answer(claim, "done")

    await home.store.people.revoke(FRONT, "eve")

    assert not await home.claims()
    assert (await home.turns("eve", FRONT))[-1].state == "suspended"


async def test_who_lost_the_right_does_not_steer_the_turn_of_another(open_home: OpenHome) -> None:
    home = await open_home(a_world(busy="steer"))
    await let_in(home, "eve")
    await home.knock("ann", "work", chat="room", is_private=False)
    claim = await home.claim()
    await home.knock("eve", "do my bidding", chat="room", is_private=False)

    await home.store.people.revoke(FRONT, "eve")
    await home.step(claim)

    loaded = await home.store.turns.load(claim)
    assert "bidding" not in repr(loaded.steps)


async def test_who_is_in_the_configuration_keeps_the_right(open_home: OpenHome) -> None:
    home = await open_home(a_world(revoked=["ann"]))
    await let_in(home, "ann")
    await home.reopen(world=a_world())
    await home.knock("ann", "work")

    revoked = await home.store.people.revoke(FRONT, "ann")

    assert (revoked.was_paired, revoked.is_still_allowed, revoked.turns_set_aside) == (
        True,
        True,
        0,
    )
    assert await home.claims()


async def test_revoking_no_one_changes_nothing(home: Home) -> None:
    await let_in(home, "eve")
    revoked = await home.store.people.revoke(FRONT, "mallory")
    other = await home.store.people.revoke(WEB, "eve")

    assert (revoked.was_paired, revoked.is_still_allowed) == (False, False)
    assert not other.was_paired
    assert await home.store.people.is_allowed(FRONT, "eve")


async def test_a_turn_given_back_is_still_judged_by_the_other_rules(open_home: OpenHome) -> None:
    """Given back after hours, no one may want it any more: the person is asked."""
    home = await open_home(a_world(policy=Policy(recovery=RecoveryPolicy.AUTO)))
    await let_in(home, "eve")
    await home.knock("eve", "work")
    claim = await home.claim()
    await home.store.people.revoke(FRONT, "eve")
    home.clock.move(2 * HOUR_MS)

    await let_in(home, "eve", 2)

    lines = await home.lines(claim.turn_id)
    assert (lines[-1].after, lines[-1].rule) == ("waiting", "stale")


async def test_rights_are_in_the_journal(home: Home) -> None:
    await let_in(home, "eve")
    await home.store.people.revoke(FRONT, "eve")
    await let_in(home, "eve", 2)

    lines = home.sql("SELECT event, reason FROM journal WHERE subject = 'person' ORDER BY seq")
    assert lines == [(event, "front:main eve") for event in ("paired", "revoked", "paired")]
