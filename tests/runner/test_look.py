"""What the files tell, whatever process died in between. Nothing rests on a bare pid."""

import ctypes
import fcntl
import json
import os
import resource
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import anyio
import pytest

from koboshi.domain.ids import ProcessId
from koboshi.ports.runners import EndedBy, Life, Seen
from koboshi.processes.files import ProcessFiles
from koboshi.processes.runners import LocalRunners
from koboshi.runner.reaper import SET_CHILD_SUBREAPER
from tests.harness.polling import until
from tests.runner.yard import Yard


async def test_what_no_one_began_never_begins(yard: Yard) -> None:
    process_id = yard.next_id()

    assert yard.runners.look(process_id) == Seen(life=Life.UNBORN)

    with pytest.raises(FileExistsError):
        await yard.runners.start(process_id, yard.spec("touch ran"))
    assert yard.runners.look(process_id) == Seen(life=Life.UNBORN)
    assert not (yard.workdir / "ran").exists()


async def test_a_look_that_comes_before_the_lock_is_taken_wins(
    yard: Yard, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The starter is between making the folder and taking the lock. The runner finds `void`."""
    process_id = yard.next_id()
    take = fcntl.flock

    def look_and_take(file: int, how: int) -> None:
        if how == fcntl.LOCK_EX:
            assert LocalRunners(yard.folder).look(process_id).life is Life.UNBORN
        take(file, how)

    monkeypatch.setattr(fcntl, "flock", look_and_take)

    assert await yard.runners.start(process_id, yard.spec("touch ran")) is None
    assert (await yard.until_free(process_id)).life is Life.UNBORN
    assert not (yard.workdir / "ran").exists()


async def test_what_cannot_be_read_for_want_of_a_descriptor_is_not_missing(yard: Yard) -> None:
    """Issue 12, A4: a command that has ended was taken for one that was lost, or never began."""
    seen, _ = await yard.run("exit 7")
    files = ProcessFiles(yard.folder / "1")
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (3, hard))  # the lowest three are always taken
    try:
        for read in (files.read_birth, files.read_ending, files.read_marker):
            with pytest.raises(OSError, match="open files"):
                read()
        with pytest.raises(OSError, match="open files"):
            yard.runners.look(ProcessId(1))
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))

    assert yard.runners.look(ProcessId(1)) == seen
    assert ProcessFiles(yard.folder / "2").read_ending() is None


async def test_a_killed_runner_is_lost_and_its_command_is_not_blocked(yard: Yard) -> None:
    """No reader takes its output any more; it dies of that instead of waiting for ever."""
    process_id = await yard.start("yes")
    await yard.until_said(process_id, b"y\n")

    yard.kill_runner(process_id)
    seen = await yard.until_free(process_id)

    assert (seen.life, seen.is_other_boot, seen.ending) == (Life.LOST, False, None)
    await until(lambda: not yard.tree(process_id), "the command has ended")


async def test_a_silent_command_of_a_killed_runner_can_still_be_ended(yard: Yard) -> None:
    """It holds neither the lock nor the pipe of its runner, and is known by its marker."""
    process_id = await yard.start("(setsid sleep 1000 &); echo up; sleep 1000")
    await yard.until_said(process_id, b"up")
    yard.kill_runner_and_keeper(process_id)
    assert (await yard.until_free(process_id)).life is Life.LOST
    assert yard.tree(process_id)

    seen = await yard.runners.end(process_id, grace_s=0)

    assert seen.life is Life.LOST
    assert not yard.tree(process_id)


async def test_everything_killed_at_once_is_lost_or_a_death_by_signal(yard: Yard) -> None:
    for _ in range(5):
        process_id = await yard.start("echo up; sleep 1000")
        await yard.until_said(process_id, b"up")

        for pid in [*yard.tree(process_id), yard.runner_pid(process_id)]:
            with suppress(ProcessLookupError):  # the runner has written its record and is gone
                os.kill(pid, signal.SIGKILL)
        seen = await yard.until_free(process_id)

        if seen.life is Life.ENDED:
            assert seen.ending is not None
            assert (seen.ending.by, seen.ending.signal) == (EndedBy.ITSELF, signal.SIGKILL)
        else:
            assert seen.life is Life.LOST


async def test_a_process_of_an_earlier_boot_of_the_machine_is_lost(yard: Yard) -> None:
    process_id = await yard.start("echo up; sleep 1000")
    await yard.until_said(process_id, b"up")
    yard.kill_runner_and_keeper(process_id)
    await yard.until_free(process_id)
    boot_id = yard.workdir / "boot_id"
    boot_id.write_text("another-boot\n")

    after = LocalRunners(yard.folder, boot_id_file=boot_id)

    seen = after.look(process_id)
    assert (seen.life, seen.is_other_boot) == (Life.LOST, True)
    assert (await after.end(process_id, grace_s=0)) == seen
    assert yard.tree(process_id), "its marker is of another boot: no one here can carry it"


@pytest.fixture
def bystander() -> Iterator["subprocess.Popen[bytes]"]:
    """A process of another user, and one that it needs."""
    process = subprocess.Popen(["sh", "-c", "sleep 1000; exit 1"], start_new_session=True)
    yield process
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()


@pytest.mark.parametrize("changed", [{"start_ticks": 1}, {"boot_id": "another"}, {}])
async def test_a_pid_that_came_back_is_neither_alive_nor_signalled(
    yard: Yard, bystander: "subprocess.Popen[bytes]", changed: dict[str, Any]
) -> None:
    """S135: the runner is long dead, and its pid is that of a bystander now."""
    process_id = await yard.start("sleep 1000")
    yard.kill_runner_and_keeper(process_id)
    await yard.until_free(process_id)
    claim_birth(yard, process_id, bystander.pid, **changed)

    assert yard.runners.look(process_id).life is Life.LOST
    assert (await yard.runners.wait(process_id, 5)).life is Life.LOST
    assert (await yard.runners.end(process_id, grace_s=0)).life is Life.LOST
    assert bystander.poll() is None


@contextmanager
def orphans_fall_to_us() -> Iterator[None]:
    """An orphan below this test stays a zombie: the system's first process would bury it."""
    prctl = ctypes.CDLL(None, use_errno=True).prctl
    assert prctl(SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0
    try:
        yield
    finally:
        prctl(SET_CHILD_SUBREAPER, 0, 0, 0, 0)


async def test_a_zombie_does_not_count_as_alive(yard: Yard) -> None:
    """S135: the runner was killed and no one has buried it; its pid is still its own."""
    process_id = await yard.start("sleep 1000")
    birth = yard.files(process_id).read_birth()
    assert birth is not None
    with orphans_fall_to_us():
        yard.kill_runner_and_keeper(process_id)
        next_life = LocalRunners(yard.folder)

        seen = await next_life.wait(process_id, 5)

        stat = Path(f"/proc/{birth.pid}/stat").read_text()
        assert stat.rpartition(")")[2].split()[0] == "Z"
        assert seen.life is Life.LOST
        assert (await next_life.end(process_id, grace_s=0)).life is Life.LOST
        os.waitpid(birth.pid, 0)


async def test_a_lock_held_by_a_stranger_makes_no_pid_trustworthy(
    yard: Yard, bystander: "subprocess.Popen[bytes]"
) -> None:
    """The lock is held, the pid of the birth belongs to another person: no one is signalled."""
    process_id = await yard.start("true")
    await yard.until_free(process_id)
    (yard.files(process_id).folder / "exit.json").unlink()
    claim_birth(yard, process_id, bystander.pid, start_ticks=1)
    yard.runners.reacts_within_s = 0.1
    lock = yard.files(process_id).open_lock()
    fcntl.flock(lock, fcntl.LOCK_EX)

    try:
        assert (await yard.runners.wait(process_id, 0.05)).life is Life.ALIVE
        assert (await yard.runners.end(process_id, grace_s=0)).life is Life.ALIVE
    finally:
        os.close(lock)

    assert bystander.poll() is None
    assert yard.runners.look(process_id).life is Life.LOST


async def test_files_that_cannot_be_read_stop_nothing(yard: Yard) -> None:
    """S138: a disk may break anything. What is not known is not made up."""
    process_id = await yard.start("exit 3")
    await yard.until_free(process_id)
    folder = yard.files(process_id).folder

    (folder / "exit.json").write_bytes(b'{"by": "its\xff')
    # The keeper of the runner ends a moment after it.
    await until(lambda: yard.runners.look(process_id).life is Life.LOST, "the lock is free")
    (folder / "born.json").write_bytes(b"")
    assert yard.runners.look(process_id) == Seen(life=Life.LOST)
    (folder / "spec").write_bytes(b"")
    assert (await yard.runners.end(process_id, grace_s=0)).life is Life.LOST


async def test_waiting_for_a_hundred_needs_no_thread_for_each(yard: Yard) -> None:
    ids = [await yard.start("read -r _; exit 5", takes_input=True) for _ in range(100)]
    ended: list[Seen] = []
    threads = threading.active_count()

    async def wait(process_id: ProcessId) -> None:
        ended.append(await yard.runners.wait(process_id))

    async with anyio.create_task_group() as tasks:
        for each in ids:
            tasks.start_soon(wait, each)
        await anyio.wait_all_tasks_blocked()
        assert threading.active_count() <= threads
        assert not ended
        for each in ids:
            assert await yard.runners.write(each, b"\n")

    assert [seen.ending.exit_code for seen in ended if seen.ending] == [5] * 100


async def test_waiting_ends_with_the_time(yard: Yard) -> None:
    process_id = await yard.start("sleep 1000")

    for at_most_s in (0, 0.05):
        assert (await yard.runners.wait(process_id, at_most_s)).life is Life.ALIVE


def test_waiting_works_on_the_loop_of_production(tmp_path: Path) -> None:
    async def story() -> Seen:
        yard = Yard(tmp_path / "processes", workdir=tmp_path)
        process_id = await yard.start("read -r _; exit 5", takes_input=True)
        assert (await yard.runners.wait(process_id, 0.05)).life is Life.ALIVE
        await yard.runners.write(process_id, b"\n")
        return await yard.runners.wait(process_id, 30)

    seen = anyio.run(story, backend_options={"use_uvloop": True})

    assert seen.ending is not None
    assert seen.ending.exit_code == 5


async def test_removing_leaves_nothing_and_refuses_the_living(yard: Yard) -> None:
    process_id = await yard.start("read -r _", takes_input=True)
    with pytest.raises(ValueError, match="alive"):
        yard.runners.remove(process_id)

    await yard.runners.write(process_id, b"\n")
    await yard.until_free(process_id)
    yard.runners.remove(process_id)

    assert list(yard.folder.iterdir()) == []
    yard.runners.remove(process_id)


async def test_a_remove_that_was_cut_short_is_finished_by_the_next(yard: Yard) -> None:
    first, second = await yard.start("true"), await yard.start("true")
    await yard.until_free(first)
    await yard.until_free(second)
    (yard.folder / ".removed").mkdir()
    yard.files(first).folder.rename(yard.folder / ".removed" / "half")

    yard.runners.remove(second)

    assert list(yard.folder.iterdir()) == []


def test_the_runner_loads_only_what_is_built_in() -> None:
    """What it costs is what it imports; each of these would double it."""
    folder = Path(sys.modules[LocalRunners.__module__].__file__ or "").parents[1] / "runner"
    code = f"import sys; sys.path.insert(0, {str(folder)!r}); import program; print(*sys.modules)"
    loaded = subprocess.run(
        [sys.executable, "-I", "-S", "-c", code], capture_output=True, text=True, check=True
    ).stdout.split()

    assert not {"os", "signal", "json", "re", "enum", "subprocess", "typing"} & set(loaded)
    assert not [name for name in loaded if name.startswith("koboshi")]


def claim_birth(yard: Yard, process_id: ProcessId, pid: int, **changed: Any) -> None:
    """Write a birth that is true of the process with this pid, but for what is changed."""
    path = yard.files(process_id).folder / "born.json"
    ticks = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]
    born = json.loads(path.read_text()) | {"pid": pid, "start_ticks": int(ticks)} | changed
    path.write_text(json.dumps(born))
