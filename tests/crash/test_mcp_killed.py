"""A gateway is killed while a tool of an MCP server runs. The server counts in a file."""

import json
import sys
from pathlib import Path

import pytest

from tests.crash.stories import CHAT, script
from tests.crash.telling import checked
from tests.harness.lives import KILLED_BY_HAND, Lives, lives
from tests.harness.polling import until
from tests.tools.servers import FAKES, HttpServer, executions

pytest.importorskip("mcp")


TOKEN = "canary-token-of-a-server"
LOADS = ("koboshi.tools.mcp.http", "koboshi.tools.mcp.link", "koboshi.tools.mcp.stdio")
"""What a gateway imports when a server is configured."""


@pytest.fixture
def count_file(tmp_path: Path) -> Path:
    (tmp_path / "counted").mkdir()
    return tmp_path / "counted" / "count"


def configure(home: Path, **keys: object) -> None:
    home.mkdir(mode=0o700)
    unasked = {"approval": "never", **keys}
    lines = [f"{name} = {json.dumps(value)}" for name, value in unasked.items()]
    (home / "koboshi.toml").write_text("\n".join(["[mcp.x]", *lines]), encoding="utf-8")


def program(count_file: Path, *more: str) -> dict[str, object]:
    args = [str(FAKES / "counting_mcp.py"), str(count_file), *more]
    return {"command": sys.executable, "args": args, "writable": [str(count_file.parent)]}


def calls(tool: str, **arguments: object) -> str:
    return script({"calls": [{"tool": tool, "arguments": arguments}]}, {"text": "through"})


async def until_connected(life: Lives) -> None:
    """For calls that are not once: while the server is not there, every call is judged as that."""
    await until(lambda: "mcp_connected" in life.gateway.log, "the server is there")


@pytest.mark.parametrize("transport", ["stdio", "http"])
async def test_a_once_call_is_executed_once_and_its_outcome_is_unknown(
    home: Path, count_file: Path, transport: str
) -> None:
    """Killed by hand while the tool works: never a second execution, the person is asked, and the
    model is told."""
    slow = ("--slow", "60")
    server = HttpServer(count_file, *slow, "--token", TOKEN) if transport == "http" else None
    address = {"url": server.url, "token_env": "X_TOKEN"} if server else {}
    configure(home, **(address or program(count_file, *slow)))
    try:
        async with lives(home, [KILLED_BY_HAND], env={"X_TOKEN": TOKEN}, loads=LOADS) as life:
            person = life.person(CHAT)
            await person.say(calls("x_count"), "1")
            await until(lambda: executions(count_file) == ["count"], "the tool works")
            life.gateway.kill()
            asked = await person.sees(lambda event: event.kind == "question", "the question")
            await person.say("yes", "2")
            await person.hears("through")
            rows = await checked(life)
            assert TOKEN not in life.gateway.log
    finally:
        if server:
            server.stop()

    assert executions(count_file) == ["count"]
    (call,) = rows.calls
    assert (call["effect"], call["outcome"]) == ("once", "unknown")
    assert "x_count" in asked.fields["text"]
    (result,) = rows.of("steps", kind="result")
    assert "outcome is unknown" in str(result)


@pytest.mark.parametrize(
    "moment,executed,outcome",
    [
        ("turns.start_call:before", 1, "ok"),
        ("turns.start_call:after", 0, "unknown"),
        ("turns.finish_call:before", 1, "unknown"),
        ("turns.finish_call:after", 1, "ok"),
    ],
)
async def test_at_every_moment_of_a_call_it_is_executed_at_most_once(
    home: Path, count_file: Path, moment: str, executed: int, outcome: str
) -> None:
    configure(home, **program(count_file))
    async with lives(home, [moment], loads=LOADS) as life:
        person = life.person(CHAT)
        await person.say(calls("x_count"), "1")
        if outcome == "unknown":
            await person.sees(lambda event: event.kind == "question", "the question")
            await person.say("yes", "2")
        await person.hears("through")
        rows = await checked(life)

    assert len(executions(count_file)) == executed
    assert rows.one("calls")["outcome"] == outcome


async def test_a_trusted_call_that_may_be_repeated_is_repeated(
    home: Path, count_file: Path
) -> None:
    configure(home, **program(count_file), trust_hints=True)
    async with lives(home, ["turns.finish_call:before"], loads=LOADS) as life:
        person = life.person(CHAT)
        await until_connected(life)
        await person.say(calls("x_put", note="a"), "1")
        await person.hears("through")
        rows = await checked(life)

    assert executions(count_file) == ["put", "put"]
    assert rows.one("calls")["effect"] == "repeatable"


async def test_a_destructive_call_waits_for_the_person_over_a_kill(
    home: Path, count_file: Path
) -> None:
    configure(home, **program(count_file), approval="dangerous")
    async with lives(home, [KILLED_BY_HAND], loads=LOADS) as life:
        person = life.person(CHAT)
        await until_connected(life)
        await person.say(calls("x_wipe"), "1")
        asked = await person.hears("May I use wipe of x with this?")
        life.gateway.kill()
        await until(lambda: len(life.remains) == 1, "it is dead")
        assert executions(count_file) == []
        await person.say(
            "", "2", question=asked.fields["question"], choice=asked.fields["choices"][0]["id"]
        )
        await person.hears("through")
        await checked(life)

    assert executions(count_file) == ["wipe"]


async def test_a_call_whose_server_died_is_not_sent_again_in_the_same_turn(
    home: Path, count_file: Path
) -> None:
    """The gateway lives: recovery asks nothing, and the model would just try once more."""
    configure(home, **program(count_file))
    dying: dict[str, object] = {"calls": [{"tool": "x_die", "arguments": {}}]}
    async with lives(home, loads=LOADS) as life:
        person = life.person(CHAT)
        await person.say(script(dying, dying, {"text": "through"}), "1")
        await person.hears("through")
        rows = await checked(life)

    assert executions(count_file) == ["die"]
    assert [call["outcome"] for call in rows.calls] == ["unknown", "error"]
    assert "not started" in str(rows.of("steps", kind="result")[1])
