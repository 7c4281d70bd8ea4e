"""MCP servers that the gateway starts: real processes, called once, and gone with it."""

import gc
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import anyio
import pytest
from anyio import create_task_group, move_on_after, sleep_forever
from anyio.lowlevel import checkpoint
from structlog.testing import capture_logs

from koboshi.domain.transcript import Effect, Need
from koboshi.ports.tool import ToolFailed
from koboshi.tools.mcp import Program, ServerLimits
from koboshi.tools.mcp.stdio import open_program
from koboshi.tools.registry import Toolbox
from tests.tools.servers import (
    ENVIRONMENT,
    a_tool,
    call,
    children_of,
    counting,
    descendants_of,
    executions,
    family,
    is_alive,
    reach,
    running,
    scripted,
    spec,
    told,
    until,
)

pytest.importorskip("mcp")


@pytest.fixture
def count_file(tmp_path: Path) -> Path:
    return tmp_path / "count"


async def test_a_call_is_executed_once_and_answered(count_file: Path) -> None:
    async with running(spec(counting(count_file))) as servers:
        answer = await call(servers, "x_count", note="hello")

    assert told(answer) == {"status": "ok", "output": "executed 1"}
    assert executions(count_file) == ["count"]


async def test_the_toolbox_tells_the_model_of_the_tools_when_they_are_there(
    count_file: Path,
) -> None:
    async with running(spec(counting(count_file), only=("count", "look", "nothing"))) as servers:
        box = Toolbox([], [servers])
        before = box.names
        await box.settle()

        assert before == ()
        assert box.names == ("x_count", "x_look")
        (count, _) = box.specs()
        assert count.description.startswith("Count one execution")
        assert json.loads(count.parameters)["properties"]["note"]["type"] == "string"


@pytest.mark.parametrize("trusts", [False, True])
async def test_hints_count_as_far_as_the_server_is_trusted(count_file: Path, trusts: bool) -> None:
    async with running(spec(counting(count_file), trusts_hints=trusts)) as servers:
        tools = {name: await reach(servers, f"x_{name}") for name in "count look put wipe".split()}

        effects = {name: tool.effect_of("{}") for name, tool in tools.items()}
        needs = {name for name, tool in tools.items() if tool.need_of("{}") is Need.APPROVAL}

    assert needs == {"count", "put", "wipe"} | (set() if trusts else {"look"})
    assert effects["count"] is effects["wipe"] is Effect.ONCE
    assert effects["look"] is (Effect.NONE if trusts else Effect.ONCE)
    assert effects["put"] is (Effect.REPEATABLE if trusts else Effect.ONCE)


async def test_what_a_tool_fails_with_is_its_answer(count_file: Path) -> None:
    async with running(spec(counting(count_file))) as servers:
        answer = await call(servers, "x_complain")

    assert told(answer)["status"] == "error"
    assert not answer.is_unknown
    assert executions(count_file) == ["complain"]


async def test_a_server_that_dies_in_a_call_leaves_its_outcome_unknown_and_comes_back(
    count_file: Path,
) -> None:
    async with running(spec(counting(count_file))) as servers:
        answer = await call(servers, "x_die")
        names_meanwhile = [tool.spec.name for tool in servers.tools()]
        again = await call(servers, "x_count")

    assert answer.is_unknown
    assert "was lost while it worked on this; it is unknown" in told(answer)["error"]
    assert "x_count" in names_meanwhile, "the model is told of the same tools all the time"
    assert told(again)["status"] == "ok"
    assert executions(count_file) == ["die", "count"]


async def test_a_slow_server_leaves_the_outcome_unknown_and_stays_connected(
    count_file: Path,
) -> None:
    slow = spec(counting(count_file, "--slow", "60"), timeout_seconds=2.5)
    async with running(slow) as servers:
        await reach(servers, "x_count")
        answer = await call(servers, "x_count")
        looked = await call(servers, "x_look")

    assert answer.is_unknown
    assert "did not answer within 2.5 seconds; it is unknown" in told(answer)["error"]
    assert told(looked)["output"] == "looked"
    assert executions(count_file) == ["count", "look"]


async def test_a_call_that_is_given_up_is_not_sent_again(count_file: Path) -> None:
    async with running(spec(counting(count_file, "--slow", "60"))) as servers:
        tool = await reach(servers, "x_count")
        async with create_task_group() as turn:
            turn.start_soon(call, servers, tool.spec.name)
            await until(lambda: executions(count_file) == ["count"])
            turn.cancel_scope.cancel()
        await call(servers, "x_look")

    assert executions(count_file) == ["count", "look"]


