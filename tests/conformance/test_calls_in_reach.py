"""Calls of tools that come and go: what was stored with a call decides after a crash, so a call is
started only when it is still true."""

from dataclasses import dataclass, field, replace

import pytest

from koboshi.domain.ids import CallId
from koboshi.domain.route import Route
from koboshi.domain.transcript import (
    CallRecord,
    Effect,
    Need,
    ProposedCall,
    Result,
    ResultStatus,
    Step,
)
from koboshi.domain.turn import Claim
from koboshi.ports.tool import Tool, ToolFailed
from koboshi.runtime.calls import CallRunner
from koboshi.tools.mcp.endpoint import Unanswered
from koboshi.tools.mcp.listing import listed_tool
from koboshi.tools.mcp.tool import AbsentMcpTool, McpTool
from koboshi.tools.registry import Toolbox
from tests.harness.homes import WEB, Home

ROUTE = Route(channel=WEB, chat="ann")
LISTED = listed_tool({"name": "count", "inputSchema": {"type": "object"}})


@dataclass(slots=True)
class Server:
    """A server that can be away, and that counts how often it executes."""

    effect: Effect = Effect.ONCE
    need: Need = Need.NOBODY
    is_here: bool = True
    has_tool: bool = True
    fails_with: Exception | None = None
    executed: list[str] = field(default_factory=list)

    def tools(self) -> tuple[Tool, ...]:
        return (self._tool(),) if self.has_tool else ()

    def find(self, name: str) -> Tool | None:
        if name != "x_count" or (self.is_here and not self.has_tool):
            return None
        return self._tool() if self.is_here else AbsentMcpTool(name=name, server="x")

    async def reach(self, name: str) -> Tool | None:
        if not self.is_here:
            raise ToolFailed("it was not started: the server x is not connected")
        return self.find(name)

    async def settle(self) -> None:
        return

    def _tool(self) -> McpTool:
        return McpTool(
            name="x_count",
            server="x",
            listed=LISTED,
            effect=self.effect,
            need=self.need,
            send=self._execute,
        )

    async def _execute(self, tool: str, arguments: object) -> object:
        self.executed.append(tool)
        if self.fails_with is not None:
            raise self.fails_with
        return {"content": [{"type": "text", "text": "done"}]}


@pytest.fixture
def server() -> Server:
    return Server()


async def propose(home: Home, claim: Claim, server: Server) -> CallRecord:
    """Store the call as the turn does: judged by what is known of the tool now."""
    tool = Toolbox([], [server]).find("x_count")
    proposed = ProposedCall(
        tool="x_count",
        arguments="{}",
        effect=tool.effect_of("{}") if tool else Effect.NONE,
        need=tool.need_of("{}") if tool else Need.NOBODY,
    )
    await home.propose(claim, proposed)
    return await record_of(home, claim)


async def record_of(home: Home, claim: Claim) -> CallRecord:
    loaded = await home.store.turns.load(claim)
    (record,) = loaded.calls
    return record


async def run(home: Home, claim: Claim, server: Server) -> Result:
    toolbox = Toolbox([], [server])
    runner = CallRunner(store=home.store, tools=toolbox, result_chars_max=10_000)
    steps: tuple[Step, ...] = await runner.run_all(claim, ROUTE, (await record_of(home, claim),))
    (result,) = [step.body for step in steps if isinstance(step.body, Result)]
    return result


async def test_a_call_out_of_reach_fails_and_was_never_started(home: Home, server: Server) -> None:
    claim = await home.work_on()
    server.is_here = False
    await propose(home, claim, server)

    result = await run(home, claim, server)

    record = await record_of(home, claim)
    assert result.status is ResultStatus.ERROR
    assert "it was not started: the server x is not connected" in result.text
    assert (record.started_ms, record.skipped_ms is not None) == (None, True)


async def test_the_words_of_a_failure_hold_no_secret(home: Home, server: Server) -> None:
    """A server that does not start may quote the key that it was given."""
    claim = await home.work_on()
    server.is_here = False
    record = await propose(home, claim, server)
    runner = CallRunner(
        store=home.store,
        tools=Toolbox([], [server]),
        result_chars_max=10_000,
        redact=lambda text: text.replace("server x", "***"),
    )

    (step, *_) = await runner.run_all(claim, ROUTE, (record,))

    assert isinstance(step.body, Result)
    assert step.body.text.endswith("it was not started: the *** is not connected")


