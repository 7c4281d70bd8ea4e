"""Campaign: the calls of a gateway that serves begin to fail.

strace makes them fail, and lets go when the fault is over; it cannot do a part of a write (that
is in test_kills.py) nor remount a file system that is in use (EROFS stands for it here; a real one
that goes away is in test_file_system.py). No one here calls fallocate, and ftruncate only while
the files are opened or closed. What holds in every case: what was acknowledged is on the disk,
the file is whole, and everything is taken and answered once when the fault is over.
"""

import sys
from contextlib import suppress
from pathlib import Path

import httpx2
import pytest

from tests.faults.serving import (
    FILES,
    STORAGE_FAILED,
    is_taken,
    lost,
    readiness,
    serving,
    works_again,
    write_down,
)
from tests.harness.disk import failing, failing_calls
from tests.harness.http import connection
from tests.harness.tally import WANTS_ALL

DEADLY = [
    ("fdatasync", "EIO"),
    ("pwrite64", "EIO"),
    ("fdatasync", "ENOSPC"),
    ("pwrite64", "EROFS"),
    ("pwrite64", "EDQUOT"),
    ("fdatasync", "EDQUOT"),
]

AT_THE_START: list[tuple[str, str, tuple[str, ...]]] = [
    # The folder, which keeps the names.
    ("fsync", "EIO", ()),
    ("pread64", "EIO", FILES),
    ("fdatasync", "EIO", FILES),
    ("ftruncate", "ENOSPC", ("koboshi.db-shm",)),
    ("pwrite64", "ENOSPC", ("koboshi.db-shm",)),
]


@pytest.mark.parametrize("call, error", DEADLY if WANTS_ALL else DEADLY[1:4:2])
@pytest.mark.parametrize("when", ["1+", "1", "3+"] if WANTS_ALL else ["1+"])
async def test_a_file_that_fails_ends_it_and_the_next_one_goes_on(
    home: Path, tmp_path: Path, call: str, error: str, when: str
) -> None:
    """S10, S15, S162: the outcome of that commit is unknown, so nothing more is acknowledged:
    words in the log, exit 74. The next life has everything that was."""
    async with serving(home) as (gateway, person):
        acknowledged = [0, 1, 2]
        files = [home / name for name in FILES]
        log = tmp_path / "strace"
        with failing_calls(
            gateway.pid, log, calls=call, error=error, files=files, when=when
        ) as strace:
            await strace.attached()
            number = 3
            while gateway.is_running and number < 20:
                acknowledged += [number] if await is_taken(person, number) else []
                number += 1
            code = await gateway.wait_exit()
            assert strace.faults >= 1
        assert code == STORAGE_FAILED, gateway.log
        assert "the database failed" in gateway.log
        assert "start me again" in gateway.log
        assert "Traceback" not in gateway.log
        assert lost(home, acknowledged) == []
        gateway.start()
        await works_again(gateway, person, 6)
    write_down(f"{error} at {call}, {when}")


async def test_a_gateway_that_acknowledges_first_is_found_out(home: Path, tmp_path: Path) -> None:
    """The same fault, and the same look finds what a doctored one says too early."""
    command = (sys.executable, "-m", "tests.faults.doctored_gateway", "lies", "run")
    async with serving(home, command=(*command, "--home", str(home))) as (gateway, person):
        files = [home / name for name in FILES]
        log = tmp_path / "strace"
        with failing_calls(gateway.pid, log, calls="pwrite64", error="EIO", files=files) as strace:
            await strace.attached()
            assert await is_taken(person, 3), "it was honest"
            await gateway.wait_exit()
    assert lost(home, [0, 1, 2, 3]) == [3]
    write_down("control: told before the commit", is_control=True, violations=["lost"])


async def test_a_disk_without_room_is_waited_for(home: Path, tmp_path: Path) -> None:
    """S15, S162: it stays, says why nothing is taken, and goes on by itself."""
    async with serving(home) as (gateway, person):
        files = [home / name for name in FILES]
        log = tmp_path / "strace"
        with failing_calls(
            gateway.pid, log, calls="pwrite64", error="ENOSPC", files=files
        ) as strace:
            await strace.attached()
            assert not await is_taken(person, 3)
            assert await readiness(gateway) == (False, "the disk is full")
        assert gateway.is_running
        assert '"reason": "the disk is full"' in gateway.log
        await works_again(gateway, person, 5)
    write_down("ENOSPC at pwrite64")


async def test_a_file_that_cannot_be_read_ends_it(home: Path, tmp_path: Path) -> None:
    """S15: the caller is told that the store failed, not that there is a bug; it is not ready
    any more, and ends with 74."""
    async with serving(home) as (gateway, person):
        address = await gateway.wait_listening()
        files = [home / name for name in FILES]
        log = tmp_path / "strace"
        with failing_calls(gateway.pid, log, calls="pread64", error="EIO", files=files) as strace:
            await strace.attached()
            # What it has read before it need not read again. A message changes that.
            taken = [3] if await is_taken(person, 3) else []
            async with connection(address, gateway.token) as http:
                with suppress(httpx2.TransportError):  # it may be gone by now
                    said = await http.get("/api/v1/status")
                    while said.status_code == 200:
                        said = await http.get("/api/v1/status")
                    assert said.status_code == 503, said.text
                    assert said.json()["error"]["type"] == "store-failed"
                    ready = await http.get("/readyz")
                    assert ready.status_code == 503, ready.text
            code = await gateway.wait_exit()
        assert code == STORAGE_FAILED, gateway.log
        assert "the database cannot be read" in gateway.log
        assert "Traceback" not in gateway.log
        assert lost(home, [0, 1, 2, *taken]) == []
        gateway.start()
        await works_again(gateway, person, 5)
    write_down("EIO at pread64")


@pytest.mark.parametrize("call, error, names", AT_THE_START if WANTS_ALL else AT_THE_START[:2])
async def test_a_file_that_fails_at_the_start_is_a_storage_failure(
    home: Path, tmp_path: Path, call: str, error: str, names: tuple[str, ...]
) -> None:
    """S15: the set-up is not wrong, so its starter shall try again; nothing is set aside."""
    async with serving(home) as (gateway, person):
        gateway.kill()
        files = [home / name for name in names]
        strace = ["strace", "-f", "-qq", "-o", str(tmp_path / "strace")]
        gateway.start(prefix=[*strace, *failing(call, error, files)])
        code = await gateway.wait_exit()
        assert code == STORAGE_FAILED, gateway.log
        assert "start me again" in gateway.log
        assert "Traceback" not in gateway.log
        assert not (home / "quarantine").exists()
        assert lost(home, [0, 1, 2]) == []
        gateway.start()
        await works_again(gateway, person, 4)
    write_down(f"{error} at {call} of {names[0] if names else 'the folder'}, at the start")
