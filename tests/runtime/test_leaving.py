"""Leaving, phase by phase, in virtual time: what is finished, what is given back, what is said."""

from pathlib import Path

import pytest
from anyio import Event

from koboshi.domain import phrases
from koboshi.domain.recovery import Policy, RecoveryPolicy
from tests.harness.compose import Bounds
from tests.harness.invariants import check_rows
from tests.runtime.gateway import Life, Setting, living
from tests.runtime.scripts import calls, says, script

WORK = script(calls("do_none"), says("through"))
SLOW = script({"text": "the answer", "sleep_ms": 5_000})
DRAIN_S = 60


@pytest.fixture
def setting(home: Path) -> Setting:
    return Setting(home=home, bounds=Bounds(drain_seconds=DRAIN_S))


async def _hang(life: Life, *places: tuple[str, str]) -> None:
    """A turn is in its tool in each chat and thread, and does not come back."""
    world = life.setting.world
    world.hangs = {"do_none"}
    for chat, thread in places:
        before = len(world.ran)
        await life.says(chat, WORK, thread=thread)
        await life.until(lambda seen=before: len(world.ran) > seen, f"{chat} works")  # type: ignore[misc]


async def _leave(life: Life) -> float:
    """Ask it to stop, and wait until it has. Returns how long it took."""
    began = life.clock.monotonic()
    life.stop()
    await life.is_over.wait()
    return life.clock.monotonic() - began


async def test_an_answer_that_comes_in_the_drain_ends_its_turn_and_nothing_else(
    setting: Setting,
) -> None:
    """S16, S25: what was set aside by an earlier boot, and what waits for a person, is after the
    stop exactly as it was before it."""
    setting.policy = Policy(recovery=RecoveryPolicy.OFF)
    async with living(setting) as life:
        await _hang(life, ("aside", ""))
        await life.says("asked", "ask me which drink: tea or coffee")
        await life.until(lambda: setting.platform.texts("asked"), "the question")
    async with living(setting) as life:
        await life.until(lambda: life.gateway.rescue.has_looked.is_set(), "it is set aside")
        await life.says("room", "echo before")
        await life.shows("room", "before")
        await life.passes(1)
    before = {turn["turn_id"]: turn for turn in setting.rows().turns}
    assert sorted(turn["state"] for turn in before.values()) == ["done", "suspended", "waiting"]
    async with living(setting) as life:
        await life.says("room", SLOW)
        await life.until(lambda: life.gateway.dispatch.running == 1, "it works")
        assert await _leave(life) < DRAIN_S

    rows = setting.rows()
    assert [turn for turn in rows.turns if turn["turn_id"] in before] == list(before.values())
    assert rows.turns[-1]["state"] == "done"
    assert rows.workers[-1]["ended_how"] == "stopped"
    assert "the answer" in setting.platform.texts("room")


async def test_only_what_was_cut_off_goes_on(setting: Setting) -> None:
    """S19, S25, S26: one turn is answered within the drain, one is given back at its end, one chat
    is idle. The next boot has one turn to take up, and touches nothing else."""
    async with living(setting) as life:
        await life.says("idle", "echo hello")
        await life.shows("idle", "hello")
        await _hang(life, ("slow", ""))
        await life.says("quick", SLOW)
        await life.until(lambda: life.gateway.dispatch.running == 2, "both work")
        assert await _leave(life) >= DRAIN_S
    left = setting.rows()
    assert [turn["state"] for turn in left.turns] == ["done", "queued", "done"]
    assert left.one("workers")["ended_how"] == "leftovers"
    setting.world.hangs = set()
    async with living(setting) as life:
        await life.shows("slow", "through")
        await life.passes(100)

    rows = setting.rows()
    check_rows(rows)
    news = [line["session_id"] for line in rows.journal[len(left.journal) :] if line["session_id"]]
    assert set(news) == {rows.session("slow")}


