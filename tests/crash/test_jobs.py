"""Background processes of a real gateway that is killed, stopped and started again."""

import os
import signal
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeAlias

import pytest

from tests.crash.stories import CHAT, script
from tests.harness.holds import MODEL
from tests.harness.invariants import check_rows
from tests.harness.jobs import UNTIL_GO, Scene, process, results, saying, scene, terminal
from tests.harness.polling import until
from tests.harness.rows import glance

TOPIC = "topic"
LINES = 500
JOB = f"{UNTIL_GO}; seq 1 {LINES}; exit 3"

Interruption: TypeAlias = Callable[[Scene], Awaitable[None]]


async def ends_after_the_restart(place: Scene) -> None:
    place.gateway.kill()
    await place.restarts()
    place.touch()


async def ends_while_no_gateway_runs(place: Scene) -> None:
    place.gateway.kill()
    place.touch()
    await place.ends()
    await place.restarts()


async def ends_after_a_polite_stop(place: Scene) -> None:
    await place.stops()
    place.touch()
    await place.ends()
    await place.restarts()


async def ends_after_two_restarts(place: Scene) -> None:
    place.gateway.kill()
    await place.restarts()
    place.gateway.kill()
    await place.restarts()
    place.touch()


INTERRUPTIONS: dict[str, Interruption] = {
    "after": ends_after_the_restart,
    "while-down": ends_while_no_gateway_runs,
    "stopped": ends_after_a_polite_stop,
    "twice": ends_after_two_restarts,
}


@pytest.mark.parametrize("way", INTERRUPTIONS)
async def test_a_job_that_outlives_the_gateway_is_told_once_by_the_agent_in_its_topic(
    home: Path, way: str
) -> None:
    """S112, S124, S129, S132, S133, S134, S136: right thread, right exit code, full output, one
    turn."""
    async with scene(home) as place:
        person, other = place.person(CHAT), place.person("other")
        await place.says(CHAT, f"in background {JOB}", thread=TOPIC)
        await place.says("other", "echo hello")
        await person.hears("It runs in the background as p1.")
        await other.hears("hello")
        await INTERRUPTIONS[way](place)
        told = await person.hears("exited with code 3")
        assert (told.kind, told.fields["thread"]) == ("answer", TOPIC)
        assert place.log() == [str(number) for number in range(1, LINES + 1)]
        await place.says(CHAT, script(process("poll"), {"text": "looked"}), thread=TOPIC)
        await person.hears("looked")
        assert results(person)[-1]["exit_code"] == 3
        assert results(person)[-1]["recovered"] is True
        await place.says(CHAT, "echo last", thread=TOPIC)
        await person.hears("last")
        assert len(saying(person, "exited with code 3")) == 1
        assert other.heard() == ["hello"]
        rows = place.rows()

    check_rows(rows)
    assert len(rows.of("turns", session_id=rows.session(CHAT, TOPIC))) == 4
    (report,) = rows.of("inbox", kind="report")
    assert report["state"] == "attached"


@pytest.mark.parametrize("way", ["after", "while-down"])
async def test_a_job_that_no_one_asked_about_is_told_to_the_person_once(
    home: Path, way: str
) -> None:
    """S21, S119, S122, S124, S134: a notice in its topic, with the exit code and the last of the
    output, and no turn: no conversation was interrupted. The agent was warned that it would hear
    nothing."""
    async with scene(home) as place:
        person = place.person(CHAT)
        await place.says(CHAT, script(terminal(JOB), {"text": "left"}), thread=TOPIC)
        await person.hears("left")
        assert "nothing of it is reported to you" in results(person)[0]["note"]
        await INTERRUPTIONS[way](place)
        told = await person.hears("exited with code 3")
        assert (told.kind, told.fields["thread"]) == ("notice", TOPIC)
        assert told.fields["text"].endswith(f"\n{LINES}")
        rows = place.rows()

    check_rows(rows)
    assert not rows.of("journal", event="resumed")
    assert len(rows.turns) == 1


