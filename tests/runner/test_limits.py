"""What a command inside may take of the machine. Issue 15, item 4."""

import os
import shutil
from dataclasses import replace

import pytest

from koboshi.ports.runners import EndedBy
from tests.runner.insides import inside
from tests.runner.yard import Yard

MB = 1 << 20
PYTHON = shutil.which("python3", path="/usr/bin:/bin")
HOG = "python3 -c 'held = bytearray(600 << 20); print(len(held))'"
BOMB = "for each in $(seq 400); do sleep 20 & done; wait; echo all"
"""Bounded: without a limit it has 400 children, which end by themselves."""


def limited(yard: Yard, **limits: int) -> None:
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
@pytest.mark.skipif(os.geteuid() == 0, reason="the kernel does not count the processes of root")
async def test_a_fork_bomb_ends_at_the_limit(yard: Yard) -> None:
    limited(yard, processes_max=100)

    seen, output = await yard.run(BOMB, environment={"PATH": "/usr/bin:/bin"})

    assert seen.ending is not None
    assert seen.ending.exit_code != 0
    assert b"fork" in output.lower()
    assert b"all" not in output.split()


@inside
async def test_a_limit_is_handed_on_to_every_process(yard: Yard) -> None:
    limited(yard, memory_bytes_max=300 * MB, processes_max=900)

    _, output = await yard.run("sh -c 'ulimit -d; cat /proc/self/limits'")

    assert output.split(b"\n")[0] == b"%d" % (300 * 1024)
    processes = next(line for line in output.decode().splitlines() if "Max processes" in line)
    assert processes.split()[2:4] == ["900", "900"]
