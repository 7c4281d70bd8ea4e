"""`process`: the truth about commands in the background, of this life of the gateway or another."""

import json
from dataclasses import replace
from typing import Any

import anyio
import pytest

from koboshi.domain.ids import CallId, ProcessId, SessionId, TurnId
from koboshi.domain.process import Process, ProcessState
from koboshi.domain.transcript import Effect, Need
from koboshi.ports.runners import CommandSpec, EndedBy, Ending, Life
from koboshi.ports.tool import ToolAnswer, ToolFailed
from koboshi.tools.process import ProcessTool
from tests.fakes.commands import (
    BIRTH,
    NOW_MS,
    FakeClock,
    FakeProcesses,
    FakeRunners,
    ended_by,
    ends_of,
    exited,
)
from tests.fakes.files import CONTEXT

P1, P2 = ProcessId(1), ProcessId(2)


class Background:
    """The tool, with a running command `p1` of our session."""

    def __init__(self) -> None:
        self.clock = FakeClock()
        self.runners = FakeRunners()
        self.processes = FakeProcesses(self.clock)
        self.tool = ProcessTool(
            processes=self.processes,
            runners=self.runners,
            clock=self.clock,
            store_end=ends_of(self.processes, self.runners, self.clock).store,
            until_written_to=self._until_written_to,
            booted_ms=0,
        )

    async def _until_written_to(self, _session_id: SessionId) -> None:
        await anyio.sleep_forever()

    async def begin(
        self, command: str = "serve", *, session: int = 1, is_foreground: bool = False
    ) -> ProcessId:
        number = len(self.processes.rows) + 1
        process = await self.processes.begin(
            replace(CONTEXT.claim, session_id=SessionId(session), turn_id=TurnId(number)),
            CallId(f"{number}.0"),
            command=command,
            workdir="/srv/agent",
            is_foreground=is_foreground,
        )
        return process.process_id

    async def start(
        self, command: str = "serve", *, session: int = 1, is_foreground: bool = False
    ) -> ProcessId:
        process_id = await self.begin(command, session=session, is_foreground=is_foreground)
        spec = CommandSpec(
            command=command,
            workdir="/srv/agent",
            environment={},
            timeout_seconds=60,
            takes_input=not is_foreground,
        )
        await self.runners.start(process_id, spec)
        await self.processes.born(process_id, BIRTH)
        return process_id

    async def run(self, action: str, **arguments: object) -> ToolAnswer:
        asked = {
            "action": action,
            **({} if action == "list" else {"process_id": "p1"}),
            **arguments,
        }
        return await self.tool.run(json.dumps(asked), CONTEXT)

    def row(self, process_id: ProcessId = P1) -> Process:
        return self.processes.rows[process_id]


@pytest.fixture
async def background() -> Background:
    background = Background()
    await background.start()
    return background


def told(answer: ToolAnswer) -> dict[str, Any]:
    assert answer.text.startswith('{"status":"')
    return dict(json.loads(answer.text))


ACTIONS = ["poll", "log", "wait", "kill", "write"]


# ── who may ask for what ────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("action", ACTIONS)
@pytest.mark.parametrize("named", ["p9", "1", "t1", "p", "p-1", "x" * 20])
async def test_an_unknown_process_is_not_found(
    background: Background, action: str, named: str
) -> None:
    """S110: no exception."""
    answer = await background.run(action, process_id=named, timeout=0)

    assert told(answer) == {"status": "not_found", "process_id": named}
    assert answer.exits_read == ()


@pytest.mark.parametrize("action", ACTIONS)
async def test_a_process_of_another_session_is_not_found(
    background: Background, action: str
) -> None:
    other = await background.start(session=2)
    background.runners.finish(other, exited())

    answer = await background.run(action, process_id="p2")

    assert told(answer)["status"] == "not_found"
    assert answer.exits_read == ()
    assert background.row(P2).ended_ms is None
    assert [row["process_id"] for row in told(await background.run("list"))["processes"]] == ["p1"]


@pytest.mark.parametrize(
    "action,effect",
    [
        ("list", Effect.NONE),
        ("poll", Effect.NONE),
        ("log", Effect.NONE),
        ("wait", Effect.NONE),
        ("kill", Effect.REPEATABLE),
        ("write", Effect.ONCE),
    ],
)
def test_what_repeating_does_depends_on_the_action(action: str, effect: Effect) -> None:
    tool = Background().tool
    arguments = json.dumps({"action": action, "process_id": "p1"})

    assert tool.effect_of(arguments) is effect
    assert tool.need_of(arguments) is Need.NOBODY
    assert tool.complaint_about(arguments) is None


