"""Issue 12, A4 and C18: a resource of ours is missing and comes back, descriptors for example. It
ends no turn, at any point."""

import errno
import os
from pathlib import Path

import pytest

from koboshi.domain.errors import ModelBusy
from koboshi.domain.resource_exhaustion import Shortage, shortage_in
from koboshi.domain.splitting import split_text
from koboshi.runtime.turn import PAUSE_S_MAX
from tests.harness.invariants import answers, check_rows
from tests.harness.platform import FakeChannel
from tests.runtime.gateway import Setting, living
from tests.runtime.models import WatchedModel

NO_DESCRIPTORS = OSError(errno.EMFILE, os.strerror(errno.EMFILE))


@pytest.fixture
def model() -> WatchedModel:
    return WatchedModel()


@pytest.fixture
def setting(home: Path, model: WatchedModel) -> Setting:
    return Setting(home=home, model=model)


def not_reached() -> ModelBusy:
    """As a model says it that could not open a connection."""
    busy = ModelBusy("the provider could not be reached")
    busy.__cause__ = ExceptionGroup("each address", [NO_DESCRIPTORS])
    return busy


async def test_an_answer_that_cannot_be_formatted_for_want_of_descriptors_is_given_later(
    setting: Setting, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What formats it is loaded by its first use. The turn failed with "an error of mine"."""
    tries: list[str] = []

    def split(_channel: FakeChannel, text: str) -> tuple[str, ...]:
        tries.append(text)
        if len(tries) <= 4:
            raise NO_DESCRIPTORS
        return split_text(text, 4_000)

    monkeypatch.setattr(FakeChannel, "split", split)
    async with living(setting) as life:
        await life.says("room", "echo late")
        await life.shows("room", "late")
        assert life.clock.monotonic() < 5 * PAUSE_S_MAX

    rows = setting.rows()
    check_rows(rows)
    assert answers(rows, "room") == ["late"]
    assert rows.turns[0]["recoveries"] == rows.turns[0]["crash_streak"] == 0


async def test_a_model_that_we_cannot_ask_is_not_one_that_does_not_answer(
    setting: Setting, model: WatchedModel
) -> None:
    """The patience with a model is for a model: no person is told of an outage that is none, and
    the turn lives longer than the patience."""
    model.before = lambda _: not_reached()
    async with living(setting) as life:
        await life.says("room", "echo late")
        await life.until(lambda: len(model.requests) > 4, "it is tried again")
        await life.passes(setting.patience.total_ms / 1_000 + 60)
        assert setting.platform.texts("room") == []
        model.before = lambda _: None
        await life.shows("room", "late")

    check_rows(setting.rows())


async def test_a_stop_ends_a_turn_that_waits(setting: Setting, model: WatchedModel) -> None:
    model.before = lambda _: not_reached()
    async with living(setting) as life:
        await life.says("room", "echo never")
        await life.until(lambda: model.requests, "it is tried")
        await life.says("room", "/stop")
        await life.until(lambda: life.gateway.dispatch.running == 0, "the turn is left")

    rows = setting.rows()
    check_rows(rows)
    assert rows.turns[0]["state"] == "stopped"


async def test_a_turn_that_waits_holds_no_slot(setting: Setting, model: WatchedModel) -> None:
    model.before = lambda _: not_reached()
    async with living(setting) as life:
        await life.says("room", "echo late")
        await life.until(lambda: model.requests, "it is tried")
        await life.until(lambda: life.gateway.dispatch.slots.held == 0, "the slot is given back")
        assert life.gateway.dispatch.running == 1


async def test_a_bug_is_still_the_end_of_a_turn(
    setting: Setting, monkeypatch: pytest.MonkeyPatch
) -> None:
    def split(_channel: FakeChannel, _text: str) -> tuple[str, ...]:
        raise OSError(errno.ENOENT, os.strerror(errno.ENOENT))

    monkeypatch.setattr(FakeChannel, "split", split)
    async with living(setting) as life:
        await life.says("room", "echo never")
        await life.rests()

    assert setting.rows().turns[0]["state"] == "failed"


@pytest.mark.parametrize(
    "error",
    [
        NO_DESCRIPTORS,
        ExceptionGroup("side by side", [ValueError(), ExceptionGroup("below", [NO_DESCRIPTORS])]),
        ImportError("libz.so.1: cannot open shared object file: Too many open files"),
        Shortage("no file descriptors are left for this process"),
        not_reached(),
        ConnectionError(NO_DESCRIPTORS),
    ],
    ids=lambda error: type(error).__name__,
)
def test_a_shortage_is_known_however_it_is_told(error: Exception) -> None:
    assert shortage_in(error) == "no file descriptors are left for this process"


@pytest.mark.parametrize(
    "error",
    [
        ValueError("Too many open files"),
        ImportError("No module named 'x'"),
        OSError(errno.ENOENT, ""),
        ExceptionGroup("side by side", [ValueError()]),
    ],
    ids=lambda error: type(error).__name__,
)
def test_nothing_else_passes_for_one(error: Exception) -> None:
    assert shortage_in(error) is None
