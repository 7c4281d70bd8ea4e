"""A question to the person stays open while gateways come and go, and is answered once."""

import json
from pathlib import Path
from typing import Any

import apsw
import pytest

from tests.crash.stories import CHAT, script
from tests.crash.telling import checked
from tests.harness.client import Client, Event
from tests.harness.invariants import answers
from tests.harness.lives import KILLED_BY_HAND, STOPPED, lives
from tests.harness.modelled import ask, gate, modelled, run, waits
from tests.harness.polling import until
from tests.harness.rows import Rows
from tests.models.forms import OPENAI

DRINKS = "ask me which drink: tea, coffee or water"
OVER = "«Which drink?» was not answered in time"
TOO_LATE = "no longer open"


def button(asked: Event, place: int) -> dict[str, Any]:
    return {"question": asked.fields["question"], "choice": asked.fields["choices"][place]["id"]}


def results(rows: Rows) -> list[Any]:
    return [json.loads(rows.body(step)["text"]) for step in rows.of("steps", kind="result")]


@pytest.mark.parametrize("how", [KILLED_BY_HAND, STOPPED])
@pytest.mark.parametrize(
    "said,heard",
    [("(button)", "coffee"), ("2", "coffee"), (" Coffee ", "coffee"), ("cocoa", "cocoa")],
)
async def test_a_question_is_answered_once_in_a_later_life(
    home: Path, said: str, heard: str, how: str
) -> None:
    """S140, S141, S142, S144: by its button, its number, its label or in other words."""
    async with lives(home, [how]) as life:
        person = life.person(CHAT)
        await person.say(DRINKS, "1")
        asked = await person.hears("Which drink")
        life.gateway.terminate() if how == STOPPED else life.gateway.kill()
        await life.all_ends()
        answer = ("", button(asked, 1)) if said == "(button)" else (said, {})
        await person.say(answer[0], "2", **answer[1])
        await person.hears(f"You said: {heard}.")
        repeated = await person.say(answer[0], "2", **answer[1])
        rows = await checked(life)

    assert repeated.duplicate
    assert [result["answer"] for result in results(rows)] == [heard]
    assert [result.get("choice") for result in results(rows)] == [
        "2" if heard == "coffee" else None
    ]
    assert answers(rows, CHAT) == [f"You said: {heard}."]
    assert len(rows.of("steps", kind="question")) == len(rows.turns) == 1
    assert not rows.of("journal", event="resumed")


async def test_what_waited_before_the_question_does_not_answer_it(home: Path) -> None:
    """S97, S141, S142: a message written while the model worked is no answer to what it then asks,
    neither before nor after a kill; nor is a command. Each gets what is its own, in order."""
    async with modelled(home, OPENAI) as it, gate(it) as door:
        it.server.answers += [
            it.proposes(run(waits())),
            it.proposes(("call_2", *ask("Which drink?", "tea", "coffee")[1:])),
            it.says("coffee it is"),
            it.says("tea is what waited"),
        ]
        await it.person.say("bring me something", "1")
        await it.until_lines("begun")
        assert (await it.person.say("tea", "2")).state == "waiting"
        door.open()
        await it.person.hears("Which drink")
        await it.restart()
        await it.person.say("/status", "3")
        status = await it.person.hears("Waiting for an answer")
        await it.person.say("2", "4")
        await it.person.hears("tea is what waited")
        rows = await checked(it.life)

    assert "Waiting behind it: 1 message" in status.fields["text"]
    heard = ["Which drink?", status.fields["text"], "coffee it is", "tea is what waited"]
    assert it.person.heard()[:-1] == heard
    assert [result["answer"] for result in results(rows)[1:]] == ["coffee"]
    assert len(rows.turns) == 2


async def test_a_restart_neither_approves_nor_denies(home: Path) -> None:
    """S143: a dangerous command waits for a yes over a kill, and then runs once."""
    wants = {"command": "echo ran >> ran; kill -0 $$", "outside": True, "reason": "to try it"}
    kill = {"tool": "terminal", "arguments": wants}
    async with lives(home, [KILLED_BY_HAND]) as life:
        person = life.person(CHAT)
        await person.say(script({"calls": [kill]}, {"text": "through"}), "1")
        asked = await person.hears("May I run this")
        life.gateway.kill()
        await life.all_ends()
        await life.gateway.wait_ready()
        file = life.gateway.workdir / "ran"
        assert not file.exists()
        await person.say("", "2", **button(asked, 0))
        await person.hears("through")
        rows = await checked(life)

    assert file.read_text(encoding="ascii") == "ran\n"
    assert rows.one("calls")["outcome"] == "ok"
    assert len(rows.of("steps", kind="question")) == 1


def let_a_day_pass(home: Path) -> None:
    """What is left of the question's time, after a day in which no gateway ran."""
    connection = apsw.Connection(str(home / "koboshi.db"))
    try:
        connection.execute("UPDATE turns SET expires_ms = 1 WHERE state = 'waiting'")
        assert connection.changes() == 1
    finally:
        connection.close()


async def expired(it: Any, person: Client) -> Event:
    """A question that was not answered, and that the person was told of. Returns the question."""
    await person.say(DRINKS, "1")
    asked = await person.hears("Which drink")
    it.gateway.kill()
    let_a_day_pass(it.gateway.home)
    it.gateway.start()
    await person.hears(OVER)
    return asked


async def test_who_presses_the_button_of_an_expired_question_is_told(home: Path) -> None:
    """S140, S142, S162: the expiry is told once, and each late press gets its own word; none of
    them changes anything."""
    async with lives(home) as life:
        person = life.person(CHAT)
        await until(lambda: life.address, "the gateway listens")
        asked = await expired(life, person)
        pressed = await person.say("", "2", **button(asked, 1))
        await person.hears(TOO_LATE)
        rows = await checked(life)

    assert pressed.state == "dropped"
    assert [OVER in words for words in person.heard()[1:-1]] == [True, False]
    (turn,) = rows.turns
    assert (turn["state"], turn["event"]) == ("stopped", "expired")
    assert rows.one("inbox", external_id=f"{CHAT}/2")["reason"] == "question-closed"


async def test_who_answers_an_expired_question_in_words_begins_anew(home: Path) -> None:
    """S51, S140: the words are a message like any other; the conversation goes on."""
    async with lives(home) as life:
        person = life.person(CHAT)
        await until(lambda: life.address, "the gateway listens")
        await expired(life, person)
        await person.say("echo coffee", "2")
        await person.hears("coffee")
        rows = await checked(life)

    assert [OVER in words for words in person.heard()[1:-1]] == [True, False]
    assert answers(rows, CHAT) == ["coffee"]
    assert [turn["state"] for turn in rows.turns] == ["stopped", "done"]


async def test_a_second_press_of_the_same_button_is_passed_over(home: Path) -> None:
    """S142, S149: two presses are two messages on some platforms; the first one counts and no one
    is bothered. Another choice comes too late, and that is said."""
    async with lives(home) as life:
        person = life.person(CHAT)
        await person.say(DRINKS, "1")
        asked = await person.hears("Which drink")
        await person.say("", "2", **button(asked, 1))
        again = await person.say("", "3", **button(asked, 1))
        await person.hears("You said: coffee.")
        await person.say("", "4", **button(asked, 0))
        late = await person.hears(TOO_LATE)
        rows = await checked(life)

    assert again.state == "dropped"
    heard = ["Which drink?", "You said: coffee.", late.fields["text"]]
    assert person.heard()[:-1] == heard
    assert [result["answer"] for result in results(rows)] == ["coffee"]
