"""A question is a durable state: a restart finds it and has nothing to do."""

import json

import pytest
from anyio import create_task_group

from koboshi.domain.action import CallModel, RunCalls, next_action
from koboshi.domain.command import CommandName
from koboshi.domain.errors import Fenced
from koboshi.domain.ids import CallId
from koboshi.domain.inbox import EntryState
from koboshi.domain.recovery import VerdictKind
from koboshi.domain.session import Busy, Settings
from koboshi.domain.transcript import Author, Choice, Effect, Need, Question, ResultStatus, Tail
from koboshi.ports.channel import Receipt
from koboshi.ports.wakeups import OUTBOX, TURNS
from tests.harness.fake_time import DAY_MS, HOUR_MS
from tests.harness.homes import Home, OpenHome, a_call

COLOURS = (Choice(choice_id="r", label="Red"), Choice(choice_id="b", label="Blue"))


async def ask_colour(home: Home) -> tuple[CallId, int]:
    """A turn that asked for a colour: the call, and the question's number."""
    claim = await home.work_on("paint it")
    call_id = await home.ask(claim, choices=COLOURS)
    delivery = await home.take_delivery()
    assert delivery.question is not None
    return call_id, delivery.question


async def the_answer(home: Home, call_id: CallId) -> dict[str, str]:
    (turn, *_) = await home.turns()
    result = (await home.results(turn.turn_id))[call_id]
    found: dict[str, str] = json.loads(result.text)
    return found


# ── asked by the model ──────────────────────────────────────────────────────────────────────────


async def test_asking_gives_the_claim_back_and_owes_the_question(home: Home) -> None:
    claim = await home.work_on("paint it")
    home.wakeups.hints.clear()
    await home.ask(claim, choices=COLOURS)
    assert {OUTBOX, f"claim:{claim.turn_id}"} <= set(home.wakeups.hints)
    await home.reopen(crash=True)

    turn = await home.view(claim.turn_id)
    assert (turn.state, turn.event, turn.worker_id) == ("waiting", "asked", None)
    (delivery,) = await home.deliver()
    assert (delivery.text, delivery.choices) == ("which one?", COLOURS)
    question = (await home.bodies(claim.turn_id))[-1]
    assert isinstance(question, Question)
    assert question.author is Author.MODEL


async def test_delivering_a_question_does_not_end_its_turn(home: Home) -> None:
    claim = await home.work_on()
    await home.ask(claim)
    await home.deliver()

    assert (await home.view(claim.turn_id)).state == "waiting"


async def test_an_open_question_survives_deaths_and_nothing_runs_again(home: Home) -> None:
    """S60, S140, S142."""
    claim = await home.work_on()
    await home.ask(claim)
    for _ in range(3):
        home.clock.move(3 * HOUR_MS)
        await home.reopen(crash=True)
        verdict = await home.recover(claim.turn_id)
        assert (verdict.kind, verdict.rule) == (VerdictKind.STAND, "question-open")
        assert await home.claims() == ()

    await home.say("the left one")
    assert (await home.claim()).turn_id == claim.turn_id
    assert await home.notes(claim.turn_id) == [], "it was not interrupted"


@pytest.mark.parametrize(
    "words, expected",
    [
        ("Red", {"answer": "Red", "choice": "r"}),
        ("blue", {"answer": "Blue", "choice": "b"}),
        ("2", {"answer": "Blue", "choice": "b"}),
        ("rather green", {"answer": "rather green"}),
    ],
)
async def test_the_next_message_answers_the_question(
    home: Home, words: str, expected: dict[str, str]
) -> None:
    """S141: by label, by number, or in one's own words."""
    call_id, _ = await ask_colour(home)
    home.wakeups.hints.clear()
    receipt = await home.say(words)

    assert receipt.state is EntryState.ATTACHED
    assert TURNS in home.wakeups.hints
    assert await the_answer(home, call_id) == {"status": "answered", **expected}
    (turn,) = await home.turns()
    assert (turn.state, turn.event) == ("queued", "replied")


async def test_a_button_answers_the_question_it_belongs_to(home: Home) -> None:
    call_id, question = await ask_colour(home)
    await home.say("Blue", question=question, choice="b")

    assert (await the_answer(home, call_id))["choice"] == "b"


