"""Ends of processes that come while a turn is open: the person hears each once, by the model or by
the gateway."""

from collections.abc import Awaitable, Callable

import pytest

from koboshi.domain.command import CommandName, OperatorAction
from koboshi.domain.files import OutFile
from koboshi.domain.process import Process
from koboshi.domain.recovery import Policy, RecoveryPolicy, VerdictKind
from koboshi.domain.transcript import Need, Reply
from koboshi.domain.turn import Claim, TurnState
from koboshi.domain.watch import Notify
from tests.harness.fake_time import DAY_MS, SECOND_MS
from tests.harness.homes import Home, OpenHome, a_call, a_world
from tests.harness.watched_processes import (
    EXIT,
    begin,
    end,
    heard_in,
    left_running,
    outdated,
    read_exit,
    reports,
    told,
)


async def noted(home: Home) -> tuple[Claim, Process]:
    """A turn at work whose model was told by a note how its process ended."""
    claim = await home.work_on("start it")
    process = await begin(home, claim, EXIT)
    await end(home, process, code=3)
    await home.step(claim)
    assert await reports(home, process) == [("attached", None)]
    return claim, process


async def read(home: Home) -> tuple[Claim, Process]:
    """A turn at work whose model was shown by a call how its process ended."""
    claim = await home.work_on("start it")
    process = await begin(home, claim, EXIT)
    await end(home, process, code=3)
    await read_exit(home, claim, process)
    assert await reports(home, process) == [("dropped", "already-read")]
    return claim, process


async def test_the_note_asks_the_model_to_name_the_process(home: Home) -> None:
    """Issue 13, B11."""
    claim, _ = await noted(home)

    (words,) = await heard_in(home, claim.turn_id)
    assert words.endswith("name it as p1.")


@pytest.mark.parametrize(
    "answer, is_told_by_us",
    [("Four.", True), ("Four. p1 exited with code 3.", False), ("p10 goes on.", True)],
)
async def test_an_end_that_the_answer_does_not_name_is_told_by_us(
    home: Home, answer: str, is_told_by_us: bool
) -> None:
    """Issue 13, B11: in the transaction of the answer, behind it, where the process was started."""
    claim, _ = await noted(home)
    await home.answer(claim, answer)
    await home.reopen(crash=True)

    delivered = await home.deliver()
    assert delivered[0].text == answer
    notices = [each for each in delivered if each.cause.startswith("report:")]
    assert len(notices) == int(is_told_by_us) == len(delivered) - 1
    for notice in notices:
        assert notice.text.startswith("Background process p1 (make) exited with code 3")
        assert notice.anchor == delivered[0].anchor


async def test_an_end_that_a_call_has_shown_is_told_by_the_answer(home: Home) -> None:
    """Issue 13, B11: whether it was a note before, or not."""
    claim, process = await noted(home)
    await read_exit(home, claim, process)
    await home.answer(claim, "Four.")
    assert await told(home) == []

    claim, _ = await read(home)
    await home.answer(claim, "Four.")
    assert await told(home) == []


async def test_each_of_several_ends_is_decided_for_itself(home: Home) -> None:
    """Issue 13, B11."""
    claim = await home.work_on("start them")
    processes = [await begin(home, claim, EXIT) for _ in range(3)]
    for process in processes:
        await end(home, process)
    await home.step(claim)
    await read_exit(home, claim, processes[2])
    await home.answer(claim, "p1 is ready")

    (words,) = await told(home)
    assert "p2" in words


async def test_the_answer_of_a_turn_that_only_the_end_has_opened_is_about_it(home: Home) -> None:
    """Issue 13, B11: there is nothing else that it could answer."""
    process = await left_running(home, EXIT)
    await end(home, process)
    await home.answer(await home.claim(), "All is well.")

    assert await told(home) == []


async def test_the_answer_of_a_turn_that_has_a_message_as_well_must_name_it(home: Home) -> None:
    """Issue 13, B11: the end waits together with a message, and joins its turn."""
    first = await left_running(home, EXIT)
    second = await left_running(home, EXIT)
    claim = await home.work_on("something else")
    await home.say("how are you?")
    for process in (first, second):
        await end(home, process)
    await home.answer(claim)
    await home.answer(await home.claim(), "Very well, and p2 has ended.")

    (words,) = await told(home)
    assert "p1" in words


# ── without an answer ───────────────────────────────────────────────────────────────────────────


async def fails(home: Home, claim: Claim) -> None:
    await home.store.turns.fail(claim, "empty-reply")


async def is_stopped(home: Home, claim: Claim) -> None:
    await home.stop()


async def is_left_behind(home: Home, claim: Claim) -> None:
    await home.command(CommandName.NEW)


async def is_given_up(home: Home, claim: Claim) -> None:
    for _ in range(2):
        assert (await home.die_and_recover(claim.turn_id)).kind is VerdictKind.RESUME
        await home.wait_until_due()
        await home.claim()
    assert (await home.die_and_recover(claim.turn_id)).kind is VerdictKind.GIVE_UP


async def is_interrupted(home: Home, claim: Claim) -> None:
    await home.say("something else")


async def is_set_aside(home: Home, claim: Claim) -> None:
    world = a_world(policy=Policy(recovery=RecoveryPolicy.OFF))
    verdict = await home.die_and_recover(claim.turn_id, world=world)
    assert verdict.kind is VerdictKind.SUSPEND


async def is_dropped(home: Home, claim: Claim) -> None:
    await is_set_aside(home, claim)
    await home.store.turns.will(claim.turn_id, OperatorAction.DROP)


async def gives_way(home: Home, claim: Claim) -> None:
    await is_set_aside(home, claim)
    await home.say("something else")


