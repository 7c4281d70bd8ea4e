"""One turn: how it comes to its end, and what does not count as one."""

from pathlib import Path

import pytest

from koboshi.domain.action import TurnLimits
from koboshi.domain.errors import ModelBusy, ModelRefused
from koboshi.domain.outage import Patience
from koboshi.domain.phrases import excerpt
from koboshi.domain.transcript import Result
from koboshi.ports.tool import ToolFailed
from tests.harness.compose import Bounds
from tests.harness.invariants import answers, check_rows
from tests.harness.rows import Rows
from tests.runtime.gateway import Life, Setting, living
from tests.runtime.models import WatchedModel
from tests.runtime.scripts import calls, says, script


@pytest.fixture
def setting(home: Path) -> Setting:
    return Setting(home=home)


async def asks(setting: Setting, life: Life) -> str:
    """The person is asked; in which words."""
    await life.until(lambda: setting.platform.texts("room"), "the question")
    (asked,) = setting.platform.texts("room")
    assert asked.startswith("May I run guarded?\n\n{}\n\n")
    return asked


async def test_a_turn_is_done_when_its_answer_was_delivered(setting: Setting) -> None:
    """S1, S2, S45: it is on the disk as running before the model is asked, and over with the
    answer."""
    seen: list[str] = []
    async with living(setting) as life:
        life.tracked.on_verb = seen.append
        await life.says("room", "echo hello")
        await life.shows("room", "hello")
        await life.passes(100)

    rows = setting.rows()
    check_rows(rows)
    assert [turn["state"] for turn in rows.turns] == ["done"]
    assert seen.index("turns.claim") < seen.index("turns.load") < seen.index("turns.answer")


async def test_an_empty_reply_is_asked_for_once_more(setting: Setting) -> None:
    """S45: nothing was said, so the turn is not over; the second try is."""
    async with living(setting) as life:
        await life.says("room", script({"empty": True}, says("words")))
        await life.shows("room", "words")

    (note,) = setting.rows().of("steps", kind="note")
    assert note["cause"] == "empty-reply"


async def test_two_empty_replies_are_a_failure_with_one_apology(setting: Setting) -> None:
    """S45, S46, S156: no answer is stored for an empty reply; the next message is served."""
    async with living(setting) as life:
        await life.says("room", "say nothing")
        await life.until(lambda: setting.platform.texts("room"), "the apology")
        await life.says("room", "echo hello")
        await life.until(lambda: "hello" in setting.platform.texts("room"), "the next turn")

    (apology, _) = setting.platform.texts("room")
    assert "the model sent an empty answer twice" in apology
    rows = setting.rows()
    check_rows(rows)
    assert [turn["state"] for turn in rows.turns] == ["failed", "done"]
    assert answers(rows, "room") == ["hello"]


async def test_a_busy_model_is_asked_again_after_a_while(setting: Setting) -> None:
    """The wait it asks for is respected, and grows by itself."""
    model = setting.model = WatchedModel(
        lambda number: ModelBusy("full", 6_000) if number < 4 else None
    )
    async with living(setting) as life:
        began = life.clock.monotonic()
        await life.says("room", "echo hello")
        await life.shows("room", "hello")
        waited = life.clock.monotonic() - began

    assert len(model.requests) == 4
    assert 18 <= waited < 27


async def test_a_model_that_stays_busy_fails_the_turn_once(setting: Setting) -> None:
    """S45, S46: until patience is over, one apology, and nothing is left over."""
    setting.patience = Patience(total_ms=15_000)
    model = setting.model = WatchedModel(lambda _: ModelBusy("overloaded"))
    async with living(setting) as life:
        await life.says("room", "echo hello")
        await life.until(lambda: setting.platform.shown, "the apology")
        await life.passes(300)

    assert len(model.requests) == 5
    (apology,) = setting.platform.texts("room")
    assert "the model did not answer for 15 s (overloaded)" in apology
    check_rows(setting.rows())


async def test_the_tries_of_a_busy_model_are_counted_over_a_death(setting: Setting) -> None:
    """S72: a gateway that dies in between does not start them anew."""
    setting.patience = Patience(total_ms=15_000)
    model = setting.model = WatchedModel(lambda _: ModelBusy("overloaded"))
    async with living(setting) as life:
        await life.says("room", "echo hello")
        await life.until(lambda: len(model.requests) == 4, "four tries")
        await life.passes(1)
    async with living(setting) as life:
        await life.until(lambda: setting.platform.shown, "the apology")

    assert len(model.requests) == 5
    check_rows(setting.rows())


