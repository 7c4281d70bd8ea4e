"""A real gateway with plug-ins that are installed beside it, whole ones and broken ones."""

import json
from pathlib import Path

import pytest

from tests.crash.stories import CHAT, script
from tests.crash.telling import checked
from tests.fakes.plugins.installing import install, install_example
from tests.harness.lives import KILLED_BY_HAND, lives
from tests.harness.polling import until
from tests.harness.process import GatewayProcess
from tests.harness.rows import Rows

JOT: dict[str, object] = {"calls": [{"tool": "jot", "arguments": {"line": "milk"}}]}

MODEL = """
from koboshi.plugin import ModelReply

class Parrot:
    def __init__(self, setting):
        self.setting = setting

    async def respond(self, request):
        words = request.steps[-1].body.text
        return ModelReply(text=f"{self.setting.model}/{self.setting.api_key}: {words}")
"""


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """A folder on the path of Python."""
    folder = tmp_path / "site"
    folder.mkdir()
    return folder


def configure(home: Path, text: str) -> None:
    home.mkdir(mode=0o700)
    (home / "koboshi.toml").write_text(text, encoding="utf-8")


def results(rows: Rows) -> list[str]:
    return [json.dumps(row) for row in rows.of("steps", kind="result")]


async def test_the_example_of_the_documentation_is_a_tool_of_the_gateway(
    home: Path, site: Path
) -> None:
    """Broken ones beside it are named in the log, with their distribution and a remedy."""
    install_example(site)
    tools = {"koboshi.tools": {"torn": "torn:tool"}}
    install(site, "torn-tool", "2.1", tools, torn="raise RuntimeError('torn apart')")
    leaving = {"koboshi.tools": {"leaving": "leaving:tool"}}
    install(site, "leaving-tool", "0.1", leaving, leaving="import sys; sys.exit(3)")
    configure(home, '[tools.settings.jot]\nfile = "list.txt"\n')

    async with lives(home, env={"PYTHONPATH": str(site)}) as life:
        person = life.person(CHAT)
        await person.say(script(JOT, {"text": "through"}), "1")
        await person.hears("through")
        rows = await checked(life)
        log = life.gateway.log

    written = life.gateway.workdir / "list.txt"
    assert written.read_text(encoding="utf-8") == "milk\n"
    (call,) = rows.calls
    assert (call["tool"], call["effect"], call["outcome"]) == ("jot", "once", "ok")
    left_out = [line for line in log.splitlines() if "plugin_left_out" in line]
    assert len(left_out) == 2
    for line, parts in zip(
        sorted(left_out, key=lambda line: "torn" in line),
        [("leaving-tool 0.1", "SystemExit"), ("torn-tool 2.1", "torn apart")],
        strict=True,
    ):
        assert all(part in line for part in (*parts, "plugins under [tools]"))


@pytest.mark.parametrize(
    "moment, lines", [("turns.start_call:after", 0), ("turns.finish_call:before", 1)]
)
async def test_a_tool_of_a_plugin_that_is_once_is_never_run_twice(
    home: Path, site: Path, moment: str, lines: int
) -> None:
    install_example(site)
    async with lives(home, [moment], env={"PYTHONPATH": str(site)}) as life:
        person = life.person(CHAT)
        await person.say(script(JOT, {"text": "through"}), "1")
        await person.sees(lambda event: event.kind == "question", "the question")
        await person.say("yes", "2")
        await person.hears("through")
        rows = await checked(life)

    notebook = life.gateway.workdir / "notebook.txt"
    assert (notebook.read_text(encoding="utf-8") if notebook.exists() else "") == "milk\n" * lines
    assert rows.one("calls")["outcome"] == "unknown"


async def test_an_approval_given_while_the_plugins_still_load_is_not_lost(
    home: Path, site: Path
) -> None:
    """The second life answers before its plug-in is there: the call waits for it."""
    slow = """
import pathlib, threading
from koboshi.plugin import DeclaredTool, Effect, Need
from msgspec import Struct

while not pathlib.Path(__file__).with_name("may-load").exists():
    threading.Event().wait(0.02)

class Nothing(Struct):
    pass

async def act(arguments, context):
    return "acted"

TOOL = DeclaredTool(
    name="act", description="", takes=Nothing, does=act, effect=Effect.ONCE, need=Need.APPROVAL
)
"""
    install(site, "slow-tool", "1", {"koboshi.tools": {"act": "slow_tool:TOOL"}}, slow_tool=slow)
    may_load = site / "may-load"
    may_load.touch()
    act: dict[str, object] = {"calls": [{"tool": "act", "arguments": {}}]}
    async with lives(home, [KILLED_BY_HAND], env={"PYTHONPATH": str(site)}) as life:
        person = life.person(CHAT)
        await person.say(script(act, {"text": "through"}), "1")
        await person.sees(lambda event: event.kind == "question", "the question")
        may_load.unlink()
        life.gateway.kill()
        await until(lambda: len(life.remains) == 1, "it is dead")
        await person.say("/approve", "2")
        may_load.touch()
        await person.hears("through")
        rows = await checked(life)

    assert rows.one("calls")["outcome"] == "ok"
    assert "acted" in results(rows)[0]


async def test_plugins_can_be_switched_off(home: Path, site: Path) -> None:
    install_example(site)
    configure(home, "[tools]\nplugins = false\n")
    async with lives(home, env={"PYTHONPATH": str(site)}) as life:
        person = life.person(CHAT)
        await person.say(script(JOT, {"text": "through"}), "1")
        await person.hears("through")
        rows = await checked(life)
        assert "plugin_" not in life.gateway.log

    assert "there is no tool" in results(rows)[0]
    assert not (life.gateway.workdir / "notebook.txt").exists()


async def test_a_model_of_a_plugin_answers_and_gets_no_key_of_others(
    home: Path, site: Path
) -> None:
    install(site, "parrots", "3", {"koboshi.models": {"parrot": "parrot:Parrot"}}, parrot=MODEL)
    configure(home, '[model]\nname = "parrot:grey"\n')
    env = {"PYTHONPATH": str(site), "OPENAI_API_KEY": "sk-canary-of-another"}
    async with lives(home, env=env) as life:
        person = life.person(CHAT)
        await person.say("hello", "1")
        await person.hears("grey/None: hello")
        await checked(life)


async def test_an_unknown_provider_ends_the_start_and_names_the_known_ones(
    home: Path, site: Path
) -> None:
    install(site, "parrots", "3", {"koboshi.models": {"parrot": "parrot:Parrot"}}, parrot=MODEL)
    configure(home, '[model]\nname = "owl:barn"\n')
    gateway = GatewayProcess(home, env={"PYTHONPATH": str(site)})
    try:
        gateway.start()
        code = await gateway.wait_exit()
    finally:
        gateway.bury()

    assert code == 78
    assert 'the provider "owl" of model "owl:barn" is unknown' in gateway.log
    known = "anthropic, google, ollama, openai, openai-responses, parrot"
    assert f"known providers: {known}" in gateway.log
