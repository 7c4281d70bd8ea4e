"""The web channel as a task of the gateway: how it begins, ends and breaks."""

import signal
import socket

import httpx2
import pytest
from anyio import create_task_group, current_time, fail_after

from koboshi.channels.common.listening import CannotListen
from koboshi.channels.web.limits import WebLimits
from koboshi.domain.errors import StoreFailed
from koboshi.domain.route import Route
from tests.channels.fakes import WEB, FakeGateway, client_of, serving, until, web_channel
from tests.channels.proxy import wire
from tests.harness.polling import WITHIN_S

ROUTE = Route(channel=WEB, chat="room")
EVENTS = "/api/v1/sessions/room/events"


async def test_a_port_in_use_is_named() -> None:
    gateway = FakeGateway()
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(CannotListen, match=rf"127\.0\.0\.1 port {port} is in use"):
            await web_channel(gateway, port=port).receive(None, gateway.accept)


async def test_the_port_is_known_while_it_serves_and_free_afterwards() -> None:
    gateway = FakeGateway()
    channel = web_channel(gateway)
    async with serving(channel, gateway.accept):
        port = channel.bound_port
        assert port is not None

    assert channel.bound_port is None
    with socket.create_server(("127.0.0.1", port)):
        pass


async def test_a_channel_can_be_taken_up_again() -> None:
    """The caller comes back after a pause, with the same object."""
    gateway = FakeGateway()
    channel = web_channel(gateway)
    for _ in range(2):
        async with serving(channel, gateway.accept) as url, client_of(url) as client:
            assert (await client.get("/healthz")).status_code == 200


async def test_followers_do_not_hold_up_the_end() -> None:
    """S144: a waiting caller is released."""
    gateway = FakeGateway()
    channel = web_channel(gateway, limits=WebLimits(goodbye_s=30))
    async with create_task_group() as tasks:
        tasks.start_soon(channel.receive, None, gateway.accept)
        url = f"http://127.0.0.1:{await channel.listening()}"
        async with client_of(url) as client, client.stream("GET", EVENTS) as response:
            assert response.status_code == 200
            began = current_time()
            tasks.cancel_scope.cancel()
            with fail_after(15, shield=True):
                async for _ in response.aiter_bytes():
                    pass

    assert current_time() - began < 15


async def test_signals_are_left_to_the_gateway() -> None:
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    gateway = FakeGateway()
    async with serving(web_channel(gateway), gateway.accept):
        during = {number: signal.getsignal(number) for number in before}

    assert during == before


async def test_a_failed_store_ends_the_channel_by_its_name_however_many_messages_failed() -> None:
    """The process must end then; an error hidden in a group would be taken for a lost
    connection."""

    def fail() -> None:
        raise StoreFailed("the outcome of a commit is unknown")

    gateway = FakeGateway()
    channel = web_channel(gateway)
    gateway.may_commit = fail
    statuses: list[int] = []

    async def post(client: httpx2.AsyncClient, key: str) -> None:
        response = await client.post(
            "/api/v1/sessions/room/messages", json={"text": "hi"}, headers={"Idempotency-Key": key}
        )
        statuses.append(response.status_code)

    async def write() -> None:
        url = f"http://127.0.0.1:{await channel.listening()}"
        async with client_of(url) as client, create_task_group() as posts:
            for number in range(5):
                posts.start_soon(post, client, str(number))

    async with create_task_group() as tasks:
        tasks.start_soon(write)
        with pytest.raises(StoreFailed):
            await channel.receive(None, gateway.accept)
        await until(lambda: statuses)
        tasks.cancel_scope.cancel()

    assert set(statuses) == {503}


async def test_a_connection_cut_anywhere_loses_and_repeats_nothing() -> None:
    """S145, S146, S149: the wire breaks after ever more bytes, also within an event; a client
    that counts only whole events and comes back with the last id sees each of them once."""
    gateway = FakeGateway()
    texts = [f"{number} " + "ü" * 20 for number in range(6)]
    for text in texts:
        gateway.say(ROUTE, text)
    channel = web_channel(gateway)
    seen: list[str] = []
    place = "0"
    async with serving(channel, gateway.accept), wire(channel.bound_port) as cuttable:
        cuttable.limits = list(range(400, 900, 13))
        with fail_after(WITHIN_S):
            while len(seen) < len(texts):
                async with client_of(cuttable.url) as client:
                    try:
                        place = await read_whole_events(client, place, seen)
                    except httpx2.TransportError:
                        continue

    assert [text.split()[0] for text in seen] == [text.split()[0] for text in texts]
    assert cuttable.connections > 1


async def read_whole_events(client: httpx2.AsyncClient, place: str, seen: list[str]) -> str:
    headers = {"Last-Event-ID": place}
    async with client.stream("GET", EVENTS, headers=headers) as response:
        try:
            async for event in httpx2.EventSource(response):
                place = event.id
                if event.event != "place":
                    seen.append(event.data.split('"text":"')[1])
                if len(seen) == 6:
                    break
        except httpx2.TransportError:
            return place
    return place
