"""A gateway without power in the middle of a turn, and what the next life makes of it."""

import shutil
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from anyio import create_task_group

from koboshi.domain.errors import Fenced
from koboshi.domain.outage import ModelFailure
from koboshi.domain.recovery import Policy, RecoveryPolicy
from koboshi.domain.transcript import Note, Reply, Result, ResultStatus
from koboshi.domain.turn import Claim
from tests.harness.invariants import answers, check_rows
from tests.harness.rows import Row
from tests.runtime.gateway import Life, Setting, living
from tests.runtime.models import WatchedModel
from tests.runtime.scripts import calls, says, script

HOUR = 60


@pytest.fixture
def setting(home: Path) -> Setting:
    return Setting(home=home)


@pytest.mark.parametrize(
    "effect, ran",
    [
        ("none", ["do_none", "do_none"]),
        ("repeatable", ["do_repeatable", "do_repeatable"]),
        ("resumable", ["do_resumable", "do_resumable:resumed"]),
    ],
)
async def test_a_call_that_was_under_way_is_run_again_or_taken_up(
    setting: Setting, effect: str, ran: list[str]
) -> None:
    """S37, S55, S68, S159: as its tool says; no person has to write anything."""
    await _die_within(setting, f"do_{effect}")
    async with living(setting) as life:
        await life.shows("room", "through")

    assert setting.world.ran == ran
    check_rows(setting.rows())


@pytest.mark.parametrize("choice, said", [("yes", "through"), ("no", "All right")])
async def test_a_call_that_must_not_be_repeated_is_not(
    setting: Setting, choice: str, said: str
) -> None:
    """S55, S68, S159: the person decides how to go on; with any answer, it has run once."""
    await _die_within(setting, "do_once")
    async with living(setting) as life:
        await life.until(lambda: setting.platform.shown, "the question")
        await life.passes(600)
        assert setting.platform.shown[-1].choices == ("yes", "no")
        await life.presses("room", choice)
        await life.until(lambda: len(setting.platform.shown) == 2, "what follows")
        await life.rests()

    assert "`do_once`" in setting.platform.texts("room")[0]
    assert said in setting.platform.texts("room")[1]
    assert setting.world.ran == ["do_once"]
    rows = setting.rows()
    check_rows(rows)
    if choice == "yes":
        (result,) = rows.of("steps", kind="result")
        assert rows.body(result)["status"] == ResultStatus.UNKNOWN


async def test_where_no_person_can_be_asked_the_model_is_told_that_the_outcome_is_unknown(
    setting: Setting,
) -> None:
    """S65, S68, S159: it is still not repeated."""
    setting.is_interactive = False
    await _die_within(setting, "do_once")
    async with living(setting) as life:
        await life.shows("room", "through")

    assert setting.world.ran == ["do_once"]
    rows = setting.rows()
    check_rows(rows)
    (result,) = rows.of("steps", kind="result")
    assert rows.body(result)["status"] == ResultStatus.UNKNOWN


async def test_a_call_that_was_finished_is_not_run_again(setting: Setting) -> None:
    """S57, S69, S159: its result was on the disk; the turn goes on behind it."""
    setting.world.hangs = {"do_none"}
    async with living(setting) as life:
        await life.says("room", script(calls("do_once"), calls("do_none"), says("through")))
        await life.until(lambda: len(setting.world.ran) == 2, "the second call")
    setting.world.hangs = set()
    async with living(setting) as life:
        await life.shows("room", "through")

    assert setting.world.ran == ["do_once", "do_none", "do_none"]


async def test_a_call_that_was_only_proposed_runs_once(setting: Setting) -> None:
    """S55, S69, S159: between proposed and started lies a commit, so it has certainly not run."""
    async with living(setting) as life:
        life.tracked.on_verb = _power_fails_at(life, "turns.start_call")
        await life.says("room", script(calls("do_once"), says("through")))
        await life.until(lambda: life.tracked.is_dead, "the power fails")
    assert setting.world.ran == []
    async with living(setting) as life:
        await life.shows("room", "through")

    assert setting.world.ran == ["do_once"]


