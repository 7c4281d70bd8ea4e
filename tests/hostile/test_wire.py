"""Clients that are slow, endless, many, or make no sense: each costs a bounded amount of time and
memory, and every other person is served."""

from dataclasses import replace
from functools import partial
from itertools import repeat

import pytest
from anyio import create_task_group, fail_after, move_on_after
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from koboshi.channels.common.http_limits import HttpLimits
from koboshi.channels.web.limits import WebLimits
from koboshi.channels.web.pages import Pages
from tests.channels.fakes import client_of
from tests.harness.polling import until_asked
from tests.hostile.wire import (
    BOUND_S,
    IMPATIENT,
    KNOWN,
    caller,
    heard,
    impatient_server,
    say_until_hung_up,
    status_of,
)

MESSAGES = "/api/v1/sessions/a/messages"
POST = f"POST {MESSAGES} HTTP/1.1\r\n{KNOWN}Idempotency-Key: k\r\n"
LOGIN = "POST /api/v1/login HTTP/1.1\r\nHost: localhost\r\n"
REFUSED = "POST /api/v1/nowhere HTTP/1.1\r\nHost: localhost\r\n"


async def is_served(url: str) -> bool:
    async with client_of(url) as client:
        return (await client.get("/healthz", timeout=BOUND_S)).status_code == 200


@pytest.mark.parametrize(
    "begin",
    [
        "",
        "GET / HT",
        "GET / HTTP/1.1\r\nHost: localhost\r\nX-Slow: ",
        f"{REFUSED}Content-Length: 100\r\n\r\n{{",
        "GET / HTTP/1.1\r\nHost: localhost\r\n\r\nGET / HT",
    ],
    ids=["nothing", "line", "head", "refused", "second"],
)
async def test_what_is_begun_and_not_finished_is_hung_up_on(begin: str) -> None:
    async with impatient_server() as url, caller(url) as stream:
        await stream.send(begin.encode())
        await heard(stream)
        assert await is_served(url)


@pytest.mark.parametrize(
    "begin",
    [
        f"{POST}Content-Length: 100\r\n\r\n{{",
        f"{POST}Transfer-Encoding: chunked\r\n\r\n5\r\n{{",
        f"{LOGIN}Content-Length: 100\r\n\r\n{{",
    ],
    ids=["body", "chunk", "login"],
)
async def test_one_who_is_slow_with_a_body_is_told_so_and_hung_up_on(begin: str) -> None:
    limits = WebLimits(body_s=0.1, patience=HttpLimits(request_s=2 * BOUND_S))
    async with impatient_server(limits) as url, caller(url) as stream:
        await stream.send(begin.encode())
        said = await heard(stream)
        assert await is_served(url)

    assert status_of(said) == 408


async def test_empty_lines_do_not_keep_a_connection_open() -> None:
    async with impatient_server() as url, caller(url) as stream:
        await say_until_hung_up(stream, repeat(b"\r\n"))
        assert await is_served(url)


@pytest.mark.parametrize(
    "begin,piece,bytes_max",
    [
        (b"GET /", b"a" * 10_000, 64_000),
        (b"GET / HTTP/1.1\r\nHost: localhost\r\nX-Long: ", b"a" * 10_000, 64_000),
        (b"GET / HTTP/1.1\r\nHost: localhost\r\n", b"X-More: a\r\n" * 1_000, 64_000),
        (f"{POST}Transfer-Encoding: chunked\r\n\r\n".encode(), b"5\r\naaaaa\r\n" * 100, 1_000_000),
        (f"{LOGIN}Transfer-Encoding: chunked\r\n\r\n".encode(), b"5\r\naaaaa\r\n" * 100, 1_000),
        (
            f"{REFUSED}Transfer-Encoding: chunked\r\n\r\n".encode(),
            b"3e8\r\n%b\r\n" % (b"a" * 1_000),
            0,
        ),
        (f"{POST}Transfer-Encoding: chunked\r\n\r\n0\r\n".encode(), b"X-More: aaaa\r\n" * 1_000, 0),
        (f"{REFUSED}Content-Length: 999999999999\r\n\r\n".encode(), b"a" * 10_000, 0),
    ],
    ids=["address", "header", "headers", "body", "login", "refused", "trailers", "announced"],
)
async def test_what_has_no_end_is_not_listened_to(
    begin: bytes, piece: bytes, bytes_max: int
) -> None:
    """Neither kept nor read: what the system holds between the two of us is a few megabytes."""
    limits = WebLimits(patience=HttpLimits(request_bytes_max=2_000_000))
    in_between = 16_000_000
    async with impatient_server(limits) as url, caller(url) as stream:
        async with create_task_group() as tasks:
            said: list[bytes] = []

            async def listen() -> None:
                said.append(await heard(stream))

            tasks.start_soon(listen)
            await stream.send(begin)
            taken = await say_until_hung_up(stream, repeat(piece))
        assert await is_served(url)

    assert taken <= max(bytes_max, 2_000_000) + in_between
    assert status_of(said[0]) in (0, 400, 401, 413)


async def test_one_who_does_not_read_is_hung_up_on() -> None:
    """What no one takes is not kept for ever; closing a connection waits for it to be read."""

    async def big(_request: Request) -> Response:
        return Response(b"a" * 12_000_000)

    pages = Pages(routes=[Route("/big", big)], open_paths=frozenset({"/big"}))
    limits = replace(IMPATIENT, connections_max=2)  # a person who asks is the second
    async with impatient_server(limits, pages) as url, caller(url, receive_buffer=4_096) as stream:
        await stream.send(b"GET /big HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert (await stream.receive(100)).startswith(b"HTTP/1.1 200")
        await until_asked(partial(is_served, url), "there is room again")


async def test_requests_without_waiting_for_answers_are_not_collected() -> None:
    ask = b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n" * 1_000
    async with impatient_server() as url, caller(url) as stream:
        taken = await say_until_hung_up(stream, repeat(ask))
        assert await is_served(url)

    assert taken < 64_000_000


async def test_a_few_requests_may_come_before_the_first_is_answered() -> None:
    ask = b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"
    last = b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
    async with impatient_server() as url, caller(url) as stream:
        await stream.send(ask * 9 + last)
        said = await heard(stream)

    assert said.count(b"HTTP/1.1 200 OK") == 10


async def test_connections_that_say_nothing_give_way_to_those_that_do() -> None:
    """More than there is room for, from a person without the token."""
    async with impatient_server() as url, create_task_group() as tasks:

        async def hang_around() -> None:
            async with caller(url) as stream:
                await heard(stream)

        for _ in range(IMPATIENT.connections_max + 40):
            tasks.start_soon(hang_around)

        async def is_let_in() -> None:
            async with client_of(url) as client:
                while (await client.get("/healthz", timeout=BOUND_S)).status_code != 200:
                    pass

        with fail_after(BOUND_S):
            await is_let_in()


async def test_a_follower_may_be_quiet_for_longer_than_a_request_may_take() -> None:
    """The limit is for what we wait for, and not for what is being answered."""
    limits = WebLimits(keep_alive_s=0.05, patience=HttpLimits(request_s=0.2))
    ask = f"GET /api/v1/sessions/a/events HTTP/1.1\r\n{KNOWN}\r\n"
    async with impatient_server(limits) as url, caller(url) as stream:
        await stream.send(ask.encode())
        said = bytearray()
        with move_on_after(BOUND_S):
            while said.count(b"event: place") < 20:
                said += await stream.receive()

    assert status_of(bytes(said)) == 200
    assert said.count(b"event: place") >= 20
