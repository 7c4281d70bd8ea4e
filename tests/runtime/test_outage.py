"""A model that does not answer for a while: how long it is tried, and what people hear of it."""

from functools import partial
from pathlib import Path

import pytest

from koboshi.domain.errors import ModelBusy, ModelRefused
from koboshi.domain.outage import Patience, outage_notice
from tests.harness.compose import Bounds
from tests.harness.invariants import answers, check_rows
from tests.runtime.gateway import Life, Setting, living
from tests.runtime.models import WatchedModel
from tests.runtime.scripts import calls, says, script

SILENT = "the provider could not be reached"
TOLD = outage_notice(Patience())


@pytest.fixture
def model() -> WatchedModel:
    return WatchedModel()


@pytest.fixture
def setting(home: Path, model: WatchedModel) -> Setting:
    return Setting(home=home, model=model)


def fails(model: WatchedModel, *, times: int, asked_ms: int | None = None) -> None:
    """The first requests from here on fail."""
    last = len(model.requests) + times
    model.before = lambda number: ModelBusy(SILENT, asked_ms) if number <= last else None


def answers_again(model: WatchedModel) -> None:
    model.before = lambda _: None


async def _has_failed_for(life: Life, model: WatchedModel, seconds: int) -> None:
    fails(model, times=1_000)
    await life.says("room", "echo late")
    await life.until(lambda: model.requests, "the first try")
    await life.passes(seconds)


async def test_an_outage_of_minutes_is_ridden_out_and_told_once(
    setting: Setting, model: WatchedModel
) -> None:
    """Issue 12, B13: answered once; the person hears once, after 20 s, that it goes on."""
    async with living(setting) as life:
        await _has_failed_for(life, model, 19)
        assert setting.platform.texts("room") == []
        await life.passes(6)
        await life.shows("room", TOLD)
        await life.passes(400)
        answers_again(model)
        await life.shows("room", TOLD, "late")

    rows = setting.rows()
    check_rows(rows)
    assert answers(rows, "room") == ["late"]
    assert len(model.requests) < 20
    assert rows.turns[0]["recoveries"] == rows.turns[0]["crash_streak"] == 0
    assert rows.of("steps", kind="note") == []


async def test_patience_has_an_end_and_the_words_say_how_long_it_was_tried(
    setting: Setting, model: WatchedModel
) -> None:
    """Issue 12, B13: ten minutes, and then one apology."""
    async with living(setting) as life:
        await _has_failed_for(life, model, 590)
        assert setting.platform.texts("room") == [TOLD]
        await life.until(lambda: len(setting.platform.texts("room")) == 2, "the apology")
        assert 595 < life.clock.monotonic() < 625

    rows = setting.rows()
    check_rows(rows)
    assert f"the model did not answer for 10 min ({SILENT})" in setting.platform.texts("room")[1]
    assert rows.turns[0]["state"] == "failed"


@pytest.mark.parametrize("total_ms", [0, 10_000])
async def test_short_patience_is_obeyed(
    setting: Setting, model: WatchedModel, total_ms: int
) -> None:
    """Issue 12, B13: 0 gives up at once; and below 20 s there is nothing to tell on the way."""
    setting.patience = Patience(total_ms=total_ms)
    fails(model, times=1_000)
    async with living(setting) as life:
        await life.says("room", "echo late")
        await life.until(lambda: setting.platform.texts("room"), "the apology")
        assert total_ms / 1000 - 1 < life.clock.monotonic() < total_ms / 1000 + 5

    (apology,) = setting.platform.texts("room")
    assert "the model did not answer" in apology
    assert total_ms or len(model.requests) == 1


async def test_a_refusal_fails_at_once(setting: Setting, model: WatchedModel) -> None:
    model.before = lambda _: ModelRefused("the key was refused")
    async with living(setting) as life:
        await life.says("room", "echo late")
        await life.until(lambda: setting.platform.texts("room"), "the apology")

    assert len(model.requests) == 1


@pytest.mark.parametrize("after_s", [2, 100])
async def test_an_outage_can_be_stopped_at_once(
    setting: Setting, model: WatchedModel, after_s: int
) -> None:
    """Issue 12, B13: while the turn sleeps with its claim, and while it is in the queue."""
    async with living(setting) as life:
        await _has_failed_for(life, model, after_s)
        began = life.clock.monotonic()
        await life.says("room", "/stop")
        await life.until(lambda: _stopped(setting), "the reply")
        assert life.clock.monotonic() - began < 1
        asked = len(model.requests)
        await life.passes(700)
        assert len(model.requests) == asked

    check_rows(setting.rows())


@pytest.mark.parametrize("after_s", [2, 100])
async def test_why_says_that_the_model_does_not_answer(
    setting: Setting, model: WatchedModel, after_s: int
) -> None:
    """Issue 12, B13: for how long, how often it was tried, and what the provider said."""
    async with living(setting) as life:
        await _has_failed_for(life, model, after_s)
        await life.says("room", "/why")
        await life.until(lambda: _why(setting), "the reason")
        reason = _why(setting)
        await life.says("room", "/stop")
        await life.until(lambda: _stopped(setting), "the end")

    assert (
        f"the model provider has not answered for {'1 s' if after_s == 2 else '1 min 40 s'}"
        in reason
    )
    assert f"{'2' if after_s == 2 else '7'} tries): {SILENT}" in reason
    assert "/stop in the chat ends it" in reason