async def test_a_turn_that_no_worker_had_begun_is_not_called_interrupted(setting: Setting) -> None:
    """S27: it waits for a place when the stop comes. It does not hold the drain up, it is not said
    to be interrupted, neither to the model nor to the person, and its message is answered."""
    setting.bounds = Bounds(drain_seconds=DRAIN_S, turns_max=1)
    async with living(setting) as life:
        await life.says("busy", SLOW)
        await life.until(lambda: life.gateway.dispatch.running == 1, "it works")
        await life.says("next", "echo me too")
        assert await _leave(life) < 10
    (_, turn) = setting.rows().turns
    assert (turn["state"], turn["epoch"], turn["recoveries"]) == ("queued", 0, 0)
    async with living(setting) as life:
        await life.shows("next", "me too")

    rows = setting.rows()
    check_rows(rows)
    assert not rows.of("steps", kind="note")


async def test_each_thread_at_work_is_told_once_and_no_other(setting: Setting) -> None:
    """S32: two threads of one chat are two places; one without a running turn hears nothing."""
    async with living(setting) as life:
        await life.says("idle", "echo hello")
        await life.shows("idle", "hello")
        await _hang(life, ("room", "one"), ("room", "two"), ("other", ""))
        await _leave(life)

    shown = setting.platform.shown
    told = [(each.route.chat, each.route.thread) for each in shown if each.text != "hello"]
    assert {each.text for each in shown} == {"hello", phrases.restarting()}
    assert sorted(told) == [("other", ""), ("room", "one"), ("room", "two")]


async def test_a_platform_that_takes_no_words_does_not_hold_a_stop_up(setting: Setting) -> None:
    """S32: it hangs at the first word of the farewell; the stop takes as long as ever, and the
    turn goes on after it."""
    async with living(setting) as life:
        await _hang(life, ("room", ""))
        setting.platform.gates["room"] = Event()
        assert await _leave(life) < DRAIN_S + 10
    setting.platform.gates.clear()
    setting.world.hangs = set()
    async with living(setting) as life:
        await life.until(lambda: "through" in setting.platform.texts("room"), "it goes on")


async def test_what_is_written_in_a_drain_is_kept_told_once_and_answered_in_order(
    setting: Setting,
) -> None:
    """S30, S31, S97, S162: to a chat at work and to an idle one, two messages each. Nothing is
    begun, each chat is told once, and "queued" is true: the next boot answers."""
    async with living(setting) as life:
        await _hang(life, ("busy", ""))
        life.stop()
        await life.until(lambda: setting.platform.texts("busy"), "it has begun to leave")
        for chat in ("busy", "idle"):
            for number in (1, 2):
                await life.says(chat, f"echo {chat} {number}")
        await life.until(lambda: setting.platform.texts("idle"), "the idle chat is told")
        assert life.gateway.dispatch.running == 1
        await life.is_over.wait()
    assert setting.platform.texts("busy") == [phrases.restarting()]
    assert setting.platform.texts("idle") == [phrases.after_restart()]
    assert len(setting.rows().of("journal", event="claimed")) == 1
    setting.world.hangs = set()
    async with living(setting) as life:
        await life.rests()

    check_rows(setting.rows())
    assert setting.platform.texts("busy")[1:] == ["through", "busy 1\n\nbusy 2"]
    assert setting.platform.texts("idle")[1:] == ["idle 1\n\nidle 2"]


async def test_twenty_restarts_inside_a_turn_are_bounded_and_asked_about_once(
    setting: Setting,
) -> None:
    """S71, S164: asked for, so no death; each boot takes the turn up and is stopped inside it. The
    tenth time the person is asked, once, and no boot after that touches it."""
    setting.bounds = Bounds(drain_seconds=0)
    async with living(setting) as life:
        await _hang(life, ("room", ""))
        await _leave(life)
    for _ in range(20):
        async with living(setting) as life:
            await life.passes(30)
            await _leave(life)

    assert len(setting.world.ran) == 10
    asked = [text for text in setting.platform.texts("room") if text != phrases.restarting()]
    assert len(asked) == 1
    assert "Shall I keep trying?" in asked[0]
    assert setting.rows().one("turns")["state"] == "waiting"
