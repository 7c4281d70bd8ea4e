"""`terminal`: a command is started once, in every case, and its real outcome is told."""

import json
from dataclasses import replace
from typing import Any

import anyio
import pytest

from koboshi.domain.errors import Fenced
from koboshi.domain.ids import CallId, ProcessId
from koboshi.domain.process import ProcessState
from koboshi.domain.transcript import Effect, Need
from koboshi.ports.runners import EndedBy, Ending, Life
from koboshi.ports.tool import ToolAnswer, ToolContext, ToolFailed
from koboshi.processes.ends import output_of
from tests.fakes.commands import (
    BIRTH,
    NOW_MS,
    ended_by,
    exited,
)
from tests.fakes.files import CONTEXT
from tests.harness.terminals import P1, Terminal


@pytest.fixture
def terminal() -> Terminal:
    return Terminal()


def told(answer: ToolAnswer) -> dict[str, Any]:
    assert answer.text.startswith('{"status":"')
    return dict(json.loads(answer.text))


async def ending_soon(terminal: Terminal, ending: Ending, log: bytes = b"") -> None:
    """Let the command that is waited for end."""
    with anyio.fail_after(60):
        while P1 not in terminal.runners.commands or not terminal.runners.waits:
            await anyio.lowlevel.checkpoint()
    terminal.runners.finish(P1, ending, log)


# ── running ─────────────────────────────────────────────────────────────────────────────────────


async def test_a_command_runs_and_its_output_and_exit_code_are_told(terminal: Terminal) -> None:
    answers: list[ToolAnswer] = []

    async def run() -> None:
        answers.append(await terminal.run())

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(run)
        await ending_soon(terminal, exited(2), b"\x1b[31mno rule\x1b[0m\n")

    assert told(answers[0]) == {
        "status": "exited",
        "process_id": "p1",
        "exit_code": 2,
        "output": "no rule\n",
    }
    assert answers[0].exits_read == (P1,)
    assert not answers[0].is_unknown
    row = terminal.row()
    assert (row.state, row.exit_code, row.reason) == (
        ProcessState.EXITED,
        2,
        "it exited with code 2",
    )
    assert (row.birth, row.ended_ms) == (BIRTH, NOW_MS)


async def test_what_is_started_is_exactly_what_was_asked_for(terminal: Terminal) -> None:
    terminal.runners.ends_at_start = exited()

    await terminal.run(command="make  all\n", workdir="sub/../build", timeout=5)

    spec = terminal.runners.commands[P1].spec
    assert spec is not None
    assert (spec.command, spec.workdir) == ("make  all\n", "/srv/agent/build")
    assert spec.environment == {"PATH": "/bin"}
    assert spec.timeout_seconds == 5
    assert not spec.takes_input
    assert terminal.row().workdir == "/srv/agent/build"


@pytest.mark.parametrize(
    "workdir,where",
    [("", "/srv/agent"), ("/tmp", "/tmp"), (".", "/srv/agent"), ("a", "/srv/agent/a")],
)
async def test_a_folder_is_relative_to_the_usual_one(
    terminal: Terminal, workdir: str, where: str
) -> None:
    terminal.runners.ends_at_start = exited()

    await terminal.run(workdir=workdir)

    assert terminal.row().workdir == where


@pytest.mark.parametrize(
    "arguments,seconds",
    [
        ({}, 600),
        ({"timeout": 5}, 5),
        ({"timeout": 9_999}, 600),
        ({"background": True}, 86_400),
        ({"background": True, "timeout": 9_999}, 9_999),
        ({"background": True, "timeout": 99_999}, 86_400),
    ],
)
async def test_time_limits_are_at_most_the_configured_ones(
    terminal: Terminal, arguments: dict[str, object], seconds: float
) -> None:
    terminal.runners.ends_at_start = exited()

    await terminal.run(**arguments)

    spec = terminal.runners.commands[P1].spec
    assert spec is not None
    assert spec.timeout_seconds == seconds


async def test_the_wait_for_a_command_has_a_limit(terminal: Terminal) -> None:
    """A runner that hangs does not hang the turn."""
    terminal.runners.ends_at_start = exited()
    await terminal.run(timeout=5)

    assert terminal.runners.waits == [65]


