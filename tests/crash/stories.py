"""What people do in the crash tests. A story does not know that the gateway will be killed: it
posts until it is acknowledged, and waits until it is told."""

import json
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

from tests.harness.client import Event
from tests.harness.holds import tool
from tests.harness.lives import KILLED_BY_HAND, Lives
from tests.harness.polling import until
from tests.harness.rows import read_rows

Telling: TypeAlias = Callable[[Lives, str], Coroutine[Any, Any, None]]

CHAT = "room"
LONG = "\n\n".join(f"paragraph {number} " + "word " * 150 for number in range(60))
"""More than two parts on the web."""


DEAD_FIRST = {
    "KOBOSHI__MODEL__CHAIN": '["dead", "scripted"]',
    "KOBOSHI__MODELS__DEAD__MODEL": "ollama:none",
    "KOBOSHI__MODELS__DEAD__BASE_URL": "http://127.0.0.1:9/v1",
}
"""A chain whose first model is out of reach."""


@dataclass(frozen=True, slots=True)
class Story:
    tell: Telling
    is_repeatable: bool = True
    """Whether every run leaves the same transcript, killed or not."""
    stops: bool = False
    """Whether a person asks the gateway to stop in the middle of it."""
    first: tuple[str, ...] = ()
    """How its first lives end, whatever else is planned."""
    env: Mapping[str, str] = field(default_factory=dict)
    """How the gateway is configured."""


def script(*items: dict[str, object]) -> str:
    return f"script: {json.dumps(items)}"


def pauses(*seconds: float) -> dict[str, object]:
    return {"calls": [{"tool": "pause", "arguments": {"seconds": each}} for each in seconds]}


def is_running(event: Event) -> bool:
    return event.kind == "turn" and event.fields["state"] == "running"


def is_postponed(event: Event) -> bool:
    return event.kind == "turn" and event.fields["event"] == "postponed"


WAITS = "until [ -e {} ]; do sleep 0.05; done"


def run(command: str, **options: object) -> dict[str, object]:
    """A call of the terminal."""
    return {"tool": "terminal", "arguments": {"command": command, **options}}


def ran(life: Lives) -> str:
    return (life.gateway.workdir / "ran").read_text(encoding="ascii")


async def echo(life: Lives, chat: str) -> None:
    person = life.person(chat)
    await person.say("echo hello", "1")
    await person.hears("hello")


async def two_tools(life: Lives, chat: str) -> None:
    """Two calls side by side, then one more, then the answer."""
    person = life.person(chat)
    await person.say(script(pauses(0.02, 0.06), pauses(0.01), {"text": "paused"}), "1")
    await person.hears("paused")


async def question(life: Lives, chat: str) -> None:
    """A question with choices, and its answer by a button."""
    person = life.person(chat)
    await person.say("ask me which drink: tea, coffee or water", "1")
    asked = await person.hears("Which drink")
    coffee = asked.fields["choices"][1]
    await person.say("", "2", question=asked.fields["question"], choice=coffee["id"])
    await person.hears("You said: coffee.")


async def follow_ups(life: Lives, chat: str) -> None:
    """Two more messages while the first is worked on: each gets a turn of its own, in order. Where
    the gateway died before it came to them, they are a backlog and may be answered together."""
    person = life.person(chat)
    await person.say(script({"text": "first", "sleep_ms": 150}), "1")
    await person.say("echo second", "2")
    await person.say("echo third", "3")
    await person.hears("third")
    assert "\n\n".join(person.heard()).split("\n\n") == ["first", "second", "third"]


async def long_answer(life: Lives, chat: str) -> None:
    person = life.person(chat)
    await person.say(script({"text": LONG}), "1")
    await person.sees(lambda event: event.is_words("paragraph 59"), "the last part")


async def stop(life: Lives, chat: str) -> None:
    """A turn that hangs in a tool is stopped, one that waits is dropped, and life goes on."""
    person = life.person(chat)
    await person.say(script(pauses(50), {"text": "never said"}), "1")
    await person.say("echo dropped", "2")
    await person.sees(is_running, "the turn runs")
    await person.say("/stop", "3")
    await person.hears("Stopped")
    await person.say("echo after", "4")
    await person.hears("after")
    assert not any("never said" in words or words == "dropped" for words in person.heard())


