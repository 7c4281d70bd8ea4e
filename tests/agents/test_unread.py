"""An agent that writes while no gateway reads: a bounded part waits on the disk, then the agent."""

import json
import os
from pathlib import Path

import pytest

from tests.agents.agency import Agency
from tests.harness.polling import until
from tests.harness.tally import WANTS_ALL, add_to_tally

MB = 1_000_000
UNREAD_MAX, CALLS, CALL_BYTES = (64 << 20, 200, MB) if WANTS_ALL else (4 << 20, 10, MB)
"""Unread bytes that may wait, and what the agent writes: 200 MB, or 2.5 times the limit."""
BESIDE = 65_536 + 4_096
"""What may come on top: one read of the runner."""


@pytest.mark.timeout(900)
async def test_an_agent_that_is_not_read_waits_and_nothing_is_lost(agency: Agency) -> None:
    if not WANTS_ALL:  # else the limit is the one that owners have
        agency.more = f"\n[limits]\nagent_unread_bytes_max = {UNREAD_MAX}\n"
    agency.start()
    await agency.say("wait go", f"bulk {CALLS} {CALL_BYTES}", "say all of it")
    await agency.until_done("wait go")
    agency.gateway.kill()
    (agency.workdir / "go").touch()
    await until(lambda: _unread(agency) >= UNREAD_MAX, "the spool is full", otherwise=agency.told)
    assert not [line for line in agency.log if line.startswith("bulky")], "it waits"

    agency.start()
    most = 0

    def look() -> bool:
        nonlocal most
        most = max(most, _unread(agency))
        return bool(agency.answers())

    await until(look, "it is answered", within_s=600, otherwise=agency.told)

    print(f"at most {most:,} bytes unread on the disk, of {UNREAD_MAX:,}")
    add_to_tally("unread output of agents", {"most": most, "limit": UNREAD_MAX, "lost": 0})
    assert most <= UNREAD_MAX + BESIDE
    assert agency.answers() == ["all of it"]
    (written,) = [int(line.split()[1]) for line in agency.log if line.startswith("bulky")]
    assert written > CALLS * CALL_BYTES
    ((read,),) = agency.rows("SELECT read_offset FROM agent_processes")
    assert isinstance(read, int)
    assert read > written, "all of it was read, and the end of the turn behind it"
    found = agency.rows("SELECT body FROM steps WHERE kind = 'result' ORDER BY seq")
    results = [str(json.loads(str(body))["text"]) for (body,) in found]
    assert [each.split()[0] for each in results] == [str(number) for number in range(CALLS)]
    assert [line for line in agency.log if line.startswith("prompt")] == ["prompt 1 first"]


def _unread(agency: Agency) -> int:
    """What the spools hold on the disk."""
    found = 0
    for folder in (agency.home / "processes").glob("[0-9]*/out"):
        found += _size(folder)
    return found


def _size(folder: Path) -> int:
    size = 0
    for entry in os.scandir(folder):
        try:
            size += entry.stat().st_size
        except FileNotFoundError:
            continue  # the gateway has stored it meanwhile
    return size
