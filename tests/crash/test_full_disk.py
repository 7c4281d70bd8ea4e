"""A gateway that is killed or stopped while its disk is full."""

from asyncio import Event
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tests.crash.stories import CHAT
from tests.crash.telling import checked
from tests.harness.disk import filled, small_disk
from tests.harness.invariants import answers
from tests.harness.lives import KILLED_BY_HAND, STOPPED
from tests.harness.modelled import Modelled, modelled_logging_to
from tests.harness.polling import until
from tests.harness.process import KILLED
from tests.harness.rows import Rows, read_rows
from tests.models.forms import OPENAI

STORAGE_FAILED = 74
MEGABYTES = 48
"""Its reserve is a twentieth of that: room for what a slow machine writes until it stops."""


@asynccontextmanager
async def in_flight(disk: Path, log: Path, crash_at: str = "") -> AsyncIterator[Modelled]:
    """A gateway on the disk, with a turn that waits for the model at a gate."""
    async with modelled_logging_to(log, disk / "home", OPENAI) as it:
        if crash_at:
            await it.gateway.wait_ready()
            await it.end(KILLED_BY_HAND)
            it.gateway.start(crash_at=crash_at)
        await it.gateway.wait_ready()
        await until((disk / "home" / "reserve").exists, "there is a reserve")
        it.server.gate = Event()
        it.server.answers.append(it.says("finished all the same"))
        await it.person.say("one", "1")
        await until(lambda: it.server.requests, "the model is asked")
        yield it


async def finished(it: Modelled) -> Rows:
    """There is room again: everything comes to its end."""
    await it.gateway.wait_ready()
    assert it.server.gate is not None
    it.server.gate.set()
    await it.person.hears("finished all the same")
    await until((it.gateway.home / "reserve").exists, "the reserve is made again")
    return await checked(it.life)


def notices(rows: Rows) -> list[str]:
    return [str(row["state"]) for row in rows.outbox if str(row["cause"]).startswith("full:")]


@pytest.mark.slow
@pytest.mark.parametrize("moment", ["before", "after"])
async def test_killed_while_it_tells_of_a_full_disk_nothing_is_lost_or_told_twice(
    tmp_path: Path, moment: str
) -> None:
    """Issue 13, A2: `workers.tell_full` is a crash point like every other verb. The reserve is gone
    by then, and the next life begins with the room that it gave."""
    with small_disk(tmp_path / "disk", MEGABYTES) as disk:
        async with in_flight(disk, tmp_path / "log", f"workers.tell_full:{moment}") as it:
            with filled(disk):
                assert await it.gateway.wait_exit() == KILLED, it.gateway.log[-3000:]
                assert not (disk / "home" / "reserve").exists()
                it.ends.append(KILLED_BY_HAND)
                it.life.remains.append(read_rows(it.gateway.home))
                it.server.answers.append(it.says("finished all the same"))
                it.gateway.start()
                await it.gateway.wait_listening()
            rows = await finished(it)

    assert notices(rows) == (["delivered"] if moment == "after" else [])
    assert answers(rows, CHAT) == ["finished all the same"]


@pytest.mark.slow
@pytest.mark.parametrize("is_all_used", [False, True], ids=["with-the-reserve", "without-room"])
async def test_a_gateway_that_is_stopped_on_a_full_disk_leaves_and_loses_nothing(
    tmp_path: Path, is_all_used: bool
) -> None:
    """Issue 13, A2: with what the reserve gave, the turn is set down as at any stop. Where not even
    that is left, the gateway ends all the same, and the next one finds a crash."""
    with small_disk(tmp_path / "disk", MEGABYTES) as disk:
        async with in_flight(disk, tmp_path / "log") as it:
            with filled(disk):
                await it.person.hears("My disk is full")
                if is_all_used:
                    _use_up(disk)
                it.gateway.terminate()
                code = await it.gateway.wait_exit()
                assert code in ((0, STORAGE_FAILED) if is_all_used else (0,)), it.gateway.log
                assert "Traceback" not in it.gateway.log
                it.ends.append(STOPPED if code == 0 else KILLED_BY_HAND)
                (disk / "more").unlink(missing_ok=True)
            it.server.answers.append(it.says("finished all the same"))
            it.life.remains.append(read_rows(it.gateway.home))
            it.gateway.start()
            rows = await finished(it)

    assert notices(rows) == ["delivered"]
    assert answers(rows, CHAT) == ["finished all the same"]


def _use_up(disk: Path) -> None:
    """Take what the reserve gave as well."""
    with (disk / "more").open("wb", buffering=0) as file:
        try:
            while True:
                file.write(b"x" * 4_096)
        except OSError:
            return