@pytest.mark.parametrize("after_s", [2, 25, 100])
async def test_a_death_in_an_outage_keeps_what_was_waited_and_tells_nothing_again(
    setting: Setting, model: WatchedModel, after_s: int
) -> None:
    """Issue 12, B13: ten minutes altogether; the time between two lives does not count."""
    async with living(setting) as life:
        await _has_failed_for(life, model, after_s)
    setting.time_passes(minutes=30)
    async with living(setting) as life:
        began = life.clock.monotonic()
        await life.until(lambda: _apologies(setting), "the apology")
        lived_s = life.clock.monotonic() - began
        assert 600 - after_s - 60 < lived_s < 600 - after_s + 45

    check_rows(setting.rows())
    assert setting.platform.texts("room").count(TOLD) == 1


async def test_a_person_who_does_not_want_to_wait_is_told_once_and_shortens_nothing(
    setting: Setting, model: WatchedModel
) -> None:
    """Issue 12, B13: each /resume tries at once; the patience counts what was really waited."""
    async with living(setting) as life:
        await _has_failed_for(life, model, 100)
        for _ in range(12):
            tried = len(model.requests)
            await life.says("room", "/resume")
            await life.until(partial(_is_tried_again, model, tried), "one more try")
            await life.passes(2)
        assert not _apologies(setting)
        answers_again(model)
        await life.until(lambda: "late" in setting.platform.texts("room"), "the answer")

    check_rows(setting.rows())
    assert setting.platform.texts("room").count(TOLD) == 1


async def test_a_clock_that_jumps_changes_neither_end_of_the_patience_by_more_than_a_wait(
    setting: Setting, model: WatchedModel
) -> None:
    """Issue 12, B13: what counts is added up, try by try."""
    async with living(setting) as life:
        await _has_failed_for(life, model, 100)
        life.clock.move_wall(1_800_000)
        await life.passes(100)
        life.clock.move_wall(-48 * 3_600_000)
        await life.passes(300)
        await life.until(lambda: _apologies(setting), "the apology")
        # A wait that the clock made too long is bounded by each heartbeat.
        assert 600 - 61 < life.clock.monotonic() < 600 + 600 + 30

    assert "for 10 min" in setting.platform.texts("room")[-1]


async def test_progress_ends_the_outage(setting: Setting, model: WatchedModel) -> None:
    """Issue 12, B13: the next request has the whole patience again, and is told of by itself."""
    model.before = lambda number: None if number in (7, 14) else ModelBusy(SILENT)
    async with living(setting) as life:
        await life.says("room", script(calls("do_none"), says("through")))
        await life.until(lambda: "through" in setting.platform.texts("room"), "the answer")

    assert setting.platform.texts("room") == [TOLD, TOLD, "through"]
    rows = setting.rows()
    check_rows(rows)


async def test_no_slot_is_held_while_the_model_does_not_answer(
    setting: Setting, model: WatchedModel
) -> None:
    """Issue 12, B13: neither in a short wait nor in a long one."""
    setting.bounds = Bounds(turns_max=1)
    async with living(setting) as life:
        await _has_failed_for(life, model, 0)
        held = []
        for _ in range(1_000):
            await life.passes(0.1)
            held.append(life.gateway.dispatch.slots.held)

    assert held.count(0) > 990


async def test_a_provider_that_names_a_wait_beyond_the_patience_is_given_up(
    setting: Setting, model: WatchedModel
) -> None:
    fails(model, times=1, asked_ms=601_000)
    async with living(setting) as life:
        await life.says("room", "echo late")
        await life.until(lambda: setting.platform.texts("room"), "the apology")

    (apology,) = setting.platform.texts("room")
    assert "asks for a wait of 10 min 1 s" in apology


async def test_a_stop_of_the_gateway_in_a_short_wait_gives_the_turn_back_with_its_wait(
    setting: Setting, model: WatchedModel
) -> None:
    """The turn is postponed and not interrupted: the model is told nothing."""
    setting.bounds = Bounds(drain_seconds=60)
    fails(model, times=2)
    async with living(setting) as life:
        await life.says("room", "echo late")
        await life.until(lambda: model.requests, "the first try")
        life.stop()
        await life.is_over.wait()
        assert life.clock.monotonic() < 10
    async with living(setting) as life:
        await life.until(lambda: "late" in setting.platform.texts("room"), "the answer")

    rows = setting.rows()
    check_rows(rows)
    assert rows.of("steps", kind="note") == []


def _stopped(setting: Setting) -> bool:
    return any(text.startswith("Stopped: ") for text in setting.platform.texts("room"))


def _is_tried_again(model: WatchedModel, tried: int) -> bool:
    return len(model.requests) > tried


def _apologies(setting: Setting) -> bool:
    return any("I could not finish" in text for text in setting.platform.texts("room"))


def _why(setting: Setting) -> str:
    return next((text for text in setting.platform.texts("room") if "Why: " in text), "")