async def test_progress_forgives_the_tries_before_it(setting: Setting) -> None:
    """A model that is busy now and then does not fail a long turn."""
    busy = {1, 2, 3, 5, 6, 7}
    setting.model = WatchedModel(lambda number: ModelBusy("full") if number in busy else None)
    async with living(setting) as life:
        await life.says("room", script(calls("do_none"), says("through")))
        await life.shows("room", "through")


async def test_a_model_that_refuses_is_not_asked_again(setting: Setting) -> None:
    """S45: one request, one apology with its reason."""
    model = setting.model = WatchedModel(lambda _: ModelRefused("this is against the rules"))
    async with living(setting) as life:
        await life.says("room", "echo hello")
        await life.until(lambda: setting.platform.shown, "the apology")
        await life.passes(100)

    assert len(model.requests) == 1
    (apology,) = setting.platform.texts("room")
    assert "this is against the rules" in apology
    check_rows(setting.rows())


async def test_a_bug_in_the_model_fails_its_turn_and_no_other(setting: Setting) -> None:
    """S52: one apology, and the gateway serves on."""
    setting.model = WatchedModel(lambda number: KeyError("choices") if number == 1 else None)
    async with living(setting) as life:
        await life.says("room", "echo hello")
        await life.until(lambda: setting.platform.texts("room"), "the apology")
        await life.says("other", "echo hello")
        await life.shows("other", "hello")

    assert len(setting.platform.texts("room")) == 1
    check_rows(setting.rows())


async def test_a_tool_that_is_not_there_is_told_to_the_model(setting: Setting) -> None:
    async with living(setting) as life:
        await life.says("room", script(calls("no_such_tool", "do_none"), says("through")))
        await life.shows("room", "through")

    (first, second) = _results(setting.rows())
    assert first.status == "error"
    assert 'there is no tool "no_such_tool"' in first.text
    assert second.status == "ok"
    check_rows(setting.rows())


async def test_a_call_with_bad_arguments_is_not_run(setting: Setting) -> None:
    """S159: it gets its result without having been started."""
    async with living(setting) as life:
        await life.says("room", script(calls("do_once", bad=1), says("through")))
        await life.shows("room", "through")

    rows = setting.rows()
    assert setting.world.ran == []
    (call,) = rows.calls
    assert (call["started_ms"], call["skipped_ms"] is not None) == (None, True)
    assert "`bad` is not an argument" in _results(rows)[0].text


@pytest.mark.parametrize(
    "error, words, status",
    [
        (ToolFailed("the printer is on fire"), "the printer is on fire", "error"),
        (KeyError("x"), "KeyError", "unknown"),
    ],
)
async def test_a_tool_that_fails_is_told_to_the_model(
    setting: Setting, error: Exception, words: str, status: str
) -> None:
    """Whether it says so or has a bug: the model hears of it, once, and goes on. With a bug,
    what it did is unknown (issue 12, A4)."""
    setting.world.raises = lambda tool: error if tool == "do_once" else None
    async with living(setting) as life:
        await life.says("room", script(calls("do_once"), says("through")))
        await life.shows("room", "through")

    (result,) = _results(setting.rows())
    assert result.status == status
    assert words in result.text
    assert setting.world.ran == ["do_once"]


async def test_a_result_without_end_is_cut(setting: Setting) -> None:
    setting.world.results["do_none"] = "x" * 100_000
    async with living(setting) as life:
        await life.says("room", script(calls("do_none"), says("through")))
        await life.shows("room", "through")

    (result,) = _results(setting.rows())
    assert result.text.endswith("… 98000 more characters left out")


async def test_text_that_cannot_be_stored_does_no_harm(setting: Setting) -> None:
    """Half a character, as broken encodings leave behind."""
    setting.world.results["do_none"] = "half \ud800 a character"
    async with living(setting) as life:
        await life.says("room", script(calls("do_none"), says("through")) + " \udc00")
        await life.until(lambda: setting.platform.shown, "an answer")

    check_rows(setting.rows())


async def test_a_turn_without_end_is_ended(setting: Setting) -> None:
    """S45: too many steps are a failure, not an answer."""
    setting.bounds = Bounds(turns=TurnLimits(steps_max=20))
    async with living(setting) as life:
        await life.says("room", script(*[calls("do_none")] * 50, says("never")))
        await life.until(lambda: setting.platform.shown, "the apology")
        await life.passes(100)

    (apology,) = setting.platform.texts("room")
    assert "it took too many steps" in apology
    assert len(setting.world.ran) < 20
    check_rows(setting.rows())


async def test_calls_of_one_reply_run_side_by_side(setting: Setting) -> None:
    setting.world.hangs = {"do_none", "do_once"}
    async with living(setting) as life:
        await life.says("room", script(calls("do_none", "do_once"), says("through")))
        await life.until(lambda: len(setting.world.ran) == 2, "both run")
        setting.world.released.set()
        await life.shows("room", "through")

    check_rows(setting.rows())


