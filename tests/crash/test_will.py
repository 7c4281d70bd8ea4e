"""What people say from the chat survives a SIGKILL between the words and their effect."""

from pathlib import Path

import pytest

from tests.crash.stories import CHAT, is_running, pauses, script
from tests.crash.telling import checked
from tests.harness.client import Event
from tests.harness.holds import tool
from tests.harness.invariants import answers
from tests.harness.lives import KILLED_BY_HAND, lives

PAUSE = tool("pause")


def is_suspended(event: Event) -> bool:
    return event.kind == "turn" and event.fields["state"] == "suspended"


async def test_two_that_were_queued_are_answered_once_and_in_order(home: Path) -> None:
    """S92, S93, S97: behind a running turn, in a chat where messages interrupt."""
    async with lives(home, [KILLED_BY_HAND]) as life:
        person = life.person(CHAT)
        await person.say("/busy interrupt", "0")
        with life.hold(PAUSE) as held:
            await person.say(script(pauses(0), {"text": "first"}), "1")
            await life.comes_to(held)
            await person.say("/queue echo second", "2")
            await person.say("/queue echo third", "3")
            life.gateway.kill()
        again = await person.say("/queue echo second", "2")
        await person.hears("third")
        rows = await checked(life)

    assert again.duplicate
    assert answers(rows, CHAT) == ["first", "second", "third"]
    assert len(rows.turns) == 3


@pytest.mark.parametrize("moment", ["inbox.accept:before:2", "inbox.accept:after:2"])
async def test_steering_words_are_not_lost_between_storing_and_joining(
    home: Path, moment: str
) -> None:
    """S97: killed while they are stored, and again posted by the person's program; they join the
    turn that runs, once."""
    async with lives(home, [moment]) as life:
        person = life.person(CHAT)
        with life.hold(PAUSE) as held:
            await person.say(script(pauses(0), pauses(0), {"text": "first"}), "1")
            await life.comes_to(held)
            await person.say("/steer echo steered", "2")
        await person.hears("steered")
        rows = await checked(life)

    (turn,) = rows.turns
    said = [step["turn_id"] for step in rows.of("steps", kind="message")]
    assert said == [turn["turn_id"]] * 2
    assert answers(rows, CHAT) == ["steered"]


@pytest.mark.parametrize("moment", ["inbox.accept:before:2", "inbox.accept:after:2"])
async def test_a_retry_that_is_killed_in_the_middle_runs_once(home: Path, moment: str) -> None:
    """The row of the command, its reply and the new turn are stored together or not at all."""
    async with lives(home, [moment]) as life:
        person = life.person(CHAT)
        await person.say("fail", "1")
        await person.hears("/retry tries it once more")
        await person.say("/retry", "2")
        await person.hears("I try «fail» once more.")
        rows = await checked(life)

    assert [turn["state"] for turn in rows.turns] == ["failed", "failed"]
    assert len(rows.of("journal", subject="turn", event="claimed")) == 2
    assert len(rows.of("inbox", source="retry")) == 1


async def test_what_waited_behind_a_turn_that_is_not_continued_is_answered(home: Path) -> None:
    """S97: recovery is off, the gateway is killed, and no message comes again."""
    async with lives(home, [KILLED_BY_HAND]) as life:
        person = life.person(CHAT)
        await person.say("/resume-policy off", "0")
        await person.say(script(pauses(50), {"text": "never said"}), "1")
        await person.sees(is_running, "the turn runs")
        await person.say("echo second", "2")
        life.gateway.kill()
        await person.hears("second")
        rows = await checked(life)

    assert rows.turns[0]["rule"] == "policy-behind"
    assert answers(rows, CHAT) == ["second"]


@pytest.mark.parametrize(
    "command, ends", [("/resume", "through"), ("/drop", "Dropped")], ids=["resume", "drop"]
)
async def test_what_was_set_aside_is_in_the_hands_of_the_person(
    home: Path, command: str, ends: str
) -> None:
    """S79 and issue 13, A5: killed where recovery is off, of which the person hears once, then
    killed when the person's word was stored."""
    async with lives(home, [KILLED_BY_HAND, "inbox.accept:after:1"]) as life:
        person = life.person(CHAT)
        await person.say("/resume-policy off", "0")
        with life.hold(PAUSE) as held:
            await person.say(script(pauses(0), {"text": "through"}), "1")
            await life.comes_to(held)
            life.gateway.kill()
        await person.sees(is_suspended, "it is set aside")
        await person.hears("/resume goes on with it, /drop ends it.")
        await person.say(command, "2")
        await person.hears(ends)
        rows = await checked(life)

    (turn,) = rows.turns
    told = [row for row in rows.outbox if row["cause"].startswith("set-aside:")]
    assert [row["state"] for row in told] == ["delivered"]
    assert turn["state"] == ("done" if command == "/resume" else "stopped")
    assert answers(rows, CHAT) == (["through"] if command == "/resume" else [])
