"""Source 004: phantom activity after a restart: old work revived, finished work resumed, notes that
feed on themselves, questions taken for work."""

from pathlib import Path

import pytest

from koboshi.domain.errors import ModelBusy
from koboshi.domain.outbox import Refused
from koboshi.domain.recovery import Policy, RecoveryPolicy
from tests.crash.stories import CHAT, pauses
from tests.crash.stories import script as scripted
from tests.harness.compose import Bounds
from tests.harness.invariants import check_rows
from tests.harness.jobs import UNTIL_GO, process, saying, scene, terminal
from tests.runtime.gateway import Setting, living
from tests.runtime.models import WatchedModel
from tests.runtime.scripts import calls, says, script
from tests.seeds.dying import WORK, at_work, die_at_work


async def test_a_fresh_restart_does_not_revive_an_old_transcript(setting: Setting) -> None:
    """S48, S49: five boots in two hours, each of which could have called it fresh."""
    setting.policy = Policy(recovery=RecoveryPolicy.OFF)
    await die_at_work(setting, "room")
    for _ in range(5):
        setting.time_passes(minutes=25)
        async with living(setting) as life:
            await life.passes(20)
    setting.policy = Policy()
    async with living(setting) as life:
        await life.until(lambda: len(setting.platform.shown) == 2, "the question")
        await life.passes(100)

    assert setting.world.ran == ["do_none"]
    set_aside, question = setting.platform.texts("room")
    assert "/resume goes on with it" in set_aside
    assert "Shall I continue?" in question


async def test_every_line_of_the_transcript_has_its_time(setting: Setting) -> None:
    """S49: "no time, so it must be fresh" cannot be said of anything that is stored."""
    await die_at_work(setting, "room")

    rows = setting.rows()
    assert rows.steps
    assert all(step["at_ms"] >= setting.wall_ms for step in rows.steps)
    assert all(turn["progressed_ms"] >= setting.wall_ms for turn in rows.turns)


@pytest.mark.parametrize("verb", ["outbox.claim", "outbox.settle"])
async def test_an_answered_session_is_delivered_and_not_resumed(
    setting: Setting, verb: str
) -> None:
    """S54, S147: the transcript ends with the answer. The next boot delivers it; the model is not
    asked, and no note is left."""
    model = setting.model = WatchedModel()

    def lose_power(reached: str) -> None:
        life.tracked.is_dead |= reached == verb

    async with living(setting) as life:
        life.tracked.on_verb = lose_power
        await life.says("room", "echo hello")
        await life.until(lambda: life.tracked.is_dead, "the power fails")
    async with living(setting) as life:
        await life.rests()
        await life.passes(100)

    assert len(model.requests) == 1
    rows = setting.rows()
    check_rows(rows)
    assert not rows.of("steps", kind="note")
    assert not rows.of("journal", event="resumed")


@pytest.mark.parametrize(
    "verb, time",
    [("turns.load", 1), ("turns.start_call", 1), ("turns.finish_call", 1), ("turns.answer", 1)],
    ids=["message", "proposed", "started", "result"],
)
async def test_everything_short_of_an_answer_is_resumed(
    setting: Setting, verb: str, time: int
) -> None:
    """S53, S55, S56, S57, S58: an unanswered message, calls with words beside them, a result."""

    def lose_power(reached: str) -> None:
        life.tracked.is_dead |= reached == verb

    async with living(setting) as life:
        life.tracked.on_verb = lose_power
        words = calls("do_none", text="I am looking into it.")
        await life.says("room", script(words, says("through")))
        await life.until(lambda: life.tracked.is_dead, "the power fails")
    async with living(setting) as life:
        await life.shows("room", "through")

    rows = setting.rows()
    check_rows(rows)
    assert [line["rule"] for line in rows.of("journal", event="resumed")] == ["fresh"]


async def test_a_note_of_an_earlier_try_does_not_keep_a_turn_alive(setting: Setting) -> None:
    """S53, S59: the note is not progress: after three tries that did nothing it ends."""
    await die_at_work(setting, "room")
    for _ in range(2):
        setting.world.hangs = {"do_none"}
        async with living(setting) as life:
            tried = len(setting.world.ran)
            await life.until(lambda seen=tried: len(setting.world.ran) > seen, "a try")  # type: ignore[misc]
    for _ in range(3):
        async with living(setting) as life:
            await life.passes(100)

    assert len(setting.world.ran) == 3
    (apology,) = setting.platform.texts("room")
    assert "have given it up" in apology
    check_rows(setting.rows())


