"""`/approve` and `/deny` answer an open approval question, as a literal yes or no does."""

import pytest
from anyio import create_task_group

from koboshi.commands.parse import parse_command
from koboshi.commands.run import respond
from koboshi.domain.action import RunCalls, next_action
from koboshi.domain.errors import Fenced
from koboshi.domain.ids import CallId, Seq
from koboshi.domain.inbox import EntryState, Words
from koboshi.domain.transcript import Need, ResultStatus
from koboshi.domain.turn import Claim
from koboshi.ports.channel import Inbound, Receipt
from koboshi.ports.store import Arrival
from koboshi.ports.wakeups import TURNS
from tests.harness.fake_time import DAY_MS, HOUR_MS
from tests.harness.homes import Home


async def tell(
    home: Home,
    text: str,
    *,
    person: str = "ann",
    chat: str = "ann",
    key: str | None = None,
    question: int | None = None,
) -> Receipt:
    """A command, with the words that the gateway really has for it."""
    inbound = home.inbound(text, chat=chat, person=person, key=key)
    words = Words(
        text=text,
        sent_ms=0,
        anchor=inbound.external_id,
        question=None if question is None else Seq(question),
    )
    bound = Inbound(
        route=inbound.route, external_id=inbound.external_id, sender=person, words=words
    )
    arrival = Arrival(inbound=bound, command=parse_command(text))
    (receipt,) = await home.accept(arrival, respond=respond)
    return receipt


async def gated(home: Home) -> tuple[Claim, CallId]:
    """A turn that waits for an approval; the question has been delivered."""
    claim = await home.work_on("clean up")
    call_id = await home.ask(claim, need=Need.APPROVAL)
    await home.deliver()
    return claim, call_id


async def last_words(home: Home, chat: str = "ann") -> str:
    return (await home.deliver(chat))[-1].text


async def test_approve_lets_the_call_run_and_names_who_said_it(home: Home) -> None:
    _, call_id = await gated(home)
    await home.reopen(crash=True)
    home.wakeups.hints.clear()
    receipt = await tell(home, "/approve", person="bob")
    assert receipt.state is EntryState.HANDLED
    assert TURNS in home.wakeups.hints
    await home.reopen(crash=True)
    claim = await home.claim()

    loaded = await home.store.turns.load(claim)
    (record,) = loaded.calls
    assert record.approved_by == "bob"
    assert isinstance(next_action(loaded.steps, loaded.calls), RunCalls)
    assert await last_words(home) == "Approved: «which one?»."
    await home.start(claim, call_id)


@pytest.mark.parametrize(
    "said, reason",
    [("/deny", "the person said no"), ("/deny only the old ones", "only the old ones")],
)
async def test_deny_is_a_no_and_carries_what_else_was_said(
    home: Home, said: str, reason: str
) -> None:
    _, call_id = await gated(home)
    await tell(home, said)
    claim = await home.claim()

    result = (await home.results(claim.turn_id))[call_id]
    assert result.status is ResultStatus.ERROR
    assert "denied" in result.text
    assert reason in result.text
    assert await last_words(home) == "Denied: «which one?»."
    with pytest.raises(Fenced):
        await home.start(claim, call_id)


@pytest.mark.parametrize("words, command", [("yes", "/approve"), ("no", "/deny")])
async def test_the_command_leaves_the_turn_as_the_word_does(
    home: Home, words: str, command: str
) -> None:
    """The same state, the same steps, the same person and anchor; only the inbox row differs."""
    left: list[tuple[object, ...]] = []
    for chat, said in (("ann", words), ("bob", command)):
        claim = await home.work_on("clean up", chat=chat)
        await home.ask(claim, need=Need.APPROVAL)
        if said.startswith("/"):
            await tell(home, said, chat=chat, person="cat")
        else:
            await home.say(said, chat=chat, person="cat")
        turn = await home.view(claim.turn_id)
        results = [result.text for result in (await home.results(claim.turn_id)).values()]
        claimed = await home.claim()
        (record,) = (await home.store.turns.load(claimed)).calls
        ruling = (record.approved_by, record.approved_ms, record.skipped_ms)
        left.append((turn.state, turn.event, results, ruling))
        await home.answer(claimed)

    assert left[0] == left[1]