async def test_a_command_that_does_not_end_in_time_is_told_to_be_running(
    monkeypatch: pytest.MonkeyPatch, terminal: Terminal
) -> None:
    monkeypatch.setattr("koboshi.tools.terminal.SLOW_SECONDS_MAX", 0.0)

    answer = await terminal.run(timeout=0.01)

    assert told(answer)["status"] == "running"
    assert answer.exits_read == ()
    assert terminal.row().ended_ms is None


@pytest.mark.parametrize(
    "ending,status,state,words",
    [
        (ended_by(EndedBy.TIMEOUT, signal=15), "timed_out", "killed", "longer than its time limit"),
        (ended_by(EndedBy.REQUEST, signal=15), "killed", "killed", "ended on request"),
        (ended_by(EndedBy.ITSELF, signal=9), "killed", "killed", "killed by signal 9"),
        (
            ended_by(EndedBy.START, error="no such folder"),
            "failed_start",
            "exited",
            "no such folder",
        ),
    ],
)
async def test_other_ends_are_told_with_their_reason(
    terminal: Terminal, ending: Ending, status: str, state: str, words: str
) -> None:
    terminal.runners.ends_at_start = ending

    answer = await terminal.run()

    assert told(answer)["status"] == status
    assert words in told(answer)["reason"]
    assert told(answer).get("signal") == ending.signal
    assert answer.exits_read == (P1,)
    assert not answer.is_unknown
    assert terminal.row().state == state
    assert words in (terminal.row().reason or "")


async def test_a_runner_that_cannot_be_started_leaves_no_process_behind(
    terminal: Terminal,
) -> None:
    """S110: failed_start with the error."""
    terminal.runners.error_at_start = OSError(8, "Exec format error")

    answer = await terminal.run()

    assert told(answer)["status"] == "failed_start"
    assert "Exec format error" in told(answer)["reason"]
    assert not answer.is_unknown
    assert answer.exits_read == (P1,)
    assert terminal.row().ended_ms == NOW_MS
    assert terminal.runners.look(P1).life is Life.UNBORN


async def test_an_error_after_the_birth_is_not_taken_for_a_failed_start(terminal: Terminal) -> None:
    terminal.runners.error_at_start = ChildProcessError("not born in time")
    terminal.runners.place(P1, Life.ENDED, ending=exited(3))

    answer = await terminal.run()

    assert (told(answer)["status"], told(answer)["exit_code"]) == ("exited", 3)


async def test_a_start_that_a_person_voided_is_told(terminal: Terminal) -> None:
    terminal.runners.is_voided_at_start = True

    answer = await terminal.run()

    assert told(answer)["status"] == "failed_start"
    assert told(answer)["reason"] == "it was never started"
    assert not answer.is_unknown
    assert terminal.row().state is ProcessState.LOST


async def test_without_a_valid_claim_nothing_is_started(terminal: Terminal) -> None:
    terminal.processes.is_fenced = True

    with pytest.raises(Fenced):
        await terminal.run()

    assert terminal.runners.starts == []


async def test_a_long_output_is_shown_by_its_head_and_tail(terminal: Terminal) -> None:
    terminal.runners.head_max, terminal.runners.tail_max = 50_000, 60_000
    terminal.runners.ends_at_start = exited()
    await terminal.run()
    terminal.runners.commands[P1].log = b"begin\n" + b"x" * 99 + b"\n" * 1_000_000 + b"end\n"

    answer = await terminal.resume()

    output = told(answer)["output"]
    assert output.startswith("begin\n")
    assert output.endswith("\nend\n")
    assert "left out" in output
    assert len(output) <= 30_000