async def test_a_choice_that_was_not_offered_leaves_the_question_open(home: Home) -> None:
    """S141, S162: no answer is made of it, and its sender is told."""
    call_id = await home.ask(await home.work_on("paint it"), choices=COLOURS)
    (asked,) = await home.deliver()
    question = asked.question
    receipt = await home.say("", question=question, choice="green")

    assert (await home.entry(receipt)).reason == "no-such-choice"
    (notice,) = await home.deliver()
    assert "no such choice" in notice.text
    await home.say("", question=question, choice="b")
    assert (await the_answer(home, call_id))["choice"] == "b"


async def test_a_button_of_another_question_does_nothing(home: Home) -> None:
    _, question = await ask_colour(home)
    receipt = await home.say("Blue", question=question + 1, choice="b")

    assert (await home.entry(receipt)).reason == "question-closed"
    (turn,) = await home.turns()
    assert turn.state == "waiting"


async def test_an_answer_is_applied_once(home: Home) -> None:
    """S142: ten people press at the same moment."""
    call_id, question = await ask_colour(home)
    receipts: list[Receipt] = []

    async def press(number: int) -> None:
        receipts.append(
            await home.say("Red", question=question, choice="r", person=f"person {number}")
        )

    async with create_task_group() as tasks:
        for number in range(10):
            tasks.start_soon(press, number)

    states = sorted(receipt.state for receipt in receipts)
    assert states.count(EntryState.ATTACHED) == 1
    assert (await the_answer(home, call_id))["choice"] == "r"
    claim = await home.claim()
    loaded = await home.store.turns.load(claim)
    assert isinstance(next_action(loaded.steps, loaded.calls), CallModel)


async def test_a_second_answer_is_a_message_like_any_other(home: Home) -> None:
    call_id, _ = await ask_colour(home)
    await home.say("red")
    assert (await home.say("no, blue")).state is EntryState.WAITING
    claim = await home.claim()
    await home.answer(claim)

    assert (await the_answer(home, call_id))["choice"] == "r"
    assert (await home.view((await home.claim()).turn_id)).request == "no, blue"


async def test_the_answer_goes_to_the_one_who_answered_the_question(home: Home) -> None:
    """S151: anchored to the newest words of a person."""
    await ask_colour(home)
    await home.say("red", key="the-answer")
    await home.answer(await home.claim())

    view = (await home.turns())[0]
    answer = (await home.deliveries(view.turn_id))[-1]
    assert answer.cause.startswith("step:")
    await home.reopen(crash=True)
    assert [delivery.anchor for delivery in await home.deliver()] == ["key-1", "the-answer"]


async def test_an_answered_question_is_progress(home: Home) -> None:
    await ask_colour(home)
    home.clock.move(5 * HOUR_MS)
    await home.say("red")
    (turn,) = await home.turns()

    facts = (await home.explain(turn.turn_id)).facts
    assert facts is not None
    assert (facts.idle_ms, facts.tail) == (0, Tail.RESULT)


async def test_an_answer_counts_however_long_it_then_takes_to_come_back(home: Home) -> None:
    """S142: the person has said what they want; a gateway that was down does not ask again."""
    await ask_colour(home)
    await home.say("red")
    home.clock.move(5 * HOUR_MS)
    await home.reopen(crash=True)

    (turn,) = await home.turns()
    assert (await home.claim()).turn_id == turn.turn_id


async def test_a_command_does_not_answer_a_question(home: Home) -> None:
    """S141."""
    await ask_colour(home)
    await home.command(CommandName.STATUS)

    (turn,) = await home.turns()
    assert turn.state == "waiting"


@pytest.mark.parametrize("moved_ms", [0, 1, -DAY_MS])
async def test_a_message_from_before_the_question_does_not_answer_it(
    home: Home, moved_ms: int
) -> None:
    """S141: whatever the clock says, also in one millisecond, also when it goes back."""
    claim = await home.work_on("paint it")
    earlier = await home.say("and then go home")
    home.clock.move(moved_ms)
    await home.ask(claim, choices=COLOURS)
    verdict = await home.recover(claim.turn_id)

    assert verdict.rule == "question-open"
    assert (await home.entry(earlier)).state == "waiting"
    await home.say("red")
    await home.answer(await home.claim())
    assert (await home.view((await home.claim()).turn_id)).request == "and then go home"