async def test_a_message_that_no_worker_took_up_is_taken_up(setting: Setting) -> None:
    """S50, S58: accepted, acknowledged, and then the power failed. Its age does not matter."""
    async with living(setting) as life:
        await life.passes(1)
        life.tracked.on_verb = _power_fails_at(life, "turns.claim")
        await life.says("room", "echo hello")
        await life.until(lambda: life.tracked.is_dead, "the power fails")
    assert [turn["state"] for turn in setting.rows().turns] == ["queued"]
    setting.time_passes(minutes=5 * HOUR)
    async with living(setting) as life:
        await life.shows("room", "hello")

    assert not setting.rows().of("steps", cause="recovery"), "it was never interrupted"


async def test_a_resumed_turn_has_one_note_and_it_is_nobodys_words(setting: Setting) -> None:
    """S53, S63, S66, S67: two deaths, a note for each in the transcript; the model is shown one."""
    model = setting.model = WatchedModel()
    await _die_within(setting, "do_none")
    await _die_again(setting, "do_none", times=2)
    async with living(setting) as life:
        await life.shows("room", "through")

    rows = setting.rows()
    check_rows(rows)
    assert len(rows.of("steps", cause="recovery")) == 2
    notes = [step.body for step in model.requests[-1].steps if isinstance(step.body, Note)]
    assert len(notes) == 1
    assert notes[0].text.startswith("[koboshi]")


async def test_a_turn_that_always_kills_the_gateway_is_given_up(setting: Setting) -> None:
    """S59, S71, S72: three deaths without a step more, then one apology; the session serves on."""
    await _die_within(setting, "do_none")
    await _die_again(setting, "do_none", times=2)
    await _die_again(setting, "do_none", times=3)
    async with living(setting) as life:
        await life.until(lambda: setting.platform.shown, "the apology")
        await life.says("room", "echo hello")
        await life.until(lambda: len(setting.platform.shown) == 2, "the next turn")
        await life.passes(600)

    (apology, hello) = setting.platform.texts("room")
    assert "stopped 3 times in a row" in apology
    assert hello == "hello"
    assert len(setting.world.ran) == 3
    rows = setting.rows()
    check_rows(rows)
    assert rows.turns[0]["rule"] == "exhausted"


async def test_the_tries_of_a_turn_that_kills_the_gateway_come_slower_each_time(
    setting: Setting,
) -> None:
    """S72: two seconds, then thirty, counted from the last sign of life."""
    await _die_within(setting, "do_none")

    assert 1 <= await _die_again(setting, "do_none", times=2) <= 3
    assert 28 <= await _die_again(setting, "do_none", times=3) <= 31


async def test_a_turn_that_gets_a_little_further_in_each_life_ends_with_a_question(
    setting: Setting,
) -> None:
    """S71: progress forgives deaths, but not for ever: after ten the person is asked."""
    lives = 0
    while not setting.platform.shown:
        lives += 1
        assert lives < 20
        async with living(setting) as life:
            life.tracked.on_verb = _power_fails_at(life, "turns.append", time=2)
            if lives == 1:
                await life.says("room", script(*[calls("do_repeatable")] * 15, says("through")))
            await life.until(lambda: life.tracked.is_dead or setting.platform.shown, "an end")

    assert lives == 11
    assert "interrupted many times" in setting.platform.texts("room")[0]
    assert setting.rows().one("turns")["rule"] == "worn-out"
    async with living(setting) as life:
        await life.presses("room", "yes")
        await life.until(lambda: "through" in setting.platform.texts("room"), "the answer")
    check_rows(setting.rows())


async def test_a_turn_of_long_ago_is_not_started_by_itself(setting: Setting) -> None:
    """S4, S38, S48, S51: the person is asked once; a yes continues it in the same conversation."""
    await _die_within(setting, "do_none")
    setting.time_passes(minutes=2 * HOUR)
    async with living(setting) as life:
        await life.until(lambda: setting.platform.shown, "the question")
        await life.passes(3_000)
        assert setting.world.ran == ["do_none"]
    async with living(setting) as life:
        await life.passes(100)
        assert len(setting.platform.shown) == 1, "another boot does not ask again"
        await life.presses("room", "yes")
        await life.until(lambda: "through" in setting.platform.texts("room"), "the answer")

    rows = setting.rows()
    check_rows(rows)
    assert len(rows.turns) == 1
    assert "Shall I continue?" in setting.platform.texts("room")[0]