async def test_a_question_is_asked_when_everything_else_is_done(setting: Setting) -> None:
    """S69, S140: calls that need no person run first; the turn then waits, and costs nothing."""
    question = {"tool": "ask", "arguments": {"question": "Tea or coffee?"}}
    both: dict[str, object] = {"calls": [question, {"tool": "do_once"}]}
    async with living(setting) as life:
        await life.says("room", script(both, says("through")))
        await life.shows("room", "Tea or coffee?")
        assert setting.world.ran == ["do_once"]
        assert life.gateway.dispatch.running == 0
        await life.says("room", "tea")
        await life.shows("room", "Tea or coffee?", "through")

    rows = setting.rows()
    check_rows(rows)
    assert [result.status for result in _results(rows)] == ["ok", "ok"]


@pytest.mark.parametrize("choice, ran", [("yes", ["guarded"]), ("no", [])])
async def test_a_call_that_needs_consent_runs_only_with_it(
    setting: Setting, choice: str, ran: list[str]
) -> None:
    """S143, S162: not before the answer, not without it, and once."""
    async with living(setting) as life:
        await life.says("room", script(calls("guarded"), says("through")))
        asked = await asks(setting, life)
        assert setting.world.ran == []
        await life.presses("room", choice, key="button")
        await life.presses("room", choice, key="button")
        await life.shows("room", asked, "through")

    assert setting.world.ran == ran
    check_rows(setting.rows())


@pytest.mark.parametrize(
    "command, ran, said",
    [("/approve", ["guarded"], "Approved: "), ("/deny rather not", [], "Denied: ")],
)
async def test_a_command_gives_or_refuses_consent_over_a_loss_of_power(
    setting: Setting, command: str, ran: list[str], said: str
) -> None:
    """S143: also when it comes twice, and only from a person who is allowed."""
    setting.is_allowed = lambda _channel, person: person == "ann"
    async with living(setting) as life:
        await life.says("room", script(calls("guarded"), says("through")))
        asked = await asks(setting, life)
    async with living(setting) as life:
        await life.says("room", "/approve", sender="mallory")
        await life.passes(60)
        assert setting.world.ran == []
        await life.says("room", command, key="command")
        await life.says("room", command, key="command")
        await life.shows("room", asked, f"{said}«{excerpt(asked, 200)}».", "through")

    assert setting.world.ran == ran
    check_rows(setting.rows())


async def test_a_question_without_an_answer_is_let_go(setting: Setting) -> None:
    """S60, S140: it expires with one notice; the next message is a new turn, not the answer."""
    setting.bounds = Bounds(question_age_ms_max=60_000)
    async with living(setting) as life:
        await life.says("room", "ask me which drink: tea or coffee")
        await life.until(lambda: len(setting.platform.shown) == 2, "the notice")
        await life.says("room", "echo tea")
        await life.until(lambda: len(setting.platform.shown) == 3, "the answer")
        await life.passes(100)

    assert setting.platform.texts("room")[1:] == [
        "«Which drink?» was not answered in time, so I have closed it.",
        "tea",
    ]
    rows = setting.rows()
    check_rows(rows)
    assert [turn["state"] for turn in rows.turns] == ["stopped", "done"]


async def test_a_long_answer_is_delivered_in_parts_that_make_it_up(setting: Setting) -> None:
    """S150: each part once, in order."""
    text = "\n\n".join(f"paragraph {number} " + "word " * 40 for number in range(30))
    async with living(setting) as life:
        await life.says("room", script(says(text)))
        await life.until(lambda: "paragraph 29" in "".join(setting.platform.texts("room")), "all")
        await life.passes(100)

    assert len(setting.platform.texts("room")) > 5
    assert "".join(setting.platform.texts("room")) == text
    check_rows(setting.rows())


async def test_the_model_sees_earlier_turns_and_never_a_command(setting: Setting) -> None:
    """S96: what was said to the gateway itself is not the model's."""
    model = setting.model = WatchedModel()
    async with living(setting) as life:
        await life.says("room", "echo one")
        await life.shows("room", "one")
        await life.says("room", "/status")
        await life.until(lambda: len(setting.platform.shown) == 2, "the status")
        await life.says("room", "echo two")
        await life.until(lambda: len(setting.platform.shown) == 3, "the answer")

    shown = [getattr(step.body, "text", "") for step in model.requests[-1].steps]
    assert shown == ["echo one", "one", "echo two"]


def _results(rows: Rows) -> list[Result]:
    found = [rows.body(step) for step in rows.of("steps", kind="result")]
    ordered = sorted(found, key=lambda body: [int(part) for part in body["call_id"].split(".")])
    return [Result(**body) for body in ordered]
