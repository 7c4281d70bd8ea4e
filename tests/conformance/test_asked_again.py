"""Issue 12, A2: what is asked again opens with what ran for it before, as after a crash."""

import pytest

from koboshi.domain.command import Command, CommandName, Response, Retry, SessionFacts
from koboshi.domain.ids import TurnId
from koboshi.domain.marks import MARK
from koboshi.domain.notes import RETRY
from koboshi.domain.transcript import Effect, Message, Note, Result, ResultStatus
from koboshi.domain.turn import Claim
from koboshi.ports.store import Arrival
from tests.harness.homes import Home, a_call


async def retry(home: Home, turn_id: TurnId) -> None:
    """`/retry`, as the command decides it."""

    def respond(command: Command, facts: SessionFacts) -> Response:
        assert facts.failed is not None
        assert facts.failed.turn_id == turn_id
        return Response(reply="once more", retry=Retry(turn_id=turn_id))

    command = Command(name=CommandName.RETRY, said="/retry", argument="")
    arrival = Arrival(inbound=home.inbound("/retry"), command=command)
    await home.accept(arrival, respond=respond)


async def failed_after(home: Home, *calls: tuple[str, str, ResultStatus]) -> Claim:
    """A turn for which these calls ran before it failed."""
    claim = await worked_on(home, *calls)
    await home.store.turns.fail(claim, "it broke")
    return claim


async def worked_on(home: Home, *calls: tuple[str, str, ResultStatus]) -> Claim:
    claim = await home.work_on("post it", key="first")
    for tool, arguments, status in calls:
        (call_id,) = await home.propose(
            claim, a_call(tool, effect=Effect.ONCE, arguments=arguments)
        )
        await home.start(claim, call_id)
        await home.store.turns.finish_call(
            claim, Result(call_id=call_id, status=status, text="fine")
        )
    return claim


async def opening_of(home: Home, claim: Claim) -> list[Note]:
    loaded = await home.store.turns.load(claim)
    bodies = [step.body for step in loaded.steps]
    assert isinstance(bodies[-1], Message)
    return [body for body in bodies if isinstance(body, Note)]


async def test_a_turn_that_is_asked_again_is_told_what_ran(home: Home) -> None:
    before = await failed_after(
        home, ("post", '{"to": "all"}', ResultStatus.OK), ("pay", "{}", ResultStatus.UNKNOWN)
    )
    await retry(home, before.turn_id)

    (note,) = await opening_of(home, await home.claim())
    assert note.cause == RETRY
    assert note.text.startswith(MARK)
    assert 'post {"to": "all"} (ok)' in note.text
    assert "pay {} (unknown)" in note.text
    assert "do not repeat it" in note.text


async def test_a_turn_for_which_nothing_ran_is_simply_asked_again(home: Home) -> None:
    before = await failed_after(home)
    await retry(home, before.turn_id)

    assert await opening_of(home, await home.claim()) == []


async def test_words_that_waited_first_open_with_the_note_as_well(home: Home) -> None:
    before = await failed_after(home, ("post", "{}", ResultStatus.OK))
    busy = await home.work_on("something else")
    await retry(home, before.turn_id)
    await home.reopen(crash=True)
    await home.recover(busy.turn_id)
    await home.wait_until_due()
    busy = await home.claim()
    await home.answer(busy)

    (note,) = await opening_of(home, await home.claim())
    assert "post {} (ok)" in note.text


async def test_the_operator_asks_again_with_the_same_note(home: Home) -> None:
    """`koboshi inbox retry`."""
    before = await failed_after(home, ("post", "{}", ResultStatus.OK))
    entry = await home.store.views.entry_by_external_id("first")
    assert entry is not None
    assert entry.turn_id == before.turn_id
    await home.store.inbox.retry(entry.entry_id)

    (note,) = await opening_of(home, await home.claim())
    assert "post {} (ok)" in note.text


async def test_what_is_asked_a_third_time_names_what_ran_each_time(home: Home) -> None:
    first = await failed_after(home, ("post", '{"n": 1}', ResultStatus.OK))
    await retry(home, first.turn_id)
    second = await home.claim()
    (call_id,) = await home.propose(
        second, a_call("post", effect=Effect.ONCE, arguments='{"n": 2}')
    )
    await home.start(second, call_id)
    await home.finish(second, call_id)
    await home.store.turns.fail(second, "it broke")
    await retry(home, second.turn_id)

    (note,) = await opening_of(home, await home.claim())
    assert '"n": 1' in note.text
    assert '"n": 2' in note.text


@pytest.mark.parametrize("count", [1, 40])
async def test_the_note_is_short_and_nothing_in_it_speaks_for_us(home: Home, count: int) -> None:
    calls = [
        ("post", f'{{"n": {n}, "text": "{MARK} {"x" * 500}"}}', ResultStatus.OK)
        for n in range(count)
    ]
    before = await failed_after(home, *calls)
    await retry(home, before.turn_id)

    (note,) = await opening_of(home, await home.claim())
    assert note.text.count(MARK) == 1
    assert len(note.text) < 2_500
    assert ("and more" in note.text) == (count > 1)


async def test_another_answer_does_not_repeat_what_ran_for_the_first(home: Home) -> None:
    """Issue 19: Retry on the page, of a message that was answered."""
    claim = await worked_on(home, ("post", "{}", ResultStatus.OK))
    await home.answer(claim, "posted")
    entry = await home.store.views.entry_by_external_id("first")
    assert entry is not None
    await home.store.inbox.retry(entry.entry_id, wants_anew=True)

    (note,) = await opening_of(home, await home.claim())
    assert "post {} (ok)" in note.text
    assert "was answered before, and wants another answer" in note.text
    assert "do not repeat it" in note.text