async def empty_once(life: Lives, chat: str) -> None:
    """The model says nothing, is asked again, and then answers."""
    person = life.person(chat)
    await person.say(script({"empty": True}, {"text": "words at last"}), "1")
    await person.hears("words at last")


async def refused(life: Lives, chat: str) -> None:
    """The model will not answer: one apology."""
    person = life.person(chat)
    await person.say("fail", "1")
    await person.hears("I could not finish")
    assert len(person.heard()) == 1


async def busy_model(life: Lives, chat: str) -> None:
    """The model does not answer for now. No caller waits that long: it is stopped."""
    person = life.person(chat)
    await person.say(script({"busy": {}}), "1")
    await until(lambda: life.is_asked_for("turns.retry_model"), "the model is tried again")
    await person.say("/stop", "2")
    await person.hears("Stopped")
    await person.say("echo after", "3")
    await person.hears("after")


async def command(life: Lives, chat: str) -> None:
    """A command that must not run twice leaves a line in a file."""
    person = life.person(chat)
    await person.say("run echo ran >> ran; sleep 0.1; echo done", "1")
    await person.hears("done")
    assert ran(life) == "ran\n", "it ran twice, or not at all"


async def killed_command(life: Lives, chat: str) -> None:
    """A command in the background is started, and then ended by the agent."""
    person = life.person(chat)
    start = {"tool": "terminal", "arguments": {"command": "sleep 60", "background": True}}
    end = {"tool": "process", "arguments": {"action": "kill", "process_id": "p1"}}
    await person.say(script({"calls": [start]}, {"calls": [end]}, {"text": "it is over"}), "1")
    await person.hears("it is over")


async def patience(life: Lives, chat: str) -> None:
    """The model asks for a wait that no one holds a place for. It is stopped meanwhile."""
    person = life.person(chat)
    await person.say(script({"busy": {"retry_after_ms": 8_000}}), "1")
    await person.sees(is_postponed, "the turn is set down")
    await person.say("/stop", "2")
    await person.hears("Stopped")
    await person.say("echo after", "3")
    await person.hears("after")


async def long_wait(life: Lives, chat: str) -> None:
    """A turn that takes longer than the person hears nothing of it; the answer comes last."""
    person = life.person(chat)
    with life.hold(tool("pause")):
        await person.say(script(pauses(0), {"text": "waited"}), "1")
        await person.hears("Still working, ")
    await person.hears("waited")
    *notices, answer = person.heard()
    assert answer == "waited"
    assert all(each.startswith("Still working, ") for each in notices)


async def long_talk(life: Lives, chat: str) -> None:
    """More than the model is shown at once: first in earlier turns, then in one long turn."""
    person = life.person(chat)
    words = "word " * 1_600
    for number in ("1", "2", "3"):
        await person.say(f"echo {number} {words}", number)
        await person.sees(lambda event, n=number: event.is_words(f"{n} word"), "the echo")  # type: ignore[misc]
    # A command that was under way when a gateway died is not repeated word for word.
    looks: list[dict[str, object]] = [
        {"calls": [run(f"seq {number} {2_000 + number}")]} for number in range(6)
    ]
    await person.say(script(*looks, {"text": "looked"}), "4")
    await person.hears("looked")


async def tool_and_job(life: Lives, chat: str) -> None:
    """Two calls of one reply, one of them in the background: its end is told later, by itself."""
    person = life.person(chat)
    beside = run("echo beside >> ran; echo seen")
    job = f"echo job >> ran; {WAITS.format('go')}; exit 3"
    behind = run(job, background=True, notify_on_complete=True)
    calls: dict[str, object] = {"calls": [beside, behind]}
    await person.say(script(calls, {"text": "both began"}), "1")
    await person.hears("both began")
    (life.gateway.workdir / "go").touch()
    said = await person.hears("exited with code 3")
    assert said.kind == "answer"
    assert person.heard()[0] == "both began"
    assert sorted(ran(life).split()) == ["beside", "job"], "one ran twice, or not at all"


async def ended_while_down(life: Lives, chat: str) -> None:
    """A command in the background ends while no gateway is there; the next one tells how."""
    person = life.person(chat)
    folder = life.gateway.home / "processes" / "1"

    async def ends() -> None:
        (life.gateway.workdir / "go").touch()
        await until((folder / "exit.json").exists, "the command ends")

    life.while_down = ends
    await person.say(f"in background echo ran >> ran; {WAITS.format('go')}; exit 3", "1")
    await person.hears("It runs in the background as p1.")
    life.gateway.kill()
    said = await person.hears("exited with code 3")
    assert said.kind == "answer"
    assert len(person.heard()) == 2
    assert ran(life) == "ran\n", "it ran twice, or not at all"


