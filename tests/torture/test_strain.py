"""Issue 12, C18: some lives of a torture have few descriptors, a wrong clock, and one that jumps;
all of it from the seed, and none of it for a gateway with another starter."""

import resource
import subprocess
import sys
from itertools import islice
from pathlib import Path

import pytest

import koboshi
from koboshi.cli.fork_server import ShiftedClock, leave_files
from koboshi.clock import SystemClock
from koboshi.torture.strain import (
    AHEAD_MS_MAX,
    BACK_MS_MAX,
    FILES_LEFT_MAX,
    FORWARD_MS_MAX,
    HOUR_MS,
    MINUTE_MS,
    strains_of,
)

DAY_MS = 24 * HOUR_MS
OPENS = """
import os, sys
print("ready", flush=True)
sys.stdin.readline()
kept = []
try:
    while True:
        kept.append(os.open(os.devnull, os.O_RDONLY))
except OSError as error:
    print(len(kept), error.errno)
"""


def test_the_same_seed_plans_the_same_strains() -> None:
    first, again, other = (list(islice(strains_of(seed), 200)) for seed in ("7", "7", "8"))

    assert first == again
    assert first != other


def test_sixty_lives_meet_every_strain_and_most_have_none() -> None:
    """Four homes with fifteen lives each, as in the short portion of the random kills."""
    planned = [each for home in "1234" for each in islice(strains_of(f"1/{home}"), 15)]

    assert any(each.files_max is not None for each in planned)
    assert any(each.files_left is not None for each in planned)
    assert any(each.ahead_ms > 0 for each in planned)
    assert any(each.ahead_ms < 0 for each in planned)
    assert any(each.jump_ms > 0 for each in planned)
    assert any(each.jump_ms < 0 for each in planned)
    plain = [each for each in planned if not (each.has_few_files or each.ahead_ms or each.jump_ms)]
    assert len(plain) > 15


def test_clocks_are_wrong_by_minutes_to_days_and_never_look_like_a_day_of_downtime() -> None:
    planned = list(islice(strains_of("1"), 3_000))

    moved = [each.ahead_ms for each in planned if each.ahead_ms]
    jumps = [each.jump_ms for each in planned if each.jump_ms]
    assert min(map(abs, moved + jumps)) >= MINUTE_MS
    assert all(abs(each) <= AHEAD_MS_MAX for each in moved)
    assert all(-BACK_MS_MAX <= each <= FORWARD_MS_MAX for each in jumps)
    assert max(jumps) > 2 * DAY_MS
    # From the lowest clock to the highest between two lives, a few times over.
    assert 2 * AHEAD_MS_MAX + 5 * BACK_MS_MAX < DAY_MS
    assert {each.files_left for each in planned} == {None, *range(FILES_LEFT_MAX + 1)}


def test_a_fork_sees_the_clock_that_the_fork_server_sets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SystemClock, "now_ms", lambda _: 1_000)
    wall = ShiftedClock()
    wall.follow()

    seen = []
    for ahead_ms in (0, 3 * DAY_MS, -5 * HOUR_MS):
        wall.move(ahead_ms)
        seen.append(SystemClock().now_ms() - 1_000)

    assert seen == [0, 3 * DAY_MS, -5 * HOUR_MS]


def test_nothing_else_moves_a_clock() -> None:
    """A gateway that the fork server did not start has the clock of its machine."""
    source = Path(koboshi.__file__).parent
    moving = [
        path.relative_to(source).as_posix()
        for path in source.rglob("*.py")
        if "SystemClock.now_ms =" in path.read_text() or '"now_ms",' in path.read_text()
    ]
    loading = [
        path.relative_to(source).as_posix()
        for path in source.rglob("*.py")
        if "koboshi.cli.fork_server" in path.read_text()
    ]

    assert moving == ["cli/fork_server.py"]
    assert sorted(loading) == ["cli/fork_server.py", "cli/torture.py"]


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="the system does not tell")
def test_a_process_can_open_so_many_files_more_and_the_hard_limit_stays() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", OPENS], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        _, hard = resource.prlimit(process.pid, resource.RLIMIT_NOFILE)
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        leave_files(process.pid, 3)
        left = resource.prlimit(process.pid, resource.RLIMIT_NOFILE)[1]
        said, _ = process.communicate("go on\n", timeout=30)

    assert said.split() == ["3", "24"]
    assert left == hard


def test_a_process_that_has_died_is_left_alone() -> None:
    with subprocess.Popen([sys.executable, "-c", ""]) as process:
        process.wait()

    leave_files(process.pid, 3)


def test_a_campaign_without_few_files_has_the_same_clocks() -> None:
    strained = list(islice(strains_of("1"), 200))
    spared = list(islice(strains_of("1", has_few_files=False), 200))

    assert any(each.has_few_files for each in strained)
    assert not any(each.has_few_files for each in spared)
    assert [(e.ahead_ms, e.jump_ms) for e in spared] == [(e.ahead_ms, e.jump_ms) for e in strained]
