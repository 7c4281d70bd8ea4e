"""Source 000: a background process outlived the gateway, and what was said about it afterwards had
lost its platform, chat and thread, or was never said."""

import json
from pathlib import Path

import pytest

from koboshi.domain.watch import WatcherKind
from tests.crash.stories import CHAT, script
from tests.harness.jobs import UNTIL_GO, process, results, saying, scene, terminal
from tests.harness.polling import until
from tests.harness.rows import Row, read_rows

TOPIC = "topic"

pytestmark = pytest.mark.crash


def where(row: Row, sessions: list[Row]) -> tuple[str, str, str]:
    (session,) = [each for each in sessions if each["session_id"] == row["session_id"]]
    return session["channel"], session["chat"], session["thread"]


async def test_what_a_watcher_needs_is_on_the_disk_when_the_call_returns(tmp_path: Path) -> None:
    """S123, S128: killed in the moment that the model is told of the process: platform, chat,
    thread, interval, person, generation, patterns and the wish to be told are there. There
    is no half of it: one transaction stores them before anything runs."""
    home = tmp_path / "home"
    start = terminal(
        UNTIL_GO, notify_on_complete=True, watch_patterns=["ready", "port [0-9]+"], check_every=30
    )
    async with scene(home) as place:
        person = place.person(CHAT)
        await place.says(CHAT, script(start, {"text": "never", "sleep_ms": 60_000}), thread=TOPIC)
        await until(lambda: results(person), "the call returns")
        rows = place.rows()
        place.touch()
        await place.ends()

    (stored,) = rows.processes
    assert where(stored, rows.sessions) == ("web:main", CHAT, TOPIC)
    assert stored["generation"] == rows.sessions[0]["generation"]
    (turn,) = rows.of("turns", turn_id=stored["turn_id"])
    assert turn["person"] == "web"
    asked = {watcher["kind"]: watcher["argument"] for watcher in rows.watchers}
    assert asked == {
        WatcherKind.EXIT: "",
        WatcherKind.MATCH: "ready\nport [0-9]+",
        WatcherKind.EVERY: "30",
    }
    assert {watcher["state"] for watcher in rows.watchers} == {"armed"}


async def test_notifications_arrive_in_the_thread_after_a_restart(tmp_path: Path) -> None:
    """S124, S129, S132, S133: not in the chat that is in the foreground, not in another thread, and
    while no client is connected they wait."""
    async with scene(tmp_path / "home") as place:
        person = place.person(CHAT)
        await place.says(CHAT, f"in background {UNTIL_GO}; exit 3", thread=TOPIC)
        await person.hears("It runs in the background")
        place.gateway.kill()
        place.touch()
        await place.ends()
        await place.restarts()
        await place.says(CHAT, "echo hello", thread="another")
        await place.says(CHAT, "echo hello too")
        told = await person.hears("exited with code 3")
        await person.hears("hello too")

    assert told.fields["thread"] == TOPIC
    assert len(saying(person, "exited with code 3")) == 1


@pytest.mark.parametrize("has_watcher", [True, False])
async def test_only_a_process_with_a_watcher_is_watched_after_the_boot(
    tmp_path: Path, has_watcher: bool
) -> None:
    """S130, S131: an interval is armed again with all that it had seen; without one there is
    nothing to arm, and the process is adopted all the same."""
    options: dict[str, object] = {"check_every": 15} if has_watcher else {}
    async with scene(tmp_path / "home") as place:
        person = place.person(CHAT)
        await place.says(CHAT, script(terminal(UNTIL_GO, **options), {"text": "left"}))
        await person.hears("left")
        place.gateway.kill()
        await place.restarts()
        told = place.cli("processes", "list", "--json").document
        (view,) = told["processes"]
        assert view["process"]["state"] == "running"
        armed = [watcher["kind"] for watcher in view["watchers"] if watcher["state"] == "armed"]
        assert armed == (["every"] if has_watcher else [])
        place.touch()
        ended = await person.hears("exited with code 0")
        assert ended.kind == ("answer" if has_watcher else "notice")


async def test_one_that_started_before_any_number_of_restarts_answers_everything(
    tmp_path: Path,
) -> None:
    """S105, S106, S107, S108, S109, S129, S136: list, poll, log, wait, write and kill under its old
    id, twice adopted."""
    home = tmp_path / "home"
    listing: dict[str, object] = {"calls": [{"tool": "process", "arguments": {"action": "list"}}]}
    items: list[dict[str, object]] = [
        listing,
        process("poll"),
        process("write", text="spoken\n"),
        process("wait", timeout=0.5),
        process("log", offset=0, limit=1),
        process("kill"),
        process("kill"),
        {"text": "asked it all"},
    ]
    async with scene(home) as place:
        person = place.person(CHAT)
        command = "echo first; read line; echo heard $line; sleep 600"
        await place.says(CHAT, f"in background {command}")
        await person.hears("It runs in the background")
        for _ in range(2):
            place.gateway.kill()
            await place.restarts()
        await place.says(CHAT, script(*items))
        await person.hears("asked it all")
        assert place.log() == ["first", "heard spoken"]

    _, listed, polled, written, waited, log, killed, again = results(person)
    (row,) = listed["processes"]
    assert (row["process_id"], row["status"], row["recovered"]) == ("p1", "running", True)
    assert row["reports_to_you"] == ["exit"]
    assert (polled["status"], polled["output"]) == ("running", "first\n")
    assert (written["status"], waited["status"]) == ("written", "timeout")
    assert (log["total_lines"], log["output"]) == (2, "first")
    assert (killed["status"], killed["output"]) == ("killed", "first\nheard spoken\n")
    assert (again["status"], again["was"]) == ("already_exited", "killed")
    assert saying(person, "Background process") == [], "the one who killed it knows"


async def test_a_second_restart_tells_nothing_again(tmp_path: Path) -> None:
    """S139: told is told, whatever dies afterwards."""
    home = tmp_path / "home"
    async with scene(home) as place:
        person = place.person(CHAT)
        await place.says(CHAT, "in background true")
        await place.says(CHAT, script(terminal("exit 4"), {"text": "left"}))
        await person.hears("left")
        for _ in range(3):
            place.gateway.kill()
            await place.restarts()
        await place.says(CHAT, "echo last")
        await person.hears("last")
        place.gateway.kill()
        rows = read_rows(home)

    bodies = [json.loads(row["body"]) for row in rows.of("inbox", kind="report")]
    numbers = [body["process_id"] for body in bodies]
    assert len(numbers) == len(set(numbers)), "one report of each end"
    assert len(saying(person, "code 4")) <= 1
    assert len(saying(person, "code 0")) <= 1
