"""The HTTP server, held like any other task of ours."""

import resource
import socket
from collections.abc import Iterator
from contextlib import contextmanager

from anyio import CancelScope, Event, create_task_group
from starlette.types import ASGIApp
from uvicorn.config import Config
from uvicorn.server import Server

from koboshi.channels.common.acceptor import Acceptor
from koboshi.channels.common.connection import PatientProtocol
from koboshi.channels.common.http_limits import HttpLimits
from koboshi.domain.errors import StoreFailed

SPARE = 32
"""Connections beyond those that are served: they get to hear that there are too many."""


class EmbeddedServer(Server):
    """A server that leaves signals to the gateway, says when it serves, and why it cannot."""

    def __init__(
        self,
        app: ASGIApp,
        *,
        connections_max: int,
        goodbye_s: int,
        patience: HttpLimits = HttpLimits(),  # noqa: B008  (frozen)
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
                # No proxy in front of us may say where a request comes from.
                proxy_headers=False,
                server_header=False,
                limit_concurrency=served_max,
                timeout_graceful_shutdown=goodbye_s,
            )
        )
        self.is_serving = Event()
        self._taking = CancelScope()
        self._patience = patience
        self._door = Acceptor(
            protocol=self._protocol,
            inside=self.server_state.connections,
            inside_max=served_max + SPARE,
            peer_max=max(1, served_max * 3 // 4),
        )

    @property
    def trouble(self) -> str | None:
        """Why no connection is accepted now; None if one is."""
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
                # It is given no sockets: the acceptor hands it each connection.
                await self.serve([])

    async def _take(self, listener: socket.socket) -> None:
        await self.is_serving.wait()
        with self._taking:
            await self._door.keep_open(listener)

    def _protocol(self) -> PatientProtocol:
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
