"""Source 002: interrupted sessions go on by themselves after a restart: which ones, how often, and
what the model is told."""

import pytest

from koboshi.domain import phrases
from koboshi.domain.recovery import Policy, RecoveryPolicy
from koboshi.domain.transcript import Message, Note
from tests.harness.compose import Bounds
from tests.harness.invariants import check_rows
from tests.runtime.gateway import Setting, living
from tests.runtime.models import WatchedModel
from tests.runtime.scripts import says, script
from tests.seeds.dying import WORK, at_work, die_at_work


@pytest.mark.parametrize("is_crash", [True, False], ids=["crash", "restart"])
async def test_an_interrupted_session_goes_on_without_a_new_message(
    setting: Setting, is_crash: bool
) -> None:
    """S18, S37: after a crash as after a restart, in the place where it was asked for, once."""
    setting.world.hangs = {"do_none"}
    async with living(setting) as life:
        await life.says("room", WORK, thread="topic")
        await life.until(lambda: setting.world.ran, "it is at work")
        if not is_crash:
            life.stop()
            await life.is_over.wait()
    setting.world.hangs = set()
    async with living(setting) as life:
        await life.until(lambda: "through" in setting.platform.texts("room", "topic"), "it goes on")
        await life.passes(100)

    told = [] if is_crash else [phrases.restarting()]
    assert setting.platform.texts("room", "topic") == [*told, "through"]
    assert len(setting.platform.shown) == len(told) + 1
    check_rows(setting.rows())


async def test_the_model_sees_one_note_and_no_made_up_message(setting: Setting) -> None:
    """S63, S66, S67: not two stacked ones, and not as something that the person said."""
    model = setting.model = WatchedModel()
    await die_at_work(setting, "room")
    async with living(setting) as life:
        await life.shows("room", "through")

    bodies = [step.body for step in model.requests[-1].steps]
    assert len([body for body in bodies if isinstance(body, Note)]) == 1
    assert [body.text for body in bodies if isinstance(body, Message)] == [WORK]
    (note,) = setting.rows().of("steps", kind="note")
    assert "stopped without warning" in note["body"]


async def test_a_run_that_was_interrupted_softly_does_not_look_finished(
    setting: Setting,
) -> None:
    """S29, S45: the gateway is asked to stop while the model is asked. No empty answer is stored
    for it, and the next boot takes it up."""
    async with living(setting) as life:
        await life.says("room", script({"text": "slow words", "sleep_ms": 60_000}))
        await life.until(lambda: life.gateway.dispatch.running == 1, "the model is asked")
        await life.passes(1)
        life.stop()
        await life.is_over.wait()
    rows = setting.rows()
    assert rows.one("turns")["state"] == "queued"
    assert not rows.of("steps", kind="answer")
    async with living(setting) as life:
        await life.shows("room", "slow words")

    check_rows(setting.rows())


async def test_what_interrupted_a_run_is_kept_with_its_reason_and_time(setting: Setting) -> None:
    """S35: it survives any number of boots that cannot go on, and is never guessed."""
    await die_at_work(setting, "room")
    setting.is_known = False
    for _ in range(3):
        async with living(setting) as life:
            await life.passes(30)

    (turn,) = setting.rows().turns
    assert (turn["state"], turn["rule"]) == ("suspended", "channel-unknown")
    assert turn["reason"]
    assert turn["worked_ms"] >= turn["opened_ms"] > 0


async def test_a_message_to_an_interrupted_session_finds_it_as_it_was(setting: Setting) -> None:
    """S36, S44: the same session and transcript, nothing reset; the message follows the turn that
    goes on."""
    await die_at_work(setting, "room")
    before = setting.rows()
    async with living(setting) as life:
        await life.says("room", "echo and this")
        await life.shows("room", "through", "and this")

    rows = setting.rows()
    check_rows(rows)
    assert [row["session_id"] for row in rows.sessions] == [before.session("room")]
    assert rows.steps[: len(before.steps)] == before.steps


async def test_a_stale_session_is_not_scheduled(setting: Setting) -> None:
    """S38: the person is asked instead of surprised."""
    await die_at_work(setting, "room")
    setting.time_passes(minutes=61)
    async with living(setting) as life:
        await life.until(lambda: setting.platform.shown, "the question")
        await life.passes(600)

    assert setting.world.ran == ["do_none"]
    assert setting.rows().one("turns")["rule"] == "stale"


async def test_at_the_edge_of_the_window_it_is_still_fresh(setting: Setting) -> None:
    """S47: the boundary belongs to it; zero means always."""
    setting.policy = Policy(fresh_ms=0)
    await die_at_work(setting, "room")
    setting.time_passes(minutes=10_000)
    async with living(setting) as life:
        await life.shows("room", "through")


