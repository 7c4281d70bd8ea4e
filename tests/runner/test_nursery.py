"""The process that forks runners may be killed or stand still at any moment, as all others may."""

import os
import signal
from pathlib import Path

import pytest

from koboshi.ports.runners import Life
from koboshi.processes import births, nursery
from koboshi.processes.pinned import BEGIN
from koboshi.runner.tree import PARENT, stat_of
from tests.harness.polling import until
from tests.runner.yard import Yard

pytestmark = pytest.mark.skipif(not nursery.IS_POSSIBLE, reason="only Linux has what it needs")


def nursery_of(yard: Yard) -> int:
    """The pid of the nursery that forked the last runner."""
    process_id = max(int(folder.name) for folder in yard.folder.glob("[0-9]*"))
    keeper = yard.keeper_pid(process_id)  # type: ignore[arg-type]
    return int(stat_of(keeper)[PARENT])


async def test_each_command_has_a_runner_of_its_own(yard: Yard) -> None:
    first, second = await yard.start("sleep 1000"), await yard.start("sleep 1000")

    runners = {yard.runner_pid(each) for each in (first, second)}
    keepers = {yard.keeper_pid(each) for each in (first, second)}
    assert len(runners | keepers) == 4
    assert {os.getsid(pid) for pid in runners} == runners
    assert nursery_of(yard) != os.getpid()
    shared = libraries(nursery_of(yard))
    assert shared
    assert {each for pid in runners | keepers for each in libraries(pid) - shared} == set()


def libraries(pid: int) -> set[str]:
    """What a process has loaded. What it loads itself costs time, and it shares no memory of it."""
    lines = Path(f"/proc/{pid}/maps").read_text().splitlines()
    return {line.split()[-1] for line in lines if ".so" in line}


async def test_a_killed_nursery_takes_no_runner_with_it_and_is_made_anew(yard: Yard) -> None:
    """Issue 20, part 3: one that was shared would take the exit codes of all with it."""
    running = await yard.start("read -r word; exit 3", takes_input=True)
    os.kill(killed := nursery_of(yard), signal.SIGKILL)
    await until(lambda: not stat_of(killed), "it is dead")

    seen, _ = await yard.run("true")

    assert seen.ending is not None
    assert seen.ending.exit_code == 0
    another = await yard.start("sleep 1000")
    assert nursery_of(yard) not in (killed, os.getpid())
    assert await yard.runners.write(running, b"go\n")
    ended = (await yard.until_free(running)).ending
    assert ended is not None
    assert ended.exit_code == 3
    assert yard.runners.look(another).life is Life.ALIVE


async def test_one_that_stands_still_begins_nothing_later(
    yard: Yard, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A request that was sent is not made in another way: the command would have two runners."""
    monkeypatch.setattr(births, "_spawn", lambda *_: pytest.fail("a second runner"))
    await yard.start("sleep 1000")
    (asked,) = yard.runners._births._nurseries.values()
    assert asked._socket is not None
    asked._socket.settimeout(0.2)
    os.kill(nursery_of(yard), signal.SIGSTOP)
    process_id = yard.next_id()

    with pytest.raises(ChildProcessError, match="was not born"):
        await yard.runners.start(process_id, yard.spec("echo ran >> ran"))

    assert yard.runners.look(process_id).life is Life.UNBORN
    await yard.run("true")
    assert not (yard.workdir / "ran").exists()


async def test_without_one_a_runner_is_started_alone(
    yard: Yard, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(nursery, "IS_POSSIBLE", False)

    process_id = await yard.start("sleep 1000")

    assert nursery_of(yard) == os.getpid()
    with open(f"/proc/{yard.keeper_pid(process_id)}/cmdline", "rb") as file:
        assert BEGIN.encode() in file.read()


async def test_it_ends_with_its_gateway(yard: Yard) -> None:
    await yard.start("sleep 1000")
    forked_by = nursery_of(yard)

    yard.runners._births._nurseries.clear()

    await until(lambda: not stat_of(forked_by), "it is gone")