async def test_calls_run_side_by_side(count_file: Path) -> None:
    async with running(spec(counting(count_file, "--slow", "1"))) as servers:
        await reach(servers, "x_count")
        with move_on_after(30) as scope:
            async with create_task_group() as turns:
                for _ in range(50):
                    turns.start_soon(call, servers, "x_count")

    assert not scope.cancelled_caught
    assert len(executions(count_file)) == 50


async def test_a_list_that_changes_is_read_again(count_file: Path) -> None:
    async with running(spec(counting(count_file))) as servers:
        await call(servers, "x_grow")
        await until(lambda: servers.find("x_look_again") is not None)

        assert told(await call(servers, "x_look_again"))["output"] == "looked"


async def test_an_older_server_can_change_its_list_as_well(tmp_path: Path) -> None:
    grow = {"grow": {"tools": [a_tool("grow"), a_tool("more")]}}
    async with running(spec(scripted(tmp_path, tools=[a_tool("grow")], calls=grow))) as servers:
        await call(servers, "x_grow")
        await until(lambda: servers.find("x_more") is not None)


async def test_a_program_that_is_not_there_is_named_and_the_call_is_not_started() -> None:
    missing = Program(command="no-such-program-here", environment=ENVIRONMENT, workdir="/")
    limits = ServerLimits(reach_s=1, settle_s=30, retry_s_min=0.05, retry_s_max=0.1)
    with capture_logs() as logs:
        async with running(spec(missing), limits=limits) as servers:
            await servers.settle()
            with pytest.raises(ToolFailed) as failed:
                await servers.reach("x_anything")

    assert "it was not started: the server x is not connected" in str(failed.value)
    assert "no-such-program-here: No such file or directory" in str(failed.value)
    warnings = [line for line in logs if line["log_level"] == "warning"]
    assert len(warnings) == 1, "the same failure is told once, however often it is tried"


async def test_a_server_that_never_answers_holds_nothing_up(tmp_path: Path) -> None:
    silent = Program(command="sleep", args=("600",), environment=ENVIRONMENT, workdir="/")
    limits = ServerLimits(connect_s=600, settle_s=0.2, reach_s=0.2)
    with move_on_after(60) as scope:
        async with running(spec(silent), limits=limits) as servers:
            await servers.settle()
            await servers.settle()
            with pytest.raises(ToolFailed, match="still being connected to"):
                await servers.reach("x_anything")

    assert not scope.cancelled_caught


async def test_a_server_that_takes_too_long_to_come_is_tried_anew(tmp_path: Path) -> None:
    silent = Program(command="sleep", args=("600",), environment=ENVIRONMENT, workdir="/")
    limits = ServerLimits(connect_s=0.3, settle_s=30, reach_s=1)
    async with running(spec(silent), limits=limits) as servers:
        await servers.settle()
        with pytest.raises(ToolFailed, match=r"it did not answer within 0\.3 seconds"):
            await servers.reach("x_anything")


def test_a_start_that_is_given_up_at_any_step_leaves_nothing() -> None:
    patient = Program(command="cat", args=(), environment=ENVIRONMENT, workdir="/")
    before = children_of(os.getpid())

    async def start() -> None:
        async with open_program(patient, ServerLimits(), "x", lambda _: None):
            await sleep_forever()

    async def start_and_give_up(steps: int) -> None:
        async with create_task_group() as starting:
            starting.start_soon(start)
            for _ in range(steps):
                await checkpoint()
            starting.cancel_scope.cancel()

    for steps in range(12):
        anyio.run(start_and_give_up, steps)

    gc.collect()  # What was left open is told of here, and is an error.
    assert children_of(os.getpid()) == before


async def test_a_server_gets_the_environment_it_is_given_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "canary")
    program = scripted(tmp_path, calls={"act": {"tells_environment": True}})
    async with running(spec(program)) as servers:
        environment = json.loads(told(await call(servers, "x_act"))["output"])

    assert environment.keys() - {"LC_CTYPE"} == ENVIRONMENT.keys()


