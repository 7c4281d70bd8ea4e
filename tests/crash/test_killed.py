"""A gateway is killed with SIGKILL at the moments that people ask about, and what they then see."""

from pathlib import Path

import pytest

from tests.crash.stories import CHAT, pauses, script
from tests.crash.telling import checked
from tests.harness.client import Client
from tests.harness.holds import tool
from tests.harness.invariants import answers
from tests.harness.lives import KILLED_BY_HAND, lives
from tests.harness.polling import until
from tests.harness.rows import Rows

PAUSE = tool("pause")


async def test_a_turn_in_progress_goes_on_without_a_new_message(home: Path) -> None:
    """S3, S37, S50, S57, S69: killed by hand within the second of two tool calls; what was done is
    not done again, the person writes nothing, and the answer arrives once."""
    async with lives(home, [KILLED_BY_HAND]) as life:
        person = life.person(CHAT)
        with life.hold(PAUSE) as held:
            await person.say(script(pauses(0.01), pauses(0.02), {"text": "through"}), "1")
            held.let()
            await life.comes_to(held, times=2)
            life.gateway.kill()
        await person.hears("through")
        rows = await checked(life)

    (resumed,) = rows.of("journal", event="resumed")
    assert (resumed["rule"], resumed["reason"]) == ("fresh", "crash")
    (first, second) = rows.calls
    assert first == life.remains[0].calls[0], "it was finished in the first life, and left alone"
    assert life.remains[0].calls[1]["started_ms"] is not None
    assert second["died_ms"] is not None
    assert len(rows.of("steps", cause="recovery")) == 1
    assert person.heard()[:-1] == ["through"]


async def test_a_turn_that_is_killed_over_and_over_comes_to_its_answer(home: Path) -> None:
    """S63, S66, S158: three kills, each after a step more; one note for each life, never as the
    person's words; one answer."""
    times = 3
    async with lives(home, [KILLED_BY_HAND] * times) as life:
        person = life.person(CHAT)
        items = [pauses(0)] * (times + 1)
        with life.hold(PAUSE) as held:
            await person.say(script(*items, {"text": "through"}), "1")
            for done in range(1, times + 1):
                held.let()
                await _sees_results(person, done)
                await life.comes_to(held, times=2 * done)
                ended = len(life.remains)
                life.gateway.kill()
                await until(lambda before=ended: len(life.remains) > before, "it is dead")  # type: ignore[misc]
        await person.hears("through")
        rows = await checked(life)

    (turn,) = rows.turns
    assert turn["recoveries"] == len(rows.of("steps", cause="recovery")) == times
    assert turn["epoch"] == times + 1
    assert person.heard()[:-1] == ["through"]


@pytest.mark.parametrize("moment", ["turns.answer:after", "outbox.claim:before"])
async def test_an_answer_that_was_committed_and_not_sent_is_sent_once(
    home: Path, moment: str
) -> None:
    """S54, S145, S146, S147, S149: the answer is not worked out again, it is delivered plainly."""
    rows, remains = await _echo(home, moment)

    (owed,) = remains.outbox
    assert (owed["state"], owed["attempts"]) == ("owed", 0)
    assert remains.one("turns")["state"] == "answered"
    (delivered, _) = rows.outbox
    assert (delivered["attempts"], delivered["labelled"], delivered["ambiguous"]) == (1, 0, 0)
    assert len(rows.of("journal", event="claimed")) == 1, "the model was asked once"


@pytest.mark.parametrize("moment", ["outbox.claim:after", "outbox.settle:before"])
async def test_an_answer_of_which_no_one_knows_whether_it_was_sent_is_shown_once(
    home: Path, moment: str
) -> None:
    """S146, S149: the web can repeat under the same key, so no reader sees it twice, or a label."""
    rows, remains = await _echo(home, moment)

    assert remains.one("outbox")["state"] == "sending"
    (delivered, _) = rows.outbox
    assert (delivered["attempts"], delivered["labelled"], delivered["ambiguous"]) == (2, 0, 1)


