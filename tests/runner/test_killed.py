"""The gateway is killed, or the runner, at every moment that matters; the next one sees the truth.

The command says that it ran by a line in a file. Whatever is seen afterwards has to agree with it:
unborn means that there is none and never will be one, ended means exactly one.
"""

import shutil
import subprocess
import sys
import time
from itertools import product
from pathlib import Path

import pytest

from koboshi.domain.sandbox import Boundary
from koboshi.ports.runners import EndedBy, Life, Seen
from koboshi.processes import nursery
from koboshi.processes.runners import LocalRunners
from tests.harness.polling import WITHIN_S, until
from tests.harness.tally import WANTS_ALL
from tests.runner.gateway import (
    AFTER_BIRTH,
    AFTER_SPAWN,
    AT_ANY_TIME,
    BEFORE_SPAWN,
    PROCESS,
)
from tests.runner.insides import CONFINED, everywhere
from tests.runner.yard import Yard

ROOT = Path(__file__).resolve().parents[2]
KILLED = -9


@everywhere
async def test_a_gateway_killed_before_the_spawn_has_started_nothing(yard: Yard) -> None:
    assert run_gateway(yard, BEFORE_SPAWN, "echo ran >> ran") == KILLED

    assert yard.runners.look(PROCESS) == Seen(life=Life.UNBORN)
    assert times_run(yard) == 0


@everywhere
@pytest.mark.parametrize("moment", [AFTER_SPAWN, AFTER_BIRTH])
async def test_a_command_outlives_its_gateway_and_nothing_of_it_is_lost(
    yard: Yard, moment: str
) -> None:
    """The gateway is killed right after; the next one waits, and gets code and output."""
    command = "echo ran >> ran; seq 1000; until [ -e go ]; do sleep 0.01; done; seq 2000; exit 3"
    assert run_gateway(yard, moment, command) == KILLED
    await until(lambda: times_run(yard) or None, "it runs, with no one to look at it")

    found = yard.runners.look(PROCESS)
    assert found.life is Life.ALIVE
    assert found.birth is not None
    (yard.workdir / "go").touch()
    seen = await yard.runners.wait(PROCESS, 30)

    assert seen.ending is not None
    assert (seen.ending.by, seen.ending.exit_code) == (EndedBy.ITSELF, 3)
    assert seen.birth == found.birth
    assert yard.output(PROCESS) == counted(1000) + counted(2000)
    assert times_run(yard) == 1


@everywhere
async def test_a_command_that_ended_while_no_one_looked_is_known(yard: Yard) -> None:
    """S134."""
    assert run_gateway(yard, AFTER_SPAWN, "echo ran >> ran; echo out; exit 3") == KILLED
    await until((yard.files(PROCESS).folder / "exit.json").exists, "it has ended")

    seen = yard.runners.look(PROCESS)

    assert seen.ending is not None
    assert (seen.ending.by, seen.ending.exit_code) == (EndedBy.ITSELF, 3)
    assert yard.output(PROCESS) == b"out\n"


@everywhere
async def test_an_adopted_command_can_be_ended(yard: Yard) -> None:
    """S136."""
    assert run_gateway(yard, AFTER_BIRTH, "(setsid sleep 1000 &); echo up; sleep 1000") == KILLED
    await yard.until_said(PROCESS, b"up")

    seen = await LocalRunners(yard.folder).end(PROCESS, grace_s=5)

    assert seen.ending is not None
    assert seen.ending.by is EndedBy.REQUEST
    assert not yard.tree(PROCESS)


SIGNS = ("", "spec", "lock", "runner.err", "log", "born.json", "exit.json")
AT_SIGNS = list(product([Boundary.NONE, *CONFINED], SIGNS))
if not WANTS_ALL:
    # Each sign once, spread over all boundaries; the long campaign has every pair.
    AT_SIGNS = AT_SIGNS[::3]


