"""S171: the kernel kills because memory ran out. What died is told apart from what ended."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from koboshi.cli.ask_owner import ask_gateway
from tests.cli.process import KOBOSHI, Gateway, python, starting, until
from tests.harness.memory_group import memory_group

GROUP_BYTES = 300_000_000
FIRST_TO_DIE = "echo 1000 > /proc/self/oom_score_adj"
GREEDY = f"{FIRST_TO_DIE}; exec tail /dev/zero"


@pytest.fixture(scope="module")
def one(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    """A gateway that shares little memory with its commands."""
    home = tmp_path_factory.mktemp("memory") / "home"
    never = {"KOBOSHI__TOOLS__TERMINAL__APPROVAL": "never"}
    with (
        memory_group(GROUP_BYTES) as group,
        starting(home, command=group.within(KOBOSHI), **never) as one,
    ):
        one.wait_serving()
        yield one


@pytest.mark.parametrize(
    "command, state, words",
    [
        (GREEDY, "killed", "it was killed by signal 9: out of memory"),
        (
            f"({FIRST_TO_DIE}; tail /dev/zero); exit $?",
            "killed",
            "it exited with code 137: out of memory",
        ),
        ("kill -9 $$", "killed", "it was killed by signal 9"),
        ("exit 3", "exited", "it exited with code 3"),
    ],
    ids=["killed by the kernel", "a process of it was", "killed otherwise", "ended by itself"],
)
def test_how_a_command_ended_is_told_apart(
    one: Gateway, command: str, state: str, words: str
) -> None:
    told = wait_done(one, one.say("a", f"run {command}"))

    lines = [each for each in told["lines"] if each["subject"] == "process"]
    assert [(each["after"], each["reason"]) for each in lines[-1:]] == [(state, words)]
    assert one.process.poll() is None, "the gateway lives"


def test_the_end_of_a_background_command_says_so_once(one: Gateway) -> None:
    wait_done(one, one.say("b", f"in background {GREEDY}"))
    (listed,) = ask(one, ask="processes")["processes"]
    process = f"p{listed['process']['process_id']}"

    def reports() -> Any:
        return ask(one, ask="explain", what=process)["reports"]

    (report,) = until(reports, "its end is reported")
    assert "killed (it was killed by signal 9: out of memory)" in report["text"]


GREEDY_GATEWAY = """
import threading
from koboshi.cli.main import main

def grow():
    open({sign!r}).read()
    held = []
    while True:
        held.append(b"x" * 10_000_000)

threading.Thread(target=grow, daemon=True).start()
main()
"""


@pytest.mark.parametrize("is_greedy", [True, False], ids=["greedy", "killed otherwise"])
def test_a_gateway_that_lacked_memory_says_so_at_its_next_start(
    tmp_path: Path, is_greedy: bool
) -> None:
    sign = tmp_path / "grow"
    os.mkfifo(sign)
    greedy = python(GREEDY_GATEWAY.format(sign=str(sign)))
    with memory_group(GROUP_BYTES) as group:
        with starting(tmp_path / "home", command=group.within(*greedy)) as one:
            one.wait_serving()
            sign.write_text("now") if is_greedy else one.signal(signal.SIGKILL)
            assert one.wait_end() == -signal.SIGKILL
        with starting(tmp_path / "home", command=group.within(KOBOSHI)) as following:
            (report,) = until(lambda: following.events("boot_report"), "it reports")

    how = "was killed, probably because memory ran out;" if is_greedy else "was killed;"
    assert report["words"].startswith(f"Boot 1 {how}")


def wait_done(one: Gateway, message: str) -> Any:
    """What is told of the turn of a message, once that is done."""

    def look() -> Any:
        told = ask(one, ask="explain", what=message)
        return told if told["kind"] == "turn" and told["turn"]["state"] == "done" else None

    return until(look, f"{message} is done", otherwise=lambda: one.err)


def ask(one: Gateway, **request: str) -> Any:
    return ask_gateway(one.home, request)
