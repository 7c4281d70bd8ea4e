"""Code that changes on the disk while this process runs: told once, and never mixed with ours."""

import os
import subprocess
import sys
from importlib import import_module, invalidate_caches
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from koboshi.domain.errors import CodeChanged
from koboshi.processes.installed import UNKNOWN, Installed

BEGUN_S = 1_763_240_400.0


@pytest.fixture
def package(tmp_path: Path) -> Path:
    folder = tmp_path / "koboshi"
    folder.mkdir()
    write(folder / "__init__.py", '__version__ = "1.0"\n', BEGUN_S - 60)
    write(folder / "late.py", "WORD = 'old'\n", BEGUN_S - 60)
    return folder


def write(file: Path, text: str, written_s: float) -> None:
    file.write_text(text, encoding="utf-8")
    os.utime(file, (written_s, written_s))


def installed(package: Path, begun_s: float = BEGUN_S) -> Installed:
    return Installed(running="1.0", file=package / "__init__.py", begun_s=begun_s)


def test_code_that_did_not_change_wants_no_restart(package: Path) -> None:
    """Issue 13, A6."""
    found = installed(package)

    assert found.look() is None
    found.refuse_mixture("koboshi.late", [str(package)])


def test_another_version_on_the_disk_is_told_with_both_versions_and_logged_once(
    package: Path,
) -> None:
    """Issue 13, A6."""
    found = installed(package)
    write(package / "__init__.py", '__version__ = "2.0"\n', BEGUN_S - 30)

    with capture_logs() as lines:
        words = [found.look() for _ in range(3)]

    assert words == ["koboshi 1.0 runs, and 2.0 is installed"] * 3
    assert [line["event"] for line in lines] == ["code_changed"]
    assert (lines[0]["running"], lines[0]["installed"]) == ("1.0", "2.0")


def test_nothing_of_another_version_is_imported(package: Path) -> None:
    """Issue 13, A6: even if its files are older than our start, as some installers leave them."""
    found = installed(package)
    write(package / "__init__.py", '__version__ = "2.0"\n', BEGUN_S - 30)

    with pytest.raises(CodeChanged, match=r"koboshi\.late is not loaded: koboshi 1\.0 runs, and 2"):
        found.refuse_mixture("koboshi.late", [str(package)])


@pytest.mark.parametrize("name", ["late.py", "part/__init__.py"])
def test_a_module_written_after_our_start_is_not_imported(package: Path, name: str) -> None:
    """Issue 13, A6: the same version, other files: a checkout that was moved on."""
    found = installed(package)
    (package / "part").mkdir()
    write(package / name, "WORD = 'new'\n", BEGUN_S + 1)

    with pytest.raises(CodeChanged, match="its files have changed since it was started"):
        found.refuse_mixture(f"koboshi.{name.split('/')[0].removesuffix('.py')}", [str(package)])
    assert found.look() is not None


def test_a_clock_that_was_behind_at_the_start_makes_nothing_look_new(package: Path) -> None:
    """Issue 13, A6: every file is younger than such a start."""
    installed(package, begun_s=0.0).refuse_mixture("koboshi.late", [str(package)])


def test_an_upgrade_that_was_taken_back_wants_no_version_refused(package: Path) -> None:
    """Issue 13, A6: a restart is still advised, and what belongs to us is imported again."""
    found = installed(package)
    write(package / "__init__.py", '__version__ = "2.0"\n', BEGUN_S - 30)
    found.look()
    write(package / "__init__.py", '__version__ = "1.0"\n', BEGUN_S - 20)

    assert found.look() == "koboshi 1.0 runs, and its files have changed since it was started"
    found.refuse_mixture("koboshi.late", [str(package)])


def test_a_package_that_is_gone_is_another_version(package: Path) -> None:
    """Issue 13, A6: the middle of an upgrade, or an uninstallation."""
    found = installed(package)
    (package / "__init__.py").unlink()

    assert found.look() == f"koboshi 1.0 runs, and {UNKNOWN} is installed"


def test_the_guard_is_asked_for_our_late_imports_alone(package: Path) -> None:
    """Issue 13, A6: and is gone after its block."""
    found = installed(package)
    write(package / "__init__.py", '__version__ = "2.0"\n', BEGUN_S - 30)
    before = list(sys.meta_path)
    invalidate_caches()

    with found.guarded():
        import_module("colorsys")
        with pytest.raises(CodeChanged):
            import_module("koboshi.no_such_module")

    assert sys.meta_path == before


LATE = """
import sys
from pathlib import Path

import anyio
import koboshi.processes.runners as runners
from koboshi.domain.ids import ProcessId
from koboshi.ports.runners import CommandSpec

for file in Path(runners.__file__).parents[1].glob("runner/*.py"):
    file.write_text("raise SystemExit('another version')")


async def main():
    local = runners.LocalRunners(Path(sys.argv[1]))
    spec = CommandSpec(
        command="echo ours", workdir="/", environment={}, timeout_seconds=60, takes_input=False
    )
    await local.start(ProcessId(1), spec)
    seen = await local.wait(ProcessId(1), 60)
    print(seen.ending.exit_code, local.read_log(ProcessId(1), 0, 100).content)


anyio.run(main)
"""


def test_a_runner_is_what_it_was_when_the_gateway_began(tmp_path: Path) -> None:
    """Issue 13, A6: every file of its program is replaced after the start; what runs is ours."""
    copy = copied_package(tmp_path)

    done = subprocess.run(
        [sys.executable, "-c", LATE, str(tmp_path / "processes")],
        env={"PYTHONPATH": str(copy), "PATH": os.environ["PATH"]},
        capture_output=True,
        text=True,
        check=False,
    )

    assert (done.stdout, done.stderr) == ("0 b'ours\\n'\n", "")


def copied_package(folder: Path) -> Path:
    """Our package in another place, which a test may change."""
    source = Path(__file__).resolve().parents[2] / "src"
    subprocess.run(["cp", "-r", str(source), str(folder / "src")], check=True)
    return folder / "src"
