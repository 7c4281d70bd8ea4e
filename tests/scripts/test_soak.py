"""What a soak finds wrong with what it looked at."""

import pytest

from scripts.soak import Look, wrong_with_day, wrong_with_looks
from tests.harness.tally import WANTS_ALL
from tests.sim.day import Day, Hour, a_day


def looks(*, grows_mb: float = 0.0, grows_files: int = 0) -> list[Look]:
    return [
        Look(
            seconds=number,
            messages=400 * number,
            resident_mb=80 + grows_mb * number,
            files=40 + grows_files * number,
            threads=9,
            log_mb=4.0,
        )
        for number in range(16)
    ]


def day(*, kilobytes: float = 200.0, tasks: int = 16, files: int = 14) -> Day:
    first = Hour(at_s=3_600, kilobytes=200.0, tasks=16, files=14)
    last = Hour(at_s=7_200, kilobytes=kilobytes, tasks=tasks, files=files)
    return Day(hours=[first, last], messages=200, violations=[])


def test_what_stays_flat_is_fine() -> None:
    """Issue 20, part 5."""
    assert wrong_with_looks(looks()) == []
    assert wrong_with_day(day()) == []


def test_what_grows_is_found() -> None:
    assert "memory grew" in wrong_with_looks(looks(grows_mb=2.0))[0]
    assert "files became" in wrong_with_looks(looks(grows_files=1))[0]
    assert wrong_with_day(day(kilobytes=900.0)) == ["virtual: 7000 bytes stay of every message"]
    assert wrong_with_day(day(tasks=17)) == ["virtual: 16 tasks became 17"]
    assert wrong_with_day(day(files=15)) == ["virtual: 14 files became 15"]


def test_too_little_time_is_no_proof() -> None:
    assert "too little time" in wrong_with_looks(looks()[:5])[0]
    assert "too little time" in wrong_with_day(Day(hours=[], messages=0, violations=[]))[0]


@pytest.mark.skipif(not WANTS_ALL, reason="`make soak` does it, for a whole day")
def test_hours_of_virtual_time_leave_nothing_behind() -> None:
    assert wrong_with_day(a_day(1, 4)) == []
