"""Start a campaign in a process of its own, and say how to see a violation again."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.faults.tally import Tally
from tests.harness import ptrace

ROOT = Path(__file__).resolve().parent.parent.parent
SHOWN = 5


def campaign(*arguments: str) -> Tally:
    """Its tally, written down if that is wanted. Skips where nothing can be traced."""
    reason = ptrace.why_not()
    if reason:
        pytest.skip(reason)
    command = [sys.executable, "-m", "tests.faults", *arguments]
    print("campaign:", *command[1:])
    ended = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False)
    assert ended.stdout, f"the campaign broke: {ended.stderr[-4000:]}"
    tally = Tally.parse(ended.stdout.splitlines()[-1])
    tally.write_down()
    return tally


def nothing_is_wrong(tally: Tally, *arguments: str, at_least: int) -> None:
    """Every case held, and there were enough of them."""
    again = " ".join(["python -m tests.faults", *arguments])
    shown = "\n".join(tally.violations[:SHOWN])
    assert not tally.violations, (
        f"{len(tally.violations)} violations in {tally.cases} cases:\n{shown}\n"
        f"See one again: {again} --only <the case, up to the blank>"
    )
    assert tally.cases >= at_least, f"only {tally.cases} cases were tried"
    assert tally.not_reached <= tally.cases // 10, f"{tally.not_reached} were not reached"
