"""Connections that each belong to one request at a time."""

import httpx2
import pytest
from anyio import Event, create_task_group, fail_after

from koboshi.http_pool import HttpPool
from tests.fakes.model_servers.server import Answer, ModelServer, serving
from tests.harness.polling import WITHIN_S

TIMEOUT = httpx2.Timeout(WITHIN_S)
OK = Answer(pieces=(b"ok",))


async def ask(lanes: HttpPool, server: ModelServer) -> str:
    async with lanes.lane() as http:
        return (await http.post(server.url, content=b"{}")).text


async def test_the_lane_that_was_used_last_is_used_next() -> None:
    lanes = HttpPool(count_max=9, timeout=TIMEOUT)
    async with serving(lambda _: None) as server:
        server.answers += [OK] * 9
        async with lanes.lane() as first, lanes.lane() as second:
            assert first is not second
        for _ in range(3):
            assert await ask(lanes, server) == "ok"

        assert len(server.tasks) == 1
        await lanes.aclose()


async def test_there_are_no_more_lanes_than_allowed() -> None:
    lanes = HttpPool(count_max=2, timeout=TIMEOUT)
    has_lane = [Event() for _ in range(3)]
    is_over = [Event() for _ in range(3)]

    async def hold(number: int) -> None:
        async with lanes.lane():
            has_lane[number].set()
            await is_over[number].wait()

    async with create_task_group() as tasks:
        with fail_after(WITHIN_S):
            for number in range(3):
                tasks.start_soon(hold, number)
            await has_lane[0].wait()
            await has_lane[1].wait()
            assert not has_lane[2].is_set()
            is_over[0].set()
            await has_lane[2].wait()
        for event in is_over:
            event.set()
    await lanes.aclose()


async def test_a_lane_that_no_one_needs_is_closed() -> None:
    lanes = HttpPool(count_max=9, timeout=TIMEOUT, idle_seconds_max=-1)
    async with serving(lambda _: None) as server:
        server.answers += [OK]
        assert await ask(lanes, server) == "ok"

        with fail_after(WITHIN_S):
            await server.is_quiet.wait()


async def test_closing_ends_what_is_under_way() -> None:
    lanes = HttpPool(count_max=9, timeout=TIMEOUT)
    async with serving(lambda _: None) as server, create_task_group() as tasks:
        server.answers += [Answer(pieces=(b"o", b"k"), hangs_after=Event())]

        async def fail() -> None:
            with pytest.raises((httpx2.HTTPError, RuntimeError)):
                await ask(lanes, server)

        tasks.start_soon(fail)
        with fail_after(WITHIN_S):
            await server.has_asked.wait()
            await lanes.aclose()
