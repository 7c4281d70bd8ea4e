"""One connection to a server, spoken to directly."""

import asyncio
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import httpx2
import pytest
from anyio import CancelScope, Event, create_task_group, fail_after

from koboshi.http_dial import dial, in_turn
from koboshi.http_wire import HEAD_BYTES_MAX, WireTransport, has_proxy
from tests.harness.polling import WITHIN_S

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]
Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]
TRUST = httpx2.create_ssl_context()
BRIEF = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


@asynccontextmanager
async def served(serve: Serve) -> AsyncIterator[str]:
    """The address of a server that speaks as `serve` does on each connection."""

    async def on_connection(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await serve(reader, writer)
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(on_connection, "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/"
    finally:
        server.close()


def client(*, follows: bool = False) -> httpx2.AsyncClient:
    return httpx2.AsyncClient(
        transport=WireTransport(TRUST),
        timeout=httpx2.Timeout(WITHIN_S),
        follow_redirects=follows,
    )


async def request_in(reader: asyncio.StreamReader) -> tuple[bytes, bytes]:
    head = await reader.readuntil(b"\r\n\r\n")
    size = head.lower().partition(b"content-length:")[2].partition(b"\r\n")[0]
    return head, await reader.readexactly(int(size or 0))


def saying(*answers: bytes, then_closes: bool = False) -> tuple[Serve, list[bytes]]:
    """A server that gives these answers on every connection; and what it was asked."""
    asked: list[bytes] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for answer in answers:
            head, body = await request_in(reader)
            asked.append(head + body)
            writer.write(answer)
            await writer.drain()
        if not then_closes:
            await reader.read()

    return serve, asked


async def test_a_connection_is_used_again() -> None:
    connections = 0
    serve, asked = saying(BRIEF, BRIEF, BRIEF)

    async def counted(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal connections
        connections += 1
        await serve(reader, writer)

    async with served(counted) as url, client() as http:
        for _ in range(3):
            assert (await http.post(url, content=b"words")).text == "ok"

    assert connections == 1
    assert all(each.startswith(b"POST / HTTP/1.1\r\n") and b"words" in each for each in asked)


@pytest.mark.parametrize(
    "answer, text",
    [
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n", "abc"),
        (b"HTTP/1.1 200 OK\r\n\r\nto the end", "to the end"),
        (b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx", "x"),
        (b"HTTP/1.1 204 No Content\r\n\r\n", ""),
        (b"HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok", "ok"),
    ],
)
async def test_every_form_of_a_body_is_read(answer: bytes, text: str) -> None:
    serve, _ = saying(answer, then_closes=True)
    async with served(serve) as url, client() as http:
        assert (await http.get(url)).text == text


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"HTTP/1.1 200 OK\r\nContent-Le",
        b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n9\r\nhalf",
        b"not HTTP at all\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nX: " + b"x" * (HEAD_BYTES_MAX + 1),
    ],
)
async def test_half_an_answer_is_none(answer: bytes) -> None:
    serve, _ = saying(answer, then_closes=True)
    async with served(serve) as url, client() as http:
        with pytest.raises((httpx2.RemoteProtocolError, httpx2.ReadError)):
            await http.get(url)


async def test_what_never_left_us_is_told_apart() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
        async with client() as http:
            with pytest.raises(httpx2.ConnectError) as caught:
                await http.get(f"http://127.0.0.1:{port}/")
            assert isinstance(caught.value.__cause__, OSError)
            with pytest.raises(httpx2.UnsupportedProtocol):
                await http.get("ftp://127.0.0.1/")


async def test_a_server_that_says_nothing_is_not_waited_for() -> None:
    async def serve(reader: asyncio.StreamReader, _: asyncio.StreamWriter) -> None:
        await reader.read()

    async with served(serve) as url, client() as http:
        with pytest.raises(httpx2.ReadTimeout):
            await http.get(url, timeout=httpx2.Timeout(WITHIN_S, read=0.01))


async def test_a_connection_that_the_server_closed_is_not_used_again() -> None:
    serve, asked = saying(BRIEF, then_closes=True)
    has_closed = Event()

    async def closing(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await serve(reader, writer)
        writer.close()
        await writer.wait_closed()
        has_closed.set()

    async with served(closing) as url, client() as http:
        for number in range(3):
            assert (await http.get(url)).text == "ok"
            assert len(asked) == number + 1
            with fail_after(WITHIN_S):
                await has_closed.wait()
            has_closed = Event()


async def test_what_was_not_asked_for_spoils_the_connection() -> None:
    serve, asked = saying(BRIEF + BRIEF)
    async with served(serve) as url, client() as http:
        for _ in range(2):
            assert (await http.get(url)).text == "ok"

    assert len(asked) == 2  # each on a connection of its own


async def test_a_request_that_was_given_up_leaves_no_answer_behind() -> None:
    is_asked = Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head, _ = await request_in(reader)
        if b"/first" in head:
            is_asked.set()
            await reader.read()  # until the client hangs up
            return
        writer.write(BRIEF)
        await reader.read()

    async with served(serve) as url, client() as http, create_task_group() as tasks:
        scope = CancelScope()

        async def give_up() -> None:
            with scope:
                await http.get(f"{url}first")

        tasks.start_soon(give_up)
        with fail_after(WITHIN_S):
            await is_asked.wait()
            scope.cancel()
        assert (await http.get(url)).text == "ok"


async def test_a_body_that_was_not_read_to_its_end_costs_the_connection() -> None:
    long = b"HTTP/1.1 200 OK\r\nContent-Length: 9000000\r\n\r\n" + b"x" * 9_000_000
    serve, asked = saying(long)
    async with served(serve) as url, client() as http:
        for _ in range(2):
            async with http.stream("GET", url) as response:
                async for _piece in response.aiter_bytes():
                    break
        whole = await http.get(url)

    assert len(whole.content) == 9_000_000
    assert len(asked) == 3


async def test_a_large_request_is_sent_as_it_is_taken() -> None:
    taken: list[int] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for _ in range(2):
            _, body = await request_in(reader)
            taken.append(len(body))
            writer.write(BRIEF)
        await reader.read()

    async def pieces() -> AsyncIterator[bytes]:
        for _ in range(100):
            yield b"y" * 100_000

    async with served(serve) as url, client() as http:
        await http.post(url, content=b"z" * 10_000_000)
        await http.post(url, content=pieces(), headers={"Content-Length": "10000000"})

    assert taken == [10_000_000, 10_000_000]


async def test_a_header_cannot_become_two() -> None:
    async with client() as http:
        with pytest.raises(httpx2.LocalProtocolError):
            await http.get("http://127.0.0.1:9/", headers={"X": "a\r\nY: b"})


async def test_a_redirect_may_lead_to_another_server() -> None:
    there, _ = saying(BRIEF)
    async with served(there) as target:
        moved = b"HTTP/1.1 302 Found\r\nContent-Length: 0\r\nLocation: %b\r\n\r\n" % target.encode()
        here, _ = saying(moved)
        async with served(here) as url, client(follows=True) as http:
            assert (await http.get(url)).text == "ok"


async def test_an_address_that_is_dead_is_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    serve, _ = saying(BRIEF)
    async with served(serve) as url:
        port = httpx2.URL(url).port
        dead = (socket.AF_INET, socket.SOCK_STREAM, 0, "", ("127.0.0.1", 1))
        alive = (socket.AF_INET, socket.SOCK_STREAM, 0, "", ("127.0.0.1", port))

        async def two(*_: object, **__: object) -> list[object]:
            return [dead, alive]

        monkeypatch.setattr(asyncio.get_running_loop(), "getaddrinfo", two)
        with fail_after(WITHIN_S):
            opened = await dial("somewhere", port or 0)
        assert opened.getpeername() == ("127.0.0.1", port)
        opened.close()


def test_families_take_turns() -> None:
    def at(family: int, number: int) -> tuple[int, int, int, str, object]:
        return (family, 0, 0, "", number)

    found = [at(10, 1), at(10, 2), at(2, 3)]
    assert [each[4] for each in in_turn(found)] == [1, 3, 2]
    assert in_turn([]) == []


def test_a_proxy_is_noticed() -> None:
    assert has_proxy({"https": "http://proxy"})
    assert not has_proxy({"no": "127.0.0.1"})