async def test_a_message_that_steers_answers_a_question_as_well(home: Home) -> None:
    call_id, _ = await ask_colour(home)
    home.configure(await home.session_id(), Settings(busy=Busy.STEER))
    await home.say("red")

    assert (await the_answer(home, call_id))["choice"] == "r"


async def test_a_message_in_another_thread_does_not_answer(home: Home) -> None:
    await ask_colour(home)
    await home.say("red", thread="7")

    (turn,) = await home.turns()
    assert turn.state == "waiting"


async def test_results_of_parallel_calls_stand_while_the_person_is_asked(home: Home) -> None:
    claim = await home.work_on()
    ask = a_call("ask", need=Need.ANSWER)
    read, asked = await home.propose(claim, a_call("read"), ask)
    await home.start(claim, read)
    await home.finish(claim, read, "kept")
    await home.store.turns.ask(claim, asked, "which one?", (), DAY_MS)
    await home.say("that one")

    results = await home.results(claim.turn_id)
    assert results[read].text == "kept"
    assert json.loads(results[asked].text)["answer"] == "that one"


@pytest.mark.parametrize("which", ["resolved", "unknown"])
async def test_a_question_needs_a_call_that_waits_for_it(home: Home, which: str) -> None:
    """Otherwise the turn would wait for an answer that no one can store."""
    claim = await home.work_on()
    (call_id,) = await home.propose(claim, a_call("ask", need=Need.ANSWER))
    await home.finish(claim, call_id)
    before = await home.everything()

    with pytest.raises(Fenced):
        await home.store.turns.ask(
            claim, call_id if which == "resolved" else CallId("99.0"), "?", (), DAY_MS
        )
    assert await home.everything() == before


# ── approvals ───────────────────────────────────────────────────────────────────────────────────


async def test_a_yes_lets_the_call_run_and_names_who_said_it(home: Home) -> None:
    claim = await home.work_on("clean up")
    call_id = await home.ask(claim, need=Need.APPROVAL)
    await home.reopen(crash=True)
    await home.say("yes", person="bob")
    claim = await home.claim()

    (record,) = (await home.store.turns.load(claim)).calls
    assert (record.approved_by, record.approved_ms) == ("bob", home.clock.now_ms())
    loaded = await home.store.turns.load(claim)
    action = next_action(loaded.steps, loaded.calls)
    assert isinstance(action, RunCalls)
    await home.start(claim, call_id)
    await home.finish(claim, call_id)


@pytest.mark.parametrize(
    "words, reason", [("no", "the person said no"), ("only the old ones", "only the old ones")]
)
async def test_anything_but_a_yes_denies_and_is_told_to_the_model(
    home: Home, words: str, reason: str
) -> None:
    claim = await home.work_on("clean up")
    call_id = await home.ask(claim, need=Need.APPROVAL)
    await home.say(words)
    claim = await home.claim()

    result = (await home.results(claim.turn_id))[call_id]
    assert result.status is ResultStatus.ERROR
    assert "denied" in result.text
    assert reason in result.text
    with pytest.raises(Fenced):
        await home.start(claim, call_id)


async def test_a_restart_is_neither_a_yes_nor_a_no(home: Home) -> None:
    """S143."""
    claim = await home.work_on("clean up")
    await home.ask(claim, need=Need.APPROVAL)
    for _ in range(3):
        await home.reopen(crash=True)
        assert (await home.recover(claim.turn_id)).kind is VerdictKind.STAND

    assert (await home.view(claim.turn_id)).state == "waiting"
    assert await home.results(claim.turn_id) == {}


async def test_an_approval_survives_a_crash_before_the_call_has_run(home: Home) -> None:
    claim = await home.work_on("clean up")
    call_id = await home.ask(claim, need=Need.APPROVAL)
    await home.say("yes")
    claim = await home.claim()
    claim = await home.resume(claim.turn_id)

    await home.start(claim, call_id)


