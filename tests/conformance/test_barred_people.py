"""Issue 12, A3: a turn runs only while every sender of a message in it is allowed. People who are
allowed and wait behind such a turn are served at once, and the model is told what was set aside."""

import pytest

from koboshi.domain.command import (
    ActionStanding,
    Command,
    CommandName,
    OperatorAction,
    Response,
    Retry,
    Ruling,
    SessionFacts,
)
from koboshi.domain.inbox import EntryState
from koboshi.domain.notes import ENDED
from koboshi.domain.outbox import Delivery
from koboshi.domain.recovery import BootConfig, Policy
from koboshi.domain.transcript import Choice, Effect, Message, Need
from koboshi.domain.turn import Claim
from koboshi.ports.store import Arrival, Respond
from koboshi.ports.wakeups import claim_topic
from tests.harness.group import ROOM, let_in, revoke, writes
from tests.harness.homes import FRONT, Home, OpenHome, a_call, a_world

BREAKER = a_world(policy=Policy(deaths_max=100, has_breaker=True))


async def fate(home: Home) -> tuple[str, str, str | None]:
    """What became of the first turn of the group: state, request, rule."""
    turn = (await home.turns(ROOM, FRONT))[0]
    moves = [line for line in await home.lines(turn.turn_id) if line.subject == "turn"]
    return turn.state, turn.request, moves[-1].rule


async def serves_ann(home: Home, request: str = "and me?") -> Claim:
    """The one turn that can be claimed is ann's, and it is shown what was set aside."""
    claim = await home.claim()
    assert (await home.view(claim.turn_id)).request == request
    loaded = await home.store.turns.load(claim)
    assert [step.body.sender for step in loaded.steps if isinstance(step.body, Message)] == ["ann"]
    return claim


async def is_told_of(home: Home, claim: Claim, request: str) -> bool:
    loaded = await home.store.turns.load(claim)
    last = loaded.context[-1].body
    return getattr(last, "cause", "") == ENDED and f"«{request}»" in last.text


async def running(home: Home) -> Claim:
    """Eve's turn, with a command under way."""
    await let_in(home)
    await writes(home, "eve", "work")
    claim = await home.claim()
    (call_id,) = await home.propose(claim, a_call("terminal", effect=Effect.RESUMABLE))
    await home.start(claim, call_id)
    await home.store.processes.begin(
        claim, call_id, command="make", workdir="/", is_foreground=True
    )
    return claim


# ── a message waits behind it ────────────────────────────────────────────────────────────────────


async def test_who_waits_behind_a_running_turn_is_served_when_the_right_is_taken(
    home: Home,
) -> None:
    claim = await running(home)
    await writes(home, "ann", "and me?")

    assert await revoke(home) == 1

    assert not await home.store.turns.holds(claim)
    assert claim_topic(claim.turn_id) in home.wakeups.hints
    assert await fate(home) == ("stopped", "work", "not-allowed-behind")
    (process,) = await home.store.processes.alive()
    assert process.is_end_asked
    anns = await serves_ann(home)
    assert await is_told_of(home, anns, "work")


async def test_who_waits_behind_a_queued_turn_is_served(home: Home) -> None:
    await let_in(home)
    await writes(home, "eve", "work")
    await writes(home, "ann", "and me?")

    assert await revoke(home) == 1

    anns = await serves_ann(home)
    assert await is_told_of(home, anns, "work")


async def test_who_waits_behind_a_question_is_served(open_home: OpenHome) -> None:
    """Written before the question, it never was its answer."""
    home = await open_home()
    await let_in(home)
    await writes(home, "eve", "work")
    claim = await home.claim()
    await writes(home, "ann", "and me?")
    await home.ask(claim)

    assert await revoke(home) == 1

    anns = await serves_ann(home)
    assert await is_told_of(home, anns, "work")


