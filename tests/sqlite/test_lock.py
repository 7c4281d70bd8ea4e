"""One process owns the home, and the kernel knows which."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from anyio import create_task_group, move_on_after

from koboshi.clock import SystemClock
from koboshi.domain.errors import HomeHeld, StoreRefused
from koboshi.stores.lock import LOCK_NAME, HomeLock, take_lock
from tests.harness.fake_time import FakeClock
from tests.harness.open_files import open_below
from tests.harness.polling import until
from tests.harness.victim import open_here

ROOT = Path(__file__).resolve().parent.parent.parent


class HurryingClock(FakeClock):
    """Time goes on whenever a person looks, so that a wait ends without waiting."""

    def __init__(self, step_seconds: float) -> None:
        super().__init__()
        self.looks = 0
        self.step_seconds = step_seconds

    def monotonic(self) -> float:
        self.looks += 1
        self.seconds += self.step_seconds
        return self.seconds


async def take(home: Path, who: str = "a test", clock: FakeClock | None = None) -> HomeLock:
    waits = 30.0 if clock else 0.0
    return await take_lock(home, wait_seconds=waits, clock=clock or FakeClock(), who=who)


@contextmanager
def another_process(home: Path) -> Iterator[subprocess.Popen[str]]:
    """A process that has the store of the home open, and does nothing."""
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.harness.victim", "hold", str(home)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
    )
    with process:
        assert process.stdout is not None
        assert process.stdout.readline() == "open\n"
        yield process
        process.kill()


async def test_the_second_is_told_who_holds_the_home(tmp_path: Path) -> None:
    """S11, S167: exactly one serves, the other says why."""
    with another_process(tmp_path) as holder:
        with pytest.raises(HomeHeld, match=rf"a koboshi gateway \(pid {holder.pid} on ") as held:
            await open_here(tmp_path)
        assert str(tmp_path) in str(held.value)
        assert isinstance(held.value, StoreRefused)


async def test_a_lock_goes_with_the_process_that_held_it(tmp_path: Path) -> None:
    """S167: killed without a word, and nothing stale is left behind."""
    with another_process(tmp_path) as holder:
        holder.send_signal(signal.SIGKILL)
        holder.wait()
        home = await open_here(tmp_path)
        await home.store.close()


async def test_the_second_waits_before_it_gives_up(tmp_path: Path) -> None:
    lock, clock = await take(tmp_path), HurryingClock(step_seconds=15)
    with pytest.raises(HomeHeld):
        await take(tmp_path, clock=clock)

    assert clock.looks > 2
    lock.release()


async def test_the_second_takes_over_when_the_first_lets_go(tmp_path: Path) -> None:
    lock, clock = await take(tmp_path, "the first"), HurryingClock(step_seconds=0.01)
    taken: list[HomeLock] = []

    async def wait_for_it() -> None:
        taken.append(await take(tmp_path, "the second", clock))

    async with create_task_group() as tasks:
        tasks.start_soon(wait_for_it)
        await until(lambda: clock.looks >= 2, "the second looks whether the home is free")
        assert taken == []
        lock.release()

    with pytest.raises(HomeHeld, match="the second"):
        await take(tmp_path)
    taken[0].release()


async def test_the_lock_is_not_passed_on_to_programs_that_are_started(tmp_path: Path) -> None:
    """A tool that outlives the gateway must not keep the home."""
    lock = await take(tmp_path)
    assert not os.get_inheritable(lock.descriptor)
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE, close_fds=False) as child:
        lock.release()
        again = await take(tmp_path)
        assert child.poll() is None
        again.release()


async def test_a_store_that_is_closed_gives_the_home_back(tmp_path: Path) -> None:
    for _ in range(2):
        home = await open_here(tmp_path)
        await home.store.close()


async def test_a_store_that_could_not_be_opened_gives_the_home_back(tmp_path: Path) -> None:
    (tmp_path / "koboshi.db").write_bytes(b"not a database at all" * 1_000)
    for _ in range(2):
        with pytest.raises(StoreRefused, match="damaged"):
            await open_here(tmp_path)


@pytest.mark.parametrize("content", [b"", b"{", b"[1]", b'{"who": "me"}', b"\xff\xfe"])
async def test_what_the_file_says_is_only_a_label(tmp_path: Path, content: bytes) -> None:
    lock = await take(tmp_path)
    (tmp_path / LOCK_NAME).write_bytes(content)
    with pytest.raises(HomeHeld, match="held by another process"):
        await take(tmp_path)
    lock.release()

    (await take(tmp_path)).release()


async def test_the_label_of_an_earlier_holder_does_not_shine_through(tmp_path: Path) -> None:
    (await take(tmp_path, "a person with a very long name indeed")).release()
    lock = await take(tmp_path, "me")
    with pytest.raises(HomeHeld, match=rf"held by me \(pid {os.getpid()} on"):
        await take(tmp_path)
    lock.release()


async def test_one_who_stops_waiting_leaves_nothing_open(tmp_path: Path) -> None:
    lock = await take(tmp_path)
    before = open_below(tmp_path)
    with move_on_after(0.01) as scope:
        await take(tmp_path, clock=HurryingClock(step_seconds=0.001))

    assert scope.cancelled_caught
    assert open_below(tmp_path) == before
    lock.release()


async def test_no_one_else_may_read_who_holds_it(tmp_path: Path) -> None:
    lock = await take(tmp_path)

    assert (tmp_path / LOCK_NAME).stat().st_mode & 0o077 == 0
    lock.release()


async def test_a_caller_that_waited_for_a_file_that_was_removed_takes_the_one_that_others_see(
    tmp_path: Path,
) -> None:
    """Issue 12, A8: a lock on a file without a name keeps no process out."""
    first = await take(tmp_path)

    async with create_task_group() as tasks:
        taken: list[HomeLock] = []

        async def wait() -> None:
            taken.append(
                await take_lock(tmp_path, wait_seconds=30, clock=SystemClock(), who="second")
            )

        tasks.start_soon(wait)
        await until(lambda: _opened_by_us(tmp_path) == 2, "the second waits")
        (tmp_path / LOCK_NAME).unlink()
        first.release()
    (second,) = taken

    with pytest.raises(HomeHeld, match="second"):
        await take(tmp_path)
    second.release()


def _opened_by_us(home: Path) -> int:
    wanted = (home / LOCK_NAME).stat()
    found = (os.fstat(int(each.name)) for each in _descriptors())
    return sum(os.path.samestat(each, wanted) for each in found)


def _descriptors() -> list[Path]:
    """Those that are there; the one that lists them is gone by now."""
    return [each for each in Path("/proc/self/fd").iterdir() if each.exists()]
