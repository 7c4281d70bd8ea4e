"""The fake Discord is good enough for two typed clients that we did not write.

A field that is missing, misspelt or of another type is an error there, not here.
"""

import subprocess
from pathlib import Path

import pytest

from tests.fakes.discord.server import discord_in_thread

ROOT = Path(__file__).resolve().parents[2]
FAKE = ROOT / "tests" / "fakes" / "discord"
PYTHON = ROOT / ".venv-discord-clients" / "bin" / "python"
INSTALL_S_MAX = 300
CHECK_S_MAX = 200


@pytest.fixture(scope="module")
def python_with_clients() -> Path:
    """The interpreter that has both libraries. Quick when `make test` has made it."""
    made = subprocess.run(
        [ROOT / "scripts" / "side_environment.sh", "discord-clients"],
        capture_output=True,
        text=True,
        timeout=INSTALL_S_MAX,
        check=False,
    )
    if made.returncode:
        pytest.fail(f"the clients to check with cannot be had:\n{made.stderr[-2000:]}")
    return PYTHON


@pytest.mark.timeout(INSTALL_S_MAX + CHECK_S_MAX)
def test_both_clients_understand_everything_the_fake_says(python_with_clients: Path) -> None:
    with discord_in_thread() as fake:
        place = [fake.url, fake.gateway.url, fake.token]
        told = subprocess.run(
            [python_with_clients, "-m", "tests.fakes.discord.clients_check", *place],
            cwd=ROOT,
            capture_output=True,
            text=True,
            timeout=CHECK_S_MAX,
            check=False,
        )

    lines = told.stdout.splitlines()
    wrong = [line for line in lines if not line.startswith("ok ")]
    files = [FAKE / "dpy_check.py", FAKE / "hikari_check.py"]
    wanted = sum(each.read_text().count("\n@check\n") for each in files)
    assert not wrong, "\n".join(wrong)
    assert len(lines) == wanted, told.stderr[-2000:]
    assert told.returncode == 0, told.stderr[-2000:]
