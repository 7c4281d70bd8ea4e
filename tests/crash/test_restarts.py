"""Restart after restart, asked for and not, at the worst moments: what goes on, and what not."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.client import HTTPException
from pathlib import Path

import pytest

from tests.cli.process import Gateway, gateway, starting, until
from tests.crash.stories import pauses, script
from tests.harness.invariants import DEATHS_MAX, check_rows
from tests.harness.jobs import UNTIL_GO
from tests.harness.moved_clock import Wall
from tests.harness.rows import Rows, read_rows
from tests.harness.seen import read_seen
from tests.harness.watched import AHEAD, ROOT, SEEN, watched_command

LONG = {"KOBOSHI__GATEWAY__DRAIN_SECONDS": "30"}
HOUR_S = 3_600


def runs(command: str) -> dict[str, object]:
    """The model runs a command and waits for it."""
    return {"calls": [{"tool": "terminal", "arguments": {"command": command}}]}


def said(home: Path) -> list[str]:
    return [row["text"] for row in read_rows(home).of("outbox", state="delivered")]


def wait_draining(one: Gateway) -> None:
    until(lambda: one.events("gateway_draining"), "it is draining", otherwise=lambda: one.err)


def wait_looked(one: Gateway) -> None:
    until(lambda: one.events("boot_report"), "it has looked around", otherwise=lambda: one.err)


def end(one: Gateway, how: str) -> None:
    if how == "killed":
        one.kill()
    else:
        assert one.stop() == 0


@contextmanager
def clocked(home: Path, wall: Wall, **more: str) -> Iterator[Gateway]:
    """A gateway whose clock can be moved."""
    more |= wall.environment | {"KOBOSHI__GATEWAY__WORKDIR": str(home.with_name("workdir"))}
    with starting(home, command=wall.command, **more) as one:
        one.wait_serving()
        yield one


@contextmanager
def watched(home: Path, folder: Path, **more: str) -> Iterator[Gateway]:
    """A gateway whose model writes down that it is asked, and whose clock can be moved."""
    more |= {"PYTHONPATH": str(ROOT)}
    with starting(home, command=watched_command(folder), **more) as one:
        one.wait_serving()
        yield one


@pytest.mark.parametrize("worked_s", [5, 6 * HOUR_S], ids=["five-seconds", "six-hours"])
def test_a_command_is_not_begun_again_when_the_drain_is_killed(home: Path, worked_s: int) -> None:
    """S4, S24, S50: one command for five seconds, or for six hours without a step in between; then
    SIGTERM, and SIGKILL inside the drain. It goes on once, and the command was started once."""
    wall, workdir = Wall(home.with_name("ahead")), home.with_name("workdir")
    command = f"echo begun >> begun; {UNTIL_GO}; echo came to its end"
    with clocked(home, wall, **LONG) as one:
        message = one.say("a", script(runs(command), {"text": "through"}))
        until((workdir / "begun").exists, "the command runs")
        wall.let_pass(seconds=worked_s)
        until(lambda: _beats_after(home, worked_s), "its last sign of life")
        one.signal(signal.SIGTERM)
        wait_draining(one)
        one.kill()
    left = read_rows(home)
    assert left.one("turns")["state"] == "running", "the kill came inside the drain"

    with clocked(home, wall) as one:
        until(lambda: read_rows(home).of("turns", state="running", worker_id=2), "it goes on")
        (workdir / "go").touch()
        one.wait_state(message, "done")
        one.stop()

    rows = read_rows(home)
    check_rows(rows)
    assert (workdir / "begun").read_text() == "begun\n"
    (resumed,) = rows.of("journal", event="resumed")
    assert resumed["rule"] == "fresh"
    assert len(rows.of("journal", event="claimed")) == 2
    (result,) = rows.of("steps", kind="result")
    assert "came to its end" in result["body"]
    assert said(home).count("through") == 1


def _beats_after(home: Path, worked_s: int) -> bool:
    rows = read_rows(home)
    worked_ms = rows.one("workers")["heartbeat_ms"] - rows.one("turns")["progressed_ms"]
    return bool(worked_ms >= worked_s * 1_000)


def test_of_two_turns_only_the_one_goes_on_that_had_not_ended_in_the_killed_drain(
    home: Path,
) -> None:
    """S24, S26: one comes to its answer inside the drain; then everything is killed."""
    workdir, folder = home.with_name("workdir"), home.with_name("seen")
    folder.mkdir()
    settings = LONG | {"KOBOSHI__GATEWAY__WORKDIR": str(workdir)}
    with watched(home, folder, **settings) as one:
        long = one.say("b", script(runs(UNTIL_GO), {"text": "long"}))
        until(lambda: read_rows(home).of("calls"), "the long one works")
        short = one.say("a", script({"sleep_ms": 1_500, "text": "short"}))
        # A step that was not begun is not begun in a drain: the model must have been asked.
        until(lambda: len(read_seen(folder / SEEN).asked) == 2, "both work")
        one.signal(signal.SIGTERM)
        until(lambda: "short" in said(home), "one ends in the drain")
        one.kill()
    assert read_rows(home).turns[0]["state"] == "running"

    with gateway(home, **settings) as one:
        (workdir / "go").touch()
        one.wait_state(long, "done")
        assert one.wait_state(short, "done")["turn"]["recoveries"] == 0
        one.stop()

    rows = read_rows(home)
    check_rows(rows)
    resumed = [line["session_id"] for line in rows.of("journal", event="resumed")]
    assert resumed == [rows.session("b")]
    assert (said(home).count("short"), said(home).count("long")) == (1, 1)


def test_a_finished_conversation_is_left_alone_by_ten_restarts(home: Path) -> None:
    """S5, S6, S17, S22, S54: killed and stopped in turn; the model is not asked once, and no one
    hears a word."""
    with gateway(home) as one:
        one.wait_state(one.say("a", "echo hello"), "done")
        one.kill()
    before = read_rows(home)
    for number in range(10):
        with gateway(home) as one:
            wait_looked(one)
            end(one, ("stopped", "killed")[number % 2])

    rows = read_rows(home)
    assert _conversation(rows) == _conversation(before)
    assert len(rows.of("journal", event="claimed")) == 1, "no claim, no model"
    ends = [worker["ended_how"] for worker in rows.workers]
    assert ends == ["killed", *["stopped", "killed"] * 4, "stopped", None]


def _conversation(rows: Rows) -> object:
    return rows.sessions, rows.turns, rows.inbox, rows.steps, rows.calls, rows.outbox


def test_what_was_stopped_stays_stopped_whatever_is_killed(home: Path) -> None:
    """S13, S83: the reply to `/stop` was not even sent when the gateway died. It is said once, and
    nothing goes on."""
    with gateway(home, KOBOSHI_CRASH_AT="outbox.claim:before:1") as one:
        one.say("a", script(pauses(50), {"text": "never"}))
        until(lambda: read_rows(home).of("calls"), "it works")
        with suppress(OSError, HTTPException):
            one.say("a", "/stop")  # stored, and perhaps not acknowledged
        one.wait_end()
    for how in ("killed", "stopped"):
        with gateway(home) as one:
            wait_looked(one)
            until(lambda: len(said(home)) == 1, "the reply")
            end(one, how)

    rows = read_rows(home)
    check_rows(rows)
    assert rows.one("turns")["event"] == "cut"
    assert len(rows.of("journal", event="claimed")) == 1
    (reply,) = said(home)
    assert reply.startswith("Stopped: ")


def test_twenty_kills_inside_a_resumed_turn_are_bounded_and_told_once(home: Path) -> None:
    """S71, S72: each boot is killed while the model thinks about the turn, so that nothing is ever
    stored of it. After the third death nothing is tried any more, the person is told once, and is
    served as ever."""
    folder = home.with_name("seen")
    folder.mkdir()
    wall, message = Wall(folder / AHEAD), ""
    for boot in range(1, 22):
        with watched(home, folder) as one:
            if boot == 1:
                message = one.say("a", script({"sleep_ms": 60_000, "text": "never"}))
            wait_tried(home, folder, boot)
            one.kill()
        wall.move(seconds=31)  # so that no caller waits for the pause between two tries

    with watched(home, folder) as one:
        assert one.explained(message)["turn"]["state"] == "failed"
        one.wait_state(one.say("a", "echo still here"), "done")
        one.stop()
    rows = read_rows(home)
    check_rows(rows)
    assert len(rows.of("journal", event="claimed")) == 3 + 1
    assert times_asked(folder) == 3 + 1
    apology, answer = said(home)
    assert "have given it up" in apology
    assert answer == "still here"


def wait_tried(home: Path, folder: Path, boot: int) -> None:
    """Until the model is asked for the turn in this boot, or the person was told of its end."""
    if boot <= DEATHS_MAX:
        until(lambda: times_asked(folder) == boot, "the model thinks")
    else:
        until(lambda: read_rows(home).of("outbox", state="delivered"), "it is given up")


def times_asked(folder: Path) -> int:
    return sum(len(each) for each in read_seen(folder / SEEN).asked.values())