@pytest.mark.parametrize(
    "arguments,complaint",
    [
        ({"action": "poll"}, "`process_id` is missing"),
        ({"action": "stop", "process_id": "p1"}, "`action`"),
        ({"action": "log", "process_id": "p1", "limit": 0}, "`limit`"),
        ({"action": "log", "process_id": "p1", "offset": -1}, "`offset`"),
        ({"action": "list", "all": True}, "`all` is not an argument"),
    ],
)
def test_a_complaint_names_the_argument(arguments: dict[str, object], complaint: str) -> None:
    assert complaint in (Background().tool.complaint_about(json.dumps(arguments)) or "")


# ── while it runs ───────────────────────────────────────────────────────────────────────────────


async def test_a_running_process_is_polled(background: Background) -> None:
    background.runners.commands[P1].log = b"listening\r\n\x1b[32mready\x1b[0m\n"
    background.clock.ms += 65_000

    answer = await background.run("poll")

    assert told(answer) == {
        "status": "running",
        "process_id": "p1",
        "command": "serve",
        "pid": BIRTH.pid,
        "uptime_seconds": 65,
        "output": "listening\nready\n",
    }
    assert answer.exits_read == ()


async def test_waiting_ends_with_the_time_or_the_process(background: Background) -> None:
    late = await background.run("wait", timeout=0.01)
    answers: list[ToolAnswer] = []

    async def wait() -> None:
        answers.append(await background.run("wait"))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(wait)
        with anyio.fail_after(60):
            while len(background.runners.waits) < 2:
                await anyio.lowlevel.checkpoint()
        background.runners.finish(P1, exited(4), b"bye\n")

    assert told(late)["status"] == "timeout"
    assert late.exits_read == ()
    assert (told(answers[0])["status"], told(answers[0])["exit_code"]) == ("exited", 4)
    assert told(answers[0])["output"] == "bye\n"
    assert answers[0].exits_read == (P1,)
    assert background.runners.waits == [0.01, 60.0]


