"""The reference server of the protocol, which we did not write, killed and started again.

It answers a session that it does not know with status 400, where the protocol wants 404.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from koboshi.tools.mcp import Address
from tests.tools.everything import Everything
from tests.tools.servers import call, running, spec, told, until

pytest.importorskip("mcp")


@pytest.fixture
def everything(tmp_path: Path) -> Iterator[Everything]:
    server = Everything(tmp_path / "everything.log")
    yield server
    server.kill()


async def test_a_restarted_server_is_called_in_a_session_of_its_own(
    everything: Everything,
) -> None:
    """Issue 13, C16: killed and restarted between two calls, the second call is answered."""
    async with running(spec(Address(url=everything.url))) as servers:
        first = await call(servers, "x_echo", message="one")
        everything.kill()
        everything.start()
        second = await call(servers, "x_echo", message="two")

    assert "one" in told(first)["output"]
    assert "two" in told(second)["output"]
    assert everything.sessions == 2


async def test_the_state_of_a_server_follows_the_server_without_a_call(
    everything: Everything,
) -> None:
    """Issue 13, C16: a server that is down is said to be so, in the log as well."""
    with capture_logs() as logs:
        async with running(spec(Address(url=everything.url))) as servers:
            await until(lambda: servers.standing() == {"x": None})
            everything.kill()
            await until(lambda: servers.standing()["x"] is not None)
            everything.start()
            await until(lambda: servers.standing() == {"x": None})

    events = [line["event"] for line in logs if "connected" in line["event"]]
    assert events[0] == events[-1] == "mcp_connected"
    assert "mcp_not_connected" in events


async def test_a_tool_that_needs_a_task_is_not_offered(everything: Everything) -> None:
    """Issue 13, C20: the reference server has one; what it answers is no result."""
    with capture_logs() as logs:
        async with running(spec(Address(url=everything.url))) as servers:
            await servers.settle()
            names = [tool.spec.name for tool in servers.tools()]

    assert "x_echo" in names
    assert not any("research" in name for name in names)
    reasons = [line["reason"] for line in logs if line["event"] == "mcp_tool_ignored"]
    assert any("can only be called as a task" in reason for reason in reasons)
