"""Commands that run for long, and the people in the other chats."""

from pathlib import Path

from tests.crash.telling import checked
from tests.harness.lives import KILLED_BY_HAND, Lives, lives
from tests.harness.polling import until

COMMANDS = 17
"""One more than `gateway.max_turns` has slots."""


def waits_for(name: str, file: str = "go") -> str:
    """A command that says that it runs, and ends when there is such a file."""
    return f"run echo {name} >> begun; until [ -e {file} ]; do sleep 0.1; done; echo {name} is done"


def begun(life: Lives) -> list[str]:
    """The commands that were started, each time."""
    file = life.gateway.workdir / "begun"
    return file.read_text(encoding="ascii").split() if file.exists() else []


async def let_go(life: Lives, file: str = "go") -> None:
    (life.gateway.workdir / file).touch()


async def start_commands(life: Lives, count: int) -> list[str]:
    """Each in a chat of its own; returns when all of them run."""
    chats = [f"c{number}" for number in range(count)]
    for chat in chats:
        await life.person(chat).say(waits_for(chat), "1")
    await until(
        lambda: len(begun(life)) == count,
        f"{count} commands run",
        otherwise=lambda: f"{begun(life)}",
    )
    return chats


async def test_commands_that_wait_in_many_chats_do_not_delay_another_chat(home: Path) -> None:
    """Issue 12, B10: more foreground commands than there are slots wait for a file. A message in
    another chat is answered while they run, and each of them is answered when it has ended."""
    async with lives(home) as life:
        chats = await start_commands(life, COMMANDS)
        quick = life.person("quick")
        await quick.say("echo hello", "1")
        await quick.hears("hello")
        assert not any(life.people[chat].answered() for chat in chats)
        await let_go(life)
        for chat in chats:
            await life.people[chat].hears(f"{chat} is done")
        rows = await checked(life)

    assert sorted(begun(life)) == sorted(chats)
    assert {turn["state"] for turn in rows.turns} == {"done"}


async def test_a_command_beyond_the_limit_is_not_started_and_why_says_so(home: Path) -> None:
    """Issue 12, B10: two commands may run, and a third waits. `/why` names the reason, the kill
    finds its start not committed, and in the next life all three run once."""
    settings = {"KOBOSHI__GATEWAY__MAX_COMMANDS": "2"}
    async with lives(home, [KILLED_BY_HAND], env=settings) as life:
        chats = await start_commands(life, 2)
        late = life.person("late")
        await late.say(waits_for("late"), "1")
        await late.sees(lambda event: event.fields.get("state") == "running", "it is worked on")
        await until(lambda: late.events[-1].kind == "step", "its command was proposed")
        await late.say("/why", "2")
        why = (await late.hears("Why: ")).fields["text"]
        life.gateway.kill()
        await life.all_ends()
        (call,) = [each for each in life.remains[0].calls if "late" in each["arguments"]]
        assert call["started_ms"] is None
        assert sorted(begun(life)) == chats
        await let_go(life)
        for chat in (*chats, "late"):
            await life.people[chat].hears(f"{chat} is done")
        await checked(life)

    assert "2 commands run, as many as may at once (gateway.max_commands)" in why
    assert sorted(begun(life)) == [*chats, "late"]


async def test_a_turn_beyond_the_limit_of_open_ones_waits_and_why_says_so(home: Path) -> None:
    """Issue 12, B10: two turns may be open, and both wait for their commands. `/why` of a third
    names the reason; `/stop` of one of them lets it begin."""
    settings = {"KOBOSHI__GATEWAY__MAX_OPEN_TURNS": "2"}
    async with lives(home, env=settings) as life:
        chats = await start_commands(life, 2)
        late = life.person("late")
        await late.say("echo hello", "1")
        await late.say("/why", "2")
        why = (await late.hears("Why: ")).fields["text"]
        stopped = life.people[chats[0]]
        await stopped.say("/stop", "2")
        await late.hears("hello")
        await stopped.sees(lambda event: event.fields.get("state") == "killed", "its end")
        await let_go(life)
        await life.people[chats[1]].hears(f"{chats[1]} is done")
        await checked(life)

    assert "2 turns are worked on, as many as may be at once (gateway.max_open_turns)" in why


async def test_a_command_that_waits_for_a_slot_is_not_said_to_be_thought_about(home: Path) -> None:
    """Issue 13: one command may run. The progress line of a second one says what it waits for."""
    settings = {
        "KOBOSHI__GATEWAY__MAX_COMMANDS": "1",
        "KOBOSHI__GATEWAY__PROGRESS_SECONDS": "0.1",
    }
    async with lives(home, env=settings) as life:
        (first,) = await start_commands(life, 1)
        late = life.person("late")
        await late.say(waits_for("late"), "1")
        told = await late.hears("waiting for a slot before running `echo late")
        await let_go(life)
        for chat in (first, "late"):
            await life.people[chat].hears(f"{chat} is done")
        await checked(life)

    assert told.fields["text"].startswith("Still working, ")