async def test_a_wait_is_clamped_and_says_so(
    background: Background, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("koboshi.tools.process.WAIT_SECONDS_MAX", 0.01)

    answer = told(await background.run("wait", timeout=9_999))

    assert (answer["status"], answer["waited_seconds"]) == ("timeout", 0.01)
    assert "limited to" in answer["note"]


async def test_input_is_given_to_a_process_that_takes_it(background: Background) -> None:
    answer = await background.run("write", text="yes\n")

    assert told(answer)["status"] == "written"
    assert background.runners.commands[P1].typed == b"yes\n"


async def test_a_process_that_takes_no_input_says_so(background: Background) -> None:
    await background.start(is_foreground=True)

    answer = await background.run("write", process_id="p2", text="yes\n")

    assert told(answer)["status"] == "refused"
    assert "takes no input" in told(answer)["note"]


@pytest.mark.parametrize("action", ["poll", "log", "wait", "write"])
async def test_one_that_is_just_being_started_is_not_looked_at(
    background: Background, action: str
) -> None:
    """A look at it before it is born settles that it never will be."""
    await background.begin("new one")

    answer = await background.run(action, process_id="p2")
    listed = told(await background.run("list"))["processes"]

    assert told(answer)["status"] == "starting"
    assert listed[0]["status"] == "starting"
    assert P2 not in background.runners.commands
    assert background.row(P2).ended_ms is None


async def test_one_that_is_just_being_started_can_be_kept_from_it(background: Background) -> None:
    await background.begin("new one")

    answer = await background.run("kill", process_id="p2")

    assert told(answer)["was"] == "failed_start"
    assert told(answer)["reason"] == "it was never started"
    assert background.row(P2).ended_ms is not None
    assert background.runners.look(P2).life is Life.UNBORN


# ── its output ──────────────────────────────────────────────────────────────────────────────────


def numbered(count: int) -> bytes:
    return "".join(f"line {number}\n" for number in range(count)).encode()


async def test_the_last_lines_are_shown_with_their_number(background: Background) -> None:
    background.runners.commands[P1].log = numbered(1_000)

    answer = told(await background.run("log"))

    assert (answer["total_lines"], answer["offset"]) == (1_000, 800)
    assert answer["output"].splitlines()[0] == "line 800"
    assert answer["output"].splitlines()[-1] == "line 999"


@pytest.mark.parametrize(
    "arguments,lines",
    [
        ({"limit": 1}, ["line 9"]),
        ({"offset": 0, "limit": 2}, ["line 0", "line 1"]),
        ({"offset": 8, "limit": 5}, ["line 8", "line 9"]),
        ({"offset": 20}, []),
    ],
)
async def test_a_slice_of_the_lines_is_shown(
    background: Background, arguments: dict[str, object], lines: list[str]
) -> None:
    background.runners.commands[P1].log = numbered(10)

    answer = told(await background.run("log", **arguments))

    assert answer["output"].splitlines() == lines
    assert answer["total_lines"] == 10


async def test_no_output_has_no_lines(background: Background) -> None:
    answer = told(await background.run("log"))

    assert (answer["total_lines"], answer["output"]) == (0, "")


async def test_the_last_lines_of_a_log_with_a_gap_are_those_of_its_tail(
    background: Background,
) -> None:
    """The log keeps its head and its tail; the last lines are in the second."""
    background.runners.head_max, background.runners.tail_max = 70, 80
    background.runners.commands[P1].log = numbered(1_000)
    size = len(numbered(1_000))

    last = told(await background.run("log", limit=3))
    whole = told(await background.run("log", offset=0))

    assert last["output"].splitlines() == ["line 997", "line 998", "line 999"]
    assert last["dropped_bytes"] == size - 150
    assert whole["output"].startswith("line 0\n")
    assert f"… {size - 150} bytes left out …" in whole["output"]
    assert whole["output"].endswith("line 999")


async def test_a_result_is_bounded(background: Background) -> None:
    background.runners.commands[P1].log = (b"x" * 10_000 + b"\n") * 400

    last = told(await background.run("log", limit=2_000))
    first = told(await background.run("log", limit=2_000, offset=0))
    poll = told(await background.run("poll"))

    assert len(last["output"]) <= 60_000
    assert len(first["output"]) <= 60_000
    assert len(poll["output"]) <= 4_000


@pytest.mark.parametrize("action", ["poll", "log"])
async def test_a_log_that_cannot_be_read_is_told(background: Background, action: str) -> None:
    background.runners.error_at_log = TimeoutError(110, "it writes faster than we read")

    with pytest.raises(ToolFailed, match="cannot be read"):
        await background.run(action)


# ── its end ─────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("action", ["poll", "log", "wait", "write"])
@pytest.mark.parametrize(
    "ending,status,state",
    [
        (exited(3), "exited", ProcessState.EXITED),
        (ended_by(EndedBy.ITSELF, signal=11), "killed", ProcessState.KILLED),
        (ended_by(EndedBy.TIMEOUT, signal=9), "timed_out", ProcessState.KILLED),
        (ended_by(EndedBy.START, error="no shell"), "failed_start", ProcessState.EXITED),
    ],
)
async def test_whatever_shows_the_end_has_read_it(
    background: Background, action: str, ending: Ending, status: str, state: ProcessState
) -> None:
    """S113. The end is stored before it is shown, so that it can be marked as read."""
    background.runners.finish(P1, ending, b"bye\n")

    answer = await background.run(action, text="yes\n")

    assert told(answer)["status"] == status
    assert told(answer).get("exit_code") == ending.exit_code
    assert told(answer)["output"].strip() == "bye"
    assert answer.exits_read == (P1,)
    assert not answer.is_unknown
    assert background.row().state is state


async def test_a_slice_that_shows_the_end_has_read_it(background: Background) -> None:
    background.runners.finish(P1, exited(), numbered(10))

    answer = await background.run("log", offset=0, limit=1)

    assert told(answer)["status"] == "exited"
    assert answer.exits_read == (P1,)


async def test_an_overview_reads_no_exit(background: Background) -> None:
    background.runners.finish(P1, exited())

    answer = await background.run("list")

    assert told(answer)["processes"][0]["status"] == "exited"
    assert answer.exits_read == ()


@pytest.mark.parametrize("action", ["poll", "log", "wait", "write"])
async def test_a_lost_process_is_told_to_be_lost(background: Background, action: str) -> None:
    background.runners.commands[P1].log = b"so far\n"
    background.runners.lose(P1, is_other_boot=True)

    answer = await background.run(action)

    assert told(answer)["status"] == "lost"
    assert "the machine was restarted" in told(answer)["reason"]
    assert answer.exits_read == (P1,)
    assert not answer.is_unknown, "the process is unknown; what this call did is not"
    assert background.row().state is ProcessState.LOST


async def test_a_killed_process_has_its_end_read(background: Background) -> None:
    """S115: it causes no turn afterwards."""
    background.runners.commands[P1].log = b"working\n"

    answer = await background.run("kill")

    assert (told(answer)["status"], told(answer)["signal"]) == ("killed", 15)
    assert told(answer)["output"] == "working\n"
    assert answer.exits_read == (P1,)
    assert background.row().is_end_asked
    assert background.row().state is ProcessState.KILLED


async def test_killing_what_has_ended_tells_how_it_ended(background: Background) -> None:
    """S108. Also what a `kill` says that is run again after a crash."""
    background.runners.finish(P1, exited(3), b"bye\n")

    answer = await background.run("kill")

    assert told(answer) == {
        "status": "already_exited",
        "was": "exited",
        "process_id": "p1",
        "command": "serve",
        "exit_code": 3,
        "output": "bye\n",
    }
    assert answer.exits_read == (P1,)
    assert not background.row().is_end_asked


async def test_killing_twice_is_killing_once(background: Background) -> None:
    await background.run("kill")

    again = await background.run("kill")

    assert (told(again)["status"], told(again)["was"]) == ("already_exited", "killed")


async def test_what_outlived_its_runner_is_killed(background: Background) -> None:
    background.runners.lose(P1)

    answer = await background.run("kill")

    assert set(background.runners.swept) == {P1}
    assert (told(answer)["status"], told(answer)["was"]) == ("already_exited", "lost")
    assert answer.exits_read == (P1,)


async def test_a_process_that_does_not_end_is_not_said_to_have_ended(
    background: Background,
) -> None:
    background.runners.commands[P1].is_stubborn = True

    answer = await background.run("kill")

    assert told(answer)["status"] == "running"
    assert answer.exits_read == ()
    assert background.row().ended_ms is None
    assert background.row().is_end_asked


@pytest.mark.parametrize("action", ["poll", "log", "wait", "kill"])
async def test_of_an_end_whose_files_are_gone_the_row_tells(
    background: Background, action: str
) -> None:
    await background.processes.ended(
        P1, ProcessState.EXITED, exit_code=3, reason="it exited with code 3", ended_ms=NOW_MS
    )
    background.runners.commands.clear()

    answer = await background.run(action)

    assert told(answer)["was" if action == "kill" else "status"] == "exited"
    assert told(answer)["exit_code"] == 3
    assert "no longer kept" in told(answer)["note"]
    assert answer.exits_read == (P1,)


# ── the overview ────────────────────────────────────────────────────────────────────────────────


async def test_the_overview_has_the_running_ones_first(background: Background) -> None:
    await background.start("second")
    await background.start("third")
    await background.start("in front", is_foreground=True)
    background.clock.ms += 9_000
    background.runners.finish(P2, exited(1))
    await background.run("poll", process_id="p2")

    listed = told(await background.run("list"))["processes"]

    assert [(row["process_id"], row["status"]) for row in listed] == [
        ("p3", "running"),
        ("p1", "running"),
        ("p2", "exited"),
    ]
    assert listed[2]["exit_code"] == 1
    assert listed[1] == {
        "process_id": "p1",
        "status": "running",
        "command": "serve",
        "exit_code": None,
        "uptime_seconds": 9,
        "reports_to_you": [],
    }


async def test_a_running_process_is_listed_however_many_commands_came_after_it(
    background: Background,
) -> None:
    for _ in range(60):
        process_id = await background.start("ls", is_foreground=True)
        background.runners.finish(process_id, exited())
        await background.run("poll", process_id=f"p{process_id}")

    listed = told(await background.run("list"))["processes"]

    assert [row["process_id"] for row in listed] == ["p1"]


async def test_the_overview_is_bounded(background: Background) -> None:
    for _ in range(60):
        await background.start()

    assert len(told(await background.run("list"))["processes"]) == 50


async def test_a_call_is_never_taken_up(background: Background) -> None:
    with pytest.raises(RuntimeError, match="cannot be taken up"):
        await background.tool.resume('{"action": "list"}', CONTEXT)