async def test_a_message_after_long_silence_goes_first(setting: Setting) -> None:
    """S51, S61, S64: an old turn is let go when its person writes something else; the model is told
    of it."""
    model = setting.model = WatchedModel()
    await _die_within(setting, "do_none")
    setting.time_passes(minutes=2 * HOUR)
    async with living(setting) as life:
        await life.until(lambda: setting.platform.shown, "the question")
        await life.says("room", "echo something else")
        await life.until(lambda: "something else" in setting.platform.texts("room"), "the answer")
        await life.rests()

    rows = setting.rows()
    check_rows(rows)
    assert [turn["state"] for turn in rows.turns] == ["stopped", "done"]
    assert setting.world.ran == ["do_none"]
    assert model.requests[-1].turn_id == 2


async def test_restarts_do_not_make_an_old_turn_young(setting: Setting) -> None:
    """S4, S48, S49: set aside, and started over and over: it is as old as its last real work."""
    await _die_within(setting, "do_none")
    setting.policy = Policy(recovery=RecoveryPolicy.OFF)
    for _ in range(4):
        async with living(setting) as life:
            await life.passes(60)
        setting.time_passes(minutes=20)
    assert setting.rows().one("turns")["state"] == "suspended"
    setting.policy = Policy()
    async with living(setting) as life:
        await life.until(lambda: setting.platform.shown, "the question")
        await life.passes(60)

    assert setting.rows().one("turns")["rule"] == "stale"
    assert setting.world.ran == ["do_none"]


async def test_a_long_command_that_was_running_a_moment_ago_is_fresh(setting: Setting) -> None:
    """S4, S50: nothing was written for three hours, and the gateway lived until a second ago."""
    setting.world.hangs = {"do_repeatable"}
    async with living(setting) as life:
        await life.says("room", script(calls("do_repeatable"), says("through")))
        await life.until(lambda: setting.world.ran, "it runs")
        await life.works_on(minutes=3 * HOUR)
    setting.world.hangs = set()
    async with living(setting) as life:
        await life.shows("room", "through")


async def test_the_same_verdict_rules_at_the_boot_and_at_the_claim(setting: Setting) -> None:
    """S61: it was fresh at the boot and got stale while it waited for its next try; it is not taken
    up by the back door."""
    await _die_within(setting, "do_none")
    setting.policy = Policy(fresh_ms=1_500)
    async with living(setting) as life:
        await life.until(lambda: life.gateway.rescue.has_looked.is_set(), "the verdict")
        assert setting.rows().one("turns")["rule"] == "fresh"
        await life.until(lambda: setting.platform.shown, "the question")
        await life.passes(60)

    assert setting.world.ran == ["do_none"]
    assert setting.rows().one("turns")["rule"] == "stale"


@pytest.mark.parametrize("policy", [RecoveryPolicy.OFF, RecoveryPolicy.ASK])
async def test_a_session_that_is_not_to_be_resumed_is_not(
    setting: Setting, policy: RecoveryPolicy
) -> None:
    """S39, S41, S76 and issue 13, A5: set aside or asked about, and told either way. The next
    message is served and sees what was done."""
    await _die_within(setting, "do_none")
    setting.policy = Policy(recovery=policy)
    async with living(setting) as life:
        await life.passes(100)
        (told,) = setting.platform.texts("room")
        assert ("/resume" in told) is (policy is RecoveryPolicy.OFF)
        await life.says("room", "echo hello")
        await life.until(lambda: "hello" in setting.platform.texts("room"), "the next turn")
        await life.rests()

    assert setting.world.ran == ["do_none"]
    rows = setting.rows()
    check_rows(rows)
    assert [turn["state"] for turn in rows.turns] == ["stopped", "done"]


async def test_a_turn_without_a_channel_waits_for_it(setting: Setting) -> None:
    """S40, S42: no person could be told. When the channel is back it goes on by itself."""
    await _die_within(setting, "do_none")
    setting.is_known = False
    async with living(setting) as life:
        await life.passes(100)
    assert setting.rows().one("turns")["rule"] == "channel-unknown"
    setting.is_known = True
    async with living(setting) as life:
        await life.shows("room", "through")