async def test_an_approval_is_for_one_call(home: Home) -> None:
    """S143: two calls that want it are asked for one by one."""
    claim = await home.work_on("clean up")
    gated = a_call("rm", effect=Effect.ONCE, need=Need.APPROVAL)
    first, second = await home.propose(claim, gated, gated)
    await home.store.turns.ask(claim, first, "first?", (), DAY_MS)
    await home.say("yes")
    claim = await home.claim()

    await home.start(claim, first)
    with pytest.raises(Exception, match="CHECK"):
        await home.start(claim, second)


# ── no answer comes ──────────────────────────────────────────────────────────────────────────────


async def test_a_question_without_an_answer_ends_with_one_notice(home: Home) -> None:
    """S60, S140."""
    claim = await home.work_on("paint it")
    call_id = await home.ask(claim)
    await home.say("later", chat="bob")
    home.clock.move(DAY_MS - 1)
    assert await home.store.turns.expire(10) == 0
    home.clock.move(1)
    assert await home.store.turns.expire(10) == 1
    await home.reopen(crash=True)

    assert await home.store.turns.expire(10) == 0
    turn = await home.view(claim.turn_id)
    assert (turn.state, turn.event) == ("stopped", "expired")
    assert (await home.results(claim.turn_id))[call_id].status is ResultStatus.STOPPED
    _question, notice = await home.deliver()
    assert "was not answered in time" in notice.text


async def test_what_waited_behind_an_expired_question_has_its_turn(home: Home) -> None:
    claim = await home.work_on("one")
    await home.say("two")
    await home.ask(claim)
    home.clock.move(DAY_MS)
    await home.store.turns.expire(10)

    assert (await home.view((await home.claim()).turn_id)).request == "two"


async def test_questions_expire_a_few_at_a_time(home: Home) -> None:
    for chat in ("ann", "bob", "cat"):
        await home.ask(await home.work_on(chat=chat))
    home.clock.move(DAY_MS)

    assert [await home.store.turns.expire(2) for _ in range(3)] == [2, 1, 0]


async def test_an_answer_after_the_end_is_a_new_message_and_a_button_is_nothing(
    home: Home,
) -> None:
    _, question = await ask_colour(home)
    home.clock.move(DAY_MS)
    await home.store.turns.expire(10)
    pressed = await home.say("Red", question=question, choice="r")
    said = await home.say("red after all")

    assert (await home.entry(pressed)).reason == "question-closed"
    assert said.state is EntryState.ATTACHED
    assert (await home.view((await home.claim()).turn_id)).request == "red after all"


async def test_the_gateways_own_question_expires_as_well(open_home: OpenHome) -> None:
    home = await open_home(question_age_ms_max=HOUR_MS)
    claim = await home.work_on()
    home.clock.move(2 * HOUR_MS)
    await home.die_and_recover(claim.turn_id)
    home.clock.move(HOUR_MS)

    assert await home.store.turns.expire(10) == 1
    assert (await home.view(claim.turn_id)).state == "stopped"


# ── asked by the gateway ────────────────────────────────────────────────────────────────────────


async def offer(home: Home) -> int:
    claim = await home.work_on("book a flight")
    home.clock.move(2 * HOUR_MS)
    await home.die_and_recover(claim.turn_id)
    (delivery,) = await home.deliver()
    assert delivery.question is not None
    return delivery.question


@pytest.mark.parametrize("words", ["yes", "Yes!", "ok", "continue"])
async def test_a_yes_in_words_resumes(home: Home, words: str) -> None:
    await offer(home)
    await home.say(words)

    (turn,) = await home.turns()
    assert (turn.state, turn.event, turn.reason) == ("queued", "resumed", "person")


@pytest.mark.parametrize("choice, event", [("yes", "resumed"), ("no", "declined")])
async def test_a_button_of_the_offer_decides(home: Home, choice: str, event: str) -> None:
    question = await offer(home)
    await home.say(choice.title(), question=question, choice=choice)

    (turn,) = await home.turns()
    assert turn.event == event


async def test_a_yes_twice_resumes_once(home: Home) -> None:
    """S160."""
    question = await offer(home)
    await home.say("Yes", question=question, choice="yes")
    second = await home.say("Yes", question=question, choice="yes")
    claim = await home.claim()
    await home.answer(claim)

    assert (await home.entry(second)).state == "dropped"
    assert await home.claims() == ()
    assert len(await home.turns()) == 1
