"""Connections on which the other side has proven to be our gateway before it is sent anything.

While a gateway is down, any program of this machine can listen on its port. So each new connection
begins with a challenge, which only a gateway with our token can answer. The answer is made of the
address, too: a program that passes the challenge on to the real gateway has another one. The token
is sent on the same connection afterwards, and on no other.
"""

import secrets
from collections.abc import Callable, Iterable
from contextlib import AsyncExitStack
from typing import Any

import httpcore2
import httpx2
import msgspec

from koboshi.channels.web.identity import IDENTITY_PATH, Identity, identity_of

ANSWER_BYTES_MAX = 16_000
PROOF_SECONDS = 10.0


class NotOurs(httpcore2.ConnectError):
    """What listens there has not proven to be our gateway."""


class ProvingBackend(httpcore2.AsyncNetworkBackend):
    """Connects, and hands out only connections to a gateway that knows the token. With TLS the
    certificate proves who it is, and `has_tls` says so."""

    def __init__(self, read_token: Callable[[], str | None], has_tls: Callable[[], bool]) -> None:
        self._read_token = read_token
        self._has_tls = has_tls
        self._inner = httpcore2.AnyIOBackend()
        self.has_met_stranger = False
        """Whether the last connection was to something that is not our gateway."""

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109  (its contract)
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore2.AsyncNetworkStream:
        stream = await self._inner.connect_tcp(host, port, timeout, local_address, socket_options)
        if self._has_tls():
            return stream
        name = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        async with AsyncExitStack() as undo:
            undo.push_async_callback(stream.aclose)
            await self._prove(stream, name)
            self.has_met_stranger = False
            undo.pop_all()
        return stream

    async def connect_unix_socket(self, *_args: Any, **_named: Any) -> httpcore2.AsyncNetworkStream:
        raise NotImplementedError

    async def sleep(self, seconds: float) -> None:
        await self._inner.sleep(seconds)

    async def _prove(self, stream: httpcore2.AsyncNetworkStream, host: str) -> None:
        token, challenge = self._read_token(), secrets.token_urlsafe(32)
        if token is None:
            raise httpcore2.ConnectError("there is no token yet")
        head = f"GET {IDENTITY_PATH}?challenge={challenge} HTTP/1.1\r\nHost: {host}\r\n\r\n"
        await stream.write(head.encode(), PROOF_SECONDS)
        status, body = await _answer(stream)
        if status == 503:
            raise httpcore2.ConnectError("the gateway is about to leave")
        try:
            said = msgspec.json.decode(body, type=Identity).identity
        except (msgspec.MsgspecError, UnicodeDecodeError):
            said = ""
        wanted = identity_of(token, host, challenge)
        if status != 200 or not secrets.compare_digest(said.encode(), wanted.encode()):
            self.has_met_stranger = True
            raise NotOurs(f"what listens on {host} is not the gateway of this home")


async def _answer(stream: httpcore2.AsyncNetworkStream) -> tuple[int, bytes]:
    """The status and the body of one answer. Raises ConnectError if it is none of ours."""
    received = b""
    while b"\r\n\r\n" not in received:
        received = await _more(stream, received)
    head, _, body = received.partition(b"\r\n\r\n")
    status, length = 0, -1
    for number, line in enumerate(head.decode("latin-1").split("\r\n")):
        name, _, value = line.partition(" " if number == 0 else ":")
        if number == 0:
            status = int(value[:3]) if value[:3].isdigit() else 0
        elif name.lower() == "content-length" and value.strip().isdigit():
            length = int(value)
    if not 0 <= length <= ANSWER_BYTES_MAX:
        return 0, b""
    while len(body) < length:
        body = await _more(stream, body)
    return status, body


async def _more(stream: httpcore2.AsyncNetworkStream, received: bytes) -> bytes:
    chunk = await stream.read(ANSWER_BYTES_MAX, PROOF_SECONDS)
    if not chunk or len(received) > 2 * ANSWER_BYTES_MAX:
        raise httpcore2.ConnectError("the connection ended before an answer")
    return received + chunk


class ProvenTransport(httpx2.AsyncHTTPTransport):
    """What an HTTP client sends with, over such connections."""

    def __init__(self, backend: ProvingBackend) -> None:
        super().__init__(trust_env=False)
        self._pool = httpcore2.AsyncConnectionPool(
            ssl_context=httpx2.create_ssl_context(trust_env=False),
            network_backend=backend,
            max_connections=20,
        )
