"""Issue 12, A3: work for a person who may not use the gateway any more does not run, and no one
waits behind it. A real gateway in a group of the fake Telegram."""

import json
import sys
from pathlib import Path

import pytest
from anyio import run_process

from tests.fakes.telegram.state import Chat, User
from tests.harness.polling import until
from tests.harness.rows import read_rows
from tests.harness.telegram import Bot, a_bot

ALLOW = "KOBOSHI__CHANNELS__TELEGRAM__MAIN__ALLOW"


def work(command: str) -> str:
    """Words that make the model run a command, and then say that it did."""
    calls = [{"tool": "terminal", "arguments": {"command": command}}]
    return f"script: {json.dumps([{'calls': calls}, {'text': 'I did it'}])}"


def a_group(bot: Bot) -> tuple[Chat, User]:
    return bot.world.supergroup(), bot.world.user("Eve", "eve")


def found_below(bot: Bot, name: str) -> list[Path]:
    """The files of that name, in any work folder: a group has one of its own."""
    return list(bot.gateway.workdir.rglob(name))


async def koboshi(bot: Bot, *arguments: str) -> str:
    command = [sys.executable, "-m", "koboshi", *arguments, "--home", str(bot.gateway.home)]
    ended = await run_process(command, check=False)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout.decode()


@pytest.mark.parametrize("writes", ["before", "after"])
async def test_a_changed_list_keeps_a_command_from_running_when_another_person_writes(
    home: Path, writes: str
) -> None:
    """Eve's command was proposed when the gateway died. The next one does not know her. Red
    before: it ran as soon as ann wrote, and what ann wrote waited behind it."""
    async with a_bot(home) as bot:
        group, eve = a_group(bot)
        bot.env[ALLOW] = f"[{bot.ann.user_id}, {eve.user_id}]"
        bot.world.say(group, eve, f"@{bot.world.bot.username} {work('touch ran')}")
        bot.start(crash_at="turns.append:after")
        await bot.dies()
        bot.env[ALLOW] = f"[{bot.ann.user_id}]"
        if writes == "before":
            bot.say(f"@{bot.world.bot.username} echo and me", group)
        bot.start()
        if writes == "after":
            await until(
                lambda: read_rows(home).of("turns", state="suspended"), "eve's turn is set aside"
            )
            bot.say(f"@{bot.world.bot.username} echo and me", group)
        await bot.hears("and me", group)
        rows = await bot.comes_to_rest()

    assert not found_below(bot, "ran")
    assert rows.turns[0]["rule"] == "not-allowed-behind"
    assert "I did it" not in bot.said(group)


async def test_revoked_while_the_command_runs_and_the_others_are_served(home: Path) -> None:
    """Eve was let in by a code and loses the right while her command runs: it is asked to end, and
    what ann wrote behind it is answered."""
    async with a_bot(home) as bot:
        group, eve = a_group(bot)
        bot.start()
        bot.world.say(bot.world.private_chat(eve), eve, "let me in")
        said = await bot.hears("koboshi pairing approve", bot.world.private_chat(eve))
        code = said.text.split("approve ")[1].split("`")[0].rstrip(".")
        await koboshi(bot, "pairing", "approve", code)
        command = "touch begun; sleep 300; touch ran"
        bot.world.say(group, eve, f"@{bot.world.bot.username} {work(command)}")
        await until(lambda: found_below(bot, "begun"), "eve's command runs")
        bot.say(f"@{bot.world.bot.username} echo and me", group)
        await until(lambda: read_rows(home).of("inbox", state="waiting"), "ann waits")
        await koboshi(bot, "pairing", "revoke", "telegram:main", str(eve.user_id))
        await bot.hears("and me", group)
        rows = await bot.comes_to_rest()
        await until(
            lambda: all(row["ended_ms"] for row in read_rows(home).of("processes")),
            "the command has ended",
        )

    assert not found_below(bot, "ran")
    assert rows.turns[0]["rule"] == "not-allowed-behind"
    assert "I did it" not in bot.said(group)
