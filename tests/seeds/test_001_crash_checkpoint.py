"""Source 001: which sessions were at work when the gateway died? There, a separate file of runs in
flight, with its own durability, races and losses; here, the rows themselves. That each write is
whole whatever instant the power fails (S10) is in tests/sqlite/test_crash_points.py, and what
happens where nothing can be written (S15) in tests/crash/test_disk.py."""

from pathlib import Path

import pytest

from koboshi.domain.errors import Fenced, HomeHeld, StoreRefused
from koboshi.domain.ids import DeliveryId, Epoch, Generation, SessionId, TurnId, WorkerId
from koboshi.domain.transcript import Reply
from koboshi.domain.turn import Claim
from koboshi.runtime.wakeups import LocalWakeups
from koboshi.stores.sqlite.store import StoreOptions, open_store
from tests.harness.compose import Bounds
from tests.harness.invariants import check_rows
from tests.harness.virtual import VirtualClock
from tests.runtime.gateway import Setting, living
from tests.seeds.dying import WORK, at_work, die_at_work


async def test_a_run_is_on_the_disk_before_any_work_is_done(setting: Setting) -> None:
    """S1: lane, generation, when it began and who owns it, before the model or a tool is asked."""
    await die_at_work(setting, "room")

    rows = setting.rows()
    (turn,) = rows.turns
    (worker,) = rows.workers
    assert (turn["state"], turn["worker_id"]) == ("running", worker["worker_id"])
    assert (turn["session_id"], turn["generation"]) == (rows.session("room"), 1)
    assert turn["opened_ms"] > 0
    (claimed,) = rows.of("journal", event="claimed")
    (reply,) = rows.of("journal", event="reply")
    assert claimed["seq"] < reply["seq"]


async def test_exactly_the_runs_that_had_not_ended_are_found(setting: Setting) -> None:
    """S2, S3, S5: one ended seconds before the crash, one was stopped; two were at work."""
    setting.world.hangs = {"do_none"}
    async with living(setting) as life:
        await life.says("ended", "echo hello")
        await life.shows("ended", "hello")
        await at_work(life, "stopped", "one", "two")
        await life.says("stopped", "/stop")
        await life.until(lambda: setting.platform.texts("stopped"), "it is stopped")
    setting.world.hangs = set()
    async with living(setting) as life:
        await life.shows("one", "through")
        await life.shows("two", "through")

    rows = setting.rows()
    check_rows(rows)
    resumed = {line["session_id"] for line in rows.of("journal", event="resumed")}
    assert resumed == {rows.session("one"), rows.session("two")}


async def test_a_run_of_many_hours_is_found(setting: Setting) -> None:
    """S4: the session was last touched hours ago; its run was alive until the crash."""
    setting.world.hangs = {"do_none"}
    async with living(setting) as life:
        await at_work(life, "room")
        await life.works_on(minutes=6 * 60)
    setting.world.hangs = set()
    async with living(setting) as life:
        await life.shows("room", "through")


async def test_what_was_found_once_is_not_found_again(setting: Setting) -> None:
    """S6: finding it and taking it up are one transaction: the next boot has nothing to find, and
    a boot that dies in between neither loses nor doubles it."""
    await die_at_work(setting, "room")
    async with living(setting) as life:
        await life.until(lambda: life.gateway.rescue.has_looked.is_set(), "it was found")
    assert setting.rows().one("turns")["state"] == "queued"
    async with living(setting) as life:
        await life.shows("room", "through")
    async with living(setting) as life:
        await life.passes(60)

    rows = setting.rows()
    assert len(rows.of("journal", event="resumed")) == 1
    assert setting.platform.texts("room") == ["through"]


async def test_without_any_file_there_is_nothing_to_find(setting: Setting) -> None:
    """S7: the first start of all."""
    async with living(setting) as life:
        await life.until(lambda: life.gateway.rescue.has_looked.is_set(), "it has looked")
        await life.says("room", "echo hello")
        await life.shows("room", "hello")


async def test_a_damaged_file_is_kept_and_the_person_decides(setting: Setting) -> None:
    """S8: it is not overwritten. With the person's word a gateway starts, and says what it did."""
    path = setting.home / "koboshi.db"
    path.write_bytes(b"not a database at all" * 1_000)
    before = path.read_bytes()
    world, clock, wakeups = setting.configured(), VirtualClock(), LocalWakeups()

    with pytest.raises(StoreRefused, match="damaged"):
        await open_store(setting.home, world=world, clock=clock, wakeups=wakeups)
    assert path.read_bytes() == before

    options = StoreOptions(accepts_loss=True)
    store = await open_store(
        setting.home, world=world, clock=clock, wakeups=wakeups, options=options
    )
    (warning,) = store.warnings
    await store.close()
    (kept,) = (setting.home / "quarantine").iterdir()
    assert (kept / "koboshi.db").read_bytes() == before
    assert str(kept) in warning


