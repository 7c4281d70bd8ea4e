"""Typing and "still working": while a turn works, never after it, and never to its harm."""

from dataclasses import replace
from pathlib import Path

import pytest
from anyio import Event, sleep_forever

from koboshi.domain.outbox import Delivery, Later, SendOutcome, Unsure
from tests.harness.compose import Bounds
from tests.harness.invariants import check_rows
from tests.harness.platform import IDEMPOTENT, NON_IDEMPOTENT
from tests.runtime.gateway import Life, Setting, living
from tests.runtime.scripts import calls, says, script

HANGING = script(calls("do_none"), says("at last"))
USING = "using `do_none`."


@pytest.fixture
def setting(home: Path) -> Setting:
    setting = Setting(home=home, bounds=Bounds(progress_seconds=180))
    setting.world.hangs = {"do_none"}
    return setting


async def test_each_interval_has_one_notice_and_none_comes_after_the_answer(
    setting: Setting,
) -> None:
    """S99, S101, S103: the time is that of this turn, the answer is the last word."""
    async with living(setting) as life:
        await _hang(life)
        await life.passes(179)
        assert setting.platform.texts("room") == []
        await life.passes(190)
        _release(setting)
        await life.passes(1_000)

    assert setting.platform.texts("room") == [
        f"Still working, 3 min, {USING}",
        f"Still working, 6 min, {USING}",
        "at last",
    ]
    check_rows(setting.rows())


async def test_a_follow_up_has_a_notifier_of_its_own(setting: Setting) -> None:
    """S94, S99, S100, S103: what waited gets its own time; nothing more is said of the first."""
    async with living(setting) as life:
        await _hang(life)
        await life.says("room", HANGING)
        await life.passes(200)
        setting.world.released.set()
        setting.world.released = Event()
        await life.until(lambda: len(setting.world.ran) == 2, "the second hangs")
        await life.passes(170)
        assert setting.platform.texts("room") == [f"Still working, 3 min, {USING}", "at last"]
        await life.passes(20)
        _release(setting)
        await life.passes(1_000)

    assert setting.platform.texts("room")[2:] == [f"Still working, 3 min, {USING}", "at last"]
    check_rows(setting.rows())


async def test_sessions_do_not_share_their_notices(setting: Setting) -> None:
    """S99: one for each session."""
    async with living(setting) as life:
        for chat in ("room", "hall"):
            await life.says(chat, HANGING)
        await life.passes(200)

        for chat in ("room", "hall"):
            assert setting.platform.texts(chat) == [f"Still working, 3 min, {USING}"]


async def test_a_restart_within_the_interval_repeats_nothing(setting: Setting) -> None:
    """S99: what was said is stored, and the next life counts on from there."""
    async with living(setting) as life:
        await _hang(life)
        await life.passes(200)
    async with living(setting) as life:
        await life.passes(100)
        assert setting.platform.texts("room") == [f"Still working, 3 min, {USING}"]
        await life.passes(120)
        _release(setting)
        await life.passes(500)

    first, second, answer = setting.platform.texts("room")
    assert first.startswith("Still working, 3 min")
    assert second.startswith("Still working, 6 min")
    assert answer == "at last"
    check_rows(setting.rows())


async def test_where_the_platform_can_edit_one_message_is_kept_up_to_date(
    setting: Setting,
) -> None:
    """S102: also by the next life, which knows the message by what is stored."""
    setting.platform.abilities = replace(NON_IDEMPOTENT, edits=True)
    async with living(setting) as life:
        await _hang(life)
        await life.passes(400)
    async with living(setting) as life:
        await life.passes(100)
        _release(setting)
        await life.passes(500)

    assert setting.platform.texts("room") == [f"Still working, 3 min, {USING}", "at last"]
    edits = setting.platform.edited
    assert {platform_id for platform_id, _ in edits} == {"p1"}
    assert [text.split(",")[1] for _, text in edits] == [" 6 min", " 6 min"]


async def test_with_no_interval_nothing_is_said(setting: Setting) -> None:
    """S102: 0 means never; typing is still shown."""
    setting.bounds = Bounds(progress_seconds=0)
    setting.platform.abilities = replace(NON_IDEMPOTENT, typing=True)
    async with living(setting) as life:
        await _hang(life)
        await life.passes(2_000)
        assert setting.platform.typed
        _release(setting)
        await life.shows("room", "at last")


async def test_typing_is_shown_while_a_turn_works_and_not_after_it(setting: Setting) -> None:
    """S101: again and again, as platforms want it; not for what is answered at once."""
    setting.platform.abilities = replace(NON_IDEMPOTENT, typing=True)
    async with living(setting) as life:
        await life.says("room", "echo quick")
        await life.shows("room", "quick")
        await life.passes(10)
        assert setting.platform.typed == []
        await _hang(life)
        await life.passes(20)
        shown = len(setting.platform.typed)
        assert 4 <= shown <= 6
        _release(setting)
        await life.shows("room", "quick", "at last")
        await life.passes(100)
        assert len(setting.platform.typed) == shown