async def test_who_waits_behind_a_turn_that_the_boot_breaker_holds_is_served(home: Home) -> None:
    """The breaker is no reason to wait for a person who is not allowed."""
    await let_in(home)
    await writes(home, "eve", "work")
    claim = await home.claim()
    await writes(home, "ann", "and me?")
    for _ in range(4):
        await home.step(claim)
        claim = await home.resume(claim.turn_id)
    await home.step(claim)
    verdict = await home.die_and_recover(claim.turn_id, world=BREAKER)
    assert verdict.rule == "boot-breaker"

    assert await revoke(home) == 1

    assert await fate(home) == ("stopped", "work", "not-allowed-behind")
    anns = await serves_ann(home)
    assert await is_told_of(home, anns, "work")


async def test_who_writes_after_the_right_was_taken_is_served(home: Home) -> None:
    """Red before: eve's turn went on, and its command ran."""
    claim = await running(home)
    assert await revoke(home) == 1
    assert (await home.view(claim.turn_id)).state == "suspended"

    receipt = await writes(home, "ann", "and me?")

    assert receipt.state is EntryState.ATTACHED
    assert await fate(home) == ("stopped", "work", "not-allowed-behind")
    anns = await serves_ann(home)
    assert await is_told_of(home, anns, "work")


async def test_who_answers_the_question_of_such_a_turn_opens_a_turn_of_their_own(
    home: Home,
) -> None:
    await let_in(home)
    await writes(home, "eve", "work")
    claim = await home.claim()
    await home.ask(claim, need=Need.APPROVAL)
    assert await revoke(home) == 0
    assert (await home.view(claim.turn_id)).state == "waiting"

    await writes(home, "ann", "yes")

    assert await fate(home) == ("stopped", "work", "not-allowed-behind")
    anns = await serves_ann(home, "yes")
    assert await is_told_of(home, anns, "work")
    owed = await home.deliveries(claim.turn_id)
    assert [delivery.state for delivery in owed] == ["abandoned"], "the question is not asked"


async def test_a_button_of_such_a_question_is_answered_and_allows_nothing(home: Home) -> None:
    await let_in(home)
    await writes(home, "eve", "work")
    claim = await home.claim()
    await home.ask(claim, need=Need.APPROVAL)
    await revoke(home)

    receipt = await home.say(
        "yes", person="ann", chat=ROOM, channel=FRONT, question=1, choice="yes"
    )

    assert receipt.state is EntryState.DROPPED
    assert not await home.claims()
    assert (await home.view(claim.turn_id)).state == "waiting"


@pytest.mark.parametrize("choice", ["yes", "no"])
async def test_a_choice_is_no_message_that_waits_so_the_turn_keeps_its_question(
    home: Home, choice: str
) -> None:
    """Red before: the press ended the turn, no one heard that, and the person who pressed was told
    that they came too late."""
    await let_in(home)
    await writes(home, "eve", "work")
    claim = await home.claim()
    offered = (Choice(choice_id="yes", label="Yes"), Choice(choice_id="no", label="No"))
    await home.ask(claim, choices=offered)
    (asked,) = await home.deliver(ROOM, FRONT)
    await revoke(home)

    pressed = await home.say(
        choice, person="ann", chat=ROOM, channel=FRONT, question=asked.question, choice=choice
    )

    assert (await home.entry(pressed)).reason == "person-not-allowed"
    assert (await home.view(claim.turn_id)).state == "waiting"
    (told,) = await home.deliver(ROOM, FRONT)
    assert told.text.startswith("I do not go on with «work»: a person who wrote in it may not")
    await let_in(home, "eve", 2)
    await home.say(
        choice, person="eve", chat=ROOM, channel=FRONT, question=asked.question, choice=choice
    )
    assert (await home.claim()).turn_id == claim.turn_id


# ── several people in one turn ───────────────────────────────────────────────────────────────────


async def steered(open_home: OpenHome, first: str, second: str) -> tuple[Home, Claim]:
    """A turn of the first person that the second one has steered."""
    home = await open_home(a_world(busy="steer"))
    await let_in(home)
    await writes(home, first, "work")
    claim = await home.claim()
    await writes(home, second, "and more")
    await home.step(claim)
    return home, claim