async def test_a_job_is_not_harmed_when_no_reader_takes_its_output(home: Path) -> None:
    """S104, S129: it prints on while the gateway is dead, and nothing of it is missing."""
    command = (
        "i=0; until [ -e go ]; do i=$((i+1)); echo line $i; echo $i > at; read -t 0.002 x; done; "
        "echo total $i"
    )
    async with scene(home) as place:
        person = place.person(CHAT)
        await place.says(CHAT, f"in background {command}")
        await person.hears("It runs in the background")
        place.gateway.kill()
        before = _number(place)
        await until(lambda: _number(place) > before + 300, "it prints on")
        await place.restarts()
        place.touch()
        await person.hears("exited with code 0")
        lines = place.log()

    count = int(lines[-1].removeprefix("total "))
    assert count > before + 300
    assert lines[:-1] == [f"line {number}" for number in range(1, count + 1)]


def _number(place: Scene) -> int:
    """How far it has printed. The file is not there before the first line, and is empty while it
    is written anew."""
    file = place.gateway.workdir / "at"
    return int((file.exists() and file.read_text(encoding="ascii").strip()) or 0)


async def test_a_job_killed_by_the_agent_is_silent(home: Path) -> None:
    """S108, S115: neither a turn nor a notice, also in the next life."""
    async with scene(home) as place:
        person = place.person(CHAT)
        start = terminal("sleep 600", notify_on_complete=True, check_every=15)
        await place.says(CHAT, script(start, process("kill"), {"text": "it is over"}))
        await person.hears("it is over")
        assert results(person)[-1]["status"] == "killed"
        place.gateway.kill()
        await place.restarts()
        await place.says(CHAT, "echo last")
        await person.hears("last")
        assert person.heard() == ["it is over", "last"]
        rows = place.rows()

    check_rows(rows)
    assert len(rows.turns) == 2
    assert rows.of("inbox", kind="report") == []


async def test_a_job_killed_by_the_person_is_silent_and_one_by_its_time_limit_is_not(
    home: Path,
) -> None:
    """S115, S116."""
    async with scene(home) as place:
        person = place.person(CHAT)
        await place.says(CHAT, script(terminal("sleep 600"), {"text": "one"}))
        await person.hears("one")
        await place.says(CHAT, "/jobs")
        await person.hears("p1 sleep 600: running for")
        await place.says(CHAT, "/jobs kill p1")
        await person.hears("I am ending p1 sleep 600.")
        await place.settles(1, "killed")
        await place.says(CHAT, script(terminal("sleep 600", timeout=0.5), {"text": "two"}))
        told = await person.hears("it ran longer than its time limit")
        assert "p2" in told.fields["text"]
        rows = place.rows()

    assert len(saying(person, "Background process")) == 1
    assert len(rows.of("inbox", kind="report")) == 1


async def test_a_stop_names_what_keeps_running_and_a_stop_of_all_ends_it(home: Path) -> None:
    """S85: /stop leaves background processes, and says so."""
    async with scene(home) as place:
        person = place.person(CHAT)
        await place.says(CHAT, script(terminal("sleep 600"), {"text": "left"}))
        await person.hears("left")
        await place.says(CHAT, "/stop")
        await person.hears("p1 sleep 600")
        await place.says(CHAT, "/stop all")
        await place.settles(1, "killed")
        await place.says(CHAT, "/jobs")
        await person.hears("p1 sleep 600: killed")
        assert saying(person, "Background process") == []


async def test_a_match_within_the_turn_that_then_ends_opens_no_turn(home: Path) -> None:
    """S117: it was seen while the turn worked; the phantom turn of the report never comes."""
    start = terminal(f"echo it is ready; {UNTIL_GO}", watch_patterns=["ready"])
    async with scene(home) as place:
        person = place.person(CHAT)
        with place.hold(MODEL) as thinks:
            await place.says(CHAT, script(start, {"text": "answered"}))
            thinks.let()
            await place.comes_to(thinks, times=2)
            await person.sees(lambda event: event.fields.get("state") == "report", "it is filed")
        await person.hears("answered")
        place.gateway.kill()
        await place.restarts()
        await place.says(CHAT, "echo last")
        await person.hears("last")
        told = place.cli("explain", "p1").out
        place.touch()
        await person.hears("exited with code 0")
        rows = place.rows()

    check_rows(rows)
    assert len(rows.turns) == 2
    assert [row["reason"] for row in rows.of("inbox", kind="report")] == ["turn-ended", None]
    assert "turn-ended" in told