async def test_news_of_a_run_that_no_one_knows_changes_nothing(setting: Setting) -> None:
    """S9: an unknown turn cannot be completed, recovered or stopped, and nothing breaks."""
    unknown = Claim(
        turn_id=TurnId(99),
        session_id=SessionId(99),
        generation=Generation(1),
        epoch=Epoch(1),
        worker_id=WorkerId(1),
    )
    async with living(setting) as life:
        store, worker_id = life.tracked.as_store(), WorkerId(1)
        with pytest.raises(Fenced):
            await store.turns.answer(unknown, Reply(text="done"), ["done"])
        assert await store.turns.recover(TurnId(99)) is None
        assert not await store.turns.holds(unknown)
        assert await store.outbox.claim(SessionId(99), worker_id) is None
        assert await store.outbox.due(DeliveryId(0)) == ()
        assert await store.turns.unowned(with_suspended=True) == ()

    assert setting.rows().turns == []


async def test_a_second_gateway_cannot_touch_the_first_ones_runs(setting: Setting) -> None:
    """S11, S167: the home has one owner; the other is told who it is."""
    setting.world.hangs = {"do_none"}
    async with living(setting) as life:
        await at_work(life, "room")
        with pytest.raises(HomeHeld, match="held by"):
            await open_store(
                setting.home,
                world=setting.configured(),
                clock=VirtualClock(),
                wakeups=LocalWakeups(),
                options=StoreOptions(lock_wait_seconds=30),
            )
        setting.world.released.set()
        await life.shows("room", "through")

    check_rows(setting.rows())


async def test_a_run_that_was_superseded_does_not_end_the_one_that_follows(
    setting: Setting,
) -> None:
    """S12, S86, S87: the first is stopped within its tool. Whatever becomes of it, the second one
    is untouched, and its record stays."""
    setting.world.hangs = {"do_none"}
    async with living(setting) as life:
        await at_work(life, "room")
        await life.says("room", "/stop")
        await at_work(life, "room")
        second = setting.world.ran.count("do_none")
        await life.passes(20)
        assert life.gateway.dispatch.running == 1
    setting.world.hangs = set()
    async with living(setting) as life:
        await life.until(lambda: "through" in setting.platform.texts("room"), "the second one")

    assert second == 2
    rows = setting.rows()
    check_rows(rows)
    assert [turn["state"] for turn in rows.turns] == ["stopped", "done"]
    assert setting.platform.texts("room")[1:] == ["through"]


@pytest.mark.parametrize("busy", ["queue", "interrupt"])
async def test_a_run_that_was_ended_by_a_person_is_not_found(setting: Setting, busy: str) -> None:
    """S13, S83: by /stop or by a message that interrupts; a crash a moment later finds nothing."""
    setting.busy = busy
    setting.world.hangs = {"do_none"}
    async with living(setting) as life:
        await at_work(life, "room")
        await life.says("room", "/stop" if busy == "queue" else "echo instead")
        await life.until(lambda: setting.platform.texts("room"), "it is ended")
    setting.world.hangs = set()
    async with living(setting) as life:
        await life.passes(100)

    rows = setting.rows()
    check_rows(rows)
    assert not rows.of("journal", event="resumed")
    assert setting.world.ran == ["do_none"]


async def test_a_run_that_was_stopped_before_it_began_is_not_found(setting: Setting) -> None:
    """S13, S81, S83: it waited for a place, and no model was ever asked."""
    setting.bounds = Bounds(turns_max=1)
    setting.world.hangs = {"do_none"}
    async with living(setting) as life:
        await at_work(life, "first")
        await life.says("room", "echo never said")
        await life.says("room", "/stop")
        await life.until(lambda: setting.platform.texts("room"), "it is stopped")
    setting.world.hangs = set()
    async with living(setting) as life:
        await life.shows("first", "through")
        await life.passes(100)

    rows = setting.rows()
    check_rows(rows)
    stopped = rows.one("turns", session_id=rows.session("room"))
    assert (stopped["event"], stopped["epoch"]) == ("cut", 0)
    assert len(setting.platform.texts("room")) == 1


async def test_a_run_that_was_given_up_is_not_found(setting: Setting) -> None:
    """S13: after three deaths it is over, and no later boot has anything to find."""
    await die_at_work(setting, "room")
    for _ in range(2):
        setting.world.hangs = {"do_none"}
        async with living(setting) as life:
            tried = len(setting.world.ran)
            await life.until(lambda seen=tried: len(setting.world.ran) > seen, "a try")  # type: ignore[misc]
    async with living(setting) as life:
        await life.until(lambda: setting.platform.texts("room"), "the apology")
        await life.rests()
    before = setting.rows()
    async with living(setting) as life:
        await life.passes(100)

    rows = setting.rows()
    assert rows.one("turns")["state"] == "failed"
    assert (rows.turns, rows.outbox) == (before.turns, before.outbox)


async def test_a_clean_shutdown_leaves_nothing_in_flight(setting: Setting) -> None:
    """S14, S16: idle, it leaves nothing at all; at work, it gives the run back."""
    async with living(setting) as life:
        await life.says("room", "echo hello")
        await life.shows("room", "hello")
        await life.rests()
        life.stop()
        await life.is_over.wait()
    rows = setting.rows()
    assert [worker["ended_how"] for worker in rows.workers] == ["stopped"]
    assert not [turn for turn in rows.turns if turn["closed_ms"] is None]

    setting.world.hangs = {"do_none"}
    async with living(setting) as life:
        await life.says("room", WORK)
        await life.until(lambda: setting.world.ran, "it is at work")
        life.stop()
        await life.is_over.wait()
    assert setting.rows().of("turns", state="running") == []
    assert Path(setting.home / "koboshi.db").exists()
