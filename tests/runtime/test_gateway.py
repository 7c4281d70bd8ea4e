"""The task tree: its tasks, its end, and which task a failure ends."""

from itertools import pairwise
from pathlib import Path

import pytest

from koboshi.domain.errors import ChannelUnusable
from koboshi.domain.inbox import EntryState
from koboshi.ports.channel import Accept
from tests.harness.invariants import check_rows
from tests.harness.platform import FakeChannel
from tests.runtime.gateway import Setting, living


@pytest.fixture
def setting(home: Path) -> Setting:
    return Setting(home=home)


async def test_a_gateway_shows_every_five_seconds_that_it_lives(setting: Setting) -> None:
    """What a dead one leaves behind is as old as its last beat, not as its last message."""
    async with living(setting) as life:
        await life.passes(61)
    (worker,) = setting.rows().workers

    assert 58_000 <= worker["heartbeat_ms"] - worker["started_ms"] <= 61_000
    assert worker["ended_ms"] is None


async def test_who_died_is_told_by_its_successor(setting: Setting) -> None:
    """S3, S6: one row for each boot; nothing of an earlier one is inherited."""
    for _ in range(3):
        async with living(setting) as life:
            await life.passes(12)

    killed = [worker["ended_how"] for worker in setting.rows().workers]
    assert killed == ["killed", "killed", None]


async def test_a_restart_that_a_person_asked_for_is_noticed(setting: Setting) -> None:
    """At the next heartbeat; the turn that runs is given back."""
    setting.world.hangs = {"do_none"}
    async with living(setting) as life:
        await life.says("room", 'script: [{"calls": [{"tool": "do_none"}]}, {"text": "through"}]')
        await life.until(lambda: setting.world.ran, "it is at work")
        store = life.tracked.as_store()
        await store.workers.request_restart(life.gateway.heartbeat.worker_id, "entry:1")
        await life.until(lambda: life.is_over.is_set(), "it has stopped")
        life.stop()

    rows = setting.rows()
    assert rows.one("workers")["ended_how"] == "restart"
    assert rows.one("turns")["state"] == "queued"


@pytest.mark.parametrize(
    "text, sender, reason", [("hello", "eve", "not-allowed"), ("   ", "ann", "blank")]
)
async def test_what_is_not_for_us_is_kept_with_its_reason_and_opens_nothing(
    setting: Setting, text: str, sender: str, reason: str
) -> None:
    """S43, S67: the platform is told that we have it, and nothing follows."""
    setting.is_allowed = lambda _channel, person: person != "eve"
    async with living(setting) as life:
        receipt = await life.says("room", text, sender=sender)
        await life.passes(60)

    assert receipt.state is EntryState.IGNORED
    rows = setting.rows()
    assert rows.one("inbox")["reason"] == reason
    assert rows.turns == rows.outbox == []


async def test_no_one_who_is_not_allowed_commands(setting: Setting) -> None:
    """S162: /stop of a stranger stops nothing."""
    setting.is_allowed = lambda _channel, person: person != "eve"
    setting.world.hangs = {"do_none"}
    async with living(setting) as life:
        await life.says("room", 'script: [{"calls": [{"tool": "do_none"}]}, {"text": "through"}]')
        await life.until(lambda: setting.world.ran, "it is at work")
        await life.says("room", "/stop", sender="eve")
        setting.world.released.set()
        await life.shows("room", "through")

    check_rows(setting.rows())


async def test_a_channel_that_breaks_comes_back_and_harms_no_other(
    setting: Setting, monkeypatch: pytest.MonkeyPatch
) -> None:
    """S52: it is taken up again after a pause that grows; deliveries and turns go on meanwhile."""
    tries: list[float] = []
    receive = FakeChannel.receive

    async def break_first(channel: FakeChannel, cursor: str | None, accept: Accept) -> None:
        tries.append(life.clock.monotonic())
        if len(tries) < 4:
            raise ConnectionResetError("the platform hung up")
        await receive(channel, cursor, accept)

    monkeypatch.setattr(FakeChannel, "receive", break_first)
    async with living(setting) as life:
        await life.says("room", "echo hello")
        await life.shows("room", "hello")

    pauses = [after - before for before, after in pairwise(tries)]
    assert [round(pause, 1) for pause in pauses] == [0.5, 1.0, 2.0]


async def test_a_channel_that_cannot_work_as_configured_ends_the_gateway(
    setting: Setting, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A restart would not help: a person has to change something."""

    async def refuse(channel: FakeChannel, cursor: str | None, accept: Accept) -> None:
        raise ChannelUnusable("the token is wrong")

    monkeypatch.setattr(FakeChannel, "receive", refuse)
    with pytest.RaisesGroup(ChannelUnusable, flatten_subgroups=True):
        async with living(setting) as life:
            await life.is_over.wait()


async def test_a_channel_that_is_refused_later_is_tried_again_with_growing_pauses(
    setting: Setting, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Issue 12, B11: only what is known at the start ends the gateway. The pauses are bounded."""
    tries: list[float] = []
    receive = FakeChannel.receive

    async def refuse_later(channel: FakeChannel, cursor: str | None, accept: Accept) -> None:
        tries.append(life.clock.monotonic())
        if len(tries) == 1:
            raise ConnectionResetError("the platform hung up")
        if len(tries) < 11:
            raise ChannelUnusable("the token was taken back")
        await receive(channel, cursor, accept)

    monkeypatch.setattr(FakeChannel, "receive", refuse_later)
    async with living(setting) as life:
        await life.until(lambda: len(tries) == 5, "it is refused")
        assert life.gateway.intake.opening.is_accepting.is_set()
        await life.passes(1_200)
        await life.says("room", "echo hello")
        await life.shows("room", "hello")

    pauses = [after - before for before, after in pairwise(tries)]
    assert [round(pause, 1) for pause in pauses] == [0.5, 2, 5, 15, 30, 60, 120, 300, 300, 300]


async def test_an_account_is_stored_before_its_channel_is_asked_for_anything(
    setting: Setting, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Issue 12, A6: neither what comes in nor what goes out may meet ids of another account."""
    known: list[list[str]] = []
    receive = FakeChannel.receive

    async def look_first(channel: FakeChannel, cursor: str | None, accept: Accept) -> None:
        known.append([row["account"] for row in setting.rows().accounts])
        await receive(channel, cursor, accept)

    monkeypatch.setattr(FakeChannel, "receive", look_first)
    for account in ("111", "222"):
        monkeypatch.setattr(FakeChannel, "account", account)
        async with living(setting) as life:
            await life.says("room", f"echo to {account}", key="the same")
            await life.rests()

    assert known == [["111"], ["222"]]
    assert setting.platform.texts("room") == ["to 111", "to 222"]
