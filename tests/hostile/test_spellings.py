"""Issue 15: spellings of destruction, run for real against folders outside the boundary."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from koboshi.domain.sandbox import Boundary, Sandbox
from tests.harness.polling import WITHIN_S
from tests.harness.tally import WANTS_ALL
from tests.hostile.spellings import DESTROY, PROGRAMS, STEAL
from tests.runner.insides import CONFINED, confining
from tests.runner.yard import Yard

CANARY = "canary\n"
MODES = [Sandbox.WORKSPACE, Sandbox.LOCKED] if WANTS_ALL else [Sandbox.WORKSPACE]


class Corpus:
    """Every spelling with a victim of its own, run by one command."""

    def __init__(
        self,
        folder: Path,
        boundary: Boundary,
        spellings: list[str],
        sandbox: Sandbox = Sandbox.WORKSPACE,
    ) -> None:
        self.folder = folder
        self.spellings = spellings
        workdir = folder / "workdir"
        workdir.mkdir(parents=True)
        confine = confining(boundary, workdir, folder / "kept", sandbox)
        self.yard = Yard(folder / "processes", workdir=workdir, confine=confine)
        for number, spelling in enumerate(spellings):
            (self.victim(number) / "sub").mkdir(parents=True)
            (self.victim(number) / "precious").write_text(CANARY)
            (self.victim(number) / "sub" / "deep").write_text(CANARY)
            (workdir / f"{number}.sh").write_text(spelling + "\n")

    def victim(self, number: int) -> Path:
        return self.folder / "outside" / str(number)

    def loot(self, number: int) -> Path:
        return self.yard.workdir / f"loot-{number}"

    async def run(self) -> None:
        """Each in a folder of its own; none is waited for longer than a few seconds."""
        outside, workdir = self.folder / "outside", self.yard.workdir
        script = (
            f"for n in $(seq 0 {len(self.spellings) - 1}); do "
            f"mkdir {workdir}/in-$n; cd {workdir}/in-$n; "
            f"V={outside}/$n S={workdir}/loot-$n timeout 20 bash ../$n.sh >/dev/null 2>&1; done; "
            "echo done"
        )
        process_id = await self.yard.start(
            script, timeout_seconds=WITHIN_S, environment={"PATH": "/usr/bin:/bin"}
        )
        await self.yard.runners.wait(process_id, WITHIN_S)
        assert self.yard.output(process_id).endswith(b"done\n"), self.yard.output(process_id)

    def touched(self) -> list[str]:
        return [
            spelling
            for number, spelling in enumerate(self.spellings)
            if contents_of(self.victim(number)) != WHOLE
        ]

    def stolen(self) -> list[str]:
        loot = ((spelling, self.loot(number)) for number, spelling in enumerate(self.spellings))
        return [each for each, file in loot if file.exists() and b"canary" in file.read_bytes()]


def contents_of(folder: Path) -> dict[str, str]:
    """The names and words of all files; a folder has no words."""
    found = {}
    for root, folders, files in os.walk(folder):
        for name in (*folders, *files):
            path = Path(root, name)
            words = (
                path.read_bytes().decode("latin-1")
                if path.is_file() and not path.is_symlink()
                else "-"
            )
            found[str(path.relative_to(folder))] = words
    return found


WHOLE = {"precious": CANARY, "sub": "-", "sub/deep": CANARY}


def missing() -> Iterator[str]:
    return (name for name in PROGRAMS if shutil.which(name, path="/usr/bin:/bin") is None)


@pytest.mark.parametrize("sandbox", MODES)
@pytest.mark.parametrize("boundary", CONFINED)
async def test_no_spelling_touches_a_canary_inside_a_boundary(
    tmp_path: Path, boundary: Boundary, sandbox: Sandbox
) -> None:
    corpus = Corpus(tmp_path, boundary, DESTROY, sandbox)

    await corpus.run()

    assert corpus.touched() == []


@pytest.mark.parametrize("sandbox", MODES)
@pytest.mark.parametrize("boundary", CONFINED)
async def test_no_spelling_steals_a_canary_inside_a_boundary(
    tmp_path: Path, boundary: Boundary, sandbox: Sandbox
) -> None:
    corpus = Corpus(tmp_path, boundary, STEAL, sandbox)

    await corpus.run()

    assert corpus.stolen() == []


async def test_each_spelling_does_its_harm_without_a_boundary(tmp_path: Path) -> None:
    """So that the tests above show something."""
    destroying = Corpus(tmp_path / "destroying", Boundary.NONE, DESTROY)
    stealing = Corpus(tmp_path / "stealing", Boundary.NONE, STEAL)

    await destroying.run()
    await stealing.run()

    lacking = tuple(missing())
    harmless = set(DESTROY) - set(destroying.touched()) | set(STEAL) - set(stealing.stolen())
    assert [each for each in harmless if not any(name in each for name in lacking)] == []
    assert len(DESTROY) + len(STEAL) >= 70