async def job(life: Lives, chat: str) -> None:
    """A command in the background ends by itself, and the agent says so without being asked."""
    person = life.person(chat)
    command = f"echo ran >> ran; {WAITS.format('go')}; echo worked; exit 3"
    await person.say(f"in background {command}", "1")
    await person.hears("It runs in the background as p1.")
    (life.gateway.workdir / "go").touch()
    said = await person.hears("exited with code 3")
    assert said.kind == "answer"
    assert said.fields["text"].endswith("worked")
    assert sum("exited" in words for words in person.heard()) == 1
    assert ran(life) == "ran\n", "it ran twice, or not at all"


async def watched(life: Lives, chat: str) -> None:
    """A command in the background prints what the agent looks for, and later ends; no one asked to
    be told of that, so the person is."""
    person = life.person(chat)
    command = f"{WAITS.format('go')}; echo it is ready; {WAITS.format('end')}"
    start = {"command": command, "background": True, "watch_patterns": ["ready"]}
    call: dict[str, object] = {"calls": [{"tool": "terminal", "arguments": start}]}
    await person.say(script(call, {"text": "I am watching it"}), "1")
    await person.hears("I am watching it")
    (life.gateway.workdir / "go").touch()
    found = await person.hears("it is ready")
    assert found.kind == "answer"
    (life.gateway.workdir / "end").touch()
    ended = await person.sees(lambda event: event.kind == "notice", "the end is told")
    assert "exited with code 0" in ended.fields["text"]
    assert len(person.heard()) == 3


async def in_hand(life: Lives, chat: str) -> None:
    """The operator drops a message that waits, and then has it asked again."""
    person, operator = life.person(chat), life.operator()
    await person.say(f"run {WAITS.format('go')}; echo first", "1")
    await person.sees(is_running, "the turn runs")
    waits = await person.say("echo second", "2")
    told = await operator.post(f"inbox/{waits.message}/drop")
    # Where the gateway died behind the commit, it says that it was done before.
    assert told.status_code == 200 or "it was dropped before (by-hand)" in told.text, told.text
    (life.gateway.workdir / "go").touch()
    await person.hears("first")
    assert len(person.answered()) == 1
    told = await operator.post(f"inbox/{waits.message}/retry")
    assert told.status_code == 200 or " was asked again as m3" in told.text, told.text
    await person.hears("second")
    assert person.answered()[1:] == ["second"]


async def stopped_gateway(life: Lives, chat: str) -> None:
    """The gateway is asked to stop while a turn runs."""
    person = life.person(chat)
    with life.hold(tool("pause", seconds=0.02)) as held:
        pause = pauses(0.02)
        await person.say(script(pauses(0.01), pause, pause, {"text": "carried over"}), "1")
        await life.comes_to(held)
        # Before it listens, a signal may find a process that does not know what to do with it.
        await until(lambda: life.address, "the gateway listens")
        ended = len(life.remains)
        life.stop()
        await until(
            lambda: "gateway_draining" in life.gateway.log or len(life.remains) > ended,
            "it drains, or has died",
        )
    await person.hears("carried over")


async def reminder(life: Lives, chat: str) -> None:
    """A reminder is told once, whenever the gateway dies; a schedule that the agent made is run by
    hand."""
    person = life.person(chat)
    await person.say("/remind in 1 second the tea is ready", "1")
    await person.hears("Reminder: the tea is ready")
    order = {"action": "create", "name": "news", "when": "every 2 hours", "prompt": "echo the news"}
    made: dict[str, object] = {"calls": [{"tool": "schedule", "arguments": order}]}
    await person.say(script(made, {"text": "it is made"}), "2")
    await person.hears("it is made")
    await person.say("/cron run c2", "3")
    await until(lambda: "the news" in person.answered(), "it is run by hand")
    assert sorted(person.answered()) == ["it is made", "the news"]
    assert person.heard().count("Reminder: the tea is ready") == 1


async def standing_goal(life: Lives, chat: str) -> None:
    """A goal is worked on, judged and reached, once."""
    person = life.person(chat)
    await person.say("/goal echo all is DONE", "1")
    await person.hears("is reached")
    assert person.answered() == ["all is DONE"]


