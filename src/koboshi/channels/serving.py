"""The HTTP server, held like any other task of ours."""

import asyncio
import errno
import resource
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from ipaddress import ip_address

from anyio import CancelScope, Event, create_task_group, getaddrinfo, to_thread
from starlette.types import ASGIApp
from uvicorn.config import Config
from uvicorn.server import Server

from koboshi.channels.connection import PatientProtocol
from koboshi.channels.door import Door
from koboshi.channels.holder import holder_words
from koboshi.channels.patience import Patience
from koboshi.domain.errors import ChannelUnusable, StoreFailed
from koboshi.domain.shortage import shortage_in

BACKLOG = 2_048
"""Who may wait in the queue of the system; it takes fewer if it likes."""
SPARE = 32
"""Connections beyond those that are served: they get to hear that there are too many."""


class CannotListen(ChannelUnusable):
    """The address can not be had: choose another, or end whoever holds it."""


async def listen(
    host: str, port: int, *, is_public: bool = False, remedy: str = ""
) -> socket.socket:
    """A socket that listens on the address; one that others can reach only if `is_public`. Raises
    CannotListen, naming it and what helps, and OSError where only something is missing for now."""
    try:
        found = await getaddrinfo(host, port, type=socket.SOCK_STREAM)
        family, _, _, _, address = found[0]
        if not is_public and not ip_address(address[0]).is_loopback:
            raise CannotListen(f"{host} is {address[0]}, which others can reach; use 127.0.0.1")
        listener = socket.create_server(address, family=family, backlog=BACKLOG)
        listener.setblocking(False)
        return listener
    except OSError as error:
        if shortage_in(error) is not None:
            raise
        if error.errno == errno.EADDRINUSE:
            holder = await to_thread.run_sync(holder_words, port)
            words = f"is in use by another program ({holder})"
        else:
            words = f"can not be used: {error.strerror or error}"
        helps = f"; {remedy}" if remedy else ""
        raise CannotListen(f"{host} port {port} {words}{helps}") from error


class EmbeddedServer(Server):
    """A server that leaves signals to the gateway, says when it serves, and why it can not."""

    def __init__(
        self,
        app: ASGIApp,
        *,
        connections_max: int,
        goodbye_s: int,
        patience: Patience = Patience(),  # noqa: B008  (frozen)
    ) -> None:
        served_max = min(connections_max, _files_max() // 2)
        super().__init__(
            Config(
                app,
                http=PatientProtocol,
                ws="none",
                lifespan="off",
                interface="asgi3",
                log_config=None,
                log_level="warning",
                access_log=False,
                # Nobody in front of us may say where a request comes from.
                proxy_headers=False,
                server_header=False,
                limit_concurrency=served_max,
                timeout_graceful_shutdown=goodbye_s,
            )
        )
        self.is_serving = Event()
        self._taking = CancelScope()
        self._patience = patience
        self._door = Door(
            protocol=self._protocol,
            inside=self.server_state.connections,
            inside_max=served_max + SPARE,
        )

    @property
    def trouble(self) -> str | None:
        """Why nobody can come in now; None if they can."""
        return self._door.trouble

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.is_serving.set()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._taking.cancel()
        await super().shutdown(sockets)

    async def run_until_told(self, listener: socket.socket) -> None:
        """Serve until `should_exit`. Cancelling does not end it: it has connections to close, and
        does that within the time for goodbyes."""
        with CancelScope(shield=True), listener:
            async with create_task_group() as tasks:
                tasks.start_soon(self._take, listener)
                # It is given no sockets: whoever comes is brought to it by the door.
                await self.serve([])

    async def _take(self, listener: socket.socket) -> None:
        await self.is_serving.wait()
        with self._taking:
            await self._door.keep_open(listener)

    def _protocol(self) -> asyncio.Protocol:
        config, state = self.config, self.server_state
        return PatientProtocol(config, state, self.lifespan.state, patience=self._patience)


def _files_max() -> int:
    """How many files the process may have open; half of them are for other things than this."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return 1_000_000 if soft == resource.RLIM_INFINITY else soft


def one_of(group: ExceptionGroup[Exception]) -> Exception:
    """The error that the caller must hear of: a failed store before everything else, and a single
    one by itself, so that it can be told by its name."""
    errors: list[Exception] = [group]
    while len(errors) == 1 and isinstance(errors[0], ExceptionGroup):
        errors = list(errors[0].exceptions)
    failed = [error for error in errors if isinstance(error, StoreFailed)]
    return failed[0] if failed else errors[0] if len(errors) == 1 else group
