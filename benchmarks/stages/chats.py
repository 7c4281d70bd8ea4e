"""How much memory a gateway takes when many chats write to it, each for the first time."""

import http.client
import json
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import apsw

from benchmarks.gateway import Talk, own_mb, resident_mb, serving
from benchmarks.place import DATABASE_NAME, BenchmarkFailed, say
from benchmarks.report import Measure, at_most

WRITERS = 8
_SECONDS_MAX = 900
_LOOK_SECONDS = 0.5


def measure_chats(folder: Path, chats: int) -> list[Measure]:
    home = folder / "chats"
    with serving(home) as talk:
        talk.wait_until_ready()
        idle = resident_mb(talk.process.pid)
        say(f"chats: {chats:,} of them write")
        seconds, resident, own = _written(talk, chats)
    name = f"{chats:,} chats, one message each"
    return [
        Measure(name=f"{name}: time until all are answered", unit="s", values=(seconds,)),
        Measure(name=f"{name}: resident memory, idle before", unit="MB", values=(idle,)),
        Measure(
            name=f"{name}: resident memory, at most",
            unit="MB",
            values=(resident,),
            target=at_most(150),
        ),
        Measure(name=f"{name}: memory of its own, at most", unit="MB", values=(own,)),
    ]


def _written(talk: Talk, chats: int) -> tuple[float, float, float]:
    """How long it took, and the most memory that was seen until every chat had its answer."""
    left, turn = iter(range(chats)), threading.Lock()
    writers = [threading.Thread(target=_write, args=(talk, left, turn)) for _ in range(WRITERS)]
    began = time.monotonic()
    for each in writers:
        each.start()
    resident = own = 0.0
    while _answers(talk.home) < chats:
        resident = max(resident, resident_mb(talk.process.pid))
        own = max(own, own_mb(talk.process.pid))
        if time.monotonic() - began > _SECONDS_MAX:
            raise BenchmarkFailed(f"{chats} chats were not answered within {_SECONDS_MAX} s")
        threading.Event().wait(_LOOK_SECONDS)
    return time.monotonic() - began, resident, own


def _write(talk: Talk, left: Iterator[int], turn: threading.Lock) -> None:
    """Write to the chats that are left, one after the other. A refusal leaves a chat without an
    answer, which is noticed."""
    token = (talk.home / "web-token").read_text(encoding="ascii").strip()
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    headers["Idempotency-Key"] = "first"
    connection = http.client.HTTPConnection("127.0.0.1", talk.port, timeout=60)
    try:
        while True:
            with turn:
                number = next(left, None)
            if number is None:
                return
            body = json.dumps({"text": f"echo hello {number}"})
            path = f"/api/v1/sessions/chat-{number}/messages"
            connection.request("POST", path, body, headers)
            connection.getresponse().read()
    finally:
        connection.close()


def _answers(home: Path) -> int:
    file = str(home / DATABASE_NAME)
    connection = apsw.Connection(file, flags=apsw.SQLITE_OPEN_READONLY)
    try:
        found = connection.execute("SELECT count(*) FROM steps WHERE kind = 'answer'").get
    finally:
        connection.close()
    return int(found) if isinstance(found, int) else 0