@pytest.mark.parametrize("first,second", [("eve", "ann"), ("ann", "eve")])
async def test_a_turn_stops_if_one_of_its_people_loses_the_right(
    open_home: OpenHome, first: str, second: str
) -> None:
    """Also the one who wrote first, and is not the person of the turn any more."""
    home, claim = await steered(open_home, first, second)

    assert await revoke(home) == 1

    assert not await home.store.turns.holds(claim)
    assert (await home.view(claim.turn_id)).state == "suspended"
    session_id = await home.session_id(ROOM, FRONT)
    told = await home.store.outbox.claim(session_id, home.worker.worker_id)
    assert isinstance(told, Delivery)
    assert "«work» aside" in told.text, "ann hears that she waits in vain"
    await writes(home, "ann", "and me?")
    anns = await serves_ann(home)
    loaded = await home.store.turns.load(anns)
    note = loaded.context[-1].body.text
    assert "work" in note
    assert "and more" in note


@pytest.mark.parametrize("first,second", [("eve", "ann"), ("ann", "eve")])
async def test_a_turn_with_several_people_goes_on_when_all_are_allowed_again(
    open_home: OpenHome, first: str, second: str
) -> None:
    home, claim = await steered(open_home, first, second)
    await revoke(home)

    await let_in(home, "eve", 2)

    again = await home.claim()
    assert again.turn_id == claim.turn_id


async def test_of_two_who_lost_the_right_one_is_not_enough(open_home: OpenHome) -> None:
    home = await open_home(a_world(busy="steer"))
    await let_in(home, "eve", 1)
    await let_in(home, "mia", 2)
    await writes(home, "eve", "work")
    claim = await home.claim()
    await writes(home, "mia", "and more")
    await home.step(claim)
    await revoke(home, "eve")
    await revoke(home, "mia")

    await let_in(home, "eve", 3)
    assert not await home.claims()
    await let_in(home, "mia", 4)

    assert (await home.claim()).turn_id == claim.turn_id


async def test_a_barred_steering_message_neither_joins_nor_holds_up(open_home: OpenHome) -> None:
    home = await open_home(a_world(busy="steer"))
    await let_in(home)
    await writes(home, "ann", "work")
    claim = await home.claim()
    await writes(home, "eve", "do my bidding")
    await writes(home, "ann", "and me?")
    assert await revoke(home) == 0

    await home.step(claim)
    steps = (await home.store.turns.load(claim)).steps
    said = [step.body.text for step in steps if isinstance(step.body, Message)]
    assert said == ["work", "and me?"]
    await home.answer(claim)

    assert not await home.claims()
    await writes(home, "ann", "still there?")
    await serves_ann(home, "still there?")


async def test_messages_of_others_come_before_a_barred_one(home: Home) -> None:
    """It stays where it is, and has its turn if the right comes back."""
    await let_in(home)
    await writes(home, "ann", "work")
    claim = await home.claim()
    barred = await writes(home, "eve", "mine")
    await writes(home, "ann", "and me?")
    await revoke(home)
    await home.answer(claim)

    anns = await serves_ann(home)
    assert (await home.entry(barred)).state == "waiting"
    await let_in(home, "eve", 2)
    await home.answer(anns)
    assert (await home.view((await home.claim()).turn_id)).request == "mine"


# ── other states, and other ways in ──────────────────────────────────────────────────────────────


async def test_an_answer_is_delivered_and_holds_up_nothing(home: Home) -> None:
    await let_in(home)
    await writes(home, "eve", "work")
    claim = await home.claim()
    await home.answer(claim, "done")

    assert await revoke(home) == 0

    assert (await home.view(claim.turn_id)).state == "answered"
    await writes(home, "ann", "and me?")
    await serves_ann(home)


async def test_a_turn_set_aside_for_another_reason_is_passed_by(open_home: OpenHome) -> None:
    home = await open_home()
    claim = await running(home)
    await home.die_and_recover(claim.turn_id, world=a_world(without=[FRONT]))
    await home.reopen(world=a_world())
    assert await revoke(home) in (0, 1)

    await writes(home, "ann", "and me?")

    await serves_ann(home)


def without_ann() -> BootConfig:
    return a_world(revoked=["ann"])


