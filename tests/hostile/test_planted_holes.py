"""Issue 15, item 1: for each hole that was found there is a test that fails where it is open.

The hole is planted into the code as it is loaded, by this process and by those that it starts.
"""

import json
import os
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.harness.tally import WANTS_ALL, found_by
from tests.hostile.holes import HOLES, Hole

TESTS = Path(__file__).resolve().parents[1]
FOUND = {f"V{number}" for number in range(1, 15)}
QUICK = ("V1-", "V13-")
"""Two of them are tried in every run, the rest in the campaign."""


WITHIN_S = 300.0


def test_every_finding_is_planted() -> None:
    assert {hole.name.partition("-")[0] for hole in HOLES} == FOUND


@pytest.mark.parametrize("hole", HOLES, ids=lambda hole: hole.name)
def test_a_hole_can_still_be_planted(hole: Hole) -> None:
    """The code it is planted into is there once, and so are the tests that notice."""
    spec = find_spec(hole.module)
    assert spec is not None
    assert spec.origin is not None
    text = Path(spec.origin).read_text(encoding="utf-8")

    for sound, _ in hole.changes:
        assert text.count(sound) == 1, sound
    for test in hole.noticed_by:
        path, _, name = test.partition("::")
        assert f"def {name.partition('[')[0]}(" in (TESTS / path).read_text(encoding="utf-8")


@pytest.mark.slow
@pytest.mark.parametrize(
    "hole",
    [hole for hole in HOLES if WANTS_ALL or hole.name.startswith(QUICK)],
    ids=lambda hole: hole.name,
)
def test_a_planted_hole_is_noticed(hole: Hole, tmp_path: Path) -> None:
    planted = {hole.module: hole.changes}
    env = {
        **{name: value for name, value in os.environ.items() if not name.startswith("PYTEST")},
        "PLANTED_HOLE": json.dumps(planted),
        "PYTHONPATH": str(TESTS / "hostile" / "planting"),
    }
    told = subprocess.run(
        [
            *(sys.executable, "-m", "pytest", "-q", "--no-header", "-p", "no:cacheprovider"),
            *("--tb=line", "-rf", f"--basetemp={tmp_path / 'planted'}", "-n0"),
            *(f"tests/{test}" for test in hole.noticed_by),
        ],
        cwd=TESTS.parent,
        env=env,
        capture_output=True,
        text=True,
        timeout=WITHIN_S,
        check=False,
    )

    assert told.returncode == 1, told.stdout[-4_000:] + told.stderr[-4_000:]
    failed = re.findall(r"^FAILED ([^\s\[]+)", told.stdout, re.MULTILINE)
    wanted = {f"tests/{test.partition('[')[0]}" for test in hole.noticed_by}
    assert set(failed) == wanted, told.stdout[-4_000:]
    found_by(hole.name, "hostile", hole.noticed_by[0], told.stdout.splitlines()[-1])