async def test_a_turn_of_a_person_who_is_no_longer_allowed_is_set_aside(setting: Setting) -> None:
    """S43: nothing runs for them, and their messages are not taken. A person who is allowed brings
    the conversation back by writing in it."""
    await _die_within(setting, "do_none")
    setting.is_allowed = lambda _channel, person: person != "ann"
    async with living(setting) as life:
        await life.passes(100)
        assert (await life.says("room", "echo let me in")).state == "ignored"
        await life.passes(100)
        assert setting.world.ran == ["do_none"]
        await life.says("room", "echo hello", sender="bob")
        await life.until(lambda: "hello" in setting.platform.texts("room"), "the next turn")

    check_rows(setting.rows())


async def test_a_resumed_turn_that_fails_is_over_and_the_next_message_is_served(
    setting: Setting,
) -> None:
    """S45, S46: one apology; the conversation is the same."""
    async with living(setting) as life:
        await life.says("room", script(calls("do_repeatable"), calls("do_none"), {"refuse": "no"}))
        await life.until(lambda: "do_none" in setting.world.ran, "it runs")
        life.lose_power()
        await life.is_over.wait()
    async with living(setting) as life:
        await life.until(lambda: setting.platform.shown, "the apology")
        await life.says("room", "echo hello")
        await life.until(lambda: "hello" in setting.platform.texts("room"), "the next turn")

    rows = setting.rows()
    check_rows(rows)
    assert [turn["state"] for turn in rows.turns] == ["failed", "done"]
    assert len(rows.sessions) == 1


async def test_exactly_the_turns_that_were_not_over_go_on(setting: Setting) -> None:
    """S3, S5, S6: one was answered, one waits for its person, one was stopped, one runs. Only the
    last is resumed, and another boot finds nothing."""
    setting.world.hangs = {"do_none"}
    async with living(setting) as life:
        await life.says("answered", "echo hello")
        await life.says("waits", "ask me which drink: tea or coffee")
        await life.says("stopped", script(calls("do_none"), says("never")))
        await life.until(lambda: setting.world.ran, "it hangs")
        await life.says("stopped", "/stop")
        await life.says("runs", script(calls("do_none"), says("through")))
        await life.until(lambda: len(setting.world.ran) == 2, "it hangs, too")
        await life.until(lambda: len(setting.platform.shown) == 3, "everything was said")
    setting.world.hangs = set()
    async with living(setting) as life:
        await life.shows("runs", "through")
    async with living(setting) as life:
        await life.passes(100)

    rows = setting.rows()
    resumed = rows.of("journal", event="resumed")
    assert [line["session_id"] for line in resumed] == [rows.session("runs")]
    assert len(setting.platform.shown) == 4


async def test_a_clean_stop_gives_the_turn_back_and_is_not_a_death(setting: Setting) -> None:
    """S14, S25, S70: the next life goes on at once, without a back-off."""
    setting.world.hangs = {"do_none"}
    async with living(setting) as life:
        await life.says("room", script(calls("do_none"), says("through")))
        await life.until(lambda: setting.world.ran, "it runs")
        life.stop()
        await life.is_over.wait()
    left = setting.rows()
    assert left.one("workers")["ended_how"] == "leftovers"
    assert (left.one("turns")["state"], left.one("turns")["crash_streak"]) == ("queued", 0)
    setting.world.hangs = set()
    async with living(setting) as life:
        began = life.clock.monotonic()
        await life.shows("room", "through")
        assert life.clock.monotonic() - began < 1

    rows = setting.rows()
    check_rows(rows)
    (note,) = rows.of("steps", cause="recovery")
    assert "was restarted" in rows.body(note)["text"]


async def test_the_same_rows_get_the_same_verdicts(setting: Setting, tmp_path: Path) -> None:
    """S161: two copies of one home, recovered one after the other: the journals say the same."""
    await _die_within(setting, "do_none")
    verdicts = []
    for number in range(2):
        copy = Setting(home=tmp_path / f"copy-{number}", wall_ms=setting.wall_ms)
        shutil.copytree(setting.home, copy.home)
        async with living(copy) as life:
            await life.shows("room", "through")
        verdicts.append([_told(line) for line in copy.rows().of("journal", subject="turn")])

    assert verdicts[0] == verdicts[1]
    assert ("resumed", "running", "queued", "fresh", "crash") in verdicts[0]