@pytest.mark.parametrize("size", [0, 1, 99_999, 100_000, 100_001, 199_999, 200_000, 200_001])
async def test_of_the_log_nothing_is_shown_twice_or_silently_left_out(
    terminal: Terminal, size: int
) -> None:
    terminal.runners.ends_at_start = exited()
    await terminal.run()
    log = "".join(f"{number:09}\n" for number in range(size // 10 + 1))[:size]
    terminal.runners.commands[P1].log = log.encode()

    shown = await output_of(terminal.runners, P1, 10**9)

    if size <= 200_000:
        assert shown == log
    else:
        head, _, rest = shown.partition("\n… ")
        missing, _, tail = rest.partition(" bytes left out …\n")
        assert log == head + log[len(head) : len(head) + int(missing)] + tail


async def test_an_output_that_cannot_be_read_does_not_hide_the_end(terminal: Terminal) -> None:
    terminal.runners.ends_at_start = exited()
    terminal.runners.error_at_log = OSError(5, "Input/output error")

    answer = await terminal.run()

    assert told(answer)["exit_code"] == 0
    assert "cannot be read" in told(answer)["output"]


# ── the background ──────────────────────────────────────────────────────────────────────────────


async def test_a_command_in_the_background_is_left_running(terminal: Terminal) -> None:
    answer = await terminal.run(background=True)

    assert told(answer)["status"] == "running"
    assert told(answer)["process_id"] == "p1"
    assert "nothing of it is reported" in told(answer)["note"]
    assert answer.exits_read == ()
    assert terminal.runners.waits == []
    row = terminal.row()
    assert (row.state, row.birth, row.is_foreground) == (ProcessState.RUNNING, BIRTH, False)
    spec = terminal.runners.commands[P1].spec
    assert spec is not None
    assert spec.takes_input


@pytest.mark.parametrize(
    "arguments, promised",
    [
        ({}, "nothing of it is reported to you, not even its end: look at it with `process`"),
        ({"notify_on_complete": True}, "its end"),
        ({"watch_patterns": ["ready"]}, "lines that match"),
        ({"check_every": 60}, "how it goes, every 60 s, its end"),
        ({"notify_on_complete": True, "watch_patterns": ["a"]}, "lines that match, its end"),
    ],
)
async def test_the_agent_is_told_what_it_will_hear(
    terminal: Terminal, arguments: dict[str, object], promised: str
) -> None:
    """S118, S122: nothing is promised twice, and who will hear nothing is warned."""
    answer = await terminal.run(background=True, **arguments)

    said = f"reported to you by itself: {promised}; you need not wait for it"
    assert told(answer)["note"] == (said if arguments else promised)
    kinds = [spec.kind for spec in terminal.processes.asked[P1]]
    assert len(kinds) == len(set(kinds)) == len(arguments)


async def test_a_command_in_the_background_that_ends_at_once_is_told(terminal: Terminal) -> None:
    terminal.runners.ends_at_start = exited(127)

    answer = await terminal.run(background=True)

    assert (told(answer)["status"], told(answer)["exit_code"]) == ("exited", 127)
    assert answer.exits_read == (P1,)


# ── after a crash ───────────────────────────────────────────────────────────────────────────────


async def test_killed_before_the_row_it_is_started_now(terminal: Terminal) -> None:
    terminal.runners.ends_at_start = exited()

    answer = await terminal.resume()

    assert told(answer)["status"] == "exited"
    assert terminal.runners.starts == [P1]


@pytest.mark.parametrize("has_files", [False, True])
async def test_killed_before_the_birth_it_is_started_once(
    terminal: Terminal, has_files: bool
) -> None:
    await terminal.begun()
    if has_files:
        terminal.runners.place(P1, Life.UNBORN)
    terminal.runners.ends_at_start = exited()

    answer = await terminal.resume()

    assert told(answer)["status"] == "exited"
    assert terminal.runners.starts == [P1]
    assert len(terminal.processes.rows) == 1


async def test_a_command_that_a_person_wants_ended_is_not_started_after_a_crash(
    terminal: Terminal,
) -> None:
    await terminal.begun()
    await terminal.processes.ask_end(P1)

    answer = await terminal.resume()

    assert terminal.runners.starts == []
    assert told(answer)["reason"] == "it was never started"
    assert not answer.is_unknown


async def test_still_running_it_is_waited_for_and_not_started_again(terminal: Terminal) -> None:
    await terminal.begun()
    terminal.runners.place(P1, Life.ALIVE)
    answers: list[ToolAnswer] = []

    async def resume() -> None:
        answers.append(await terminal.resume())

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(resume)
        await ending_soon(terminal, exited(), b"line 1\nline 2\n")

    assert told(answers[0])["output"] == "line 1\nline 2\n"
    assert terminal.runners.starts == []


async def test_what_ended_while_the_gateway_was_down_is_told_as_it_was(terminal: Terminal) -> None:
    await terminal.begun()
    terminal.runners.place(P1, Life.ENDED, ending=exited(7), log=b"the real output\n")

    answer = await terminal.resume()

    assert told(answer) == {
        "status": "exited",
        "process_id": "p1",
        "exit_code": 7,
        "output": "the real output\n",
    }
    assert answer.exits_read == (P1,)
    assert terminal.runners.starts == []
    assert terminal.row().state is ProcessState.EXITED


@pytest.mark.parametrize(
    "is_other_boot,words",
    [(False, "killed together with its runner"), (True, "the machine was restarted while it ran")],
)
async def test_what_was_lost_is_unknown_and_is_not_started_again(
    terminal: Terminal, is_other_boot: bool, words: str
) -> None:
    await terminal.begun()
    terminal.runners.place(P1, Life.LOST, is_other_boot=is_other_boot, log=b"so far\n")

    answer = await terminal.resume()

    assert told(answer)["status"] == "lost"
    assert words in told(answer)["reason"]
    assert told(answer)["output"] == "so far\n"
    assert answer.is_unknown
    assert answer.exits_read == (P1,)
    assert terminal.runners.starts == []
    assert terminal.row().state is ProcessState.LOST
    assert words in (terminal.row().reason or "")


@pytest.mark.parametrize("background", [False, True])
async def test_what_ran_and_has_no_folder_is_lost_and_is_not_started_again(
    terminal: Terminal, background: bool
) -> None:
    """Issue 14, 2: its row says that it ran, so files that are not there say nothing about that."""
    await terminal.begun(background=background)
    await terminal.processes.born(P1, BIRTH)

    answer = await terminal.resume(background=background)

    assert terminal.runners.starts == []
    assert told(answer)["status"] == "lost"
    assert answer.is_unknown
    assert terminal.row().state is ProcessState.LOST
    assert terminal.row().reason == "its files are gone; how far it got is unknown"


async def test_one_in_the_background_gets_its_birth_stored_and_runs_on(terminal: Terminal) -> None:
    """Killed between the birth and its row: without it the process would be unsupervised."""
    await terminal.begun(background=True)
    terminal.runners.place(P1, Life.ALIVE)

    answer = await terminal.resume(background=True)

    assert told(answer)["status"] == "running"
    assert terminal.row().birth == BIRTH
    assert terminal.runners.starts == []


async def test_a_second_crash_changes_nothing(terminal: Terminal) -> None:
    await terminal.begun()
    terminal.runners.place(P1, Life.ENDED, ending=exited(7), log=b"once\n")

    first = await terminal.resume()
    second = await terminal.resume()

    assert first == second
    assert terminal.runners.starts == []


@pytest.mark.parametrize(
    "state,reason,is_unknown",
    [
        (ProcessState.EXITED, "it exited with code 7", False),
        (ProcessState.LOST, "it was killed together with its runner", True),
        (ProcessState.LOST, "it was never started", False),
    ],
)
async def test_what_has_ended_is_not_started_when_its_files_are_gone(
    terminal: Terminal, state: ProcessState, reason: str, is_unknown: bool
) -> None:
    await terminal.begun()
    await terminal.processes.ended(P1, state, exit_code=7, reason=reason, ended_ms=NOW_MS)

    answer = await terminal.resume()

    assert told(answer)["status"] == state
    assert told(answer)["reason"] == reason
    assert told(answer)["note"] == "its output is no longer kept"
    assert answer.is_unknown is is_unknown
    assert answer.exits_read == (P1,)
    assert terminal.runners.starts == []


async def test_each_call_has_a_process_of_its_own(terminal: Terminal) -> None:
    await terminal.begun()
    terminal.runners.place(P1, Life.ALIVE)
    terminal.runners.ends_at_start = exited()
    other = ToolContext(claim=CONTEXT.claim, call_id=CallId("5.1"), route=CONTEXT.route)

    answer = await terminal.tool.resume('{"command": "ls"}', other)

    assert told(answer)["process_id"] == "p2"
    assert terminal.runners.starts == [ProcessId(2)]


# ── before it runs ──────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "approval,command,need",
    [
        ("never", "rm -rf build", Need.NOBODY),
        ("dangerous", "rm -rf build", Need.APPROVAL),
        ("dangerous", "ls", Need.NOBODY),
        ("always", "ls", Need.APPROVAL),
    ],
)
def test_whom_a_command_waits_for(approval: str, command: str, need: Need) -> None:
    tool = Terminal(approval).tool

    assert tool.need_of(json.dumps({"command": command})) is need
    assert tool.effect_of(json.dumps({"command": command})) is Effect.RESUMABLE


def test_the_question_shows_exactly_what_will_run(terminal: Terminal) -> None:
    arguments = {"command": "rm -rf build\n  && make", "workdir": "sub", "background": True}

    question, choices = terminal.tool.question_of(json.dumps(arguments))

    assert question == (
        "May I run this in the background in /srv/agent/sub? It deletes a tree.\n\n"
        "rm -rf build\n  && make"
    )
    assert [choice.choice_id for choice in choices] == ["yes", "no"]


def test_nothing_in_the_question_hides(terminal: Terminal) -> None:
    arguments = {"command": "echo \u202ehs.x\u202c | sh\r\x1b[2K ls", "workdir": "/tmp/\u200bx"}

    question, _ = terminal.tool.question_of(json.dumps(arguments))

    assert "in /tmp/\\u200bx?" in question
    assert "echo \\u202ehs.x\\u202c | sh\\u000d\\u001b[2K ls" in question


def test_a_very_long_command_is_shown_whole(terminal: Terminal) -> None:
    """Issue 15, V2: the middle of it was left out."""
    command = "rm -rf " + "x " * 20_000

    question, _ = terminal.tool.question_of(json.dumps({"command": command}))

    assert question.endswith(command)


@pytest.mark.parametrize(
    "arguments,complaint",
    [
        ({}, "`command` is missing"),
        ({"command": " \n"}, "`command` is blank"),
        ({"command": "a\0b"}, "cannot hold a NUL"),
        ({"command": "x" * 64_001}, "`command`"),
        ({"command": "𝐱" * 32_001}, "more than 128000 bytes"),
        ({"command": "ls", "outside": True}, "`reason` is missing"),
        ({"command": "ls", "timeout": 0}, "`timeout`"),
        ({"command": "ls", "shell": "zsh"}, "`shell` is not an argument"),
        ({"command": "ls", "workdir": "sub", "background": True, "timeout": 3.5}, None),
        ({"command": "ls", "notify_on_complete": True}, "are for `background`"),
        ({"command": "ls", "watch_patterns": ["a"]}, "are for `background`"),
        ({"command": "ls", "check_every": 60}, "are for `background`"),
        ({"command": "ls", "background": True, "check_every": 14}, "`check_every`"),
        ({"command": "ls", "background": True, "watch_patterns": [""]}, "`watch_patterns"),
        ({"command": "ls", "background": True, "watch_patterns": ["a\nb"]}, "one line"),
        ({"command": "ls", "background": True, "watch_patterns": ["(?=a)"]}, "look-around"),
        ({"command": "ls", "background": True, "watch_patterns": ["a"] * 11}, "`watch_patterns`"),
        ({"command": "ls", "background": True, "watch_patterns": ["[", "a|b"]}, None),
    ],
)
def test_a_complaint_names_the_argument(
    terminal: Terminal, arguments: dict[str, object], complaint: str | None
) -> None:
    found = terminal.tool.complaint_about(json.dumps(arguments))

    assert found is None if complaint is None else complaint in (found or "")


async def test_a_command_too_many_in_the_background_is_not_started() -> None:
    """Issue 12, B16: the model is told that it did not run, and what helps."""
    terminal = Terminal()
    for number in range(16):
        context = replace(CONTEXT, call_id=CallId(f"9.{number}"))
        await terminal.tool.run('{"command": "serve", "background": true}', context)
    with pytest.raises(ToolFailed) as failed:
        await terminal.run(background=True)

    words = str(failed.value)
    assert words.startswith("it was not started: 16 commands run in the background already")
    assert "`process` with `list`" in words
    assert "`kill`" in words
    assert len(terminal.runners.starts) == 16
