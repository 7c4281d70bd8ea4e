"""A stop that comes in the same pass of the event loop as words for the control socket: the wait
is over for both reasons, and that is no error."""

import socket
from asyncio import get_running_loop
from collections.abc import Callable, Mapping
from pathlib import Path

import anyio
import pytest
from anyio import create_task_group, wait_all_tasks_blocked
from anyio.lowlevel import checkpoint

from koboshi.control.socket import SOCKET_NAME, ControlSocket


async def no_answer(_: Mapping[str, object]) -> Mapping[str, object]:
    raise AssertionError("nothing was asked")


def a_client(home: Path) -> socket.socket:
    client = socket.socket(socket.AF_UNIX)
    client.connect(str(home / SOCKET_NAME))
    return client


def comes(home: Path) -> Callable[[], object]:
    """A client comes."""
    return lambda: a_client(home).close()


def goes(home: Path) -> Callable[[], object]:
    """A client that has said nothing yet goes."""
    return a_client(home).close


@pytest.mark.parametrize("when", [comes, goes])
def test_a_stop_while_a_client_comes_or_goes_is_no_error(
    tmp_path: Path, when: Callable[[Path], Callable[[], object]]
) -> None:
    """Red before: an InvalidStateError in the log, now and then, when a gateway stopped."""
    (tmp_path / "control-key").write_text("secret\n")
    errors: list[object] = []

    async def stopped() -> None:
        get_running_loop().set_exception_handler(lambda _, said: errors.append(said))
        async with create_task_group() as tasks:
            await tasks.start(ControlSocket(home=tmp_path, answer=no_answer).keep_serving)
            act = when(tmp_path)
            await wait_all_tasks_blocked()
            tasks.cancel_scope.cancel()
            act()
        await checkpoint()

    anyio.run(stopped, backend_options={"use_uvloop": True})

    assert not errors