async def test_a_suspended_session_is_not_scheduled(setting: Setting) -> None:
    """S39, S76, S78: set aside stays set aside, over boots and deaths of others."""
    await die_at_work(setting, "room")
    setting.policy = Policy(recovery=RecoveryPolicy.OFF)
    for _ in range(2):
        async with living(setting) as life:
            await life.says("other", "echo hello")
            await life.passes(30)

    assert setting.world.ran == ["do_none"]
    assert setting.rows().of("turns", state="suspended") != []


async def test_a_session_without_a_place_to_answer_is_not_scheduled(setting: Setting) -> None:
    """S40, S42: its channel is not in the configuration. Nothing is lost: it goes on when it is."""
    await die_at_work(setting, "room")
    setting.is_known = False
    async with living(setting) as life:
        await life.passes(60)
    assert setting.world.ran == ["do_none"]
    setting.is_known = True
    async with living(setting) as life:
        await life.shows("room", "through")


async def test_a_session_that_must_not_go_on_by_itself_goes_on_with_the_person(
    setting: Setting,
) -> None:
    """S41: recovery is to ask first. It is asked, once, and a yes takes it up."""
    setting.policy = Policy(recovery=RecoveryPolicy.ASK)
    await die_at_work(setting, "room")
    async with living(setting) as life:
        await life.until(lambda: setting.platform.shown, "the question")
        await life.passes(300)
        assert setting.world.ran == ["do_none"]
        await life.presses("room", "yes")
        await life.until(lambda: "through" in setting.platform.texts("room"), "it goes on")

    assert len(setting.platform.shown) == 2
    check_rows(setting.rows())


async def test_a_resumed_turn_that_fails_leaves_the_session_usable(setting: Setting) -> None:
    """S46: one apology; the next message is answered."""
    setting.world.hangs = {"do_none"}
    async with living(setting) as life:
        await life.says("room", script({"calls": [{"tool": "do_none"}]}, {"refuse": "not today"}))
        await life.until(lambda: setting.world.ran, "it is at work")
    setting.world.hangs = set()
    async with living(setting) as life:
        await life.until(lambda: setting.platform.shown, "the apology")
        await life.says("room", "echo hello")
        await life.until(lambda: "hello" in setting.platform.texts("room"), "the next one")

    assert len(setting.platform.shown) == 2
    check_rows(setting.rows())


async def test_two_sessions_go_on_and_two_do_not(setting: Setting) -> None:
    """S37, S38, S39: the end-to-end check of the report, with one answered and one waiting."""
    setting.world.hangs = {"do_none"}
    async with living(setting) as life:
        await life.says("answered", script(says("hello")))
        await life.says("waiting", "ask me which drink: tea or coffee")
        await life.until(lambda: len(setting.platform.shown) == 2, "both were served")
        await at_work(life, "one", "two")
    setting.world.hangs = set()
    async with living(setting) as life:
        await life.shows("one", "through")
        await life.shows("two", "through")
        await life.passes(100)

    rows = setting.rows()
    resumed = [line["session_id"] for line in rows.of("journal", event="resumed")]
    assert sorted(resumed) == sorted([rows.session("one"), rows.session("two")])
    assert len(setting.platform.shown) == 4


async def test_of_four_sessions_the_stale_and_the_suspended_one_do_not_go_on(
    setting: Setting,
) -> None:
    """S37, S38, S39, S76: the end-to-end check of the report in one boot: a crash and a message
    that no worker had begun go on; one was given back seventy minutes ago, one is switched off."""
    setting.bounds = Bounds(drain_seconds=60)
    setting.world.hangs = {"do_none"}
    async with living(setting) as life:
        await life.says("off", "/resume-policy off")
        await at_work(life, "off", "old")
        life.stop()
        await life.until(lambda: setting.platform.texts("old"), "it leaves")
        await life.says("crash", WORK)
        await life.is_over.wait()
    setting.bounds = Bounds(turns_max=1)
    async with living(setting) as life:
        await life.until(lambda: setting.world.ran.count("do_none") == 3, "the only place is taken")
        await life.says("new", WORK)
        await life.works_on(minutes=70)
    setting.world.hangs = set()
    setting.bounds = Bounds()
    told = len(setting.platform.shown)
    async with living(setting) as life:
        for chat in ("crash", "new"):
            await life.until(lambda c=chat: "through" in setting.platform.texts(c), chat)  # type: ignore[misc]
        await life.until(lambda: len(setting.platform.shown) == told + 4, "all is told")
        await life.passes(300)

    rows = setting.rows()
    rules = {turn["session_id"]: (turn["state"], turn["rule"]) for turn in rows.turns}
    assert rules[rows.session("old")] == ("waiting", "stale")
    assert rules[rows.session("off")] == ("suspended", "policy-off")
    assert "Shall I continue?" in setting.platform.texts("old")[-1]
    assert setting.world.ran.count("do_none") == 5
    assert "/resume goes on with it" in setting.platform.texts("off")[-1]
    assert len(setting.platform.shown) == told + 4