async def is_offered(home: Home, claim: Claim) -> None:
    home.clock.move(2 * 3_600 * SECOND_MS)
    verdict = await home.die_and_recover(claim.turn_id)
    assert verdict.kind is VerdictKind.ASK_USER


async def is_declined(home: Home, claim: Claim) -> None:
    await is_offered(home, claim)
    await home.say("no")


async def is_passed_over(home: Home, claim: Claim) -> None:
    await is_offered(home, claim)
    await home.say("something else")


async def expires(home: Home, claim: Claim) -> None:
    await home.ask(claim)
    home.clock.move(DAY_MS + 1)
    assert await home.store.turns.expire(10) == 1


WAYS_OUT = (
    *(fails, is_stopped, is_left_behind, is_given_up, is_interrupted, is_dropped, gives_way),
    *(is_declined, is_passed_over, expires),
)


@pytest.mark.parametrize("known", [noted, read], ids=["noted", "read"])
@pytest.mark.parametrize("way", WAYS_OUT)
async def test_an_end_in_a_turn_without_an_answer_is_told_by_us(
    open_home: OpenHome,
    known: Callable[[Home], Awaitable[tuple[Claim, Process]]],
    way: Callable[[Home, Claim], Awaitable[None]],
) -> None:
    """Issue 13, B11: the model knew it, and nothing of that came to the person. Once, also when
    the gateway is killed behind it, and the next turn is answered."""
    busy = "interrupt" if way is is_interrupted else "queue"
    home = await open_home(a_world(busy=busy))
    claim, _ = await known(home)
    await way(home, claim)
    assert (await home.view(claim.turn_id)).state in (TurnState.STOPPED, TurnState.FAILED)
    await home.reopen(crash=True)
    for later in await home.claims():
        await home.answer(later, "Four.")

    (words,) = await told(home)
    assert words.startswith("Background process p1 (make) exited with code 3")


@pytest.mark.parametrize("command, expected", [("make", 0), ("make " + "all " * 20, 1)])
async def test_an_apology_that_quotes_the_whole_first_line_has_told_it(
    home: Home, command: str, expected: int
) -> None:
    """Issue 13, B11: a turn that a report has opened is named by it. Where that is cut short, the
    person does not read how the process ended."""
    claim = await home.work_on("start it")
    process = await begin(home, claim, EXIT, command=command)
    await home.answer(claim)
    await home.deliver()
    await end(home, process, code=3)
    await home.store.turns.fail(await home.claim(), "empty-reply")

    delivered = [each.text for each in await home.deliver()]
    assert len(delivered) == 1 + expected
    assert len([words for words in delivered if "exited with code 3" in words]) == 1


async def test_an_end_that_a_question_of_the_model_names_is_told(home: Home) -> None:
    """Issue 13, B11: as long as the question is sent."""
    for is_sent in (True, False):
        claim, _ = await noted(home)
        name = f"p{1 + (not is_sent)}"
        call = a_call("ask", need=Need.ANSWER)
        (call_id,) = await home.propose(claim, call)
        await home.store.turns.ask(claim, call_id, f"{name} ended. Which one?", (), DAY_MS)
        if is_sent:
            await home.deliver()
        await home.stop()

        assert len(await told(home)) == int(not is_sent)


async def test_an_end_is_told_when_the_answer_that_names_it_is_stopped_on_its_way(
    home: Home,
) -> None:
    """Issue 13, B11: the answer was stored, and no reader takes it any more."""
    claim, _ = await noted(home)
    await home.answer(claim, "p1 has ended.")
    await home.stop()

    delivered = [each.text for each in await home.deliver()]
    assert [words for words in delivered if "p1" in words] == [
        words for words in delivered if words.startswith("Background process p1")
    ]
    assert len([words for words in delivered if "p1" in words]) == 1


async def test_an_answer_in_a_file_is_all_said(home: Home) -> None:
    """Issue 13, B11: what is cut off is not said, what is in a file is."""
    file = OutFile(path="files/1/answer.md", name="answer.md", size=9)
    for sent, expected in ((file, 0), (None, 1)):
        claim, process = await noted(home)
        reply = Reply(text=f"so long … p{process.process_id} has ended")
        await home.store.turns.answer(claim, reply, ("so long",), file=sent)

        assert len(await told(home)) == expected


async def test_an_end_that_was_told_is_not_told_by_a_later_turn_that_looks_at_it(
    home: Home,
) -> None:
    """Issue 13, B11: it is the affair of the turn that was told of it first."""
    claim, process = await noted(home)
    await home.answer(claim, "p1 has ended.")
    later = await home.work_on("show me its output")
    await read_exit(home, later, process)
    await home.store.turns.fail(later, "empty-reply")

    assert await told(home) == []


async def test_no_one_is_told_who_does_not_want_to_be(open_home: OpenHome) -> None:
    """Issue 13, B11: `notify` is about these, too."""
    home = await open_home(notify=Notify.OFF)
    claim, _ = await noted(home)
    await home.answer(claim, "Four.")

    assert await told(home) == []


@pytest.mark.parametrize("known", [noted, read], ids=["noted", "read"])
async def test_a_process_whose_end_is_still_to_be_told_is_kept(
    home: Home, known: Callable[[Home], Awaitable[tuple[Claim, Process]]]
) -> None:
    """Issue 13, B11: who tells it needs its row."""
    claim, process = await known(home)
    home.clock.move(7_200 * SECOND_MS)
    assert await outdated(home, kept=0) == []
    await home.answer(claim, "p1 has ended.")
    await home.deliver()

    assert await outdated(home, kept=0) == [process.process_id]