async def test_an_answer_that_was_delivered_is_left_alone(home: Path) -> None:
    """S2, S5, S146: the turn was over a moment before the kill; nothing follows."""
    rows, remains = await _echo(home, "outbox.settle:after")

    assert remains.one("turns")["state"] == "done"
    (delivered, _) = rows.outbox
    assert delivered == remains.one("outbox")
    assert not rows.of("journal", event="resumed")


async def test_a_message_that_was_not_stored_was_not_acknowledged(home: Path) -> None:
    """S162: killed before the commit. The client heard nothing, repeats it, and gets one turn."""
    async with lives(home, ["inbox.accept:before"]) as life:
        person = life.person(CHAT)
        ack = await person.say("echo hello", "1")
        await person.hears("hello")
        rows = await checked(life)

    assert life.remains[0].inbox == []
    assert (ack.duplicate, ack.tries > 1) == (False, True)
    assert answers(rows, CHAT) == ["hello"]


async def test_a_message_whose_acknowledgement_was_lost_is_recognised(home: Path) -> None:
    """S162, S97: killed behind the commit. The client repeats it, is told so, and gets one turn."""
    async with lives(home, ["inbox.accept:after"]) as life:
        person = life.person(CHAT)
        ack = await person.say("echo hello", "1")
        await person.hears("hello")
        rows = await checked(life)

    assert len(life.remains[0].inbox) == 1
    assert (ack.duplicate, ack.tries > 1) == (True, True)
    assert answers(rows, CHAT) == ["hello"]


async def test_messages_that_waited_behind_a_turn_run_once_and_in_order(home: Path) -> None:
    """S97, S92, S93. Issue 13, B10: three messages wait while a turn hangs; the gateway dies; one
    turn answers them, in order, behind the answer of the first."""
    async with lives(home, [KILLED_BY_HAND]) as life:
        person = life.person(CHAT)
        with life.hold(PAUSE) as held:
            await person.say(script(pauses(0), {"text": "first"}), "1")
            await life.comes_to(held)
            for number, text in enumerate(("second", "third", "fourth"), start=2):
                assert (await person.say(f"echo {text}", str(number))).state == "waiting"
            life.gateway.kill()
        await person.hears("fourth")
        rows = await checked(life)

    assert answers(rows, CHAT) == ["first", "second\n\nthird\n\nfourth"]
    assert person.heard()[:-1] == ["first", "second\n\nthird\n\nfourth"]
    assert len(rows.turns) == 2


async def test_an_open_question_is_still_open_after_the_kill(home: Path) -> None:
    """S60, S140, S142: waiting for a person is not unfinished work; nothing is asked again and the
    answer counts once, in the thread in which it was asked."""
    async with lives(home, [KILLED_BY_HAND]) as life:
        person = life.person(CHAT)
        await person.say("ask me which drink: tea or coffee", "1", thread="drinks")
        asked = await person.hears("Which drink")
        life.gateway.kill()
        await life.all_ends()
        button = {"question": asked.fields["question"], "choice": asked.fields["choices"][0]["id"]}
        await person.say("", "2", thread="drinks", **button)
        await person.say("", "2", thread="drinks", **button)
        answered = await person.hears("You said: tea.")
        rows = await checked(life)

    assert answered.fields["thread"] == asked.fields["thread"] == "drinks"
    assert len(rows.of("steps", kind="question")) == 1
    assert not rows.of("journal", event="resumed")


