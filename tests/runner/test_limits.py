"""What a command inside may take of the machine. Issue 15, item 4."""

import os
import secrets
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from koboshi.boundary.control_groups import ControlGroups, find, switch_on
from koboshi.ports.runners import EndedBy, EndReason
from tests.harness.polling import until
from tests.runner.insides import inside
from tests.runner.yard import Yard

MB = 1 << 20
PYTHON = shutil.which("python3", path="/usr/bin:/bin")
HOG = "python3 -c 'held = bytearray(600 << 20); print(len(held))'"
BOMB = "sh -c 'for each in $(seq 400); do sleep 20 & done; echo all'"
"""Bounded: without a limit it has 400 children, which end with it."""
HOGS = """python3 -c '
import os, time
for _ in range(4):
    if not os.fork():
        held = bytearray(120 << 20)
        time.sleep(1000)
print(os.WTERMSIG(os.wait()[1]))
os._exit(137)
'"""
"""Four processes, none of which takes too much. Waits until one of them is killed."""


@pytest.fixture
def groups() -> Iterator[ControlGroups]:
    """Where groups of this test can be made."""
    found = switch_on(find(f"koboshi-test-{secrets.token_hex(4)}"))
    yield found
    found.sweep()


def limited(yard: Yard, **limits: int | tuple[str, ...]) -> None:
    confine = yard.confine
    yard.confine = lambda workdir: replace(confine(workdir), **limits)  # type: ignore[arg-type]


@inside
@pytest.mark.skipif(PYTHON is None, reason="the system has no python3")
async def test_a_process_that_takes_too_much_memory_is_told_so(yard: Yard) -> None:
    limited(yard, memory_bytes_max=300 * MB)

    seen, output = await yard.run(HOG, environment={"PATH": "/usr/bin:/bin"})

    assert seen.ending is not None
    assert seen.ending.by is EndedBy.ITSELF, seen.ending.error
    assert seen.ending.exit_code != 0
    assert b"MemoryError" in output


@inside
async def test_a_fork_bomb_ends_at_the_limit(yard: Yard, groups: ControlGroups) -> None:
    """By whatever bounds it here: as root only a group does."""
    if os.geteuid() == 0 and not groups.bases:
        pytest.skip("the kernel does not count the processes of root, and leaves us no group")
    limited(yard, processes_max=100, groups=groups.of("s1") if os.geteuid() == 0 else ())

    seen, output = await yard.run(BOMB, environment={"PATH": "/usr/bin:/bin"})

    assert seen.ending is not None
    assert seen.ending.exit_code != 0
    assert b"fork" in output.lower()
    assert b"all" not in output.split()


@inside
async def test_the_commands_of_a_session_have_their_limit_together(
    yard: Yard, groups: ControlGroups
) -> None:
    """Issue 15, item 4. A neighbour has its own, and nothing of it is left."""
    if not groups.bases:
        pytest.skip("no control group is delegated to us")
    few = "sh -c 'for each in $(seq 60); do sleep 1000 & done; echo up; wait'"
    limited(yard, processes_max=100, groups=groups.of("s1"))
    first = await yard.start(few, environment={"PATH": "/usr/bin:/bin"})
    await yard.until_said(first, b"up")
    second, output = await yard.run(few, environment={"PATH": "/usr/bin:/bin"})
    limited(yard, processes_max=100, groups=groups.of("s2"))
    other = await yard.start(few, environment={"PATH": "/usr/bin:/bin"})
    await yard.until_said(other, b"up")

    assert b"fork" in output.lower()
    assert second.ending is not None
    assert second.ending.exit_code != 0
    assert groups.sweep() == 0, "a group with members stays"
    for each in (first, other):
        await yard.runners.end(each, grace_s=0)
    made = [Path(each) for session in ("s1", "s2") for each in groups.of(session)]
    await until(lambda: not any(each.exists() for each in made), "the runners removed them")


@inside
@pytest.mark.skipif(PYTHON is None, reason="the system has no python3")
async def test_the_memory_of_a_session_is_bounded_as_a_whole(
    yard: Yard, groups: ControlGroups
) -> None:
    if not groups.is_memory_bound:
        pytest.skip("no control group of the memory is delegated to us")
    limited(yard, memory_bytes_max=300 * MB, groups=groups.of("s1"))

    seen, output = await yard.run(HOGS, environment={"PATH": "/usr/bin:/bin"})

    assert seen.ending is not None
    assert (seen.ending.exit_code, seen.ending.signal) in ((137, None), (None, 9)), output
    assert seen.ending.reason is EndReason.OUT_OF_MEMORY


@inside
async def test_a_group_that_cannot_be_joined_is_an_error_of_the_start(yard: Yard) -> None:
    """It never runs without its limits."""
    limited(yard, processes_max=100, groups=("/proc/none/koboshi",))

    seen, _ = await yard.run("echo ran > ran")

    assert seen.ending is not None
    assert (seen.ending.by, seen.ending.exit_code) == (EndedBy.START, None)
    assert seen.ending.error.startswith("cannot be limited")
    assert not (yard.workdir / "ran").exists()


@inside
async def test_a_limit_is_handed_on_to_every_process(yard: Yard) -> None:
    limited(yard, memory_bytes_max=300 * MB, processes_max=900)

    _, output = await yard.run("sh -c 'ulimit -d; cat /proc/self/limits'")

    assert output.split(b"\n")[0] == b"%d" % (300 * 1024)
    processes = next(line for line in output.decode().splitlines() if "Max processes" in line)
    assert processes.split()[2:4] == ["900", "900"]
