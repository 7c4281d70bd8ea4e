"""The control socket: how the command line asks the owner of the home.

One JSON object on a line goes in, one comes back. Each request shows the key of the home
(`control/key.py`). Where no gateway runs, the command line owns the home for a moment and asks the
same `answer()` directly.
"""

import json
import os
import socket
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import structlog
from anyio import (
    TASK_STATUS_IGNORED,
    BrokenResourceError,
    DelimiterNotFound,
    IncompleteRead,
    create_task_group,
    fail_after,
    move_on_after,
    sleep,
    to_thread,
)
from anyio.abc import TaskStatus

from koboshi.control.key import KEY_FIELD, NO_KEY, ControlKey
from koboshi.control.replies import encoded, refusal
from koboshi.control.wire import accepted, line_from, send_all
from koboshi.domain.errors import StoreFailed
from koboshi.domain.resource_exhaustion import shortage_in

log = structlog.get_logger()

SOCKET_NAME = "control.sock"
REQUEST_BYTES_MAX = 64_000
READ_SECONDS = 5
ANSWER_SECONDS = 5
SEND_SECONDS = 5
AGAIN_SECONDS = 1

Answering: TypeAlias = Callable[[Mapping[str, object]], Awaitable[Mapping[str, object]]]


@dataclass(frozen=True, slots=True, kw_only=True)
class ControlSocket:
    home: Path
    answer: Answering

    async def keep_serving(self, *, task_status: TaskStatus[None] = TASK_STATUS_IGNORED) -> None:
        """Serve for ever. Where there can be no socket, the gateway goes on without."""
        path = self.home / SOCKET_NAME
        # By its folder's descriptor, because the kernel takes only short names for sockets.
        folder = os.open(self.home, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        ours: os.stat_result | None = None
        try:
            try:
                key = ControlKey.held_in(self.home)
                # What a dead gateway left there is replaced: the lock proves that it has no owner.
                listening = _bound(short_name(folder, path))
            except (OSError, StoreFailed) as error:
                log.warning("control_unavailable", path=str(path), error=str(error))
                task_status.started()
                return
            task_status.started()
            with listening:
                ours = _found(path)
                await self._take(listening, key)
        finally:
            os.close(folder)
            _remove(path, ours)

    async def _take(self, listening: socket.socket, key: ControlKey) -> None:
        """Accept connections. While a resource is missing for that, they wait."""
        waits_for: str | None = None
        async with create_task_group() as tasks:
            while True:
                try:
                    connection = await accepted(listening)
                except OSError as error:
                    missing = shortage_in(error)
                    if missing is None:
                        raise
                    if waits_for is None:
                        log.warning("control_waits", reason=missing)
                    waits_for = missing
                    await sleep(AGAIN_SECONDS)
                    continue
                waits_for = None
                tasks.start_soon(self._serve_one, connection, key)

    async def _serve_one(self, connection: socket.socket, key: ControlKey) -> None:
        with connection:
            try:
                reply = await self._reply_to(connection, key)
                with fail_after(SEND_SECONDS):
                    await send_all(connection, json.dumps(reply).encode() + b"\n")
            except (BrokenResourceError, IncompleteRead, TimeoutError) as error:
                log.info("control_left", error=type(error).__name__)

    async def _reply_to(self, connection: socket.socket, key: ControlKey) -> Mapping[str, object]:
        try:
            with fail_after(READ_SECONDS):
                request = json.loads(await line_from(connection, REQUEST_BYTES_MAX))
        except DelimiterNotFound:
            return encoded(
                refusal("bad-request", f"a request has at most {REQUEST_BYTES_MAX} bytes")
            )
        except (ValueError, RecursionError):
            return _refused("bad-request", "the request is not JSON")
        if not isinstance(request, dict):
            return _refused("bad-request", "the request is not an object")
        if not key.fits(request.pop(KEY_FIELD, None)):
            log.warning("control_refused", reason="a request without the key of the home")
            return _refused(NO_KEY, await to_thread.run_sync(key.complaint))
        try:
            with move_on_after(ANSWER_SECONDS):
                return await self.answer(request)
        except Exception as error:  # a question must not end the gateway
            log.error("control_failed", error=type(error).__name__, exc_info=True)
            return _refused("bug", "something went wrong here; the gateway's log says what")
        return encoded(
            refusal("too-slow", f"the database did not answer within {ANSWER_SECONDS} s")
        )


def _refused(kind: str, message: str) -> Mapping[str, object]:
    return encoded(refusal(kind, message))


def _found(path: Path) -> os.stat_result | None:
    try:
        return path.lstat()
    except OSError:
        return None


def _remove(path: Path, ours: os.stat_result | None) -> None:
    """Remove the socket, unless it is that of a gateway that has the home by now."""
    now = _found(path)
    if ours is not None and now is not None and os.path.samestat(now, ours):
        path.unlink(missing_ok=True)


def _bound(name: str) -> socket.socket:
    """A listening socket that only its owner may use, in place of one that was left behind.

    Made at once, without a thread: it is ready before the first message can be accepted.
    """
    bound = socket.socket(socket.AF_UNIX)
    try:
        bound.setblocking(False)
        if Path(name).is_socket():
            Path(name).unlink()
        bound.bind(name)
        Path(name).chmod(0o600)
        bound.listen()
    except BaseException:
        bound.close()
        raise
    return bound


def short_name(folder: int, path: Path) -> str:
    """A name of the socket that the kernel takes, however long the home's name is."""
    by_descriptor = Path(f"/proc/self/fd/{folder}")
    return str(by_descriptor / path.name if by_descriptor.exists() else path)
