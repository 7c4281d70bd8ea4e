"""A disk that is full, fails, or is held by another person: nothing is acknowledged that is not
stored, no caller waits for ever, and nothing is stored twice."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import apsw
import pytest
from anyio import create_task_group

from koboshi.domain.errors import StoreFailed
from koboshi.domain.inbox import EntryState
from koboshi.ports.channel import Receipt
from tests.harness.disk import filled, small_disk
from tests.harness.homes import Home
from tests.harness.polling import until
from tests.harness.strace import Traced, needs_strace, run_traced
from tests.harness.victim import open_here


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of two megabytes."""
    with small_disk(tmp_path / "disk", megabytes=3) as folder:
        yield folder


async def boot(path: Path) -> Home:
    home = await open_here(path)
    home.worker = await home.store.workers.start("host", 1, "birth", "0.1")
    return home


async def test_a_full_disk_makes_writers_wait_and_loses_nothing(disk: Path) -> None:
    """S15, S162, S166: nothing is acknowledged until it is stored, and then it is there once."""
    home = await boot(disk)
    await home.say("before")
    receipts: list[Receipt] = []
    home.wakeups.hints.clear()

    async def say(number: int) -> None:
        text = "a long message " * 2_000
        receipts.append(await home.say(text, chat=f"chat {number}", key=f"full {number}"))

    async with create_task_group() as tasks:
        with filled(disk):
            for number in range(5):
                tasks.start_soon(say, number)
            await until(lambda: home.store.trouble, "the store says why it waits")
            assert home.store.trouble == "the disk is full"
            assert receipts == []
            assert home.wakeups.hints == []
            status = await home.store.views.status()
            assert status.turns == {"queued": 1}, "looking is possible, and sees nothing of it"

    assert home.store.trouble is None
    assert {receipt.state for receipt in receipts} == {EntryState.ATTACHED}
    assert not any(receipt.is_duplicate for receipt in receipts)
    assert (await home.store.views.status()).turns == {"queued": 6}
    assert home.failures == []
    await home.store.close()


async def test_a_full_disk_fails_a_caller_that_cannot_wait(disk: Path) -> None:
    """A person asked the process to stop: it must not wait for room."""
    home = await boot(disk)
    failures: list[StoreFailed] = []

    async def say() -> None:
        try:
            await home.say("a long message " * 2_000)
        except StoreFailed as error:
            failures.append(error)

    with filled(disk):
        async with create_task_group() as tasks:
            for _ in range(5):
                tasks.start_soon(say)
            await until(lambda: home.store.trouble, "the store says why it waits")
            home.store.stop_waiting()
        with pytest.raises(StoreFailed, match="the disk is full"):
            await home.say("too late")
        await home.store.close()

    assert len(failures) == 5
    assert len(home.failures) == 1
    again = await boot(disk)
    assert (await again.store.views.status()).turns == {}
    await again.store.close()


# ── injected by the kernel ──────────────────────────────────────────────────────────────────────


def stored(traced: Traced) -> set[str]:
    return {f"chat {line.split()[1]}" for line in traced.said if line.startswith("stored")}


async def chats_in(path: Path) -> set[str]:
    home = await boot(path)
    _, chats = await home.store.views.chats_touched(home.inbound().route.channel, after=0)
    assert (await home.store.views.status()).turns == ({"queued": len(chats)} if chats else {})
    await home.store.close()
    connection = apsw.Connection(str(path / "koboshi.db"))
    assert connection.pragma("integrity_check") == "ok"
    connection.close()
    return set(chats)


@needs_strace
@pytest.mark.parametrize(
    "call, number",
    # The second flush is that of the folder, which SQLite makes as well as it can; the first nine
    # writes of this thread's sister belong to the opening.
    [("fdatasync", 1), ("fdatasync", 3), ("fdatasync", 5), ("pwrite64", 12), ("pwrite64", 50)],
)
async def test_a_disk_that_fails_ends_the_store_for_all_callers(
    tmp_path: Path, call: str, number: int
) -> None:
    """S10, S15: the outcome of that commit is unknown; every other is as it was said."""
    path = tmp_path / "home"
    await (await boot(path)).store.close()

    fails_at = f"error=EIO:when={number}"
    ended = run_traced("messages", str(path), "6", calls=call, inject=fails_at, seconds=30)

    assert ended.returncode == 74, ended
    failed = [line for line in ended.said if line.startswith("failed")]
    assert len(failed) == 1
    assert "the database failed" in failed[0]
    assert ended.said[-1] == "refused at once, told 1"
    known = stored(ended)
    unknown = f"chat {len(known)}"
    assert known <= await chats_in(path) <= known | {unknown}


@needs_strace
async def test_a_moment_without_room_is_waited_for(tmp_path: Path) -> None:
    """ENOSPC three times in a row, in the middle of the third message; no root is needed."""
    path = tmp_path / "home"
    await (await boot(path)).store.close()

    ended = run_traced(
        *("messages", str(path), "6"), calls="pwrite64", inject="error=ENOSPC:when=20..22"
    )

    assert ended.returncode == 0, ended
    assert ended.said[-1] == "closed"
    assert stored(ended) == {f"chat {number}" for number in range(6)}
    assert await chats_in(path) == stored(ended)


# ── held by another program ─────────────────────────────────────────────────────────────────────

HOLD = """
import sys, apsw
connection = apsw.Connection(sys.argv[1])
connection.execute("BEGIN EXCLUSIVE")
print("held", flush=True)
sys.stdin.readline()
connection.execute("ROLLBACK")
"""


@contextmanager
def held_by_another_program(path: Path) -> Iterator[subprocess.Popen[str]]:
    with subprocess.Popen(
        [sys.executable, "-c", HOLD, str(path / "koboshi.db")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as program:
        assert program.stdout is not None
        assert program.stdin is not None
        assert program.stdout.readline() == "held\n"
        yield program
        program.stdin.write("let go\n")
        program.stdin.flush()
        program.wait()


async def test_another_programs_lock_is_waited_for(tmp_path: Path) -> None:
    home = await boot(tmp_path)
    receipts: list[Receipt] = []

    async def say() -> None:
        receipts.append(await home.say())

    async with create_task_group() as tasks:
        with held_by_another_program(tmp_path):
            tasks.start_soon(say)
            for _ in range(20):
                assert (await home.store.views.status()).turns == {}, "looking does not wait"
            assert receipts == []

    assert len(receipts) == 1
    assert home.store.trouble is None
    await home.store.close()


async def test_a_lock_that_is_held_for_long_is_named(tmp_path: Path) -> None:
    """S15: the gateway says why nothing moves."""
    home = await boot(tmp_path)
    async with create_task_group() as tasks:
        with held_by_another_program(tmp_path):
            tasks.start_soon(home.say)
            await until(lambda: home.store.trouble, "the store says why it waits")
            assert home.store.trouble == "another program holds the database"

    assert home.store.trouble is None
    assert (await home.store.views.status()).turns == {"queued": 1}
    assert home.failures == []
    await home.store.close()