async def test_a_match_after_a_cut_is_dropped_and_one_can_ask_why(home: Path) -> None:
    """S127: after /new nothing of the old conversation becomes an instruction in the new one."""
    start = terminal(f"{UNTIL_GO}; echo it is ready; sleep 600", watch_patterns=["ready"])
    async with scene(home) as place:
        person = place.person(CHAT)
        await place.says(CHAT, script(start, {"text": "left"}))
        await person.hears("left")
        await place.says(CHAT, "/new")
        await person.sees(lambda event: event.kind == "notice", "a new beginning")
        place.touch()
        await person.sees(lambda event: event.fields.get("reason") == "cut", "it is dropped")
        told = place.cli("explain", "p1").out
        await place.says(CHAT, "/jobs kill p1")
        await place.settles(1, "killed")
        rows = place.rows()

    assert len(rows.turns) == 1
    assert "(cut)" in told


async def test_a_match_split_by_the_death_of_the_gateway_is_found_once(home: Path) -> None:
    """S130, S139: half of the line was printed in one life, the rest in none, and it is found in
    the next one."""
    command = f"printf 'it is rea'; {UNTIL_GO}; echo dy; until [ -e end ]; do sleep 0.05; done"
    start = terminal(command, watch_patterns=["it is ready"])
    async with scene(home) as place:
        person = place.person(CHAT)
        await place.says(CHAT, script(start, {"text": "left"}))
        await person.hears("left")
        place.gateway.kill()
        place.touch()
        await until(lambda: b"ready\n" in _output(place), "the line is complete")
        await place.restarts()
        found = await person.hears("it is ready")
        place.gateway.kill()
        await place.restarts()
        place.touch("end")
        await person.hears("exited with code 0")
        rows = place.rows()

    check_rows(rows)
    assert found.kind == "answer"
    assert len(rows.of("inbox", kind="report")) == 2
    assert len(rows.turns) == 2


def _output(place: Scene) -> bytes:
    folder = place.gateway.home / "processes" / "1"
    return b"".join(path.read_bytes() for path in sorted(folder.iterdir()) if path.is_file())


async def test_a_job_whose_runner_was_killed_is_lost_and_said_so_once(home: Path) -> None:
    """S105, S134, S137: it is unknown how far it got, and that is not made up."""
    async with scene(home) as place:
        person = place.person(CHAT)
        await place.says(CHAT, f"in background {UNTIL_GO}")
        await person.hears("It runs in the background")
        pid = place.cli("explain", "p1", "--json").document["process"]["birth"]["pid"]
        place.gateway.kill()
        os.kill(pid, signal.SIGKILL)
        place.touch()
        await place.restarts()
        told = await person.hears("lost")
        assert "how far it got is unknown" in told.fields["text"]
        await place.settles(1, "lost")
        place.gateway.kill()
        await place.restarts()
        await place.says(CHAT, "echo last")
        await person.hears("last")

    assert len(saying(person, "lost")) == 1


async def test_a_wait_ends_when_the_person_writes(home: Path) -> None:
    """S107: it never blocks the one who writes, and the job is not harmed."""
    start = terminal(UNTIL_GO, notify_on_complete=True)
    async with scene(home) as place:
        person = place.person(CHAT)
        await place.says(CHAT, script(start, process("wait", timeout=120), {"text": "came back"}))
        await until(lambda: _is_started(place, "process"), "it waits")
        await place.says(CHAT, "echo hello")
        await person.hears("hello")
        assert results(person)[-1]["status"] == "interrupted"
        place.touch()
        await person.hears("exited with code 0")


def _is_started(place: Scene, tool: str) -> bool:
    calls = glance(place.gateway.home).of("calls", tool=tool)
    return any(call["started_ms"] is not None for call in calls)