async def test_a_question_is_not_unfinished_work(setting: Setting) -> None:
    """S60, S140: boots come and go; nothing is asked again, nothing runs. When it has expired, the
    next message is not taken for its answer."""
    model = setting.model = WatchedModel()
    async with living(setting) as life:
        await life.says("room", "ask me which drink: tea or coffee")
        await life.until(lambda: setting.platform.shown, "the question")
    for _ in range(3):
        setting.time_passes(minutes=60)
        async with living(setting) as life:
            await life.passes(30)
    assert len(setting.platform.shown) == len(model.requests) == 1
    setting.time_passes(minutes=24 * 60)
    async with living(setting) as life:
        await life.until(lambda: len(setting.platform.shown) == 2, "it is let go")
        await life.says("room", "echo tea")
        await life.until(lambda: len(setting.platform.shown) == 3, "the answer")

    rows = setting.rows()
    check_rows(rows)
    assert [turn["state"] for turn in rows.turns] == ["stopped", "done"]
    assert setting.platform.texts("room")[2] == "tea"


async def test_a_model_that_is_over_its_limit_is_not_announced_after_each_restart(
    setting: Setting,
) -> None:
    """S45, S46, S149: the visible symptom of the report: the same error again and again."""
    setting.model = WatchedModel(lambda _: ModelBusy("rate limit"))
    async with living(setting) as life:
        await life.says("room", "echo hello")
        await life.until(lambda: len(setting.platform.shown) == 2, "the notice and the apology")
        await life.rests()
    for _ in range(3):
        async with living(setting) as life:
            await life.passes(100)

    notice, apology = setting.platform.texts("room")
    assert "keep trying" in notice
    assert "I could not finish" in apology


@pytest.mark.parametrize("is_during", [False, True], ids=["before", "during"])
async def test_a_session_that_ended_before_or_in_the_drain_is_not_resumed_with_the_others(
    setting: Setting, is_during: bool
) -> None:
    """S26: one finished before the stop or while the drain waited, another was still at work when
    its time was up; only that one is taken up."""
    setting.bounds = Bounds(drain_seconds=60)
    setting.world.hangs = {"do_none"}
    async with living(setting) as life:
        await at_work(life, "slow")
        await life.says("quick", script({"text": "hello", "sleep_ms": 5_000}))
        if not is_during:
            await life.shows("quick", "hello")
        await life.until(lambda: life.gateway.dispatch.running == 1 + is_during, "they work")
        life.stop()
        await life.is_over.wait()
    setting.world.hangs = set()
    async with living(setting) as life:
        await life.shows("slow", "through")
        await life.passes(100)

    rows = setting.rows()
    check_rows(rows)
    assert rows.one("turns", session_id=rows.session("quick"))["recoveries"] == 0
    assert setting.platform.texts("quick").count("hello") == 1
    # Who was at work when the stop came heard of the restart.
    assert len(setting.platform.shown) == 3 + is_during


async def test_the_boot_and_a_message_come_to_the_same_verdict(home: Path, tmp_path: Path) -> None:
    """S61: whether the boot or a message meets the old turn first, it is not started."""
    for number, writes in enumerate((False, True)):
        folder = tmp_path / str(number)
        folder.mkdir()
        setting = Setting(home=folder)
        await die_at_work(setting, "room")
        setting.time_passes(minutes=120)
        async with living(setting) as life:
            if writes:
                await life.says("room", "echo something else")
            await life.until(lambda seen=setting: seen.platform.shown, "words")  # type: ignore[misc]
            await life.passes(60)
        assert setting.world.ran == ["do_none"]
        # The last move of the turn has no rule where the message came behind the boot's question.
        rules = [line["rule"] or "" for line in setting.rows().of("journal", subject="turn")]
        assert any(rule.startswith("stale") for rule in rules)


async def test_a_turn_behind_a_cut_is_recovered_with_its_own_transcript(setting: Setting) -> None:
    """S62: after /new the model sees the new conversation only, also when it is resumed."""
    model = setting.model = WatchedModel()
    async with living(setting) as life:
        await life.says("room", "echo old secrets")
        await life.shows("room", "old secrets")
        await life.says("room", "/new")
        await life.until(lambda: len(setting.platform.shown) == 2, "a new beginning")
    await die_at_work(setting, "room")
    async with living(setting) as life:
        await life.until(lambda: "through" in setting.platform.texts("room"), "it goes on")

    shown = [getattr(step.body, "text", "") for step in model.requests[-1].steps]
    assert "echo old secrets" not in shown
    assert WORK in shown


