"""Pictures, voice, the web, memory and budgets cost an idle gateway nothing: what a real one has
imported is counted, when it is ready and behind its first answer."""

import json
import os
import sys
from pathlib import Path

import pytest

from tests.harness.client import Client
from tests.harness.home_file import number, opened
from tests.harness.polling import until
from tests.harness.process import GatewayProcess

pytestmark = pytest.mark.crash

TELLING = """
import json, os, sys, threading
gate, told = sys.argv.pop(1), sys.argv.pop(1)

def tell():
    while True:
        with open(gate) as asked:
            name = asked.read().strip()
        if name:
            with open(f"{told}.part", "w") as file:
                json.dump(sorted(sys.modules), file)
            os.rename(f"{told}.part", f"{told}-{name}")

threading.Thread(target=tell, daemon=True).start()
from koboshi.cli.main import main
main()
"""
LATE = """PIL pypdf trafilatura lxml ddgs primp genai_prices yaml faster_whisper ctranslate2 av
numpy onnxruntime pydantic_ai anthropic openai google mcp acp nio psycopg rich
greenlet python_multipart""".split()
OWN_LATE = (
    "koboshi.models.transcription",
    "koboshi.tools.web.getting",
    "koboshi.tools.web.search",
    "koboshi.app.moving_in.hermes",
    "koboshi.app.moving_in.staging",
    "koboshi.cli.update.updating",
)
OFF = {
    "KOBOSHI__MEMORY__ENABLED": "false",
    "KOBOSHI__TOOLS__WEB__FETCH": "false",
    "KOBOSHI__TOOLS__WEB__SEARCH": "off",
}
ON = {
    "KOBOSHI__VOICE__URL": "http://127.0.0.1:9/v1",
    "KOBOSHI__MODEL__PICTURES": "yes",
    "KOBOSHI__BUDGET__DAY": "1000000",
    "KOBOSHI__BUDGET__UNIT": "tokens",
}


async def modules(folder: Path, settings: dict[str, str]) -> tuple[set[str], set[str]]:
    """What is imported by a gateway that is ready, and by one that has answered."""
    folder.mkdir()
    gate, told, home = folder / "gate", folder / "told", folder / "home"
    os.mkfifo(gate)
    command = (sys.executable, "-c", TELLING, str(gate), str(told), "run", "--home", str(home))
    gateway = GatewayProcess(home, env=settings, command=command)

    async def look(name: str) -> set[str]:
        gate.write_text(name)
        file = folder / f"told-{name}"
        await until(file.exists, "it tells what it has imported")
        return set(json.loads(file.read_text()))

    try:
        gateway.start()
        await gateway.wait_ready()
        idle = await look("idle")
        await Client(gateway, "ann").say("echo hello", "1")
        await until(lambda: answers(home) == 1, "it answers", otherwise=lambda: gateway.log[-3000:])
        return idle, await look("answered")
    finally:
        gateway.bury()


def answers(home: Path) -> int:
    with opened(home) as connection:
        return number(connection, "SELECT count(*) FROM steps WHERE kind = 'answer'")


async def test_an_idle_gateway_and_its_first_answer_load_no_library_of_the_extras(
    tmp_path: Path,
) -> None:
    bare = await modules(tmp_path / "off", OFF)
    full = await modules(tmp_path / "on", ON)

    for without, having in zip(bare, full, strict=True):
        loaded = {name for name in having if name.partition(".")[0] in LATE}
        assert loaded == set()
        assert {name for name in having if name.startswith(OWN_LATE)} == set()
        foreign = {name for name in having - without if not name.startswith("koboshi")}
        assert foreign == set(), "only code of ours is added by them"
        print(f"{len(without)} modules without them, {len(having)} with all of them")
