"""`/jobs`: what a person sees of background processes, and what it does."""

from dataclasses import replace

import pytest

from koboshi.commands.jobs import LISTED_MAX, LOG_CHARS_MAX, USAGE, asks_for_log
from koboshi.commands.parse import parse_command
from koboshi.commands.run import respond
from koboshi.domain.command import JobGlance, Response, SessionFacts
from koboshi.domain.ids import ProcessId
from koboshi.domain.process import ProcessState
from tests.harness.session_facts import IDLE, MINUTE_MS, NOW_MS

RUNNING = JobGlance(
    process_id=ProcessId(3),
    command="make  all",
    state=ProcessState.RUNNING,
    started_ms=NOW_MS - 2 * MINUTE_MS,
)
FAILED = replace(
    RUNNING,
    process_id=ProcessId(2),
    state=ProcessState.EXITED,
    ended_ms=NOW_MS - MINUTE_MS,
    exit_code=3,
)
LOST = replace(FAILED, process_id=ProcessId(1), state=ProcessState.LOST, exit_code=None)
FACTS = replace(IDLE, jobs=(RUNNING, FAILED, LOST))


def said(text: str, facts: SessionFacts = FACTS, output: str = "") -> Response:
    command = parse_command(text)
    assert command is not None
    named = {job.process_id: job for job in facts.jobs}
    job = named.get(command.process_id) if command.process_id is not None else None
    return respond(replace(command, output=output), replace(facts, named_job=job))


@pytest.mark.parametrize("text", ["/jobs", "/jobs list", "/JOBS LIST"])
def test_the_running_ones_and_those_that_ended_are_listed(text: str) -> None:
    """S109: with how they stand, and for how long."""
    response = said(text)

    assert response.reply.splitlines() == [
        "p3 make all: running for 2 min.",
        "p2 make all: exited with code 3 1 min ago, after 1 min.",
        "p1 make all: lost 1 min ago, after 1 min.",
    ]
    assert (response.cut, response.end_process) == (None, None)


def test_no_processes_are_said_to_be_none() -> None:
    assert said("/jobs", IDLE).reply == "There are no background processes in this chat."


def test_the_list_has_an_end() -> None:
    many = replace(IDLE, jobs=(RUNNING,) * (LISTED_MAX + 5))

    assert len(said("/jobs", many).reply.splitlines()) == LISTED_MAX


@pytest.mark.parametrize("text", ["/jobs log p3", "/jobs log 3", "/jobs LOG P3", "/jobs log «p3»"])
def test_the_output_of_one_is_shown(text: str) -> None:
    response = said(text, output="one\ntwo\n")

    assert response.reply == "p3 make all: running for 2 min.\none\ntwo"
    assert response.end_process is None


def test_of_a_long_output_the_end_is_shown() -> None:
    """S120."""
    reply = said("/jobs log p3", output="\n".join(f"line {n}" for n in range(5_000))).reply

    assert len(reply) < LOG_CHARS_MAX + 200
    assert reply.splitlines()[1] == "…"
    assert reply.endswith("line 4999")


def test_no_output_is_said_to_be_none() -> None:
    assert said("/jobs log p3").reply.endswith("(no output)")


def test_one_that_runs_is_ended() -> None:
    response = said("/jobs kill p3")

    assert response == Response(reply="I am ending p3 make all.", end_process=ProcessId(3))


def test_one_that_has_ended_is_left_alone() -> None:
    response = said("/jobs kill p2")

    assert response.end_process is None
    assert response.reply.startswith("It has ended already. p2 make all: exited with code 3")


def test_what_may_be_left_of_a_lost_one_is_ended() -> None:
    """Issue 13, A1: its end was not seen, so it is not reported as ended."""
    response = said("/jobs kill p1")

    assert response.end_process == LOST.process_id
    assert response.reply.startswith("p1 make all: lost 1 min ago, after 1 min. Its end was not")
    assert response.reply.endswith("I am ending what is left of it.")
    assert "ended already" not in response.reply


@pytest.mark.parametrize("text", ["/jobs log p9", "/jobs kill p9", "/jobs kill", "/jobs log t3"])
def test_one_of_another_chat_is_not_there(text: str) -> None:
    """S110."""
    response = said(text)

    assert response.end_process is None
    assert "There is no such process in this chat." in response.reply
    assert response.reply.endswith(USAGE)


@pytest.mark.parametrize("text", ["/jobs restart p3", "/jobs p3"])
def test_what_it_does_not_know_it_says(text: str) -> None:
    response = said(text)

    assert response.reply.endswith(USAGE)
    assert response.end_process is None


@pytest.mark.parametrize(
    "text, expected",
    [("/jobs log p3", True), ("/jobs", False), ("/jobs kill p3", False), ("/jobs log", False)],
)
def test_output_is_read_only_for_a_caller_that_asks_for_it(text: str, expected: bool) -> None:
    command = parse_command(text)

    assert command is not None
    assert asks_for_log(command) is expected
