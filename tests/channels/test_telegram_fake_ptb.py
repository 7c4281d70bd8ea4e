"""The fake platform is good enough for a typed client that we did not write.

A field that is missing, misspelt or of another type is an error there, not here.
"""

import subprocess
from pathlib import Path

import pytest

from tests.fakes.telegram.server import TOKEN, serving_in_thread

ROOT = Path(__file__).resolve().parents[2]
PYTHON = ROOT / ".venv-ptb" / "bin" / "python"
CHECK = ROOT / "tests" / "fakes" / "telegram" / "ptb_check.py"
INSTALL_S_MAX = 300
CHECK_S_MAX = 100


@pytest.fixture(scope="module")
def python_with_client() -> Path:
    """The interpreter that has python-telegram-bot. Quick when `make test` has made it."""
    made = subprocess.run(
        [ROOT / "scripts" / "side_environment.sh", "ptb"],
        capture_output=True,
        text=True,
        timeout=INSTALL_S_MAX,
        check=False,
    )
    if made.returncode:
        pytest.fail(f"the client to check with cannot be had:\n{made.stderr[-2000:]}")
    return PYTHON


@pytest.mark.timeout(INSTALL_S_MAX + CHECK_S_MAX)
def test_the_typed_client_understands_everything_the_fake_says(python_with_client: Path) -> None:
    with serving_in_thread() as fake:
        told = subprocess.run(
            [python_with_client, "-m", "tests.fakes.telegram.ptb_check", fake.url, TOKEN],
            cwd=ROOT,
            capture_output=True,
            text=True,
            timeout=CHECK_S_MAX,
            check=False,
        )

    lines = told.stdout.splitlines()
    wrong = [line for line in lines if not line.startswith("ok ")]
    wanted = CHECK.read_text().count("\n@check\n")
    assert not wrong, "\n".join(wrong)
    assert len(lines) == wanted, told.stderr[-2000:]
    assert told.returncode == 0, told.stderr[-2000:]
