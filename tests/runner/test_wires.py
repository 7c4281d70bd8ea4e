"""An agent under its runner: messages are fed once and in order, and nothing that it writes is
lost."""

import os
from dataclasses import replace
from pathlib import Path

from koboshi.domain.ids import ProcessId
from koboshi.ports.runners import Life
from koboshi.ports.wires import Fed
from koboshi.processes.wires import LocalWires
from tests.harness.polling import until
from tests.runner.insides import everywhere
from tests.runner.yard import Yard

UNREAD_MAX = 64_000


async def start(yard: Yard, command: str) -> tuple[ProcessId, LocalWires]:
    process_id = yard.next_id()
    await yard.runners.start(process_id, replace(yard.spec(command), unread_max=UNREAD_MAX))
    return process_id, LocalWires(yard.folder)


async def until_written(wires: LocalWires, process_id: ProcessId, size: int) -> bytes:
    await until(lambda: wires.size(process_id) >= size, f"{size} bytes are there")
    return wires.read(process_id, 0, 1 << 30)


@everywhere
async def test_messages_are_fed_in_the_order_of_their_numbers(yard: Yard) -> None:
    process_id, wires = await start(yard, "cat; echo oops >&2")
    assert wires.begun(process_id) == 0
    big = b"x" * 300_000 + b"\n"

    wires.post(process_id, 2, b"second\n")
    wires.post(process_id, 1, b"first\n")
    assert await until_written(wires, process_id, 13) == b"first\nsecond\n"
    wires.post(process_id, 1, b"first, again\n")
    wires.post(process_id, 3, b"third\n")

    assert await until_written(wires, process_id, 19) == b"first\nsecond\nthird\n"
    assert (fed := wires.fed(process_id, 3)) is not None
    assert replace(fed, at_ms=0) == Fed(spool_size=13, is_whole=True)
    assert wires.fed(process_id, 4) is None
    assert wires.begun(process_id) == 3
    wires.forget(process_id, 19)
    wires.post(process_id, 4, big)
    await until(lambda: wires.size(process_id) > 60_000, "it writes what it reads")
    fed = wires.fed(process_id, 4)
    assert fed is not None
    assert not fed.is_whole, "an agent that waits has not taken all of it"


@everywhere
async def test_what_an_agent_says_of_errors_goes_to_the_log(yard: Yard) -> None:
    process_id, wires = await start(yard, "echo out; echo err >&2")

    seen = await yard.runners.wait(process_id, 30)

    assert seen.life is Life.ENDED
    assert (wires.read(process_id, 0, 100), yard.output(process_id)) == (b"out\n", b"err\n")


async def test_an_agent_that_is_not_read_waits_and_nothing_is_lost(yard: Yard) -> None:
    lines = 20_000
    process_id, wires = await start(yard, f"seq 1 {lines}; echo done >&2")
    await until(lambda: wires.size(process_id) >= UNREAD_MAX, "the spool is full")
    folder = yard.folder / str(process_id) / "out"

    found = b""
    while b"\n%d\n" % lines not in found:
        assert used_in(folder) <= UNREAD_MAX + 65_536 + 4_096
        chunk = wires.read(process_id, len(found), 10_000)
        found += chunk
        wires.forget(process_id, len(found))
        if not chunk:
            await until(lambda: wires.size(process_id) > len(found), "it goes on")  # noqa: B023

    assert found == b"".join(b"%d\n" % number for number in range(1, lines + 1))
    assert (await yard.until_free(process_id)).life is Life.ENDED


async def test_an_agent_is_ended_while_it_waits(yard: Yard) -> None:
    process_id, wires = await start(yard, "yes")
    await until(lambda: wires.size(process_id) >= UNREAD_MAX, "the spool is full")

    seen = await yard.runners.end(process_id, grace_s=5)

    assert seen.life is Life.ENDED
    assert wires.fed(process_id, 1) is None


def used_in(folder: Path) -> int:
    return sum(entry.stat().st_size for entry in os.scandir(folder))