@pytest.mark.parametrize("state", ["queued", "released", "running", "waiting"])
async def test_a_changed_list_is_heeded_at_the_next_start(home: Home, state: str) -> None:
    """Also where no one would look at the turn: it is not due, or it waits for a person."""
    await let_in(home)
    await writes(home, "ann", "work")
    if state != "queued":
        claim = await home.claim()
        await writes(home, "eve", "and me?")
        if state == "released":
            await home.store.turns.postpone(claim, 60_000, "busy")
        if state == "waiting":
            await home.ask(claim)
    else:
        await writes(home, "eve", "and me?")
    await home.reopen(crash=True, world=without_ann())

    for turn_id in await home.store.turns.unowned(with_suspended=True):
        await home.store.turns.recover(turn_id)

    assert await fate(home) == ("stopped", "work", "not-allowed-behind")
    claim = await home.claim()
    assert (await home.view(claim.turn_id)).request == "and me?"


async def test_a_list_that_is_changed_back_brings_back_what_was_set_aside(home: Home) -> None:
    await writes(home, "ann", "work")
    claim = await home.claim()
    verdict = await home.die_and_recover(claim.turn_id, world=without_ann())
    assert verdict.rule == "person-not-allowed"

    await home.die_and_recover(claim.turn_id, world=a_world())
    await home.wait_until_due()

    assert (await home.claim()).turn_id == claim.turn_id


async def test_a_channel_that_is_gone_for_a_while_clears_nothing(home: Home) -> None:
    """With the channel its list of people is gone, too: who was let in by a code still is."""
    await let_in(home)
    await writes(home, "ann", "work")
    claim = await home.claim()
    await writes(home, "eve", "and me?")
    gone = a_world(without=[FRONT], revoked=["ann"])

    assert (await home.die_and_recover(claim.turn_id, world=gone)).rule == "person-not-allowed"

    assert (await home.view(claim.turn_id)).state == "suspended"


# ── wills and words ──────────────────────────────────────────────────────────────────────────────


async def commands(home: Home, name: CommandName, respond: Respond) -> None:
    inbound = home.inbound(f"/{name}", chat=ROOM, person="ann", channel=FRONT)
    command = Command(name=name, said=f"/{name}", argument="")
    await home.accept(Arrival(inbound=inbound, command=command), respond=respond)


async def test_no_one_resumes_or_approves_for_a_barred_person(home: Home) -> None:
    """The facts of a command say so, so that its reply is true."""
    await let_in(home)
    await writes(home, "eve", "work")
    claim = await home.claim()
    await home.ask(claim, need=Need.APPROVAL)
    seen: list[bool] = []

    def respond(_command: Command, facts: SessionFacts) -> Response:
        assert facts.open_turn is not None
        seen.append(facts.open_turn.is_allowed)
        return Response(reply="no")

    await commands(home, CommandName.APPROVE, respond)
    await revoke(home)
    await commands(home, CommandName.APPROVE, respond)

    assert seen == [True, False]


async def test_an_approval_that_came_through_all_the_same_runs_nothing(home: Home) -> None:
    """The claim decides, whatever a command was allowed to do."""
    await let_in(home)
    await writes(home, "eve", "work")
    claim = await home.claim()
    await home.ask(claim, need=Need.APPROVAL)
    await revoke(home)

    await commands(
        home, CommandName.APPROVE, lambda *_: Response(reply="", ruling=Ruling(is_yes=True))
    )

    assert not await home.claims()
    assert (await home.view(claim.turn_id)).state == "suspended"


async def test_the_operator_does_not_resume_it_either(open_home: OpenHome) -> None:
    home, claim = await steered(open_home, "eve", "ann")
    await revoke(home)

    standing = await home.store.turns.will(claim.turn_id, OperatorAction.RESUME)

    assert standing is ActionStanding.NOT_SERVED


async def test_asking_again_leaves_out_the_words_of_a_barred_person(open_home: OpenHome) -> None:
    home, claim = await steered(open_home, "eve", "ann")
    await home.store.turns.fail(claim, "it broke")
    await revoke(home)

    await commands(
        home,
        CommandName.RETRY,
        lambda *_: Response(reply="", retry=Retry(turn_id=claim.turn_id)),
    )

    steps = (await home.store.turns.load(await home.claim())).steps
    assert [step.body.text for step in steps if isinstance(step.body, Message)] == ["and more"]