async def test_a_notice_that_was_not_sent_when_the_turn_ends_is_never_said(
    setting: Setting,
) -> None:
    """S87, S100: it is abandoned in the transaction that ends the turn."""
    gate = setting.platform.gates["room"] = Event()
    async with living(setting) as life:
        await _hang(life)
        # The reply to the command is on its way, and everything else has to wait for it.
        await life.passes(150)
        await life.says("room", "/status")
        await life.passes(40)
        _release(setting)
        await life.until(lambda: life.gateway.dispatch.running == 0, "the turn is over")
        gate.set()
        await life.rests()

    assert setting.platform.texts("room")[1:] == ["at last"]
    rows = setting.rows()
    check_rows(rows)
    (notice,) = [row for row in rows.outbox if row["cause"].startswith("progress:")]
    assert (notice["state"], notice["reason"]) == ("abandoned", "the work is over")


async def test_a_stop_ends_the_typing_and_another_finds_nothing_to_stop(setting: Setting) -> None:
    """S82: nothing is left that looks like work."""
    setting.platform.abilities = replace(NON_IDEMPOTENT, typing=True)
    async with living(setting) as life:
        await _hang(life)
        await life.until(lambda: setting.platform.typed, "typing is shown")
        await life.says("room", "/stop")
        await life.until(lambda: setting.platform.texts("room"), "the reply")
        shown = len(setting.platform.typed)
        await life.says("room", "/stop")
        await life.passes(100)

    assert len(setting.platform.typed) == shown
    assert setting.platform.texts("room")[1:] == ["There is nothing to stop."]


async def test_a_stopped_turn_is_not_said_to_be_working(setting: Setting) -> None:
    """S87, S101."""
    async with living(setting) as life:
        await _hang(life)
        await life.says("room", "/stop")
        await life.passes(1_000)

    (reply,) = setting.platform.texts("room")
    assert reply.startswith("Stopped")


async def test_a_turn_that_waits_for_the_person_is_not_said_to_be_working(
    setting: Setting,
) -> None:
    """S101, S103: it does nothing meanwhile, and the time they took is not counted."""
    asking = script(calls("guarded"), calls("do_none"), says("at last"))
    async with living(setting) as life:
        await life.says("room", asking)
        await life.until(lambda: setting.platform.shown, "the question")
        await life.passes(2_000)
        await life.presses("room", "yes")
        await life.passes(200)

    assert setting.platform.texts("room")[1:] == [f"Still working, 3 min, {USING}"]


async def test_a_gateway_that_drains_says_nothing_more(setting: Setting) -> None:
    """S101: the person is told of the restart, and that is all."""
    setting.bounds = Bounds(drain_seconds=500, progress_seconds=180)
    async with living(setting) as life:
        await _hang(life)
        await life.passes(100)
        life.stop()
        await life.passes(300)
        _release(setting)
        await life.is_over.wait()

    assert not any("Still working" in text for text in setting.platform.texts("room"))


@pytest.mark.parametrize("outcome", [Later(wait_ms=30_000), Unsure(reason="reset")])
async def test_a_notice_that_does_not_get_through_holds_nothing_up(
    setting: Setting, outcome: SendOutcome
) -> None:
    """S100: it is tried once; the answer behind it goes out at once."""

    def trouble(delivery: Delivery) -> tuple[SendOutcome, bool] | None:
        return (outcome, False) if delivery.is_passing else None

    setting.platform.outcomes = trouble
    async with living(setting) as life:
        await _hang(life)
        await life.passes(182)
        _release(setting)
        await life.passes(1)
        assert setting.platform.texts("room") == ["at last"]

    check_rows(setting.rows())


async def test_killed_while_a_notice_is_sent_it_is_not_sent_again(setting: Setting) -> None:
    """S99: on a platform that cannot tell repeats apart it would be seen twice."""
    setting.platform.gates["room"] = Event()
    async with living(setting) as life:
        await _hang(life)
        await life.passes(200)
    setting.platform.gates.clear()
    _release(setting)
    async with living(setting) as life:
        await life.rests()

    assert setting.platform.texts("room") == [f"Still working, 3 min, {USING}", "at last"]
    assert not any(each.is_labelled for each in setting.platform.shown)


@pytest.mark.parametrize("how", ["fails", "hangs"])
async def test_a_platform_that_cannot_show_it_does_the_work_no_harm(
    setting: Setting, how: str
) -> None:
    """S101: neither an error nor a call that never returns holds the answer up."""

    async def fail() -> None:
        raise RuntimeError("no such method")

    setting.platform.abilities = replace(IDEMPOTENT, typing=True, edits=True)
    setting.platform.on_show = fail if how == "fails" else sleep_forever
    async with living(setting) as life:
        await _hang(life)
        await life.passes(1_000)
        _release(setting)
        await life.passes(1)
        assert setting.platform.texts("room")[-1] == "at last"
        await life.rests()

    check_rows(setting.rows())


async def _hang(life: Life) -> None:
    """A turn that is in its tool, and stays there."""
    before = len(life.setting.world.ran)
    await life.says("room", HANGING)
    await life.until(lambda: len(life.setting.world.ran) > before, "it hangs")


def _release(setting: Setting) -> None:
    """Nothing hangs any more."""
    setting.world.hangs.clear()
    setting.world.released.set()
