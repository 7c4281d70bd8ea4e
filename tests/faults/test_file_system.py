"""Campaign: the file system below a serving gateway goes away, fills up, or is foreign.

The cut is made by the kernel: an ext4 of our own is shut down without a last flush, as if its disk
had been pulled, and mounted again. What was not flushed is gone, as after a loss of power. A file
system that is in use for writing cannot be remounted read-only by hand, so what ext4 does by
itself after an error stands for it: EROFS, in test_gateway.py.
"""

import random
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path

import apsw
import pytest
from anyio import create_task_group

from tests.faults.serving import (
    STORAGE_FAILED,
    is_taken,
    lost,
    readiness,
    serving,
    works_again,
    write_down,
)
from tests.harness.disk import filled, real_disk, small_disk
from tests.harness.polling import until_asked
from tests.harness.tally import WANTS_ALL

CUTS = 12 if WANTS_ALL else 2
WRONG_SETUP = 78


@pytest.mark.parametrize("seed", range(CUTS))
async def test_a_gateway_whose_disk_is_pulled_has_lost_nothing(tmp_path: Path, seed: int) -> None:
    """S10, S15, S158: it ends with 74; on the disk, mounted again, is every message that it
    acknowledged, and the next life goes on."""
    dice = random.Random(seed)
    print(f"seed {seed}")
    with real_disk(tmp_path / "disk") as disk:
        home = disk.folder / "home"
        async with serving(home, first=dice.randint(0, 12), log=tmp_path / "log") as served:
            gateway, person = served
            acknowledged = [int(key) for key in person.acks]
            disk.cut()
            assert not await is_taken(person, 50)
            assert await gateway.wait_exit() == STORAGE_FAILED, gateway.log
            assert "start me again" in gateway.log
            gateway.start()
            assert await gateway.wait_exit() == STORAGE_FAILED, gateway.log
            disk.plug_in_again()
            assert lost(home, acknowledged) == []
            gateway.start()
            await works_again(gateway, person, len(acknowledged) + 2)
    write_down(f"disk pulled, seed {seed}")


async def test_a_gateway_that_does_not_flush_is_seen_to_lose(tmp_path: Path) -> None:
    """The same cut, and the acknowledged messages of a doctored one are gone."""
    command = (sys.executable, "-m", "tests.faults.doctored_gateway", "forgets", "run")
    with real_disk(tmp_path / "disk") as disk:
        home = disk.folder / "home"
        log = tmp_path / "log"
        async with serving(home, command=(*command, "--home", str(home)), log=log) as served:
            gateway, person = served
            disk.cut()
            gateway.kill()
        disk.plug_in_again()
        acknowledged = [int(key) for key in person.acks]
        try:
            missing = lost(home, acknowledged)
        except apsw.NotADBError:
            missing = acknowledged  # not even the first page of the file was flushed
    assert missing
    write_down("control: disk pulled, nothing flushed", is_control=True, violations=["lost"])


async def test_a_disk_that_fills_up_while_many_write(tmp_path: Path) -> None:
    """S162, S166: room for a while, none for a while: the one who is acknowledged is stored, and
    every person is acknowledged in the end."""
    with small_disk(tmp_path / "disk") as disk:
        async with serving(disk / "home", log=tmp_path / "log") as (gateway, person):
            keys = map(str, count(3))
            for _ in range(2):
                async with create_task_group() as tasks:
                    with filled(disk):

                        async def is_waiting() -> bool:
                            # The log may have room for some: they are written until it has none.
                            key = next(keys)
                            tasks.start_soon(person.say, f"echo {key}", key)
                            return await readiness(gateway) == (False, "the disk is full")

                        await until_asked(is_waiting, "it says why it waits")
            gateway.kill()
            assert lost(disk / "home", [int(key) for key in person.acks]) == []
            assert len(person.acks) == int(next(keys))
    write_down("a full tmpfs, twice")


async def test_a_home_on_a_read_only_disk_is_for_a_person_to_mend(tmp_path: Path) -> None:
    """S15: exit 78 with words; mounted for writing again, everything is there."""
    with real_disk(tmp_path / "disk") as disk:
        home = disk.folder / "home"
        async with serving(home, log=tmp_path / "log") as (gateway, person):
            gateway.kill()
            remount = ["mount", "-o", "remount,ro", str(disk.folder)]
            subprocess.run(remount, check=True)
            gateway.start()
            assert await gateway.wait_exit() == WRONG_SETUP, gateway.log
            assert "is on a read-only file system" in gateway.log
            assert "Traceback" not in gateway.log
            subprocess.run([*remount[:2], "remount,rw", str(disk.folder)], check=True)
            gateway.start()
            await works_again(gateway, person, 4)
    write_down("read-only at the start")


HOLD = """
import sys, apsw
connection = apsw.Connection(sys.argv[1])
connection.set_busy_timeout(60_000)  # the gateway may be in the middle of a commit
connection.execute("BEGIN EXCLUSIVE")
print("held", flush=True)
sys.stdin.readline()
connection.execute("ROLLBACK")
"""


@contextmanager
def held_by_another_program(home: Path) -> Iterator[None]:
    with subprocess.Popen(
        [sys.executable, "-c", HOLD, str(home / "koboshi.db")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as program:
        assert program.stdout is not None
        assert program.stdin is not None
        assert program.stdout.readline() == "held\n"
        yield
        program.stdin.write("let go\n")
        program.stdin.flush()
        program.wait()


async def test_a_database_that_another_program_holds_is_waited_for(home: Path) -> None:
    """S15: it says so, acknowledges nothing, and goes on by itself when the other lets go."""
    async with serving(home) as (gateway, person):
        with held_by_another_program(home):
            assert not await is_taken(person, 3)
            assert await readiness(gateway) == (False, "another program holds the database")
        assert "another program holds the database" in gateway.log
        await works_again(gateway, person, 5)
    write_down("locked by another program")


async def test_a_gateway_that_acknowledges_what_it_cannot_store_is_found_out(home: Path) -> None:
    """The same look at a doctored one, whose database is held: what it took is nowhere."""
    command = (sys.executable, "-m", "tests.faults.doctored_gateway", "lies", "run")
    async with serving(home, command=(*command, "--home", str(home))) as (gateway, person):
        with held_by_another_program(home):
            assert await is_taken(person, 3), "it was honest"
            gateway.kill()
        assert lost(home, [0, 1, 2, 3]) == [3]
    write_down("control: told while it is locked", is_control=True, violations=["lost"])