async def test_a_question_that_never_arrived_is_not_unfinished_work(setting: Setting) -> None:
    """S60, S140: the platform would not take it. No boot works on it, and it is not asked twice."""
    model = setting.model = WatchedModel()
    setting.platform.outcomes = lambda _: (Refused(reason="no such topic"), False)
    async with living(setting) as life:
        await life.says("room", "ask me which drink: tea or coffee")
        await life.until(lambda: setting.platform.tried, "it is tried")
    for _ in range(3):
        async with living(setting) as life:
            await life.passes(100)

    assert len(model.requests) == len(setting.platform.tried) == 1
    assert not setting.rows().of("journal", event="resumed")


async def test_the_notifier_of_a_turn_says_nothing_once_the_follow_up_runs(
    setting: Setting,
) -> None:
    """S94, S99, S100, S103: the reported spam: several timers at once, each with its own time. One
    turn and two that waited behind it, each at work for seven minutes, across a restart."""
    setting.bounds = Bounds(progress_seconds=180)
    slow = script({"text": "done", "sleep_ms": 420_000})
    async with living(setting) as life:
        for _ in range(3):
            await life.says("room", slow)
        await life.until(lambda: "done" in setting.platform.texts("room"), "the first")
        await life.passes(60)
    async with living(setting) as life:
        await life.until(lambda: setting.platform.texts("room").count("done") == 3, "all three")
        await life.passes(1_000)

    minutes = [
        text.split(",")[1].strip()
        for text in setting.platform.texts("room")
        if text.startswith("Still working")
    ]
    assert minutes[:2] == ["3 min", "6 min"]
    assert minutes[-2:] == ["3 min", "6 min"]
    assert 5 <= len(minutes) <= 6
    assert setting.platform.texts("room")[-1] == "done"


@pytest.mark.crash
@pytest.mark.parametrize("ends_first", [False, True], ids=["running", "ended"])
async def test_a_process_killed_by_the_agent_does_not_come_back_with_a_turn(
    tmp_path: Path, ends_first: bool
) -> None:
    """S113, S114, S115: the requested answer was sent after the kill; then the watcher put
    "completed" into the session, and a second answer followed. Killing one that had ended by
    itself reads its end as well."""
    command = "true" if ends_first else "sleep 600"
    start = terminal(command, notify_on_complete=True)
    waits = [pauses(0.5)] if ends_first else []
    items: list[dict[str, object]] = [start, *waits, process("kill"), {"text": "it is over"}]
    async with scene(tmp_path / "home") as place:
        person = place.person(CHAT)
        await place.says(CHAT, scripted(*items))
        await person.hears("it is over")
        place.gateway.kill()
        await place.restarts()
        await place.says(CHAT, "echo last")
        await person.hears("last")
        rows = place.rows()

    assert person.heard() == ["it is over", "last"]
    assert len(rows.turns) == 2
    check_rows(rows)


@pytest.mark.crash
async def test_matches_of_a_finished_turn_are_not_put_into_its_session(tmp_path: Path) -> None:
    """S117, S127: what was queued while the turn ran was injected when it had ended, and opened a
    turn in a finished topic. What comes after the answer is news, and opens one."""
    command = f"for i in 1 2 3; do echo probe $i ready; done; {UNTIL_GO}; echo done and ready"
    start = terminal(command, watch_patterns=["ready"])
    async with scene(tmp_path / "home") as place:
        person = place.person(CHAT)
        text = scripted(start, {"text": "the final answer", "sleep_ms": 1_500})
        await place.says(CHAT, text, thread="topic")
        await person.hears("the final answer")
        place.gateway.kill()
        await place.restarts()
        await place.says(CHAT, "echo still quiet", thread="topic")
        await person.hears("still quiet")
        assert saying(person, "probe") == []
        place.touch()
        await person.hears("exited with code 0")
        rows = place.rows()

    dropped = [row["reason"] for row in rows.of("inbox", kind="report", state="dropped")]
    assert dropped == ["turn-ended"]
