"""The files of koboshi are replaced while a gateway runs, and no one has restarted it yet."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.process import Ended, Gateway, ended, environment, gateway, until

SOURCE = Path(__file__).resolve().parents[2] / "src"
COMMAND = (sys.executable, "-c", "from koboshi.cli.main import main; main()")
WORDS = "runs, and 9.9.9 is installed"


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """Our package in a place where a test may replace it."""
    subprocess.run(["cp", "-rp", str(SOURCE), str(tmp_path / "src")], check=True)
    return tmp_path / "src" / "koboshi"


@pytest.fixture
def serving(home: Path, package: Path) -> Iterator[Gateway]:
    with gateway(home, command=COMMAND, PYTHONPATH=str(package.parent)) as one:
        yield one


def upgrade(package: Path) -> None:
    """What an installer does: every file is another, and so is the version."""
    file = package / "__init__.py"
    words = file.read_text(encoding="utf-8").splitlines()
    words = ['__version__ = "9.9.9"' if "__version__" in line else line for line in words]
    new = file.with_suffix(".new")
    new.write_text("\n".join(words) + "\n", encoding="utf-8")
    new.replace(file)
    for name in ("log", "memory", "reaper", "tree", "keeper", "program"):
        (package / "runner" / f"{name}.py").write_text("raise SystemExit('of 9.9.9')\n")


def koboshi(home: Path, package: Path, *arguments: str) -> Ended:
    return ended([*COMMAND, *arguments], environment(home, PYTHONPATH=str(package.parent)))


def run_command(one: Gateway, command: str) -> str:
    """The result of a command that the agent ran."""
    items = [{"calls": [{"tool": "terminal", "arguments": {"command": command}}]}, {"text": "ok"}]
    told = one.wait_state(one.say("room", f"script: {json.dumps(items)}"), "done")
    return json.dumps(told)


def test_an_upgrade_without_a_restart_is_noticed_and_told_everywhere(
    home: Path, package: Path, serving: Gateway
) -> None:
    """Issue 13, A6: at the next runner's start, which still works. `status`, the page and `doctor`
    name both versions."""
    assert serving.asked(ask="status")["restart"] is None
    upgrade(package)

    run_command(serving, "echo ours")
    (noticed,) = serving.events("code_changed")

    assert (noticed["level"], noticed["installed"]) == ("warning", "9.9.9")
    status = koboshi(home, package, "status").out
    assert WORDS in status
    assert "`koboshi restart`" in status
    (trouble,) = serving.asked(ask="troubles")["troubles"]
    assert trouble["words"].endswith(WORDS)
    assert trouble["remedy"] == "`koboshi restart`"
    assert WORDS in koboshi(home, package, "doctor").out
    ending = json.loads((home / "processes" / "1" / "exit.json").read_text(encoding="utf-8"))
    assert (ending["by"], ending["exit_code"]) == ("itself", 0)


def test_a_restart_after_an_upgrade_runs_what_is_installed(
    home: Path, package: Path, serving: Gateway
) -> None:
    """Issue 13, A6: what refuses to mix versions does not stand in the way of the restart."""
    file = package / "__init__.py"
    file.write_text(
        file.read_text(encoding="utf-8").replace('__version__ = "', '__version__ = "9.')
    )
    assert serving.asked(ask="status")["restart"] is not None

    assert koboshi(home, package, "restart").code == 0

    def is_new() -> bool:
        said = koboshi(home, package, "status", "--json").document
        return bool(said["is_running"] and said["worker"]["version"].startswith("9."))

    until(is_new, "the new one runs", otherwise=lambda: serving.err)
    assert serving.asked(ask="status")["restart"] is None


LATE_MODEL = """
import sys
from pathlib import Path

import anyio
import koboshi
from koboshi.domain.errors import ModelBusy
from koboshi.models.provider import open_model
from koboshi.models.limits import ModelLimits
from koboshi.processes.installed import INSTALLED
from tests.models.asking import asked, said

model = open_model("openai:m1", api_key="k", base_url="http://127.0.0.1:9", limits=ModelLimits())
file = Path(koboshi.__file__)
file.write_text('__version__ = "9.9.9"')


async def main():
    with INSTALLED.guarded():
        try:
            await model.respond(asked(said("hello")))
        except ModelBusy as busy:
            print(busy)
    print(sorted(name for name in sys.modules if name.startswith("koboshi.models.chat")))


anyio.run(main)
"""


def test_a_model_whose_code_was_replaced_is_asked_again_later(package: Path) -> None:
    """Issue 13, A6: its library is loaded late. Nothing of the other version is; the turn waits as
    for a model that is busy, and goes on after the restart."""
    path = os.pathsep.join([str(package.parent), str(SOURCE.parent)])

    done = ended([sys.executable, "-c", LATE_MODEL], {**environment(), "PYTHONPATH": path})

    *_, busy, loaded = done.out.splitlines()  # after a line of the log
    assert busy.startswith("koboshi.models.opening is not loaded: koboshi ")
    assert busy.endswith(f"{WORDS}; it goes on after a restart of the gateway")
    assert loaded == "[]"
