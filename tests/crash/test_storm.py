"""Fifty processes that print what is looked for all the time: few reports, and no caller waits."""

import json
import time
from collections import Counter
from pathlib import Path

from anyio import create_task_group

from koboshi.domain.watch import ReportLimits
from tests.crash.stories import script
from tests.harness.jobs import Scene, saying, scene
from tests.harness.polling import until
from tests.harness.tally import WANTS_ALL

CHATS = 5
PROCESSES = 10
"""In each chat."""
LINES = 1_000 if WANTS_ALL else 400
"""Of each process, a hundred in a second."""
ANSWERED_MIN = 3
"""So many others are answered before the storm is over, one after the other."""
ENDED_WITHIN_S = 100.0
GROWTH_MB_MAX = 40.0

NOISE = (
    "until [ -e go ]; do read -t 0.05 x; done; "
    f"for i in $(seq {LINES}); do echo ready $i; read -t 0.01 x; done; exit 0"
)


async def test_a_storm_of_matches_is_a_handful_of_reports_and_delay_no_message(home: Path) -> None:
    """S117, S170: coalesced per process, bounded per session and in all; other chats are answered,
    and the memory stays what it was."""
    limits = ReportLimits()
    async with scene(home) as place:
        chats = [f"noise-{number}" for number in range(CHATS)]
        async with create_task_group() as tasks:
            for chat in chats:
                tasks.start_soon(_makes_noise, place, chat)
        before_mb = await _warmed_up(place)
        began = time.monotonic()
        answered = 0
        place.touch()
        while not all(_have_ended(place, chat) for chat in chats):
            assert time.monotonic() < began + ENDED_WITHIN_S
            await _echo(place)
            answered += 1
        took_s = time.monotonic() - began
        grown_mb = _resident_mb(place) - before_mb
        rows = place.rows()

    windows = int(took_s * 1_000 / limits.every_ms) + 1
    said = Counter(
        row["session_id"]
        for row in rows.of("inbox", kind="report")
        if json.loads(row["body"])["kind"] == "match" and row["state"] != "dropped"
    )
    assert said, "nothing was reported at all"
    assert max(said.values()) <= limits.session_max * windows
    assert sum(said.values()) <= limits.total_max * windows
    assert answered >= ANSWERED_MIN, "the one who wrote meanwhile had to wait for the end of it"
    assert grown_mb < GROWTH_MB_MAX
    ends = [row for row in rows.of("inbox", kind="report") if '"kind":"exit"' in row["body"]]
    assert len(ends) == CHATS * PROCESSES, "each end is said, whatever the limits are"
    assert all(row["exit_code"] == 0 for row in rows.processes)
    assert rows.damage == []


async def _warmed_up(place: Scene) -> float:
    place.person("quiet")
    for _ in range(5):
        await _echo(place)
    return _resident_mb(place)


async def _makes_noise(place: Scene, chat: str) -> None:
    person = place.person(chat)
    noisy = {"command": NOISE, "background": True, "watch_patterns": ["ready"]}
    calls = [{"tool": "terminal", "arguments": noisy}] * PROCESSES
    await place.says(chat, script({"calls": calls}, {"text": "they run"}))
    await person.hears("they run")


def _have_ended(place: Scene, chat: str) -> bool:
    """Whether the end of each of its processes was told."""
    notices = [event for event in place.people[chat].events if event.kind == "notice"]
    return len(notices) == PROCESSES


async def _echo(place: Scene) -> None:
    """Another person writes, and is answered."""
    person, words = place.people["quiet"], f"hello {place.keys}"
    await place.says("quiet", f"echo {words}")
    await until(lambda: saying(person, words), "an answer")


def _resident_mb(place: Scene) -> float:
    for line in Path(f"/proc/{place.gateway.pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) / 1024
    raise AssertionError("the system does not tell how much memory is resident")
