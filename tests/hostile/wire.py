"""Clients that speak to the web channel in bytes, as they like."""

import socket
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager

from anyio import BrokenResourceError, EndOfStream, connect_tcp, fail_after
from anyio.abc import SocketAttribute, SocketStream

from koboshi.channels.common.http_limits import HttpLimits
from koboshi.channels.web.limits import WebLimits
from koboshi.channels.web.pages import NO_PAGES, Pages
from tests.channels.fakes import TOKEN, FakeGateway, serving, web_channel

BOUND_S = 60.0
"""What nothing here takes; a test that waits longer has found something."""
IMPATIENT = WebLimits(
    poll_s=0.05,
    body_s=0.2,
    connections_max=8,
    patience=HttpLimits(request_s=0.5, unread_s=0.5, request_bytes_max=2_000_000),
)
KNOWN = f"Host: localhost\r\nAuthorization: Bearer {TOKEN}\r\n"
GONE = (EndOfStream, BrokenResourceError)


@asynccontextmanager
async def impatient_server(
    limits: WebLimits = IMPATIENT, pages: Pages = NO_PAGES
) -> AsyncIterator[str]:
    gateway = FakeGateway()
    channel = web_channel(gateway, limits=limits, pages=pages)
    async with serving(channel, gateway.accept) as url:
        yield url


@asynccontextmanager
async def caller(url: str, *, receive_buffer: int = 0) -> AsyncIterator[SocketStream]:
    """A connection, and nothing said yet."""
    host, _, port = url.removeprefix("http://").partition(":")
    async with await connect_tcp(host, int(port)) as stream:
        if receive_buffer:
            raw = stream.extra(SocketAttribute.raw_socket)
            raw.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        yield stream


async def heard(stream: SocketStream) -> bytes:
    """Everything the server says until it hangs up. Fails if it never does."""
    said = bytearray()
    with fail_after(BOUND_S):
        try:
            while True:
                said += await stream.receive()
        except GONE:
            return bytes(said)


async def say_until_hung_up(stream: SocketStream, pieces: Iterable[bytes]) -> int:
    """Say the pieces, one after the other, until the server hangs up. Gives the bytes that it
    took; fails if it listens to all of them."""
    taken = 0
    with fail_after(BOUND_S):
        try:
            for piece in pieces:
                await stream.send(piece)
                taken += len(piece)
        except GONE:
            return taken
    raise AssertionError(f"it listened to {taken} bytes")


def status_of(said: bytes) -> int:
    """Of the first answer; 0 if there was none."""
    begin = said.split(b"\r\n", 1)[0].split(b" ")
    return int(begin[1]) if begin[0] == b"HTTP/1.1" and len(begin) > 1 else 0
