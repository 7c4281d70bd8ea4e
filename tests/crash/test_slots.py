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
