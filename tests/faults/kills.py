"""Campaign: a short run of the store is killed at every call that changes its home.

Each write, flush, truncation, rename, removal and making of a file is, once each, the last thing
that is not done (`before`), the last thing that is done (`after`), or done in part (`torn`, writes
only). Then everything that was told must be there, the file must be whole, and the next life must
bring everything to its end.

The calls are seen by a tracer (tests/harness/tracer.py). strace could do `before` as well; it can
neither kill behind a call nor carry out a part of one. Writes by mapped memory (the `-shm` file)
are no calls, and are not needed by any person after a death.
"""

import shutil
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

from tests.faults.short_run import AS_IT_IS, Doctored, check, run
from tests.faults.tally import Tally
from tests.harness.tracer import KILLS, NOTHING, Fault, How, Traced, trace

CALLS_AT_LEAST = 300
"""Fewer, and the calls of the run were not seen."""


def short_run_killed(
    folder: Path,
    *,
    every: int = 1,
    first: int = 0,
    only: Sequence[Fault] = (),
    doctored: Doctored = AS_IT_IS,
    name: str = "killed-at-every-call",
) -> Tally:
    """Kill the run in every n-th way, or in those that are named."""
    tally = Tally(campaign=name, is_control=doctored != AS_IT_IS)
    whole = _run(folder / "whole" / "home", NOTHING, doctored)
    assert whole.exit_code == 0, "the run does not come to its end undisturbed"
    assert whole.seen >= CALLS_AT_LEAST, f"only {whole.seen} changes were seen"
    for fault in only or list(_faults(whole))[first::every]:
        path = folder / str(fault) / "home"
        traced = _run(path, fault, doctored)
        if not traced.is_struck:
            tally.not_reached += 1
            continue
        tally.add(f"{fault.how} {traced.struck}")
        assert traced.exit_code == -9, f"{fault}: it ended with {traced.exit_code}"
        found = check(path, _told(path))
        tally.violations += [f"{fault} ({traced.struck}): {words}" for words in found]
        shutil.rmtree(path.parent)
        if tally.is_control and tally.violations:
            break  # it was found out
    return tally


def short_writes(
    folder: Path,
    *,
    every: int = 1,
    first: int = 0,
    only: Sequence[Fault] = (),
    how: How = How.SHORT,
) -> Tally:
    """Every write of the run, once, takes only a part of what it is given: the run goes on as if
    nothing had been. With LIED it is told that all was taken, and something must be wrong."""
    tally = Tally(campaign="short-writes", is_control=how is How.LIED)
    whole = _run(folder / "whole" / "home", NOTHING, AS_IT_IS)
    numbers = [
        number for number, call in enumerate(whole.calls, 1) if call in ("write", "pwrite64")
    ]
    for fault in only or [Fault(how=how, number=number) for number in numbers[first::every]]:
        path = folder / str(fault) / "home"
        traced = _run(path, fault, AS_IT_IS)
        if not traced.is_struck:
            tally.not_reached += 1
            continue
        tally.add(traced.struck)
        found = check(path, _told(path))
        if traced.exit_code or _told(path).count("delivered") != _told(path).count("tried"):
            found.append(f"it did not go on: {traced.exit_code}, {_told(path)}")
        tally.violations += [f"{fault} ({traced.struck}): {words}" for words in found]
        shutil.rmtree(path.parent)
        if tally.is_control and tally.violations:
            break
    return tally


def _faults(whole: Traced) -> Iterator[Fault]:
    for number, call in enumerate(whole.calls, 1):
        for how in KILLS:
            if how is not How.TORN or call in ("write", "pwrite64"):
                yield Fault(how=how, number=number)


def _run(path: Path, fault: Fault, doctored: Doctored) -> Traced:
    ledger = path.with_suffix(".ledger")
    path.parent.mkdir()
    program = partial(run, path, ledger, doctored)
    return trace(program, path, fault=fault, ledger=ledger)


def _told(path: Path) -> str:
    ledger = path.with_suffix(".ledger")
    return ledger.read_text() if ledger.exists() else ""