async def test_many_who_want_to_resume_one_turn_start_it_once(setting: Setting) -> None:
    """S160, S163: eight rescuers and eight dispatchers at the same moment."""
    await _die_within(setting, "do_none")
    async with living(setting) as life:
        store, worker_id = life.tracked.as_store(), life.gateway.rescue.worker_id
        (turn_id,) = await store.turns.unowned(with_suspended=True) or (1,)
        claims: list[Claim] = []

        async def take() -> None:
            await store.turns.recover(turn_id)  # type: ignore[arg-type]
            claims.extend(await store.turns.claim(worker_id, 8))

        async with create_task_group() as tasks:
            for _ in range(8):
                tasks.start_soon(take)
        await life.shows("room", "through")

    assert claims == [], "it is not due yet"
    rows = setting.rows()
    check_rows(rows)
    assert len(rows.of("journal", event="resumed")) == 1
    assert len(rows.of("journal", event="claimed")) == 2


async def test_a_claim_of_an_earlier_life_can_write_nothing(setting: Setting) -> None:
    """S9, S12, S86, S87: the turn was taken up again; later writes of the old claim are refused,
    and change nothing."""
    await _die_within(setting, "do_none")
    (before,) = setting.rows().turns
    setting.world.hangs = {"do_none"}
    async with living(setting) as life:
        await life.until(lambda: len(setting.world.ran) == 2, "it runs again")
        old = Claim(
            turn_id=before["turn_id"],
            session_id=before["session_id"],
            generation=before["generation"],
            epoch=before["epoch"],
            worker_id=before["worker_id"],
        )
        await _is_fenced(life, old)
        setting.world.released.set()
        await life.shows("room", "through")

    rows = setting.rows()
    check_rows(rows)
    assert answers(rows, "room") == ["through"]


async def _is_fenced(life: Life, old: Claim) -> None:
    turns = life.tracked.as_store().turns
    (call,) = (await turns.load(await _current(life))).calls
    result = Result(call_id=call.call.call_id, status=ResultStatus.OK, text="late")
    late = Reply(text="late")
    for write in (
        turns.answer(old, late, ["late"]),
        turns.append(old, late, []),
        turns.note(old, Note(cause="late", text="late")),
        turns.start_call(old, call.call.call_id),
        turns.finish_call(old, result),
        turns.ask(old, call.call.call_id, "late?", (), 1_000),
        turns.fail(old, "late"),
        turns.retry_model(old, ModelFailure(reason="late")),
        turns.release(old),
    ):
        with pytest.raises(Fenced):
            await write
    assert not await turns.holds(old)


async def _current(life: Life) -> Claim:
    view = (await life.tracked.views.turns_of(1, 1))[0]
    return Claim(
        turn_id=view.turn_id,
        session_id=view.session_id,
        generation=1,  # type: ignore[arg-type]
        epoch=view.epoch,
        worker_id=view.worker_id,
    )


async def _die_within(setting: Setting, tool: str) -> None:
    """A turn whose gateway lost its power while this tool ran."""
    setting.world.hangs = {tool}
    async with living(setting) as life:
        await life.says("room", script(calls(tool), says("through")))
        await life.until(lambda: tool in setting.world.ran, "the tool runs")
    setting.world.hangs = set()


async def _die_again(setting: Setting, tool: str, times: int) -> float:
    """The turn is tried for the `times`-th time and dies in its tool again. Returns how long it
    took until it was tried."""
    setting.world.hangs = {tool}
    async with living(setting) as life:
        began = life.clock.monotonic()
        await life.until(lambda: setting.world.ran.count(tool) == times, "it is tried again")
        waited = life.clock.monotonic() - began
    setting.world.hangs = set()
    return waited


def _power_fails_at(life: Life, verb: str, *, time: int = 1) -> Callable[[str], None]:
    """The power fails just before the verb is carried out for the `time`-th time."""
    seen: Counter[str] = Counter()

    def look(reached: str) -> None:
        seen[reached] += 1
        life.tracked.is_dead |= seen[verb] >= time

    return look


def _told(line: Row) -> tuple[str, ...]:
    return tuple(line[name] for name in ("event", "before", "after", "rule", "reason"))