async def test_a_call_proposed_while_the_server_was_away_runs_as_once_when_it_is_back(
    home: Home, server: Server
) -> None:
    claim = await home.work_on()
    server.is_here = False
    record = await propose(home, claim, server)
    server.is_here = True

    result = await run(home, claim, server)

    assert record.call.effect is Effect.ONCE
    assert (result.status, server.executed) == (ResultStatus.OK, ["count"])


async def test_a_call_without_an_answer_is_stored_as_unknown(home: Home, server: Server) -> None:
    claim = await home.work_on()
    await propose(home, claim, server)
    server.fails_with = Unanswered("the server died")

    result = await run(home, claim, server)

    assert (result.status, server.executed) == (ResultStatus.UNKNOWN, ["count"])


@pytest.mark.parametrize("is_here", [True, False])
@pytest.mark.parametrize("has_tool", [True, False])
async def test_a_once_call_under_way_at_the_death_is_never_executed_again(
    home: Home, server: Server, is_here: bool, has_tool: bool
) -> None:
    """Also when the server, or its tool, is gone for good: the outcome is unknown all the same."""
    claim = await home.work_on()
    record = await propose(home, claim, server)
    await home.start(claim, record.call.call_id)
    server.executed.append("count")
    server.is_here, server.has_tool = is_here, has_tool
    under_way = replace(record, started_ms=home.clock.now_ms())

    runner = CallRunner(store=home.store, tools=Toolbox([], [server]), result_chars_max=10_000)
    (step, *_) = await runner.run_all(claim, ROUTE, (under_way,))

    assert isinstance(step.body, Result)
    assert step.body.status is ResultStatus.UNKNOWN
    assert server.executed == ["count"]


async def test_a_call_of_a_tool_that_was_not_there_is_not_started_when_it_appears(
    home: Home, server: Server
) -> None:
    """It was stored as one that may be repeated: a crash would have executed it twice."""
    claim = await home.work_on()
    server.has_tool = False
    record = await propose(home, claim, server)
    server.has_tool = True

    result = await run(home, claim, server)

    assert record.call.effect is Effect.NONE
    assert result.status is ResultStatus.ERROR
    assert "was not started: what is known about it has changed" in result.text
    assert server.executed == []


@pytest.mark.parametrize("before", [Effect.NONE, Effect.REPEATABLE])
async def test_a_call_is_not_started_when_its_tool_has_become_stricter(
    home: Home, server: Server, before: Effect
) -> None:
    claim = await home.work_on()
    server.effect = before
    await propose(home, claim, server)
    server.effect = Effect.ONCE

    assert (await run(home, claim, server)).status is ResultStatus.ERROR
    assert server.executed == []


async def test_a_call_that_was_under_way_is_not_repeated_when_trust_was_withdrawn(
    home: Home, server: Server
) -> None:
    claim = await home.work_on()
    server.effect = Effect.NONE
    record = await propose(home, claim, server)
    await home.start(claim, CallId(record.call.call_id))
    server.effect = Effect.ONCE

    assert (await run(home, claim, server)).status is ResultStatus.UNKNOWN
    assert server.executed == []


async def test_a_call_that_may_be_repeated_is_run_again_after_a_death(
    home: Home, server: Server
) -> None:
    claim = await home.work_on()
    server.effect = Effect.NONE
    record = await propose(home, claim, server)
    await home.start(claim, record.call.call_id)

    assert (await run(home, claim, server)).status is ResultStatus.OK
    assert server.executed == ["count"]


async def test_a_call_that_no_one_approved_is_not_started_when_its_tool_needs_it_now(
    home: Home, server: Server
) -> None:
    claim = await home.work_on()
    await propose(home, claim, server)
    server.need = Need.APPROVAL

    assert (await run(home, claim, server)).status is ResultStatus.ERROR
    assert server.executed == []