async def test_other_chats_do_not_wait_for_one_that_recovers(home: Path) -> None:
    """S52: while a dead turn is on its way back, another chat is answered, and commands work in
    the same chat."""
    async with lives(home, ["turns.start_call:after"]) as life:
        person = life.person(CHAT)
        with life.hold(PAUSE) as held:
            await person.say(script(pauses(0), {"text": "back again"}), "1")
            await life.all_ends()
            other = life.person("other")
            await other.say("echo hello", "1")
            await person.say("/status", "2")
            await other.hears("hello")
            await person.sees(lambda event: event.kind == "notice", "the status")
            await life.comes_to(held)
        await person.hears("back again")
        rows = await checked(life)

    delivered = rows.of("journal", subject="delivery", event="delivered")
    causes = {row["delivery_id"]: (row["session_id"], row["cause"]) for row in rows.outbox}
    order = [causes[line["number"]] for line in delivered]
    answers_of = [session_id for session_id, cause in order if cause.startswith("step:")]
    assert answers_of == [rows.session("other"), rows.session(CHAT)]
    (status,) = [cause for _, cause in order[:2] if cause.startswith("command:")]
    assert status


async def test_a_gateway_killed_while_idle_has_nothing_to_recover(home: Path) -> None:
    """S5, S6, S14: everything was answered; neither the next boot nor the one after finds work."""
    async with lives(home, [KILLED_BY_HAND, KILLED_BY_HAND]) as life:
        person = life.person(CHAT)
        await person.say("echo hello", "1")
        await person.sees(lambda event: event.fields.get("state") == "done", "it is done")
        life.gateway.kill()
        await until(lambda: len(life.remains) == 1, "it is dead")
        await life.gateway.wait_ready()
        life.gateway.kill()
        await life.all_ends()
        await life.gateway.wait_ready()
        rows = await checked(life)

    assert not rows.of("journal", event="resumed")
    assert [worker["ended_how"] for worker in rows.workers] == ["killed", "killed", None]


async def _echo(home: Path, crash_at: str) -> tuple[Rows, Rows]:
    """One message to a gateway that dies. Returns the rows in the end, and after the death."""
    async with lives(home, [crash_at]) as life:
        person = life.person(CHAT)
        await person.say("echo hello", "1")
        await person.hears("hello")
        rows = await checked(life)
    assert person.heard()[0] == "hello"
    assert answers(rows, CHAT) == ["hello"]
    return rows, life.remains[0]


async def _sees_results(person: Client, number: int) -> None:
    await until(
        lambda: sum(event.fields.get("kind") == "result" for event in person.events) >= number,
        f"{number} calls are finished",
        otherwise=person.told,
    )


@pytest.mark.parametrize(
    "command, is_allowed", [("/approve", True), ("/deny", False)], ids=["approve", "deny"]
)
@pytest.mark.parametrize("end", [KILLED_BY_HAND, "inbox.accept:after"])
async def test_a_question_is_approved_by_a_command_after_a_kill(
    home: Path, command: str, is_allowed: bool, end: str
) -> None:
    """S143: killed between the question and the command, or right after the command was stored and
    before it was acknowledged: the person's program repeats it, and it counts once."""
    wants = {"command": "echo ran >> ran; rm -rf build", "outside": True, "reason": "to try it"}
    asks = {"tool": "terminal", "arguments": wants}
    # The second one is refused: it came with a token. The person then says it at the terminal.
    ends = [KILLED_BY_HAND] if end == KILLED_BY_HAND else [f"{end}:3"]
    async with lives(home, ends) as life:
        person = life.person(CHAT)
        await person.say(script({"calls": [asks]}, {"text": "through"}), "1")
        await person.sees(lambda event: event.kind == "question", "the question")
        if end == KILLED_BY_HAND:
            life.gateway.kill()
            await until(lambda: len(life.remains) == 1, "it is dead")
        ack = await person.say(command, "2")
        assert ack.duplicate == (end != KILLED_BY_HAND)
        await person.hears("through")
        rows = await checked(life)
        ran = life.gateway.workdir / "ran"
        assert ran.exists() == is_allowed
        assert not is_allowed or ran.read_text(encoding="ascii") == "ran\n"

    (call,) = rows.calls
    assert (call["approved_by"] is not None, call["started_ms"] is not None) == (
        is_allowed,
        is_allowed,
    )
    words = "Approved: " if is_allowed else "Denied: "
    assert sum(heard.startswith(words) for heard in person.heard()) == 1
