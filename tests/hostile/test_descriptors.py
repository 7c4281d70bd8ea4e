"""File descriptors run out: a client that comes has to wait, and the one who looks is told why."""

import errno
import json
import os
import resource
import socket
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from time import monotonic
from typing import Any

import httpx2
import pytest
from anyio import create_task_group

from koboshi.channels.common.acceptor import AGAIN_S
from koboshi.cli.run import ending_of
from koboshi.control.key import shown_key
from koboshi.control.socket import SOCKET_NAME, short_name
from koboshi.domain.errors import ChannelUnusable
from tests.faults.serving import serving
from tests.harness.disk import failing, failing_calls
from tests.harness.http import connection
from tests.harness.polling import until, until_asked
from tests.harness.process import GatewayProcess
from tests.harness.tally import WANTS_ALL

pytestmark = pytest.mark.crash

WORDS = "no file descriptors are left"


def take_descriptors(gateway: GatewayProcess) -> Callable[[], None]:
    """From now on the process gets no further descriptor, until what is returned is called. Of the
    numbers below the limit none is ever free, whatever it closes meanwhile."""
    soft, hard = resource.prlimit(gateway.pid, resource.RLIMIT_NOFILE)
    resource.prlimit(gateway.pid, resource.RLIMIT_NOFILE, (3, hard))
    return lambda: _set_limit(gateway, soft, hard)


def _set_limit(gateway: GatewayProcess, soft: int, hard: int) -> None:
    resource.prlimit(gateway.pid, resource.RLIMIT_NOFILE, (soft, hard))


@asynccontextmanager
async def known(home: Path) -> AsyncIterator[tuple[GatewayProcess, httpx2.AsyncClient]]:
    """A gateway, and a connection that it had taken before anything went wrong."""
    async with serving(home, first=0) as (gateway, _):
        address = await gateway.wait_listening()
        async with connection(address, gateway.token) as there:
            await there.get("/readyz")
            yield gateway, there


async def reasons(there: httpx2.AsyncClient) -> dict[str, str]:
    """The checks that do not hold, and why."""
    told: dict[str, Any] = (await there.get("/readyz")).json()
    return {each["name"]: each["reason"] for each in told["checks"] if not each["ok"]}


async def test_a_gateway_that_can_take_no_one_in_says_so_until_it_can(home: Path) -> None:
    """S15: in the log and to every caller, once when it begins and once when it is over."""
    async with known(home) as (gateway, there), create_task_group() as tasks:
        address, answers = await gateway.wait_listening(), list[httpx2.Response]()
        give_back = take_descriptors(gateway)

        async def come() -> None:
            async with connection(address, gateway.token) as late:
                answers.append(await late.get("/healthz"))

        async def is_told() -> bool:
            return WORDS in (await reasons(there)).get("web:main", "")

        tasks.start_soon(come)
        await until_asked(is_told, "readiness tells that no one can come in")
        assert not answers
        give_back()
        await until(lambda: answers, "the one who had to wait is served")

        assert answers[0].status_code == 200
        assert await reasons(there) == {}
        assert (_told(gateway, "connections_wait"), _told(gateway, "connections_come")) == (1, 1)


async def test_waiting_for_descriptors_is_no_busy_loop(home: Path, tmp_path: Path) -> None:
    """S15: a connection that cannot be taken stays in the queue, and is not tried for without
    end."""
    async with known(home) as (gateway, there), create_task_group() as tasks:
        with failing_calls(
            gateway.pid, tmp_path / "strace", calls="accept4,accept", error="ENFILE"
        ) as strace:
            await strace.attached()
            began = monotonic()
            async with connection(await gateway.wait_listening(), gateway.token) as late:
                tasks.start_soon(late.get, "/healthz")
                await until(lambda: strace.faults >= 2, "it is tried again")
                for _ in range(20):
                    assert (await there.get("/healthz")).status_code == 200
                assert strace.faults <= 2 + (monotonic() - began) / AGAIN_S
                tasks.cancel_scope.cancel()


async def test_the_control_socket_outlives_want_of_descriptors(home: Path) -> None:
    """S15: a person who asks from a terminal has to wait, and does not end the gateway."""
    async with known(home) as (gateway, there):
        give_back = take_descriptors(gateway)
        with _asked(home, {"ask": "status"}) as asking:
            await until(lambda: _told(gateway, "control_waits"), "the control socket has to wait")
            assert (await there.get("/healthz")).status_code == 200
            give_back()
            answer = await until(lambda: _received(asking), "the question is answered")
        assert json.loads(answer)["ok"]


@pytest.mark.parametrize("limit", [5, 6, 9, 12, 16, 20, 24, 40] if WANTS_ALL else [6])
async def test_a_limit_that_is_too_low_is_a_wrong_set_up(home: Path, limit: int) -> None:
    """S15: below it not even the event loop can be made; a restart would not help."""
    gateway = GatewayProcess(home)
    gateway.start(prefix=["sh", "-c", f'ulimit -n {limit}; exec "$@"', "sh"])

    assert await gateway.wait_exit() == 78
    assert f"more files can be open at once (the limit is {limit})" in gateway.log
    assert "Traceback" not in gateway.log
    assert not (home / "koboshi.db").exists()


@pytest.mark.parametrize("call", ["epoll_create1", "socket"])
async def test_a_machine_without_descriptors_is_worth_another_start(
    home: Path, tmp_path: Path, call: str
) -> None:
    """S15: whatever else opens files takes them away from us only for a while."""
    if not WANTS_ALL:
        pytest.skip("runs with KOBOSHI_TESTS=all")
    strace = ["strace", "-f", "-qq", "-o", str(tmp_path / "strace"), *failing(call, "ENFILE")]
    gateway = GatewayProcess(home)
    try:
        gateway.start(prefix=strace)
        await until(
            lambda: "no file descriptors are left on this machine" in gateway.log, "it says so"
        )
        if call == "epoll_create1":
            assert await gateway.wait_exit() == 74
        assert "Traceback" not in gateway.log
    finally:
        gateway.bury()


def test_what_was_missing_is_told_in_any_order() -> None:
    without = OSError(errno.ENFILE, "Too many open files in system")
    wrapped = ChannelUnusable("something else")
    wrapped.__cause__ = without
    words = "no file descriptors are left on this machine; start me again"

    for error in (without, wrapped, ExceptionGroup("", [without])):
        assert ending_of(error, Path("home"), is_serviced=False) == (74, words)


@contextmanager
def _asked(home: Path, question: dict[str, str]) -> Iterator[socket.socket]:
    folder = os.open(home, os.O_RDONLY)
    with socket.socket(socket.AF_UNIX) as asking:
        asking.connect(short_name(folder, home / SOCKET_NAME))
        os.close(folder)
        shown = {**question, "key": shown_key(home)}
        asking.sendall(json.dumps(shown).encode() + b"\n")
        asking.setblocking(False)
        yield asking


def _received(asking: socket.socket) -> bytes:
    try:
        return asking.recv(1_000_000)
    except BlockingIOError:
        return b""


def _told(gateway: GatewayProcess, event: str) -> int:
    return gateway.log.count(f'"event": "{event}"')