async def family(life: Lives, chat: str) -> None:
    """Two sub-agents are asked for, one of which asks for another. Each is heard of once."""
    person = life.person(chat)
    deeper = script(delegates("echo the deepest word"), {"text": "it is asked"})
    await person.say(script(delegates("echo one word", deeper), {"text": "both are asked"}), "1")
    await until(lambda: all(each.endswith("answered") for each in ends(life)), "all are heard of")
    await until(lambda: len(ends(life)) == 3, "there are three")
    assert "one word" not in person.answered(), "no person is told what a sub-agent answers"


def delegates(*tasks: str) -> dict[str, object]:
    return {"calls": [{"tool": "delegate", "arguments": {"task": each}} for each in tasks]}


def ends(life: Lives) -> list[str]:
    """The sub-agents that were made, and how each was heard of, once."""
    rows = read_rows(life.gateway.home)
    told = {row["external_id"]: row["state"] for row in rows.of("inbox", kind="child")}
    return [
        f"{row['child_id']} {row['how'] if told.get(str(row['child_id'])) == 'attached' else ''}"
        for row in rows.of("children")
    ]


async def remembered(life: Lives, chat: str) -> None:
    """Notes are made once, shown in the next turn, and edited by hand between two turns."""
    person = life.person(chat)
    first = note("add", content="likes tea", target="user"), note("add", content="has a cat")
    await person.say(script({"calls": [*first]}, {"text": "noted"}), "1")
    await person.hears("noted")
    folder = life.gateway.home / "memory"
    notes = await until(lambda: next(folder.glob("*/MEMORY.md"), None), "the file is written")
    await until(lambda: "has a cat" in content_of(notes), "it shows the note")
    edited = notes.read_text(encoding="utf-8").replace("has a cat", "has two cats")
    notes.write_text(edited, encoding="utf-8")
    changed = note("replace", old_text="two cats", content="has three cats")
    await person.say(script({"calls": [changed]}, {"text": "changed"}), "2")
    await person.hears("changed")
    await until(lambda: "three cats" in content_of(notes), "it is written anew")
    await person.say("/memory", "3")
    await until(lambda: "has three cats" in str(person.heard()), "it is listed")
    assert str(person.heard()).count("likes tea") == 1


def content_of(notes: Path) -> str:
    """Empty while the file is being replaced: for a moment there is none at its name."""
    try:
        return notes.read_text(encoding="utf-8")
    except FileNotFoundError:
        return ""


def note(action: str, **arguments: str) -> dict[str, object]:
    """A call of the memory."""
    return {"tool": "memory", "arguments": {"action": action, **arguments}}


STORIES = {
    "family": Story(family, is_repeatable=False),
    "remembered": Story(remembered, is_repeatable=False),
    "reminder": Story(reminder, is_repeatable=False),
    "standing-goal": Story(standing_goal, is_repeatable=False),
    "echo": Story(echo),
    "two-tools": Story(two_tools),
    "tool-and-job": Story(tool_and_job, is_repeatable=False),
    "question": Story(question),
    "follow-ups": Story(follow_ups, is_repeatable=False),
    "long-answer": Story(long_answer),
    "stop": Story(stop, is_repeatable=False),
    "empty-once": Story(empty_once),
    "refused": Story(refused),
    "busy-model": Story(busy_model, is_repeatable=False),
    "chain": Story(echo, env=DEAD_FIRST),
    "budget": Story(two_tools, env={"KOBOSHI__BUDGET__DAY": "100"}),
    "patience": Story(patience, is_repeatable=False),
    "long-talk": Story(long_talk, env={"KOBOSHI__LIMITS__CONTEXT_TOKENS_MAX": "13000"}),
    "long-wait": Story(long_wait, env={"KOBOSHI__GATEWAY__PROGRESS_SECONDS": "0.4"}),
    "command": Story(command),
    "killed-command": Story(killed_command, is_repeatable=False),
    "job": Story(job, is_repeatable=False),
    "watched": Story(watched, is_repeatable=False),
    "ended-while-down": Story(ended_while_down, first=(KILLED_BY_HAND,)),
    "in-hand": Story(in_hand),
    "stopped-gateway": Story(stopped_gateway, stops=True),
    # A turn was running when the gateway died, so that the next life has something to recover.
    "recovery": Story(two_tools, first=("turns.start_call:after:2",)),
}
