"""Real agents, offline against a fake model server: killed in the middle of a tool, and with the
gateway killed in front of them."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pytest

from koboshi.domain.ids import ProcessId
from koboshi.processes.runners import LocalRunners
from tests.agents.agency import Agency
from tests.harness.polling import until
from tests.harness.process import GatewayProcess
from tests.harness.tally import WANTS_ALL

ROOT = Path(__file__).resolve().parents[3]
INSTALLED = Path(os.environ.get("KOBOSHI_REAL_AGENTS", ROOT / ".venv-agents"))
"""Where the agents are, and are put if they are not there."""

pytestmark = [
    pytest.mark.skipif(not WANTS_ALL, reason="`make torture` does it: it installs them"),
    pytest.mark.timeout(900),
]


@dataclass(frozen=True)
class Kind:
    name: str
    program: str
    install: tuple[tuple[str, ...], ...]
    file: str
    """Its configuration, in the home of the agent."""
    text: str


HERMES = Kind(
    name="hermes",
    program="hermes/bin/hermes-acp",
    install=(
        (sys.executable, "-m", "venv", "hermes"),
        ("hermes/bin/pip", "install", "-q", "hermes-agent[acp]==0.19.0"),
    ),
    file=".hermes/config.yaml",
    text="model:\n  default: test-model\n  provider: custom\n"
    "  base_url: http://127.0.0.1:{port}/v1\n  api_key: x\n",
)
CODEX = Kind(
    name="codex",
    program="codex/node_modules/.bin/codex-acp",
    install=(("npm", "install", "--prefix", "codex", "@agentclientprotocol/codex-acp@2.6.0"),),
    file=".codex/config.toml",
    text='model = "test-model"\nmodel_provider = "local"\napproval_policy = "never"\n'
    'sandbox_mode = "danger-full-access"\n[model_providers.local]\nname = "local"\n'
    'base_url = "http://127.0.0.1:{port}/v1"\nenv_key = "OPENAI_API_KEY"\n'
    'wire_api = "responses"\n',
)


@dataclass(slots=True)
class RealAgency(Agency):
    kind: Kind = HERMES
    port: int = 0

    def configure(self) -> None:
        self.home.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.workdir.mkdir(exist_ok=True)
        command = json.dumps([str(INSTALLED / self.kind.program)])
        text = f'[gateway]\nagent = "{self.kind.name}"\n[agents.{self.kind.name}]\n'
        text += f'command = {command}\nreadable = ["{INSTALLED}"]\n'
        text += 'env = { OPENAI_API_KEY = "x" }\n'
        (self.home / "koboshi.toml").write_text(text, encoding="utf-8")
        owner = f"agent-{self.kind.name}-main"
        file = self.home / "inside" / "home" / owner / self.kind.file
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        file.write_text(self.kind.text.format(port=self.port), encoding="utf-8")

    def living(self) -> list[int]:
        """The processes of the agent itself."""
        name = Path(self.kind.program).name.encode()
        found = []
        for each in filter(str.isdigit, os.listdir("/proc")):
            with suppress(OSError):
                line = Path(f"/proc/{each}/cmdline").read_bytes()
                is_here = os.readlink(f"/proc/{each}/cwd") == str(self.workdir)
                if name in line and is_here and b"bwrap" not in line:
                    found.append(int(each))
        return found


@pytest.fixture(params=[HERMES, CODEX], ids=lambda kind: kind.name)
async def real(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[RealAgency]:
    kind: Kind = request.param
    if not (INSTALLED / kind.program).exists():
        INSTALLED.mkdir(exist_ok=True)
        for command in kind.install:
            subprocess.run(command, cwd=INSTALLED, check=True, capture_output=True)
    server = subprocess.Popen(
        [
            sys.executable,
            str(Path(__file__).parent / "model_server.py"),
            "0",
            tmp_path / "model.log",
        ],
        stdout=subprocess.PIPE,
    )
    assert server.stdout is not None
    port = int(server.stdout.readline())
    one = RealAgency(GatewayProcess(tmp_path / "home"), kind=kind, port=port)
    yield one
    server.kill()
    server.wait()
    server.stdout.close()
    if one.gateway.is_running:
        one.gateway.kill()
    runners = LocalRunners(one.home / "processes")
    for place in sorted((one.home / "processes").glob("[0-9]*")):
        await runners.end(ProcessId(int(place.name)), grace_s=0)


def slowly(name: str) -> str:
    return f"RUN«echo ran >> {name}; while [ ! -e {name}.go ]; do sleep 0.05; done»"


async def runs(real: RealAgency, name: str) -> None:
    await until(
        lambda: (real.workdir / name).exists(),
        "the command runs",
        within_s=90,
        otherwise=lambda: real.gateway.log[-3000:],
    )


async def test_a_real_agent_works_on_without_the_gateway_and_is_loaded_after_its_own_death(
    real: RealAgency,
) -> None:
    real.start()
    await real.person().say(slowly("one"), "k1")
    await runs(real, "one")

    real.gateway.kill()
    (real.workdir / "one.go").touch()
    real.start()

    (answer,) = await real.until_answered()
    assert answer.endswith("finished")
    assert (real.workdir / "one").read_text() == "ran\n", "the command ran once"
    assert real.rows("SELECT kind, rule FROM agent_messages WHERE kind IN ('load', 'prompt')") == [
        ("prompt", None)
    ]

    await real.person().say(slowly("two"), "k2")
    await runs(real, "two")
    for pid in real.living():
        os.kill(pid, signal.SIGKILL)

    answers = await real.until_answered(2)
    assert answers[1].endswith("continued")
    assert (real.workdir / "two").read_text() == "ran\n", "the command ran once"
    assert real.rows("SELECT rule FROM agent_messages WHERE rule IS NOT NULL") == [("agent-died",)]
    assert ("load",) in real.rows("SELECT kind FROM agent_messages")
