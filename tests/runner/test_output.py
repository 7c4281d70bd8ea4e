"""The output: bounded, mapped by offsets, readable at any time by any person."""

import random
from pathlib import Path

import pytest

from koboshi.ports.runners import Life
from tests.harness.disk import filled, small_disk
from tests.harness.polling import until
from tests.runner.insides import everywhere
from tests.runner.yard import Yard

LINE = 16
"""Bytes of one numbered line, so that every offset tells what has to stand there."""


def numbered(lines: int) -> str:
    return f"seq -f %015.0f 0 {lines - 1}"


def expected(offset: int, size: int) -> bytes:
    first, last = offset // LINE, (offset + size) // LINE
    text = b"".join(b"%015d\n" % line for line in range(first, last + 1))
    return text[offset - first * LINE :][:size]


async def test_fifty_megabytes_are_capped_and_the_memory_stays_flat(yard: Yard) -> None:
    lines = 3_125_000
    process_id = await yard.start(f"{numbered(lines)}; read -r _", takes_input=True)
    runner = yard.runner_pid(process_id)
    total = lines * LINE
    await until(lambda: yard.slice(process_id, -1, 1).total == total, "all is written", within_s=60)

    peak_kb = int(Path(f"/proc/{runner}/status").read_text().split("VmHWM:")[1].split()[0])
    head, tail = yard.slice(process_id, 0), yard.slice(process_id, 1_000_000)
    kept = sum(file.stat().st_size for file in yard.files(process_id).folder.iterdir())

    assert peak_kb < 16_000
    assert (head.offset, head.dropped, head.total) == (0, 0, total)
    assert head.content == expected(0, 1_000_000)
    assert tail.offset + len(tail.content) == total
    assert 4_000_000 <= len(tail.content) <= 5_000_000
    assert tail.dropped == tail.offset - 1_000_000 > 40_000_000
    assert tail.content == expected(tail.offset, len(tail.content))
    assert kept < 6_100_000
    await yard.runners.write(process_id, b"\n")
    seen = await yard.until_free(process_id)
    assert seen.life is Life.ENDED
    assert yard.slice(process_id, 1_000_000) == tail, "the end changes nothing"


@pytest.mark.parametrize("seed", range(5))
async def test_any_reader_finds_its_way(yard: Yard, seed: int) -> None:
    """Whatever is asked for, what is given stands at its offset and what is missing is counted."""
    chance = random.Random(seed)
    yard.runners.log_head_bytes = chance.choice([0, 1, 1_000, 10_000, 100_000])
    yard.runners.log_tail_bytes = chance.choice([0, 4_096, 20_000, 100_000])
    lines = chance.randrange(1, 40_000)
    process_id = await yard.start(numbered(lines))
    await yard.until_free(process_id)
    total = lines * LINE

    for _ in range(200):
        offset, limit = chance.randrange(-total - 9, total + 9), chance.randrange(0, 50_000)
        found = yard.slice(process_id, offset, limit)

        asked = min(max(0, total + offset if offset < 0 else offset), total)
        assert found.total == total
        assert found.offset == asked + found.dropped
        assert found.content == expected(found.offset, len(found.content))
        assert len(found.content) <= limit
        assert found.content or not limit or found.offset == total


async def test_reading_on_and_on_gives_everything_once(yard: Yard) -> None:
    """A watcher reads while the command writes; only what was dropped is missing, and counted."""
    yard.runners.log_head_bytes, yard.runners.log_tail_bytes = 50_000, 50_000
    lines = 200_000
    process_id = await yard.start(numbered(lines))
    offset = dropped = 0

    while offset < lines * LINE:
        found = yard.slice(process_id, offset, 10_000)
        assert found.offset == offset + found.dropped
        assert found.content == expected(found.offset, len(found.content))
        dropped += found.dropped
        offset = found.offset + len(found.content)
        if not found.content:
            await yard.runners.wait(process_id, 0.001)

    assert offset == lines * LINE
    assert dropped < offset


@everywhere
async def test_binary_output_is_kept_as_it_is(yard: Yard) -> None:
    seen, output = await yard.run(r"for i in 0 1 2 3; do printf '\0\377\200\n\r\033'; done")

    assert seen.life is Life.ENDED
    assert output == b"\0\xff\x80\n\r\x1b" * 4