@pytest.mark.parametrize("yard, sign", AT_SIGNS, indirect=["yard"])
async def test_a_gateway_killed_at_any_time_leaves_the_truth(yard: Yard, sign: str) -> None:
    """It dies as soon as a file of the process is seen."""
    command = gateway_command(yard, AT_ANY_TIME, "echo ran >> ran; exit 3")
    with subprocess.Popen(command, cwd=ROOT, start_new_session=True) as gateway:
        appears(yard.files(PROCESS).folder / sign)
        gateway.kill()

    await agrees_with_the_truth(yard)


def appears(path: Path) -> None:
    """Return at the moment it is there: nothing is slower here than looking."""
    limit = time.monotonic() + WITHIN_S
    while not path.exists():
        assert time.monotonic() < limit, f"{path} does not appear"


# The system calls around each durable step of a runner, as (call, how many of it came before).
STEPS = [
    ("chdir", 1), ("setsid", 1), ("prctl", 1), ("pipe2", 1), ("ftruncate", 1),
    ("fsync", 1), ("rename", 1), ("fsync", 2), ("fsync", 3), ("pipe2", 2), ("clone", 1),
    ("wait4", 1), ("fsync", 4), ("rename", 2), ("fsync", 5), ("exit_group", 1),
]  # fmt: skip


@pytest.mark.parametrize("call,number", STEPS)
async def test_a_runner_killed_at_any_step_leaves_the_truth(
    yard: Yard, call: str, number: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Started alone: a nursery would be killed instead. Its runners do the same from here on.
    monkeypatch.setattr(nursery, "IS_POSSIBLE", False)
    yard.runners.python = str(python_killed_at(yard.workdir, call, number))

    try:
        await yard.runners.start(PROCESS, yard.spec("echo ran >> ran; exit 3"))
    except ChildProcessError:
        assert yard.runners.look(PROCESS).life is Life.UNBORN

    await agrees_with_the_truth(yard)


async def agrees_with_the_truth(yard: Yard) -> None:
    seen = await yard.until_free(PROCESS)
    match seen.life:
        case Life.UNBORN:
            assert times_run(yard) == 0
        case Life.ENDED:
            assert seen.ending is not None
            assert (seen.ending.by, seen.ending.exit_code) == (EndedBy.ITSELF, 3)
            assert times_run(yard) == 1
        case Life.LOST:
            await until(lambda: not yard.tree(PROCESS), "what was left has ended")
            assert times_run(yard) <= 1
        case Life.ALIVE:
            raise AssertionError("the lock is free")
    assert yard.runners.look(PROCESS) == seen
    with pytest.raises(FileExistsError):
        await yard.runners.start(PROCESS, yard.spec("echo again >> ran"))


def python_killed_at(folder: Path, call: str, number: int) -> Path:
    """An interpreter that is killed at the given system call."""
    strace = shutil.which("strace")
    if strace is None:
        pytest.skip("a runner cannot be killed at a system call: strace is not installed")
    path = folder / "python"
    fault = f"inject={call}:signal=SIGKILL:when={number}"
    path.write_text(
        # The runner is a child of its keeper; the command itself is left alone.
        f"#!/bin/sh\nexec {strace} -f -b execve -qq -o {folder}/strace -e trace={call} -e {fault}"
        f' {sys.executable} "$@"\n'
    )
    path.chmod(0o700)
    return path


def run_gateway(yard: Yard, moment: str, command: str) -> int:
    return subprocess.run(
        gateway_command(yard, moment, command), cwd=ROOT, start_new_session=True, check=False
    ).returncode


def gateway_command(yard: Yard, moment: str, command: str) -> list[str]:
    paths = [str(yard.folder), str(yard.workdir)]
    boundary = yard.confine(str(yard.workdir)).boundary
    return [sys.executable, "-m", "tests.runner.gateway", *paths, boundary, moment, command]


def times_run(yard: Yard) -> int:
    ran = yard.workdir / "ran"
    return ran.read_text().count("\n") if ran.exists() else 0


def counted(last: int) -> bytes:
    return b"".join(b"%d\n" % number for number in range(1, last + 1))
