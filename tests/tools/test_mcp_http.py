"""MCP servers over HTTP: what is certain to have failed, what is certain to have been answered, and
everything else, which is unknown."""

import gzip
import json
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from io import StringIO
from pathlib import Path

import pytest
from anyio import create_task_group

from koboshi import logs
from koboshi.ports.tool import ToolFailed
from koboshi.tools.mcp import Address, McpServers, ServerLimits
from tests.fakes.http_mcp import JSON, Response, answer_to, error_to, serving
from tests.tools.servers import (
    LIMITS,
    HttpServer,
    call,
    executions,
    reach,
    running,
    spec,
    told,
    until,
)

pytest.importorskip("mcp")

TOKEN = "canary-token-of-a-server"


@pytest.fixture
def count_file(tmp_path: Path) -> Path:
    return tmp_path / "count"


@pytest.fixture
def real(count_file: Path) -> Iterator[HttpServer]:
    server = HttpServer(count_file, "--token", TOKEN)
    yield server
    server.stop()


def address(server: HttpServer, token: str = TOKEN) -> Address:
    return Address(url=server.url, headers={"Authorization": f"Bearer {token}"})


async def test_a_call_is_executed_once_and_answered(real: HttpServer, count_file: Path) -> None:
    async with running(spec(address(real))) as servers:
        answer = await call(servers, "x_count", note="hello")

    assert told(answer) == {"status": "ok", "output": "executed 1"}
    assert executions(count_file) == ["count"]


async def test_a_server_that_dies_in_a_call_leaves_its_outcome_unknown_and_is_found_again(
    real: HttpServer, count_file: Path
) -> None:
    async with running(spec(address(real))) as servers:
        answer = await call(servers, "x_die")
        real.stop()
        real.start()
        again = await call(servers, "x_count")

    assert answer.is_unknown
    assert told(again)["status"] == "ok"
    assert executions(count_file) == ["die", "count"]


async def test_a_server_that_is_away_takes_no_call(real: HttpServer, count_file: Path) -> None:
    limits = replace(LIMITS, reach_s=0.5)
    async with running(spec(address(real)), limits=limits) as servers:
        await servers.settle()
        await call(servers, "x_look")
        real.stop()
        await call_without_server(servers)
        with pytest.raises(ToolFailed, match="it was not started: the server x is not connected"):
            await call(servers, "x_count")

    assert executions(count_file) == ["look"]


async def call_without_server(servers: McpServers) -> None:
    """The first call after the server died. A connection that breaks in the same moment leaves it
    open whether the call was sent."""
    with suppress(ToolFailed):
        answer = await call(servers, "x_count")
        assert answer.is_unknown


async def test_a_slow_server_leaves_the_outcome_unknown(count_file: Path) -> None:
    server = HttpServer(count_file, "--slow", "60")
    try:
        async with running(spec(Address(url=server.url), timeout_seconds=2.5)) as servers:
            await reach(servers, "x_count")
            answer = await call(servers, "x_count")
            await call(servers, "x_look")
    finally:
        server.stop()

    assert answer.is_unknown
    assert executions(count_file) == ["count", "look"]


async def test_a_list_that_changes_is_read_again(real: HttpServer) -> None:
    async with running(spec(address(real))) as servers:
        await call(servers, "x_grow")
        await until(lambda: servers.find("x_look_again") is not None)


async def test_a_wrong_token_is_told_and_no_token_is_ever_logged(real: HttpServer) -> None:
    lines = StringIO()
    logs.configure("debug", as_json=True, stream=lines)
    limits = replace(LIMITS, reach_s=0.5)
    good, bad = spec(address(real), "good"), spec(address(real, "canary-wrong"), "bad")
    async with running(good, bad, limits=limits) as servers:
        await servers.settle()
        await call(servers, "good_count")
        with pytest.raises(ToolFailed, match="the server answers with status 401"):
            await servers.reach("bad_count")
        real.stop()
        with pytest.raises(ToolFailed):
            await call(servers, "good_count")

    assert "mcp_connected" in lines.getvalue()
    assert "canary" not in lines.getvalue()
    assert "canary" not in repr(good)


def refused(status: int) -> Callable[[JSON], Response]:
    return lambda _: Response(status=status, kind="text/html", body=b"<html>")


@pytest.mark.parametrize("status", [400, 401, 403, 404, 405, 413, 429])
async def test_a_call_that_was_turned_away_was_not_started(status: int) -> None:
    async with serving(refused(status)) as server, running(spec(Address(url=server.url))) as mcp:
        with pytest.raises(ToolFailed, match=f"it was not started: .* away with status {status}"):
            await call(mcp, "x_act")

        # 404 is how a server says that it does not know the session: that is tried once more.
        assert len(server.calls) == (2 if status == 404 else 1)


def one_event_and_no_more(message: JSON) -> Response:
    progress = {"jsonrpc": "2.0", "method": "notifications/message", "params": {}}
    return Response(kind="text/event-stream", body=f"data: {json.dumps(progress)}\n\n".encode())


