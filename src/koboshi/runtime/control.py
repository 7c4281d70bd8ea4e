"""The control socket: how the command line asks the owner of the home.

One JSON object on a line goes in, one comes back. Where no gateway runs, the command line owns the
home for a moment and asks the same `answer()` directly.
"""

import json
import os
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import structlog
from anyio import create_unix_listener, fail_after
from anyio.abc import SocketStream
from anyio.streams.buffered import BufferedByteReceiveStream

log = structlog.get_logger()

SOCKET_NAME = "control.sock"
REQUEST_BYTES_MAX = 64_000
READ_SECONDS = 10

Answer: TypeAlias = Callable[[Mapping[str, object]], Awaitable[Mapping[str, object]]]


@dataclass(frozen=True, slots=True, kw_only=True)
class ControlSocket:
    home: Path
    answer: Answer

    async def keep_serving(self) -> None:
        """Serve for ever. The lock on the home makes sure that an old socket is nobody's."""
        path = self.home / SOCKET_NAME
        path.unlink(missing_ok=True)
        # By its folder's descriptor, because the kernel takes only short names for sockets.
        folder = os.open(self.home, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            listener = await create_unix_listener(short_name(folder, path), mode=0o600)
            async with listener:
                await listener.serve(self._serve_one)
        finally:
            os.close(folder)
            path.unlink(missing_ok=True)

    async def _serve_one(self, stream: SocketStream) -> None:
        async with stream:
            try:
                with fail_after(READ_SECONDS):
                    reader = BufferedByteReceiveStream(stream)
                    line = await reader.receive_until(b"\n", REQUEST_BYTES_MAX)
                    reply = await self._reply_to(line)
                    await stream.send(json.dumps(reply).encode() + b"\n")
            except Exception as error:  # whoever asked went away or talks nonsense
                log.info("control_failed", error=f"{type(error).__name__}: {error}")

    async def _reply_to(self, line: bytes) -> Mapping[str, object]:
        try:
            request = json.loads(line)
        except ValueError:
            return {"ok": False, "error": "the request is not JSON"}
        if not isinstance(request, dict):
            return {"ok": False, "error": "the request is not an object"}
        return await self.answer(request)


def short_name(folder: int, path: Path) -> str:
    """A name of the socket that the kernel takes, however long the home's name is."""
    by_descriptor = Path(f"/proc/self/fd/{folder}")
    return str(by_descriptor / path.name if by_descriptor.exists() else path)
