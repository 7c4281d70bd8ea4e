"""A client that a foreign program makes of our OpenAPI document, used against a gateway."""

import os
import subprocess
from pathlib import Path

import pytest
from anyio import to_thread

from tests.harness.http import connection
from tests.harness.process import GatewayProcess
from tests.harness.tally import WANTS_ALL

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / ".venv-openapi" / "bin"
CHECK = Path(__file__).with_name("client_check.py")
INSTALL_S_MAX = 300
CHECK_S_MAX = 200

pytestmark = [
    pytest.mark.crash,
    pytest.mark.timeout(INSTALL_S_MAX + CHECK_S_MAX),
    pytest.mark.skipif(not WANTS_ALL, reason="`make torture` does it: it installs the generator"),
]


@pytest.fixture(scope="module")
def generator() -> Path:
    """The program, in an environment of its own. Made once for a clone."""
    made = subprocess.run(
        [ROOT / "scripts" / "side_environment.sh", "openapi"],
        capture_output=True,
        text=True,
        timeout=INSTALL_S_MAX,
        check=False,
    )
    if made.returncode:
        pytest.fail(f"the generator cannot be had:\n{made.stderr[-2000:]}")
    return FOLDER / "openapi-python-client"


async def described(gateway: GatewayProcess, folder: Path) -> Path:
    address = await gateway.wait_ready()
    async with connection(address, gateway.token) as http:
        answer = await http.get("/api/v1/openapi.json")
    path = folder / "openapi.json"
    path.write_bytes(answer.content)
    return path


async def told_by(folder: Path, *command: object) -> str:
    """What a program says that must not fail."""

    def run() -> str:
        ended = subprocess.run(
            [str(word) for word in command],
            cwd=folder,
            env={"PATH": f"{FOLDER}:{os.environ['PATH']}", "PYTHONPATH": str(folder)},
            capture_output=True,
            text=True,
            timeout=CHECK_S_MAX,
            check=False,
        )
        assert ended.returncode == 0, f"{ended.stdout[-3000:]}\n{ended.stderr[-3000:]}"
        return ended.stdout + ended.stderr

    return await to_thread.run_sync(run)


async def test_a_generated_client_imports_and_understands_every_answer(
    tmp_path: Path, generator: Path
) -> None:
    """Issue 13, C18."""
    gateway = GatewayProcess(tmp_path / "home")
    gateway.start()
    try:
        path = await described(gateway, tmp_path)
        output = tmp_path / "koboshi_client"
        options = ("--path", path, "--meta", "none", "--output-path", output)
        said = await told_by(tmp_path, generator, "generate", *options)
        assert "warning" not in said.lower(), said
        used = await told_by(tmp_path, FOLDER / "python", CHECK, gateway.address, gateway.token)
    finally:
        gateway.bury()

    assert "explain 200 TurnExplained" in used
    assert "explain 200 ProcessExplained" in used
