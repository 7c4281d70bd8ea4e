"""A gateway beside programs of others that come and go: what it says of them, and what it does."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cli.process import koboshi
from tests.crash.stories import CHAT, script
from tests.crash.telling import checked
from tests.harness.http import connection
from tests.harness.lives import Lives, lives
from tests.harness.modelled import modelled
from tests.harness.polling import until, until_asked
from tests.harness.process import GatewayProcess
from tests.models.asking import KEY
from tests.models.forms import OPENAI
from tests.tools.everything import FOLDER, Everything, installed, sections
from tests.tools.servers import descendants_of, is_alive

pytest.importorskip("mcp")


@pytest.fixture
def everything(tmp_path: Path) -> Iterator[Everything]:
    server = Everything(tmp_path / "everything.log")
    yield server
    server.kill()


def echoes(words: str) -> str:
    calls = [{"tool": "everything_echo", "arguments": {"message": words}}]
    return script({"calls": calls}, {"text": f"told {words}"})


async def neighbours(gateway: GatewayProcess) -> dict[str, Any]:
    """What `/readyz` says of each, and that the gateway is ready all the same."""
    address = gateway.address
    assert address is not None
    async with connection(address, gateway.token) as http:
        answer = await http.get("/readyz")
    assert answer.status_code == 200, answer.text
    return {each["name"]: each for each in answer.json()["neighbours"]}


async def metrics(gateway: GatewayProcess) -> str:
    address = gateway.address
    assert address is not None
    async with connection(address, gateway.token) as http:
        return (await http.get("/metrics")).text


async def until_server_is(life: Lives, *, well: bool) -> str:
    async def ask() -> str | None:
        told = (await neighbours(life.gateway))["mcp:everything"]
        return str(told["reason"]) if told["ok"] is well else None

    return await until_asked(ask, f"the server is {'there' if well else 'away'}")


async def test_a_server_that_restarts_is_named_everywhere_and_called_again(
    home: Path, everything: Everything
) -> None:
    """Issue 13, C16: restarted, it answers our session with 400; the gateway was never told."""
    home.mkdir(mode=0o700)
    text = sections(everything={"url": everything.url, "approval": "never"})
    (home / "koboshi.toml").write_text(text, encoding="utf-8")
    async with lives(home) as life:
        person = life.person(CHAT)
        await person.say(echoes("one"), "1")
        await person.hears("told one")
        assert await until_server_is(life, well=True) == "connected"

        everything.kill()
        assert await until_server_is(life, well=False)
        status = koboshi("status", "--json", home=home).document
        (server,) = [each for each in status["neighbours"] if each["name"] == "mcp:everything"]
        assert not server["ok"]
        assert "mcp:everything trouble: " in koboshi("status", home=home).out
        everything.start()
        await until_server_is(life, well=True)

        everything.kill()
        everything.start()
        await person.say(echoes("two"), "2")
        await person.hears("told two")
        rows = await checked(life)
        log = life.gateway.log

    assert [call["outcome"] for call in rows.calls] == ["ok", "ok"]
    assert "mcp_not_connected" in log
    assert log.count("mcp_connected") >= 2


async def test_a_server_that_npx_started_dies_with_a_gateway_that_is_killed(home: Path) -> None:
    """Issue 13, C20: npx forks a shell and a server, which lived on for half a minute."""
    installed()
    home.mkdir(mode=0o700)
    npx = {"command": "npx", "args": ["--prefix", str(FOLDER), "--no", "mcp-server-everything"]}
    npx |= {"readable": [str(FOLDER)]}
    (home / "koboshi.toml").write_text(sections(everything=npx), encoding="utf-8")
    gateway = GatewayProcess(home)
    gateway.start()
    try:
        await until(lambda: "mcp_connected" in gateway.log, "the server is there")
        alive = descendants_of(gateway.pid)
        names = [Path(f"/proc/{pid}/cmdline").read_text() for pid in alive]
        assert any("dist/index.js" in name or "mcp-server-everything" in name for name in names)
        assert len(alive) >= 3, names
        gateway.kill()

        await until(lambda: not any(is_alive(pid) for pid in alive), "all are gone")
    finally:
        gateway.bury()


async def test_readyz_names_the_last_outcome_of_the_model_and_stays_ready(home: Path) -> None:
    """Issue 13, C21: a model that refuses does not make the gateway unready; people are answered
    as soon as the model is back."""
    async with modelled(home, OPENAI) as it:
        await it.gateway.wait_ready()
        assert (await neighbours(it.gateway))["model"] == {
            "name": "model",
            "ok": True,
            "reason": "not asked since the start",
        }
        before = await metrics(it.gateway)
        it.server.answers += [OPENAI.error(401, f"Incorrect API key provided: {KEY}")]
        await it.person.say("hello", "1")
        await until(lambda: it.server.requests, "the model is asked")

        async def refused() -> dict[str, Any] | None:
            told: dict[str, Any] = (await neighbours(it.gateway))["model"]
            return None if told["ok"] else told

        told = await until_asked(refused, "the refusal is named")
        await it.person.sees(lambda event: event.fields.get("state") == "failed", "it failed")
        counted = await metrics(it.gateway)
        it.server.answers += [it.says("hello yourself")]
        await it.person.say("hello again", "2")
        await it.person.hears("hello yourself")
        after = (await neighbours(it.gateway))["model"]

    assert 'koboshi_turns_total{outcome="failed"} 0' in before
    assert 'koboshi_turns_total{outcome="failed"} 1' in counted
    assert 'koboshi_neighbour_up{neighbour="model"} 1' in before
    assert 'koboshi_neighbour_up{neighbour="model"} 0' in counted
    assert told["reason"].startswith("refused ")
    assert "the key was refused by the provider" in told["reason"]
    assert KEY not in json.dumps(told)
    assert after["ok"]
    assert after["reason"].startswith("answered ")
