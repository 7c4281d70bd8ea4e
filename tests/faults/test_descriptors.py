"""Campaign: there are no more file descriptors, for the process or for the machine."""

import resource
import subprocess
import sys
from pathlib import Path

import pytest
from anyio import create_task_group

from tests.faults.serving import serving, works_again, write_down
from tests.harness.disk import failing_calls
from tests.harness.http import connection
from tests.harness.polling import until
from tests.harness.tally import WANTS_ALL

ROOT = Path(__file__).resolve().parent.parent.parent
STANDARD = 3
"""Of the numbers below this none is ever free, whatever the process closes meanwhile."""

OPEN_WITH_FEW = """
import asyncio, gc, os, resource, sys
from pathlib import Path
from tests.harness.victim import open_here

async def main():
    home = Path(sys.argv[1])
    await (await open_here(home)).store.close()
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    for left in range(16):
        gc.collect()
        used = max(int(name) for name in os.listdir("/proc/self/fd")) + 1
        resource.setrlimit(resource.RLIMIT_NOFILE, (used - 1 + left, most))
        try:
            store = (await open_here(home)).store
            said = "open"
        except Exception as error:
            store, said = None, f"{type(error).__name__}: {error}"
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
        if store is not None:
            await store.close()
        print(left, said, flush=True)

asyncio.run(main())
"""


def test_a_store_that_gets_too_few_is_no_wrong_set_up(tmp_path: Path) -> None:
    """S15: whichever of its files cannot be opened for lack of a descriptor, that passes: exit 74
    and not 78, which no one would start again."""
    said = subprocess.run(
        [sys.executable, "-c", OPEN_WITH_FEW, str(tmp_path / "home")],
        capture_output=True,
        text=True,
        cwd=ROOT,
        check=True,
    ).stdout.splitlines()

    kinds = [line.split(maxsplit=1)[1].split(":")[0] for line in said]
    assert kinds[-1] == "open", said
    assert set(kinds) == {"open", "StoreFailed", "OSError"}, "\n".join(said)
    write_down("EMFILE while the store is opened")


async def test_a_gateway_without_descriptors_goes_on_when_there_are_some(home: Path) -> None:
    """S15: a new client has to wait and is not acknowledged; those who are there are served, and
    the others when there is room again."""
    async with serving(home) as (gateway, person):
        address = await gateway.wait_listening()
        soft, hard = resource.prlimit(gateway.pid, resource.RLIMIT_NOFILE)
        async with connection(address) as there, create_task_group() as tasks:
            assert (await there.get("/readyz")).status_code == 200
            resource.prlimit(gateway.pid, resource.RLIMIT_NOFILE, (STANDARD, hard))
            tasks.start_soon(person.say, "echo 3", "3")
            for _ in range(20):
                assert (await there.get("/healthz")).status_code == 200
            assert "3" not in person.acks
            resource.prlimit(gateway.pid, resource.RLIMIT_NOFILE, (soft, hard))
        await works_again(gateway, person, 5)
    write_down("EMFILE at accept, by the limit of the process")


async def test_a_gateway_that_does_not_live_through_it_is_found_out(home: Path) -> None:
    """The same want of descriptors, and a doctored one that ends over it: a person is turned away
    for good."""
    command = (sys.executable, "-m", "tests.faults.doctored_gateway", "faints", "run")
    async with serving(home, command=(*command, "--home", str(home))) as (gateway, _):
        _, hard = resource.prlimit(gateway.pid, resource.RLIMIT_NOFILE)
        resource.prlimit(gateway.pid, resource.RLIMIT_NOFILE, (STANDARD, hard))
        await gateway.wait_exit()
        assert not gateway.is_running
    write_down("control: ends without descriptors", is_control=True, violations=["ended"])


@pytest.mark.parametrize("error", ["EMFILE", "ENFILE"] if WANTS_ALL else ["ENFILE"])
async def test_connections_that_cannot_be_accepted_are_taken_later(
    home: Path, tmp_path: Path, error: str
) -> None:
    """S15: the fault is over, and a client that kept trying is acknowledged; none was before."""
    async with serving(home) as (gateway, person), create_task_group() as tasks:
        with failing_calls(
            gateway.pid, tmp_path / "strace", calls="accept4,accept", error=error
        ) as strace:
            await strace.attached()
            tasks.start_soon(person.say, "echo 3", "3")
            await until(lambda: strace.faults, "a person is turned away")
            assert "3" not in person.acks
            assert gateway.is_running
        await works_again(gateway, person, 5)
    write_down(f"{error} at accept")
