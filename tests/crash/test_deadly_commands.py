"""An agent whose commands kill its own gateway, again and again. A person starts it each time."""

from pathlib import Path

import pytest

from koboshi.domain.sandbox import Boundary
from tests.cli.process import is_there
from tests.crash.telling import checked
from tests.fakes.model_servers.server import Answer, Received
from tests.harness.client import Client
from tests.harness.modelled import Modelled, gate, modelled, results_in, run, words_in
from tests.harness.polling import until
from tests.models.forms import OPENAI

UNASKED = {
    "KOBOSHI__TOOLS__TERMINAL__APPROVAL": "never",
    # Inside a boundary no command finds the gateway.
    "KOBOSHI__TOOLS__SANDBOX": "host",
}
OTHER = "a word from another person"
RECOVERIES_MAX = 10


def kill_gateway(home: Path) -> str:
    """The shell command that kills the owner of the home."""
    return f"""kill -9 "$(sed 's/.*"pid": \\([0-9]*\\).*/\\1/' {home}/koboshi.lock)" """


async def is_answered(other: Client, number: int) -> None:
    """Another person writes, and is answered while the deadly turn is still open."""
    await other.say(f"{OTHER} {number}", f"{number}")
    await other.hears(f"answer {number}")


def answer_of_other(it: Modelled, received: Received) -> Answer | None:
    times = words_in(received.body).count(OTHER)
    return it.says(f"answer {times}") if times else None


def words_for(person: Client, *kinds: str) -> list[str]:
    return [event.fields["text"] for event in person.events if event.kind in kinds]


async def test_a_call_that_kills_the_gateway_is_not_started_a_second_time(home: Path) -> None:
    """S68, S71, S72, S159: the model asks for the same deadly command each time. It runs once; the
    model hears why it is not repeated, and the person gets one answer."""
    async with modelled(home, OPENAI, **UNASKED) as it:
        deadly = f"echo deadly >> deaths; {kill_gateway(home)}"

        def answer_to(received: Received) -> Answer:
            results = results_in(received.body)
            if sum("was not started" in result for result in results) == 3:
                return it.says("I cannot go on. What shall I do?")
            return it.proposes(run(deadly, f"call_{len(results)}"))

        it.server.answer_to = answer_to
        async with it.kept_up():
            await it.person.say("restart yourself", "1")
            await it.person.hears("What shall I do?")
        rows = await checked(it.life, boundary=Boundary.NONE)

    assert it.lines("deaths") == ["deadly"]
    assert len(it.life.remains) == 1
    assert it.person.heard()[:-1] == ["I cannot go on. What shall I do?"]
    assert [call["outcome"] for call in rows.calls] == ["ok", "error", "error", "error"]


async def test_a_command_that_kills_every_gateway_is_given_up_and_ended(home: Path) -> None:
    """S52, S71, S72: one command outlives the gateway and kills it in each life, so that no step is
    ever made. The turn is given up with one apology that says what to do, the command is ended, the
    person can go on, and another person is answered between the deaths."""
    async with (
        modelled(home, OPENAI, **UNASKED, KOBOSHI__RECOVERY__ATTEMPTS="2") as it,
        gate(it) as door,
    ):
        command = f"while read -r word; do {kill_gateway(home)}; done < gate"
        it.server.answers += [
            it.proposes(run(f"echo $$ > shell; echo deadly >> deaths; {command}")),
            it.says("here I am"),
        ]
        it.server.answer_to = lambda received: answer_of_other(it, received)
        other = it.life.person("other")
        async with it.kept_up():
            await it.person.say("guard yourself", "1")
            await it.until_lines("deadly", name="deaths")
            for number in (1, 2):
                await is_answered(other, number)
                await it.until_running(number)
                door.open()
                await until(lambda n=number: len(it.life.remains) == n, "it is dead")  # type: ignore[misc]
            apology = await it.person.hears("I was stopped 2 times in a row")
            shell = int(it.lines("shell")[0])
            await until(lambda: not is_there(shell), "the deadly command is ended")
            await it.person.say("are you there?", "2")
            await it.person.hears("here I am")
        rows = await checked(it.life, boundary=Boundary.NONE)

    assert it.lines("deaths") == ["deadly"]
    assert "«guard yourself»" in apology.fields["text"]
    assert "/retry" in apology.fields["text"]
    assert it.person.heard()[:-1] == [apology.fields["text"], "here I am"]
    assert words_for(other, "answer") == ["answer 1", "answer 2"]
    failed = rows.one("turns", rule="exhausted")
    assert failed["state"] == "failed"


async def test_a_command_in_the_background_that_kills_gateways_can_be_stopped(home: Path) -> None:
    """S72, S85, S136: no turn is open, so there is nothing to give up; what the person says between
    two deaths is kept, and ends it although the gateway dies once more on the way."""
    async with modelled(home, OPENAI, **UNASKED) as it, gate(it) as door:
        deadly = f"echo $$ > shell; while read -r word; do {kill_gateway(home)}; done < gate"
        it.server.answers += [it.proposes(run(deadly, background=True)), it.says("it watches")]
        async with it.kept_up():
            await it.person.say("watch yourself", "1")
            await it.person.hears("it watches")
            door.open()
            await until(lambda: len(it.life.remains) == 1, "it is dead")
            await it.person.say("/stop all", "2")
            door.open()
            await it.person.hears("I am ending")
            shell = int(it.lines("shell")[0])
            await until(lambda: not is_there(shell), "the deadly command is ended")
            # Its last deed may have been to kill the gateway that ended it: the next one serves.
            await it.person.say("/whoami", "3")
            await it.person.hears("You are")
        await checked(it.life, boundary=Boundary.NONE)

    assert len(it.server.requests) == 2
    assert it.person.heard()[0] == "it watches"
    assert len(it.person.heard()[:-1]) == 3


@pytest.mark.slow
@pytest.mark.timeout(300)
async def test_an_agent_that_kills_its_gateway_in_ever_new_ways_is_stopped(home: Path) -> None:
    """S52, S71, S72, S159: another deadly command in each life, so each life makes a step. Each
    runs once; in the end the person is asked, once, and says no; others are answered meanwhile."""
    async with modelled(home, OPENAI, **UNASKED) as it, gate(it) as door:

        def answer_to(received: Received) -> Answer:
            number = len(results_in(received.body)) + 1
            deadly = f"echo {number} >> deaths; read -r word < gate; {kill_gateway(home)}"
            return answer_of_other(it, received) or it.proposes(run(deadly, f"call_{number}"))

        it.server.answer_to = answer_to
        other = it.life.person("other")
        async with it.kept_up():
            await it.person.say("restart yourself", "1")
            for number in range(1, RECOVERIES_MAX + 1):
                await it.until_lines(*map(str, range(1, number + 1)), name="deaths")
                if number % 4 == 1:
                    await is_answered(other, number // 4 + 1)
                door.open()
            asked = await it.person.hears("Shall I keep trying?")
            await it.person.say(
                "", "2", question=asked.fields["question"], choice=asked.fields["choices"][1]["id"]
            )
            await it.person.hears("I have let it go")
        rows = await checked(it.life, boundary=Boundary.NONE)

    assert it.lines("deaths") == [str(number) for number in range(1, RECOVERIES_MAX + 1)]
    assert len(it.life.remains) == RECOVERIES_MAX
    assert words_for(it.person, "question") == [asked.fields["text"]]
    assert words_for(it.person, "answer") == []
    assert words_for(other, "answer") == ["answer 1", "answer 2", "answer 3"]
    (prompted,) = rows.of("journal", event="prompted")
    assert prompted["rule"] == "worn-out"