UNKNOWN: dict[str, Callable[[JSON], Response]] = {
    "a gateway before it gave up": refused(504),
    "it failed": refused(500),
    "it may have begun": refused(409),
    "accepted, and nothing more": lambda _: Response(status=202),
    "not in the form of an answer": lambda _: Response(kind="text/html", body=b"<html>"),
    "not an answer": lambda _: Response(body=b"{}"),
    "no json": lambda _: Response(body=b"{"),
    "not an answer to a call": lambda message: answer_to(message, {"content": 5}),
    "cut off": lambda _: Response(body=b'{"jsonrpc":', breaks=True),
    "a stream without an answer": one_event_and_no_more,
    "far too long": lambda message: answer_to(message, {"content": [], "x": "y" * 200_000}),
    "small, and growing": lambda message: Response(
        body=gzip.compress(b"[" * 10_000_000), headers=("Content-Encoding: gzip",)
    ),
    "its own words for a lost connection": lambda message: error_to(message, -32000, "oops"),
}


@pytest.mark.parametrize("how", UNKNOWN)
async def test_what_is_not_certain_is_unknown_and_never_sent_again(how: str) -> None:
    limits = ServerLimits(message_bytes_max=100_000, retry_s_min=0.05)
    async with (
        serving(UNKNOWN[how]) as server,
        running(spec(Address(url=server.url), timeout_seconds=10), limits=limits) as mcp,
    ):
        answer = await call(mcp, "x_act")

        assert answer.is_unknown, answer
        assert len(server.calls) == 1


async def test_an_error_is_the_servers_answer() -> None:
    async with (
        serving(lambda message: error_to(message, -32602, "no such\x1b[2J thing")) as server,
        running(spec(Address(url=server.url))) as mcp,
    ):
        answer = await call(mcp, "x_act")

    assert told(answer) == {"status": "error", "error": "no such thing"}
    assert not answer.is_unknown


def done(message: JSON) -> Response:
    return answer_to(message, {"content": [{"type": "text", "text": "done"}]})


@pytest.mark.parametrize("status", [400, 401, 403, 404, 405, 410, 422])
async def test_a_call_in_a_forgotten_session_is_sent_once_more_in_a_new_one(status: int) -> None:
    """Issue 13, C16: a session that any 4xx refuses before the call was taken is made anew."""
    async with serving(done) as server, running(spec(Address(url=server.url))) as mcp:
        await reach(mcp, "x_act")
        server.restart()
        server.refuses_with = status
        answer = await call(mcp, "x_act")

        assert told(answer)["output"] == "done"
        assert len(server.calls) == 1
        assert server.methods.count("initialize") == 2
        assert server.methods.count("tools/call") == 2


async def test_a_session_that_is_refused_again_is_not_made_anew_without_end() -> None:
    """Issue 13, C16: the new session is refused as well, so the call was not started."""

    def forget(message: JSON) -> Response:
        server.restart()
        return error_to(message, -32600, "Session not found", status=404)

    async with serving(forget) as server, running(spec(Address(url=server.url))) as mcp:
        with pytest.raises(ToolFailed, match="with status 404: Session not found"):
            await call(mcp, "x_act")

        assert len(server.calls) == 2


async def test_a_call_that_is_refused_for_itself_keeps_the_session() -> None:
    """Issue 13, C16: the session may hold what the person would miss."""
    async with serving(refused(400)) as server, running(spec(Address(url=server.url))) as mcp:
        with pytest.raises(ToolFailed, match="away with status 400"):
            await call(mcp, "x_act")

        assert server.methods.count("initialize") == 1


async def test_a_status_that_may_come_after_the_call_began_renews_the_session_alone() -> None:
    """Issue 13, C16: what may have been taken is never sent again."""
    async with serving(done) as server, running(spec(Address(url=server.url))) as mcp:
        await reach(mcp, "x_act")
        server.restart()
        server.refuses_with = 409
        first = await call(mcp, "x_act")
        second = await call(mcp, "x_act")

        assert first.is_unknown
        assert told(second)["output"] == "done"
        assert len(server.calls) == 1


async def test_what_became_of_one_call_is_not_mistaken_for_another() -> None:
    """Two calls side by side: one is turned away, one fails in the middle."""

    def by_note(message: JSON) -> Response:
        return refused(500 if message["params"]["arguments"]["note"] == "fails" else 403)(message)

    outcomes: dict[str, object] = {}
    async with serving(by_note) as server, running(spec(Address(url=server.url))) as mcp:
        await reach(mcp, "x_act")

        async def act(note: str) -> None:
            try:
                outcomes[note] = (await call(mcp, "x_act", note=note)).is_unknown
            except ToolFailed:
                outcomes[note] = "not started"

        async with create_task_group() as tasks:
            for note in ("fails", "turned away"):
                tasks.start_soon(act, note)

    assert outcomes == {"fails": True, "turned away": "not started"}