@everywhere
async def test_output_is_there_as_soon_as_it_is_written(yard: Yard) -> None:
    """S104: nothing waits in a buffer."""
    process_id = await yard.start("printf half; read -r _; echo ' whole'", takes_input=True)

    assert await yard.until_said(process_id, b"half") == b"half"
    await yard.runners.write(process_id, b"\n")
    await yard.until_free(process_id)
    assert yard.output(process_id) == b"half whole\n"


@everywhere
async def test_a_command_may_close_its_output_and_go_on(yard: Yard) -> None:
    process_id = await yard.start("echo last; exec >&- 2>&-; read -r _; exit 8", takes_input=True)
    await yard.until_said(process_id, b"last")
    runner = yard.runner_pid(process_id)
    ticks_before = processor_ticks(runner)

    assert yard.runners.look(process_id).life is Life.ALIVE
    assert (await yard.runners.wait(process_id, 0.2)).life is Life.ALIVE
    assert processor_ticks(runner) - ticks_before <= 2, "it waits, and does not spin"
    await yard.runners.write(process_id, b"\n")
    seen = await yard.until_free(process_id)

    assert seen.ending is not None
    assert seen.ending.exit_code == 8


@everywhere
async def test_what_was_written_just_before_the_end_is_kept(yard: Yard) -> None:
    """More than one read takes, and the command is gone before it is read."""
    _, output = await yard.run("head -c 65536 /dev/zero; exit 0")

    assert output == bytes(65_536)


async def test_a_process_without_output_has_an_empty_log(yard: Yard) -> None:
    process_id = await yard.start("true")
    await yard.until_free(process_id)
    unknown = yard.next_id()

    for each in (process_id, unknown):
        found = yard.slice(each, -100)
        assert (found.offset, found.content, found.total, found.dropped) == (0, b"", 0, 0)


async def test_output_that_a_full_disk_did_not_take_is_counted(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk") as disk:
        yard = Yard(disk / "processes", workdir=tmp_path)
        process_id = await yard.start(
            "echo before; read -r _; seq 10000; read -r _; echo after", takes_input=True
        )
        await yard.until_said(process_id, b"before")
        runner = yard.runner_pid(process_id)
        read_before = bytes_read(runner)
        with filled(disk):
            await yard.runners.write(process_id, b"\n")
            await until(lambda: bytes_read(runner) - read_before >= 48_894, "the runner read it")
        await yard.runners.write(process_id, b"\n")
        await yard.until_free(process_id)
        first = yard.slice(process_id, 0)
        last = yard.slice(process_id, len(first.content))

    assert first.content.startswith(b"before\n1\n2\n")
    assert last.content == b"after\n"
    assert last.total == 7 + 48_894 + 6
    assert last.dropped == last.total - len(first.content) - 6 > 40_000


async def test_an_end_on_a_full_disk_is_recorded(tmp_path: Path) -> None:
    """The room for it was taken before the command began."""
    with small_disk(tmp_path / "disk") as disk:
        yard = Yard(disk / "processes", workdir=tmp_path)
        process_id = await yard.start("read -r _; seq 10000; exit 3", takes_input=True)
        await until(lambda: yard.files(process_id).read_child(), "the command is recorded")
        with filled(disk):
            await yard.runners.write(process_id, b"\n")
            seen = await yard.until_free(process_id)
            total = yard.slice(process_id, 0).total

    assert seen.ending is not None
    assert seen.ending.exit_code == 3
    assert total == 48_894


async def test_nothing_begins_on_a_full_disk(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk") as disk:
        yard = Yard(disk / "processes", workdir=tmp_path)
        await yard.run("true")
        with filled(disk):
            process_id = yard.next_id()
            with pytest.raises(OSError, match="No space left"):
                await yard.runners.start(process_id, yard.spec("touch ran"))
        life = yard.runners.look(process_id).life

    assert life is Life.UNBORN
    assert not (tmp_path / "ran").exists()


def bytes_read(pid: int) -> int:
    return int(Path(f"/proc/{pid}/io").read_text().split()[1])


def processor_ticks(pid: int) -> int:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return int(fields[11]) + int(fields[12])
