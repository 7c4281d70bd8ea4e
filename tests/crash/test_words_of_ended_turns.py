"""Issue 12, A2: what a turn was asked that ended without an answer is no part of the next request,
and what is asked again is not done twice. A real gateway, a real interface, real kills."""

from pathlib import Path
from typing import Any

import pytest
from anyio import Event

from tests.crash.telling import checked
from tests.fakes.model_servers.server import Answer
from tests.harness.modelled import Modelled, modelled, run, words_in
from tests.harness.polling import until
from tests.models.forms import FORMS, OPENAI, Form

ASKED = "Delete the old backups"
NOT_AGAIN = "It is not to be carried out unless they ask again."


def last_words(body: dict[str, Any]) -> str:
    """The newest message of the user's side, whatever the form."""
    content = body["messages"][-1]["content"]
    if isinstance(content, str):
        return content
    return "\n\n".join(part["text"] for part in content if part["type"] == "text")


def check_kept_apart(it: Modelled) -> None:
    """The note stands between the two requests, and says what became of the first."""
    words = last_words(it.server.last)
    _, first, note, second = words.split("[koboshi]")
    assert first.endswith(f":\n{ASKED}\n\n"), words
    assert f"«{ASKED}»" in note
    assert note.endswith(f"{NOT_AGAIN}\n\n"), words
    assert second.endswith(":\nhi"), words


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.name)
@pytest.mark.parametrize("is_killed", [False, True], ids=["at-once", "after-a-kill"])
async def test_what_was_stopped_is_not_asked_again_with_the_next_message(
    home: Path, form: Form, is_killed: bool
) -> None:
    """Issue 12, A2: the model was asked `Delete the old backups\\n\\nhi` after a /stop."""
    async with modelled(home, form) as it:
        it.server.answers.append(Answer(hangs_after=Event()))
        await it.person.say(ASKED, "1")
        await until(lambda: len(it.server.requests) == 1, "the model is asked")
        await it.person.say("/stop", "2")
        await it.person.hears("Stopped")
        if is_killed:
            await it.restart()
        it.server.answers.append(it.says("hello"))
        await it.person.say("hi", "3")
        await it.person.hears("hello")
        await checked(it.life)

    check_kept_apart(it)


async def test_what_failed_is_not_asked_again_with_the_next_message(home: Path) -> None:
    """Issue 12, A2: the model refused the first request for good."""
    async with modelled(home, OPENAI) as it:
        it.server.answers.append(it.form.error(400, "no such thing"))
        await it.person.say(ASKED, "1")
        await it.person.hears("I could not finish")
        it.server.answers.append(it.says("hello"))
        await it.person.say("hi", "2")
        await it.person.hears("hello")
        await checked(it.life)

    check_kept_apart(it)


@pytest.mark.parametrize("is_killed", [False, True], ids=["at-once", "after-a-kill"])
async def test_a_retry_is_told_what_ran_before(home: Path, is_killed: bool) -> None:
    """Issue 12, A2: the command ran, then the turn failed. The turn that asks again opens with the
    same words as one that a crash has interrupted."""
    async with modelled(home, OPENAI) as it:
        it.server.answers += [
            it.proposes(run("echo begun >> lines")),
            it.form.error(400, "no such thing"),
        ]
        await it.person.say("do it", "1")
        await it.person.hears("I could not finish")
        if is_killed:
            await it.restart()
        it.server.answers.append(it.says("it was done before"))
        await it.person.say("/retry", "2")
        await it.person.hears("it was done before")
        await checked(it.life)

    words = last_words(it.server.last)
    assert words.endswith(":\ndo it"), words
    note = words.split("[koboshi]")[-2]
    assert "echo begun >> lines" in note
    assert "do not repeat it" in note
    assert it.lines() == ["begun"]
    assert words_in(it.server.last).count("do it") >= 2
