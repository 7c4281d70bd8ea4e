"""Issue 12, A4: what becomes of a call that was started when something of ours goes wrong."""

import errno
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from koboshi.domain.errors import Fenced
from koboshi.domain.resource_exhaustion import shortage_in
from koboshi.domain.transcript import Effect, Result
from koboshi.kernel.decode import body_of
from koboshi.ports.tool import ToolFailed
from koboshi.runtime.calls import PAUSE_S_MAX
from tests.harness.invariants import check_rows
from tests.harness.rows import Rows
from tests.runtime.gateway import Setting, living
from tests.runtime.scripts import calls, says, script

NO_DESCRIPTORS = OSError(errno.EMFILE, os.strerror(errno.EMFILE))
OURS = (
    NO_DESCRIPTORS,
    Fenced("something else is"),
    ValueError("a bug"),
    ExceptionGroup("side by side", [NO_DESCRIPTORS]),
)


@pytest.fixture
def setting(home: Path) -> Setting:
    return Setting(home=home)


def results(rows: Rows) -> list[Result]:
    bodies = [body_of("result", row["body"]) for row in rows.of("steps", kind="result")]
    return [body for body in bodies if isinstance(body, Result)]


def failing(error: Exception, times: int) -> Callable[[str], Exception | None]:
    """Raises so often, and then no more."""
    left = [error] * times

    def raises(_tool: str) -> Exception | None:
        return left.pop() if left else None

    return raises


@pytest.mark.parametrize("error", OURS, ids=lambda error: type(error).__name__)
@pytest.mark.parametrize("effect", Effect)
async def test_an_error_of_ours_is_never_the_failure_of_a_call_that_matters(
    setting: Setting, effect: Effect, error: Exception
) -> None:
    """Unknown for `once`, taken up for `resumable`; the others do no harm when they run again, and
    do so where something was missing that comes back."""
    setting.world.raises = failing(error, 1)
    async with living(setting) as life:
        await life.says("room", script(calls(f"do_{effect}"), says("through")))
        await life.shows("room", "through")

    rows = setting.rows()
    check_rows(rows)
    (result,) = results(rows)
    match effect:
        case Effect.ONCE:
            assert (result.status, setting.world.ran) == ("unknown", ["do_once"])
            assert "Do not repeat it" in result.text
        case Effect.RESUMABLE:
            assert result.status == "ok"
            assert setting.world.ran == ["do_resumable", "do_resumable:resumed"]
        case _ if shortage_in(error) is not None:
            assert (result.status, setting.world.ran) == ("ok", [f"do_{effect}"] * 2)
        case _:
            assert (result.status, len(setting.world.ran)) == ("error", 1)


@pytest.mark.parametrize("effect", Effect)
async def test_only_the_tool_says_that_it_failed(setting: Setting, effect: Effect) -> None:
    setting.world.raises = failing(ToolFailed("the printer is on fire"), 1)
    async with living(setting) as life:
        await life.says("room", script(calls(f"do_{effect}"), says("through")))
        await life.shows("room", "through")

    (result,) = results(setting.rows())
    assert result.status == "error"
    assert "the printer is on fire" in result.text
    assert len(setting.world.ran) == 1


async def test_a_call_is_taken_up_again_and_again_with_growing_pauses(setting: Setting) -> None:
    """The longest pause is bounded, so it goes on soon after the want is over."""
    setting.world.raises = failing(NO_DESCRIPTORS, 12)
    async with living(setting) as life:
        await life.says("room", script(calls("do_resumable"), says("through")))
        await life.until(lambda: len(setting.world.ran) == 3, "it is tried")
        assert setting.platform.texts("room") == []
        for _ in range(12):
            await life.passes(PAUSE_S_MAX)
        await life.shows("room", "through")

    assert setting.world.ran == ["do_resumable", *["do_resumable:resumed"] * 12]


async def test_a_stop_ends_the_trying(setting: Setting) -> None:
    setting.world.raises = lambda _: NO_DESCRIPTORS
    async with living(setting) as life:
        await life.says("room", script(calls("do_resumable"), says("never")))
        await life.until(lambda: len(setting.world.ran) == 2, "it is tried")
        await life.says("room", "/stop")
        await life.until(lambda: life.gateway.dispatch.running == 0, "the turn is left")
        tried = len(setting.world.ran)
        await life.passes(10 * PAUSE_S_MAX)
        assert len(setting.world.ran) == tried

    (result,) = results(setting.rows())
    assert result.status == "unknown"


async def test_the_next_life_goes_on_with_the_trying(setting: Setting) -> None:
    setting.world.raises = lambda _: NO_DESCRIPTORS
    async with living(setting) as life:
        await life.says("room", script(calls("do_resumable"), says("through")))
        await life.until(lambda: len(setting.world.ran) == 2, "it is tried")
    setting.world.raises = lambda _: None
    async with living(setting) as life:
        await life.passes(5)
        await life.shows("room", "through")

    assert setting.world.ran.count("do_resumable") == 1
    (result,) = results(setting.rows())
    assert result.status == "ok"


@pytest.mark.parametrize("effect", [Effect.ONCE, Effect.RESUMABLE])
async def test_words_that_cannot_be_shown_are_an_unknown_outcome(
    setting: Setting, effect: Effect
) -> None:
    """Taking it up again would bring the same words."""

    def redact(text: str) -> str:
        if "done" in text:
            raise RuntimeError("a bug in the redaction")
        return text

    async with living(setting) as life:
        runner = life.gateway.dispatch.runner
        life.gateway.dispatch.runner = replace(runner, calls=replace(runner.calls, redact=redact))
        await life.says("room", script(calls(f"do_{effect}"), says("through")))
        await life.shows("room", "through")

    (result,) = results(setting.rows())
    assert result.status == "unknown"
    assert setting.world.ran == [f"do_{effect}"]


async def test_a_tool_that_is_gone_leaves_what_it_began_unknown(setting: Setting) -> None:
    """The call had begun before the restart. A missing tool to resume it is no failure of it."""
    setting.world.hangs = {"do_resumable"}
    async with living(setting) as life:
        await life.says("room", script(calls("do_resumable"), says("through")))
        await life.until(lambda: setting.world.ran, "it runs")
    setting.world.is_without = {"do_resumable"}
    async with living(setting) as life:
        await life.passes(5)
        await life.shows("room", "through")

    (result,) = results(setting.rows())
    assert result.status == "unknown"
    assert setting.world.ran == ["do_resumable"]