async def test_a_redelivered_command_changes_nothing(home: Home) -> None:
    claim, _ = await gated(home)
    await tell(home, "/deny", key="once")
    again = await home.ask(await home.claim(), need=Need.APPROVAL)
    before = await home.everything()

    receipt = await tell(home, "/approve", key="once")

    assert receipt.is_duplicate
    assert await home.everything() == before
    assert (await home.view(claim.turn_id)).state == "waiting"
    assert again not in await home.results(claim.turn_id)


async def test_twice_is_once_and_the_second_one_is_told(home: Home) -> None:
    await gated(home)
    await tell(home, "/approve")
    await tell(home, "/deny")

    assert "nothing to approve or deny" in await last_words(home)
    (record,) = (await home.store.turns.load(await home.claim())).calls
    assert (record.approved_by, record.skipped_ms) == ("ann", None)


async def test_of_ten_at_the_same_moment_one_decides(home: Home) -> None:
    await gated(home)

    async def one(number: int) -> None:
        await tell(home, "/approve" if number % 2 else "/deny", person=f"person {number}")

    async with create_task_group() as tasks:
        for number in range(10):
            tasks.start_soon(one, number)

    replies = [delivery.text for delivery in await home.deliver()]
    assert sum(text.startswith(("Approved", "Denied")) for text in replies) == 1
    assert sum("nothing to approve" in text for text in replies) == 9


async def test_with_nothing_open_it_says_so(home: Home) -> None:
    await tell(home, "/approve")

    assert "There is nothing to approve or deny" in await last_words(home)


async def test_a_question_of_the_model_stays_open(home: Home) -> None:
    claim = await home.work_on()
    await home.ask(claim)
    await tell(home, "/approve")

    assert "Just write your answer" in await last_words(home)
    assert (await home.view(claim.turn_id)).state == "waiting"


async def test_a_question_of_the_gateway_stays_open(home: Home) -> None:
    claim = await home.work_on("book a flight")
    home.clock.move(2 * HOUR_MS)
    await home.die_and_recover(claim.turn_id)
    await tell(home, "/approve")

    assert "write yes or no" in await last_words(home)
    assert (await home.view(claim.turn_id)).state == "waiting"


@pytest.mark.parametrize("is_busy", [False, True], ids=["idle", "the next turn is open"])
async def test_after_the_question_expired_it_says_so(home: Home, is_busy: bool) -> None:
    claim = await home.work_on("clean up")
    if is_busy:
        await home.say("and then this")
    call_id = await home.ask(claim, need=Need.APPROVAL)
    home.clock.move(DAY_MS)
    await home.store.turns.expire(10)
    await tell(home, "/approve")

    assert "«which one?» has expired" in await last_words(home)
    assert (await home.results(claim.turn_id))[call_id].status is ResultStatus.STOPPED


async def test_a_question_of_the_model_that_expired_is_no_approval(home: Home) -> None:
    await home.ask(await home.work_on())
    home.clock.move(DAY_MS)
    await home.store.turns.expire(10)
    await tell(home, "/approve")

    assert "nothing to approve" in await last_words(home)


async def test_one_that_is_bound_to_another_question_does_nothing(home: Home) -> None:
    claim = await home.work_on("clean up")
    await home.ask(claim, need=Need.APPROVAL)
    (asked,) = await home.deliver()
    assert asked.question is not None
    await tell(home, "/approve", question=asked.question + 1)

    assert "That question is closed" in await last_words(home)
    assert (await home.view(claim.turn_id)).state == "waiting"
    await tell(home, "/approve", question=asked.question)
    assert (await home.view(claim.turn_id)).state == "queued"


async def test_another_chat_cannot_approve(home: Home) -> None:
    claim, _ = await gated(home)
    await tell(home, "/approve", chat="bob")

    assert "nothing to approve" in await last_words(home, "bob")
    assert (await home.view(claim.turn_id)).state == "waiting"
