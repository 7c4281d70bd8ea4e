"""A real gateway with a model of each form, set up by its configuration file alone."""

import json
import re
from pathlib import Path

import pytest
from anyio import Event, fail_after

from tests.crash.telling import checked
from tests.fakes.model_servers.server import Answer
from tests.harness.lives import KILLED_BY_HAND, STOPPED
from tests.harness.modelled import Modelled, modelled, run
from tests.harness.polling import WITHIN_S
from tests.models.asking import KEY
from tests.models.forms import FORMS, Form

pytestmark = pytest.mark.crash

APPEND = "echo ran >> lines; echo it ran"


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


@pytest.fixture(params=FORMS, ids=lambda form: form.name)
def form(request: pytest.FixtureRequest) -> Form:
    found: Form = request.param
    return found


def cut(answer: Answer) -> Answer:
    """The answer, without its last few bytes: everything but the end of the stream has come."""
    size = sum(len(piece) for piece in answer.pieces)
    return Answer(pieces=answer.pieces, cut_at=size - len(answer.pieces[-1]))


def busy(it: Modelled, seconds: int) -> Answer:
    return it.form.error(429, "slow down", Retry_After=f"{seconds}")


async def test_a_person_is_answered_with_words_and_with_what_a_command_said(
    home: Path, form: Form
) -> None:
    async with modelled(home, form) as it:
        it.server.answers += [
            it.says("hello yourself"),
            it.proposes(run(APPEND), text="I will look."),
            it.says("it ran, once"),
        ]
        await it.person.say("hello", "1")
        await it.person.hears("hello yourself")
        await it.person.say("run it", "2")
        await it.person.hears("it ran, once")
        await checked(it.life)
        log = it.gateway.log

    assert it.person.heard()[:-1] == ["hello yourself", "it ran, once"]
    assert it.lines() == ["ran"]
    assert it.results() == [
        {"status": "exited", "process_id": "p1", "exit_code": 0, "output": "it ran\n"}
    ]
    assert all(KEY in json.dumps(request.headers) for request in it.server.requests)
    assert KEY not in log


@pytest.mark.parametrize("hindrance", ["asked-to-wait", "cut"])
async def test_a_passing_failure_is_tried_again_and_no_one_sees_it(
    home: Path, form: Form, hindrance: str
) -> None:
    """S149: the same request is sent again; a command whose stream broke off is not run, although
    all of its arguments had come; one answer."""
    async with modelled(home, form) as it:
        proposed = it.proposes(run(APPEND))
        it.server.answers += [
            busy(it, 1) if hindrance == "asked-to-wait" else cut(proposed),
            proposed,
            it.says("it ran, once"),
        ]
        await it.person.say("run it", "1")
        await it.person.hears("it ran, once")
        rows = await checked(it.life)

    first, second, _ = it.server.requests
    assert first.body == second.body
    assert it.lines() == ["ran"]
    assert it.person.heard()[:-1] == ["it ran, once"]
    assert len(rows.of("steps", kind="reply")) == 1


async def test_the_same_words_have_the_same_time_before_and_after_a_kill(
    home: Path, form: Form
) -> None:
    """Issue 13, B9: every form shows day, hour and zone above the words, from stored times."""
    async with modelled(home, form) as it:
        words = it.says("one whole answer")
        begun = Event()
        it.server.answers += [Answer(pieces=words.pieces[:-2], hangs_after=begun), words]
        await it.person.say("speak", "1")
        with fail_after(WITHIN_S):
            await begun.wait()
        await it.restart(KILLED_BY_HAND)
        await it.person.hears("one whole answer")

    first, second = (json.dumps(request.body) for request in it.server.requests)
    above = re.compile(r"\[koboshi\] \w{3} \d{4}-\d\d-\d\d \d\d:\d\d UTC[^:]*(?::\d\d)?:\\nspeak")
    assert above.findall(first) == above.findall(second)
    assert len(above.findall(first)) == 1
    assert "Today is" not in first


@pytest.mark.parametrize("how", [KILLED_BY_HAND, STOPPED])
async def test_a_gateway_that_ends_while_the_model_speaks_asks_again(
    home: Path, form: Form, how: str
) -> None:
    """S56, S145, S149: half of an answer is no answer. No reader sees it, and the model is asked
    once more, with a note that says why."""
    async with modelled(home, form) as it:
        words = it.says("one whole answer")
        begun = Event()
        it.server.answers += [Answer(pieces=words.pieces[:-2], hangs_after=begun), words]
        await it.person.say("speak", "1")
        with fail_after(WITHIN_S):
            await begun.wait()
        await it.restart(how)
        await it.person.hears("one whole answer")
        rows = await checked(it.life)

    assert it.person.answered() == ["one whole answer"]
    assert len(it.server.requests) == 2
    assert len(rows.of("steps", cause="recovery")) == 1


@pytest.mark.parametrize(
    "refusal,reason",
    [
        ("wrong-key", "the key was refused by the provider"),
        ("wait-an-hour", "the provider asks for fewer requests"),
    ],
)
async def test_a_lasting_failure_is_told_once_with_what_to_do(
    home: Path, form: Form, refusal: str, reason: str
) -> None:
    """S45, S162: the provider refuses for good, or wants a longer wait than a person has. One
    notice; the turn has failed; what the notice says to do is true."""
    async with modelled(home, form) as it:
        refused = form.error(401, "no such key") if refusal == "wrong-key" else busy(it, 3600)
        it.server.answers += [refused, it.says("here I am")]
        await it.person.say("are you there?", "1")
        notice = await it.person.hears("I could not finish «are you there?»")
        await it.person.say("/help", "2")
        help_text = (await it.person.hears("/status")).fields["text"]
        await it.person.say("and now?", "3")
        await it.person.hears("here I am")
        rows = await checked(it.life)

    words = notice.fields["text"]
    assert (notice.kind, reason in words) == ("notice", True)
    assert it.person.heard()[:-1] == [words, help_text, "here I am"]
    assert [turn["state"] for turn in rows.turns] == ["failed", "done"]
    commands = re.findall(r"(?<!\S)/[a-z]+", words)
    assert commands or "/retry tries it once more" in words
    assert all(f"{command} – " in help_text for command in commands), "it names no such command"
