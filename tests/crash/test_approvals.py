"""An approval over kills at any point: no command runs twice, and none runs without a yes."""

from pathlib import Path

import pytest

from tests.crash.stories import CHAT, script
from tests.crash.telling import checked
from tests.harness.lives import lives

DEADLY = [
    "turns.append:after",
    "turns.ask:before",
    "turns.ask:after",
    "outbox.claim:after",
    "inbox.accept:before:2",
    "inbox.accept:after:2",
    "turns.start_call:before",
    "turns.start_call:after",
    "processes.begin:before",
    "processes.begin:after",
    "processes.born:before",
    "turns.finish_call:before",
]


def wants(command: str) -> str:
    # Asked about with a boundary, which it leaves, and without one, where it is on the list.
    arguments = {"command": command, "outside": True, "reason": "to try it"}
    call = {"tool": "terminal", "arguments": arguments}
    return script({"calls": [call]}, {"text": "through"})


@pytest.mark.parametrize("moment", DEADLY)
async def test_an_approved_command_runs_once_whenever_the_gateway_dies(
    home: Path, moment: str
) -> None:
    """Issue 15, item 5: the seal is stored with the question and with the yes."""
    async with lives(home, [moment]) as life:
        person = life.person(CHAT)
        await person.say(wants("echo ran >> ran; kill -0 $$"), "1")
        await person.hears("May I run this")
        assert not (life.gateway.workdir / "ran").exists()
        await person.say("yes", "2")
        await person.hears("through")
        rows = await checked(life)

    assert (life.gateway.workdir / "ran").read_text(encoding="ascii") == "ran\n"
    (call,) = rows.of("calls")
    (question,) = rows.of("steps", kind="question")
    assert call["approved_seal"] == rows.body(question)["sealed"]["seal"]
    assert call["outcome"] == "ok"


@pytest.mark.parametrize(
    "moment", ["turns.ask:after", "inbox.accept:before:2", "turns.claim:after:3"]
)
async def test_a_denied_command_never_runs_whenever_the_gateway_dies(
    home: Path, moment: str
) -> None:
    """Issue 15, item 5."""
    async with lives(home, [moment]) as life:
        person = life.person(CHAT)
        await person.say(wants("echo ran >> ran; kill -0 $$"), "1")
        await person.hears("May I run this")
        await person.say("rather not", "2")
        await person.hears("through")
        rows = await checked(life)

    assert not (life.gateway.workdir / "ran").exists()
    assert rows.of("calls")[0]["started_ms"] is None
