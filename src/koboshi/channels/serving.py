"""The HTTP server, held like any other task of ours."""

import errno
import socket
from collections.abc import Iterator
from contextlib import contextmanager

from anyio import CancelScope, Event, getaddrinfo
from starlette.types import ASGIApp
from uvicorn.config import Config
from uvicorn.server import Server

from koboshi.domain.errors import ChannelUnusable, StoreFailed


class CannotListen(ChannelUnusable):
    """The address can not be had: choose another, or end whoever holds it."""


async def listen(host: str, port: int) -> socket.socket:
    """A socket that listens on the address. Raises CannotListen, naming it."""
    try:
        found = await getaddrinfo(host, port, type=socket.SOCK_STREAM)
        family, _, _, _, address = found[0]
        return socket.create_server(address, family=family)
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            words = "is in use by another program (or another gateway)"
        else:
            words = f"can not be used: {error.strerror or error}"
        raise CannotListen(f"{host} port {port} {words}") from error


class EmbeddedServer(Server):
    """A server that leaves signals to the gateway and says when it serves."""

    def __init__(self, app: ASGIApp, *, connections_max: int, goodbye_s: int) -> None:
        super().__init__(
            Config(
                app,
                http="httptools",
                ws="none",
                lifespan="off",
                interface="asgi3",
                log_config=None,
                log_level="warning",
                access_log=False,
                # Nobody in front of us may say where a request comes from.
                proxy_headers=False,
                server_header=False,
                limit_concurrency=connections_max,
                timeout_graceful_shutdown=goodbye_s,
            )
        )
        self.is_serving = Event()

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.is_serving.set()

    async def run_until_told(self, listener: socket.socket) -> None:
        """Serve until `should_exit`. Cancelling does not end it: it has connections to close, and
        does that within the time for goodbyes."""
        with CancelScope(shield=True), listener:
            await self.serve([listener])


def one_of(group: ExceptionGroup[Exception]) -> Exception:
    """The error that the caller must hear of: a failed store before everything else, and a single
    one by itself, so that it can be told by its name."""
    errors: list[Exception] = [group]
    while len(errors) == 1 and isinstance(errors[0], ExceptionGroup):
        errors = list(errors[0].exceptions)
    failed = [error for error in errors if isinstance(error, StoreFailed)]
    return failed[0] if failed else errors[0] if len(errors) == 1 else group