async def test_servers_and_their_children_end_with_the_gateway(tmp_path: Path) -> None:
    program = scripted(
        tmp_path, tools=[a_tool("act"), a_tool("spawn")], calls={"spawn": {"spawns": True}}
    )
    async with running(spec(program)) as servers:
        pids = [int(told(await call(servers, f"x_{name}"))["output"]) for name in ("act", "spawn")]
        assert all(is_alive(pid) for pid in pids)

    await until(lambda: not any(is_alive(pid) for pid in pids), seconds=60)


GATEWAY = """
import sys
from pathlib import Path
import anyio
from koboshi.tools.mcp import Program
from tests.tools.servers import ENVIRONMENT, call, counting, running, spec

async def main() -> None:
    # One that never looks at its input, so that nothing but the signal can tell it.
    deaf = spec(Program(command="sleep", args=("600",), environment=ENVIRONMENT, workdir="/"), "y")
    async with running(spec(counting(Path(sys.argv[1]), "--slow", "600")), deaf) as servers:
        await call(servers, "x_count")

anyio.run(main, backend_options={"use_uvloop": sys.argv[2] == "uvloop"})
"""


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells children of a death")
@pytest.mark.parametrize("loop", ["asyncio", "uvloop"])
async def test_servers_die_when_the_gateway_is_killed_in_the_middle_of_a_call(
    count_file: Path, loop: str
) -> None:
    gateway = subprocess.Popen([sys.executable, "-c", GATEWAY, str(count_file), loop])
    try:
        await until(lambda: executions(count_file) == ["count"])
        servers = descendants_of(gateway.pid)
        os.kill(gateway.pid, signal.SIGKILL)
        gateway.wait()

        # Each with the process that looks after it.
        assert len(servers) == 4
        await until(lambda: not any(is_alive(server) for server in servers), seconds=60)
    finally:
        gateway.kill()
    assert executions(count_file) == ["count"]


def pids_in(file: Path) -> list[int]:
    return [int(pid) for pid in file.read_text().split()] if file.exists() else []


RELATIVES = """
import sys
from pathlib import Path
import anyio
from tests.tools.servers import call, family, running, spec

async def main() -> None:
    program, _ = family(Path(sys.argv[1]))
    async with running(spec(program)) as servers:
        await call(servers, "x_count")
        Path(sys.argv[1], "called").touch()
        await anyio.sleep_forever()

anyio.run(main, backend_options={"use_uvloop": True})
"""


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells children of a death")
async def test_all_that_a_server_has_started_dies_when_the_gateway_is_killed(
    tmp_path: Path,
) -> None:
    """Issue 13, C20: the kernel tells only a direct child of the death of its parent."""
    gateway = subprocess.Popen([sys.executable, "-c", RELATIVES, str(tmp_path)])
    try:
        await until((tmp_path / "called").exists)
        alive = {*descendants_of(gateway.pid), *pids_in(tmp_path / "pids")}
        assert len(pids_in(tmp_path / "pids")) == 3
        assert len(alive) >= 7
        os.kill(gateway.pid, signal.SIGKILL)
        gateway.wait()

        await until(lambda: not any(is_alive(pid) for pid in alive), seconds=20)
    finally:
        gateway.kill()
        for pid in pids_in(tmp_path / "pids"):
            if is_alive(pid):
                os.kill(pid, signal.SIGKILL)


async def test_all_that_a_server_has_started_ends_with_the_connection(tmp_path: Path) -> None:
    """Issue 13, C20: the same when the gateway leaves in peace."""
    program, pids = family(tmp_path)
    # Other tests of this process may have left servers that are there for all of them.
    others = {*descendants_of(os.getpid())}
    async with running(spec(program)) as servers:
        await call(servers, "x_count")
        alive = {*descendants_of(os.getpid()), *pids_in(pids)} - others

    assert alive
    await until(lambda: not any(is_alive(pid) for pid in alive), seconds=20)


async def test_how_a_server_ended_is_told_as_it_was(tmp_path: Path) -> None:
    """Issue 13, C20: the process in between ends as the server did."""
    reasons = {}
    for name, command in {"code": "exit 7", "signal": "kill -SEGV $$"}.items():
        program = Program(command="sh", args=("-c", command), environment=ENVIRONMENT, workdir="/")
        async with running(spec(program)) as servers:
            await servers.settle()
            reasons[name] = servers.standing()["x"]

    assert reasons["code"] == "it ended with 7"
    assert reasons["signal"] == f"it ended with {-signal.SIGSEGV}"
