"""One row per boot: who works, since when, and how it ended."""

import pytest

from koboshi.domain.worker import MEMORY_MS_MAX, EndedHow, MemoryKills, Worker
from tests.harness.fake_time import HOUR_MS, SECOND_MS, START_MS
from tests.harness.homes import Home


async def previous(home: Home) -> Worker:
    worker = (await home.store.views.status()).previous
    assert worker is not None
    return worker


async def test_each_boot_has_a_row_of_its_own(home: Home) -> None:
    """S22: there is nothing to inherit."""
    first = home.worker
    home.clock.move(SECOND_MS)
    second = await home.reopen(crash=True)

    assert second.worker_id > first.worker_id
    assert (second.host, second.pid, second.birth, second.version) == ("host", 4711, "birth", "0.1")
    assert (second.started_ms, second.heartbeat_ms) == (START_MS + SECOND_MS,) * 2
    assert (second.is_draining, second.ended_ms, second.ended_how) == (False, None, None)
    assert (await home.store.views.status()).worker == second


async def test_a_boot_that_ended_without_a_word_is_found_dead_by_the_next(home: Home) -> None:
    """S18: at the time of its last sign of life."""
    home.clock.move(5 * SECOND_MS)
    await home.store.workers.beat(home.worker.worker_id)
    home.clock.move(HOUR_MS)
    await home.reopen(crash=True)

    dead = await previous(home)
    assert (dead.ended_how, dead.ended_ms) == (EndedHow.KILLED, START_MS + 5 * SECOND_MS)
    assert dead.heartbeat_ms == START_MS + 5 * SECOND_MS


LAST_SEEN = MemoryKills(group="1:4711", in_group=2, on_machine=5)


@pytest.mark.parametrize(
    "found, how",
    [
        (MemoryKills(group="1:4711", in_group=3, on_machine=6), EndedHow.MEMORY),
        (MemoryKills(group="1:4711", in_group=2, on_machine=9), EndedHow.KILLED),
        (MemoryKills(group="1:9000", in_group=0, on_machine=6), EndedHow.MEMORY),
        (MemoryKills(group="1:9000", in_group=9, on_machine=5), EndedHow.KILLED),
        (MemoryKills(on_machine=6), EndedHow.MEMORY),
        (MemoryKills(group="1:4711", in_group=3), EndedHow.MEMORY),
        (MemoryKills(), EndedHow.KILLED),
    ],
    ids=[
        "one of our group",
        "of others only",
        "our group is gone, and one on the machine",
        "none on the machine",
        "the group does not tell",
        "the machine does not tell",
        "nobody tells",
    ],
)
async def test_a_boot_that_lacked_memory_is_told_from_one_that_was_killed(
    home: Home, found: MemoryKills, how: EndedHow
) -> None:
    await home.store.workers.beat(home.worker.worker_id, LAST_SEEN)
    await home.store.workers.start("host", 1, "birth", "0.1", found)

    assert (await previous(home)).ended_how is how


@pytest.mark.parametrize("is_elsewhere", [False, True], ids=["much later", "on another machine"])
async def test_a_kill_that_may_be_of_any_process_does_not_count(
    home: Home, is_elsewhere: bool
) -> None:
    await home.store.workers.beat(home.worker.worker_id, LAST_SEEN)
    home.clock.move(0 if is_elsewhere else MEMORY_MS_MAX + 1)
    later = MemoryKills(group="1:4711", in_group=3, on_machine=6)
    await home.store.workers.start("other" if is_elsewhere else "host", 1, "birth", "0.1", later)

    assert (await previous(home)).ended_how is EndedHow.KILLED


@pytest.mark.parametrize("how", [EndedHow.STOPPED, EndedHow.LEFTOVERS, EndedHow.RESTART])
async def test_a_boot_that_said_how_it_ended_is_believed(home: Home, how: EndedHow) -> None:
    """S16, S17, S20."""
    home.clock.move(SECOND_MS)
    await home.store.workers.end(home.worker.worker_id, how)
    home.clock.move(HOUR_MS)
    await home.reopen(crash=True)

    ended = await previous(home)
    assert (ended.ended_how, ended.ended_ms) == (how, START_MS + SECOND_MS)


async def test_a_clean_end_does_not_speak_for_the_next_boot(home: Home) -> None:
    """S17, S22."""
    await home.store.workers.end(home.worker.worker_id, EndedHow.STOPPED)
    await home.reopen(crash=False)
    await home.reopen(crash=True)

    assert (await previous(home)).ended_how is EndedHow.KILLED


async def test_the_first_end_stands(home: Home) -> None:
    worker_id = home.worker.worker_id
    await home.store.workers.end(worker_id, EndedHow.LEFTOVERS)
    home.clock.move(SECOND_MS)
    await home.store.workers.end(worker_id, EndedHow.STOPPED)

    worker = (await home.store.views.status()).worker
    assert worker is not None
    assert (worker.ended_how, worker.ended_ms) == (EndedHow.LEFTOVERS, START_MS)


async def test_a_heartbeat_is_stored_and_says_whether_a_restart_was_asked_for(home: Home) -> None:
    worker_id = home.worker.worker_id
    assert not await home.store.workers.beat(worker_id)
    await home.store.workers.request_restart(worker_id, "entry:1")
    home.clock.move(SECOND_MS)

    assert await home.store.workers.beat(worker_id)
    worker = (await home.store.views.status()).worker
    assert worker is not None
    assert worker.is_draining
    assert worker.heartbeat_ms == home.clock.now_ms()
    assert home.store.trouble is None


async def test_a_drain_ends_with_the_boot_that_was_asked(home: Home) -> None:
    """S22, S74."""
    await home.store.workers.request_restart(home.worker.worker_id, "entry:1")
    await home.reopen(crash=True)

    assert not await home.store.workers.beat(home.worker.worker_id)


async def test_a_boot_that_is_over_cannot_be_asked_to_drain(home: Home) -> None:
    first = home.worker
    await home.reopen(crash=True)
    await home.store.workers.request_restart(first.worker_id, "entry:1")

    assert not (await previous(home)).is_draining


async def test_a_boot_that_was_found_dead_shows_no_more_signs_of_life(home: Home) -> None:
    """S48: the age of its turns rests on its last heartbeat; a ghost must not move it."""
    claim, ghost = await home.work_on(), home.worker
    await home.reopen(crash=True)
    home.clock.move(2 * HOUR_MS)
    await home.store.workers.beat(ghost.worker_id)

    assert (await previous(home)).heartbeat_ms == START_MS
    assert (await home.recover(claim.turn_id)).rule == "stale"


async def test_the_journal_tells_of_boots_and_their_ends(home: Home) -> None:
    """S161."""
    await home.reopen(crash=True)
    claim = await home.work_on()

    lines = await home.lines(claim.turn_id)
    assert lines[-1].worker_id == home.worker.worker_id


async def test_who_asked_for_a_restart_is_told_once_by_the_first_boot_that_gets_to_it(
    home: Home,
) -> None:
    """S154: the boot right after the restart may have died before it could say so."""
    receipt = await home.say("/restart")
    by = f"entry:{receipt.entry_id}"
    await home.store.workers.request_restart(home.worker.worker_id, by)
    await home.reopen(crash=True)
    await home.reopen(crash=True)
    told = []
    for _ in range(2):
        await home.store.workers.report(home.worker.worker_id, "found nothing", "I am back.")
        told += [delivery.text for delivery in await home.deliver()]
        await home.reopen(crash=True)

    assert told == ["I am back."]
