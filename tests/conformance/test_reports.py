"""What is said about processes: filed once, heard once, by the agent or by the person."""

from dataclasses import replace

import pytest

from koboshi.domain import notes
from koboshi.domain.process import Process, ProcessState
from koboshi.domain.transcript import Effect, Reply, Result, ResultStatus
from koboshi.domain.turn import Claim, TurnState
from koboshi.domain.watch import (
    Finding,
    Notify,
    ReportLimits,
    WatcherKind,
    WatcherSpec,
    WatcherState,
)
from koboshi.ports.views import EntryView
from tests.harness.fake_time import SECOND_MS
from tests.harness.homes import Home, OpenHome, a_call, a_world
from tests.harness.watched_processes import (
    BIRTH,
    EVERY,
    EXIT,
    MATCH,
    begin,
    end,
    heard_in,
    left_running,
    match,
    outdated,
    read_exit,
    reports,
    told,
    watcher_of,
)

# ── how it ended ────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("watcher", [EXIT, EVERY], ids=["exit", "every"])
async def test_an_end_that_the_agent_asked_for_opens_one_turn_and_no_notice(
    home: Home, watcher: WatcherSpec
) -> None:
    """S112, S126, S133: at once, without a message of the person, and once whatever is repeated."""
    process = await left_running(home, watcher)
    await end(home, process, code=3)
    await end(home, process, code=3)
    await home.reopen(crash=True)
    await end(home, process, code=0)

    _, turn = await home.turns()
    assert turn.state is TurnState.QUEUED
    (words,) = await heard_in(home, turn.turn_id)
    assert "p1" in words
    assert "exited with code 3" in words
    assert notes.reported_in(words).endswith("last words")
    assert await told(home) == []
    assert await reports(home, process) == [("attached", None)]
    armed = await watcher_of(home, process, watcher.kind)
    assert armed.state is WatcherState.FIRED


@pytest.mark.parametrize("watchers", [(), (MATCH,)], ids=["nothing", "match"])
async def test_an_end_that_no_agent_asked_for_is_told_to_the_person(
    home: Home, watchers: tuple[WatcherSpec, ...]
) -> None:
    """S114, S124: one notice, where the process was started, and no turn."""
    process = await left_running(home, *watchers)
    await home.say("elsewhere", chat="bob")
    await end(home, process, code=3)
    await end(home, process, code=3)

    (words,) = await told(home)
    assert "p1" in words
    assert "exited with code 3" in words
    assert await home.deliver("bob") == []
    assert len(await home.turns()) == 1
    assert await reports(home, process) == [("handled", None)]


async def test_a_notice_answers_the_message_that_the_process_was_started_for(home: Home) -> None:
    """S123: thread and anchor are those of the session and of its turn, whatever came since."""
    claim = await home.work_on("start it", key="the-first")
    process = await begin(home, claim)
    await home.answer(claim)
    await home.answer(await home.work_on("something else", key="the-second"))
    await home.deliver()
    await end(home, process)

    (delivery,) = await home.deliver()
    assert delivery.anchor == "the-first"


async def test_an_end_that_a_person_asked_for_is_not_announced(home: Home) -> None:
    """S115: the one who killed it knows."""
    process = await left_running(home, EXIT, MATCH, EVERY)
    await home.store.processes.ask_end(process.process_id)
    await end(home, process)

    assert await reports(home, process) == []
    assert await told(home) == []
    assert len(await home.turns()) == 1
    watchers = await home.store.processes.watchers(process.process_id)
    assert {watcher.state for watcher in watchers} == {WatcherState.DISARMED}


async def test_an_end_by_the_system_or_by_its_time_limit_is_announced(home: Home) -> None:
    """S116: no one here asked for it."""
    for state, reason in ((ProcessState.KILLED, "time limit"), (ProcessState.LOST, "rebooted")):
        process = await left_running(home)
        await home.store.processes.ended(
            process.process_id,
            state,
            exit_code=None,
            reason=reason,
            ended_ms=home.clock.now_ms(),
        )
        (words,) = await told(home)
        assert f"{state} ({reason})" in words


async def test_an_exit_that_was_read_is_neither_a_turn_nor_a_notice(home: Home) -> None:
    """S113, S114, S139: the report was filed while the turn ran; the call that shows the end is
    also what drops it."""
    claim = await home.work_on("start it")
    heard, unheard = await begin(home, claim, EXIT), await begin(home, claim)
    for process in (heard, unheard):
        await end(home, process)
        assert await reports(home, process) == [("waiting", None)]
        await read_exit(home, claim, process)
        assert await reports(home, process) == [("dropped", "already-read")]
    await home.reopen(crash=True)
    for process in (heard, unheard):
        await end(home, process)

    assert await told(home) == []
    assert len(await home.turns()) == 1


async def test_an_exit_that_was_read_by_a_later_turn_is_not_told_again(home: Home) -> None:
    """S113: also by a turn that knows the process from the conversation only."""
    process = await left_running(home)
    claim = await home.work_on("how is it going?")
    await end(home, process)
    await read_exit(home, claim, process)
    await home.answer(claim)

    assert await reports(home, process) == [("dropped", "already-read")]
    assert await told(home) == []


async def test_an_exit_that_was_read_between_its_end_and_its_report_is_not_told(home: Home) -> None:
    """S112: the end and its report are one transaction, so nothing fits between; what is read
    later drops what still waits."""
    claim = await home.work_on("start it")
    process = await begin(home, claim, EXIT)
    await end(home, process)
    await home.reopen(crash=True)
    claim = await home.resume(claim.turn_id)
    await read_exit(home, claim, process)
    await home.answer(claim)

    assert await reports(home, process) == [("dropped", "already-read")]
    assert len(await home.turns()) == 1


async def test_an_end_during_a_turn_joins_it_at_its_next_step(home: Home) -> None:
    claim = await home.work_on("start it")
    process = await begin(home, claim, EXIT)
    await end(home, process)
    await home.step(claim)

    assert len(await heard_in(home, claim.turn_id)) == 1
    await home.answer(claim)
    assert len(await home.turns()) == 1


async def test_an_end_at_the_end_of_a_turn_opens_the_next(home: Home) -> None:
    """S112: nothing is lost between the last step and the answer."""
    claim = await home.work_on("start it")
    process = await begin(home, claim, EXIT)
    await end(home, process)
    await home.answer(claim)

    _, turn = await home.turns()
    assert len(await heard_in(home, turn.turn_id)) == 1
    assert await reports(home, process) == [("attached", None)]


async def test_reports_join_the_message_that_waits_and_the_other_way_round(home: Home) -> None:
    """The one who was first opens the next turn; reports never wait behind it, messages do."""
    claim = await home.work_on("start them")
    first, second = await begin(home, claim, EXIT), await begin(home, claim, EXIT)
    await home.say("and now?")
    await end(home, first)
    await end(home, second)
    await home.answer(claim)

    _, turn = await home.turns()
    assert len(await heard_in(home, turn.turn_id)) == 2
    assert turn.request == "and now?"


async def test_a_message_behind_a_report_gets_a_turn_of_its_own(home: Home) -> None:
    claim = await home.work_on("start it")
    process = await begin(home, claim, EXIT)
    await end(home, process)
    await home.say("and now?")
    await home.answer(claim)
    await home.answer(await home.claim())

    first, second, third = [turn.request for turn in await home.turns()]
    assert (first, third) == ("start it", "and now?")
    assert second.startswith("Background process p1 (make) exited")


async def test_a_report_joins_a_turn_that_waits_for_its_next_worker(home: Home) -> None:
    claim = await home.work_on("start it")
    process = await begin(home, claim, EXIT)
    await home.store.turns.release(claim)
    await end(home, process)

    assert await reports(home, process) == [("attached", None)]
    assert len(await heard_in(home, claim.turn_id)) == 1


async def test_a_report_comes_behind_the_result_that_a_turn_goes_on_with(home: Home) -> None:
    """Released with a call that has no result: nothing comes between a call and its result."""
    claim = await home.work_on("start it")
    process = await begin(home, claim, EXIT)
    (call_id,) = await home.propose(claim, a_call("fetch"))
    await home.store.turns.release(claim)
    await end(home, process)
    assert await reports(home, process) == [("waiting", None)]
    claim = await home.claim()
    await home.start(claim, call_id)
    await home.finish(claim, call_id)
    await home.answer(claim)

    assert len(await heard_in(home, claim.turn_id)) == 1
    assert len(await home.turns()) == 1


async def test_an_end_that_the_call_itself_will_show_is_not_told_as_well(home: Home) -> None:
    """S113: the gateway died over the call that started it; the next life adopts the process, which
    has ended, before the call is taken up and tells the same."""
    claim = await home.work_on("start it")
    (call_id,) = await home.propose(claim, a_call("terminal", effect=Effect.RESUMABLE))
    await home.start(claim, call_id)
    process = await home.store.processes.begin(
        claim, call_id, command="make", workdir=".", is_foreground=False, watchers=(EXIT,)
    )
    await home.store.processes.born(process.process_id, BIRTH)
    await home.die_and_recover(claim.turn_id)
    await end(home, process)
    await home.wait_until_due()
    claim = await home.claim()
    result = Result(call_id=call_id, status=ResultStatus.OK, text="it ended")
    await home.store.turns.finish_call(claim, result, exits_read=[process.process_id])
    await home.answer(claim)

    assert await reports(home, process) == [("dropped", "already-read")]
    assert await heard_in(home, claim.turn_id) == []
    assert len(await home.turns()) == 1


# ── a person, and what they are told ────────────────────────────────────────────────────────────


async def test_a_notice_waits_for_a_turn_that_may_still_read_it(home: Home) -> None:
    claim = await home.work_on("start it")
    process = await begin(home, claim)
    await end(home, process)
    assert await told(home) == []
    await home.answer(claim)

    assert len(await told(home)) == 1


async def test_a_turn_that_begins_to_wait_for_a_person_holds_no_notice_back(home: Home) -> None:
    """S126: an answer may take a day."""
    claim = await home.work_on("start it")
    process = await begin(home, claim)
    await end(home, process)
    await home.ask(claim)

    assert await reports(home, process) == [("handled", None)]
    assert len(await told(home)) == 1


async def test_a_turn_that_is_set_aside_or_offered_holds_no_notice_back(home: Home) -> None:
    """The gateway died over the turn, and asks whether to go on."""
    claim = await home.work_on("start it")
    process = await begin(home, claim)
    await end(home, process)
    home.clock.move(2 * 3_600 * SECOND_MS)
    await home.die_and_recover(claim.turn_id)

    assert (await home.view(claim.turn_id)).state is TurnState.WAITING
    assert await reports(home, process) == [("handled", None)]


async def test_what_the_agent_is_to_hear_waits_for_the_answer_to_its_question(home: Home) -> None:
    claim = await home.work_on("start it")
    process = await begin(home, claim, EXIT)
    await home.ask(claim)
    await end(home, process)
    assert await reports(home, process) == [("waiting", None)]
    await home.say("this one")
    claim = await home.claim()
    await home.answer(claim, "p1 has ended")

    assert await reports(home, process) == [("attached", None)]
    assert await told(home) == []
    assert len(await home.turns()) == 1


async def test_a_match_while_a_turn_waits_for_a_person_is_not_lost_to_it(home: Home) -> None:
    """It belongs to the turn that started the process, which goes on with the answer."""
    claim = await home.work_on("start it")
    process = await begin(home, claim, MATCH)
    await home.ask(claim)
    assert await match(home, process)
    await home.say("this one")
    claim = await home.claim()
    await home.answer(claim)

    assert await reports(home, process) == [("attached", None)]
    assert len(await heard_in(home, claim.turn_id)) == 1


@pytest.mark.parametrize(
    "notify, code, expected",
    [
        (Notify.ALL, 0, True),
        (Notify.RESULT, 0, True),
        (Notify.RESULT, 1, True),
        (Notify.ERROR, 0, False),
        (Notify.ERROR, 1, True),
        (Notify.OFF, 1, False),
    ],
)
@pytest.mark.parametrize("path", ["idle", "held", "waiting", "cut"])
async def test_what_the_person_wants_to_hear_is_honoured_on_every_path(
    open_home: OpenHome, notify: Notify, code: int, expected: bool, path: str
) -> None:
    """S119: when it ends at once, behind a turn, beside a question, and after /new."""
    home = await open_home(notify=notify)
    claim = await home.work_on("start it")
    process = await begin(home, claim, *([EXIT] if path == "cut" else []))
    if path == "idle":
        await home.answer(claim)
    await end(home, process, code=code)
    if path == "held":
        await home.answer(claim)
    elif path == "waiting":
        await home.ask(claim)
    elif path == "cut":
        await home.stop()

    assert len(await told(home)) == int(expected)
    state = ("handled", None) if expected else ("dropped", "not-wanted")
    assert await reports(home, process) == [state]


async def test_an_agent_is_told_whatever_the_person_wants_to_hear(open_home: OpenHome) -> None:
    """S119: notify is about the rest."""
    home = await open_home(notify=Notify.OFF)
    process = await left_running(home, EXIT)
    await end(home, process)

    assert await reports(home, process) == [("attached", None)]


async def test_a_person_who_is_no_longer_allowed_opens_no_turn_by_their_process(
    home: Home,
) -> None:
    """S43: the right is checked when the turn is claimed, on behalf of its starter."""
    process = await left_running(home, EXIT)
    await home.reopen(crash=True, world=a_world(revoked=["ann"]))
    await end(home, process)

    assert await home.claims() == ()
    _, turn = await home.turns()
    assert turn.state in (TurnState.SUSPENDED, TurnState.FAILED)


@pytest.mark.parametrize("way", ["failed", "stale"])
async def test_a_turn_that_no_one_asked_for_is_named_by_what_opened_it(
    home: Home, way: str
) -> None:
    """An apology or an offer says what it is about: there are no words of a person to quote."""
    process = await left_running(home, EXIT)
    await end(home, process, code=3)
    claim = await home.claim()
    if way == "failed":
        await home.store.turns.fail(claim, "empty-reply")
    else:
        home.clock.move(2 * 3_600 * SECOND_MS)
        await home.die_and_recover(claim.turn_id)

    (words,) = [each.text for each in await home.deliver()]
    assert "«Background process p1 (make) exited with code 3" in words
    assert "last words" not in words


# ── /new ────────────────────────────────────────────────────────────────────────────────────────


async def test_after_a_cut_an_end_is_for_the_person_only(home: Home) -> None:
    """S127: it does not become an instruction in the new conversation."""
    process = await left_running(home, EXIT, MATCH)
    await home.stop()
    await home.deliver()
    await end(home, process)

    assert len(await told(home)) == 1
    assert len(await home.turns()) == 1


async def test_an_end_that_waits_when_the_person_cuts_is_told_to_them(home: Home) -> None:
    """S127: no other will hear of it."""
    claim = await home.work_on("start it")
    process = await begin(home, claim, EXIT)
    await end(home, process)
    await home.stop()

    assert len(await told(home)) == 1
    assert await reports(home, process) == [("handled", None)]
    assert len(await home.turns()) == 1


async def test_a_match_after_a_cut_is_dropped_with_the_reason(home: Home) -> None:
    """S127: and no one looks for more."""
    process = await left_running(home, MATCH, EVERY)
    await home.stop()

    assert await match(home, process)
    assert await reports(home, process) == [("dropped", "cut")]
    assert await home.store.processes.watched() == ()
    assert len(await home.turns()) == 1


async def test_a_match_that_waits_when_the_person_cuts_is_dropped(home: Home) -> None:
    claim = await home.work_on("start it")
    process = await begin(home, claim, MATCH)
    assert await match(home, process)
    await home.stop()

    assert await reports(home, process) == [("dropped", "cut")]


# ── matches ─────────────────────────────────────────────────────────────────────────────────────


async def test_a_match_opens_a_turn_in_an_idle_session(home: Home) -> None:
    """S117, S126: with the process, the lines and the session's generation."""
    process = await left_running(home, MATCH)
    assert await match(home, process, "server is ready")

    _, turn = await home.turns()
    (words,) = await heard_in(home, turn.turn_id)
    assert words.endswith("server is ready")
    assert "p1" in words


async def test_a_match_within_the_turn_that_then_ends_opens_no_other(home: Home) -> None:
    """S117: the turn had it before its eyes, or did not need it."""
    claim = await home.work_on("start it")
    process = await begin(home, claim, MATCH)
    assert await match(home, process)
    await home.answer(claim)

    assert await reports(home, process) == [("dropped", "turn-ended")]
    assert len(await home.turns()) == 1


async def test_a_match_from_before_the_answer_that_is_found_behind_it_opens_no_turn(
    home: Home,
) -> None:
    """The answer stores how long the log was: what lies below belongs to that turn."""
    claim = await home.work_on("start it")
    process = await begin(home, claim, MATCH)
    await answer_with_size(home, claim, process, 100)
    assert await match(home, process, to=100)
    assert await reports(home, process) == [("dropped", "turn-ended")]
    assert await match(home, process, to=101)
    assert await reports(home, process) == [("dropped", "turn-ended"), ("attached", None)]


async def test_a_match_that_was_examined_before_the_answer_is_examined_again(home: Home) -> None:
    """Between the look and the report the turn was answered: what belongs to it has to be told
    apart from what came later."""
    claim = await home.work_on("start it")
    process = await begin(home, claim, MATCH)
    before = await watcher_of(home, process, WatcherKind.MATCH)
    moved = replace(before, log_offset=150, reports=1)
    await answer_with_size(home, claim, process, 100)

    seen_too_early = Finding(watcher=moved, output="ready", turn_log_size=None)
    assert not await home.store.processes.report(before, seen_too_early)
    assert await home.store.processes.report(before, replace(seen_too_early, turn_log_size=100))


async def answer_with_size(home: Home, claim: Claim, process: Process, size: int) -> None:
    sizes = {process.process_id: size}
    await home.store.turns.answer(claim, Reply(text="done"), ("done",), sizes)


async def test_the_size_of_the_log_is_stored_for_the_turn_that_started_it_only(home: Home) -> None:
    claim = await home.work_on("start it")
    process = await begin(home, claim, MATCH)
    await answer_with_size(home, claim, process, 100)
    await answer_with_size(home, await home.work_on("again"), process, 900)

    stored = await home.store.processes.get(process.process_id)
    assert stored is not None
    assert stored.turn_log_size == 100


async def test_a_report_that_was_not_heard_yet_is_the_only_one(home: Home) -> None:
    """S117, S118: what follows is said together with it, or after it."""
    process = await left_running(home, MATCH)
    claim = await home.work_on("something else")
    assert await match(home, process)
    assert not await match(home, process)
    await home.step(claim)

    assert await match(home, process)


async def test_a_session_and_all_of_them_have_a_limit(open_home: OpenHome) -> None:
    """S117: what may not be said stays in the log, and its watcher stays where it is."""
    limits = ReportLimits(every_ms=15_000, session_max=2, total_max=3)
    home = await open_home(reports=limits)
    claim = await home.work_on("start them")
    mine = [await begin(home, claim, MATCH) for _ in range(3)]
    await home.answer(claim)
    theirs = [await left_running(home, MATCH, chat="bob") for _ in range(2)]

    assert [await match(home, each) for each in mine] == [True, True, False]
    assert [await match(home, each) for each in theirs] == [True, False]
    unsaid = await watcher_of(home, mine[2], WatcherKind.MATCH)
    assert (unsaid.log_offset, unsaid.reports) == (0, 0)
    home.clock.move(limits.every_ms)
    assert await match(home, mine[2])
    assert await match(home, theirs[1])


async def test_an_end_is_said_whatever_the_limits_are(open_home: OpenHome) -> None:
    home = await open_home(reports=ReportLimits(session_max=0, total_max=0))
    process = await left_running(home, EXIT)
    await end(home, process)

    assert await reports(home, process) == [("attached", None)]


async def test_a_clock_that_was_set_back_does_not_silence_a_watcher(open_home: OpenHome) -> None:
    """What was said in the future was not said lately."""
    home = await open_home(reports=ReportLimits(session_max=1))
    claim = await home.work_on("start them")
    first, second = await begin(home, claim, MATCH), await begin(home, claim, MATCH)
    await home.answer(claim)
    assert await match(home, first)
    home.clock.move(-3_600 * SECOND_MS)

    assert await match(home, second)


async def test_of_two_who_examined_the_same_only_one_reports(home: Home) -> None:
    """S112, S139."""
    process = await left_running(home, MATCH)
    before = await watcher_of(home, process, WatcherKind.MATCH)
    found = Finding(watcher=replace(before, log_offset=10, reports=1), output="ready")
    assert await home.store.processes.report(before, found)
    await home.answer(await home.claim())

    assert not await home.store.processes.report(before, found)
    assert len(await reports(home, process)) == 1


async def test_a_pattern_that_is_switched_off_leaves_the_end_to_hear(home: Home) -> None:
    """S117: promoted to notify on completion."""
    process = await left_running(home, MATCH)
    before = await watcher_of(home, process, WatcherKind.MATCH)
    off = replace(before, log_offset=10, reports=1, noisy=3, state=WatcherState.DISARMED)
    assert await home.store.processes.report(before, Finding(watcher=off, output="too many"))
    assert await home.store.processes.watched() == ()
    promised = await watcher_of(home, process, WatcherKind.EXIT)
    assert promised.state is WatcherState.ARMED
    await home.answer(await home.claim())
    await end(home, process)

    assert await reports(home, process) == [("attached", None), ("attached", None)]


async def test_an_end_that_is_promised_already_is_not_promised_twice(home: Home) -> None:
    """S118."""
    process = await left_running(home, MATCH, EXIT)
    before = await watcher_of(home, process, WatcherKind.MATCH)
    off = replace(before, log_offset=10, reports=1, noisy=3, state=WatcherState.DISARMED)
    assert await home.store.processes.report(before, Finding(watcher=off, output="too many"))

    kinds = [each.kind for each in await home.store.processes.watchers(process.process_id)]
    assert sorted(kinds) == [WatcherKind.EXIT, WatcherKind.MATCH]


async def test_an_end_that_the_agent_hears_is_the_last_word_about_its_output(home: Home) -> None:
    """S118: what matched and was not said is in the report of the end."""
    process = await left_running(home, EXIT, MATCH)
    before = await watcher_of(home, process, WatcherKind.MATCH)
    await end(home, process)
    found = Finding(watcher=replace(before, log_offset=10, reports=1), output="ready")

    assert not await home.store.processes.report(before, found)
    assert await home.store.processes.watched() == ()


async def test_a_report_of_a_process_that_is_not_there_is_not_filed(home: Home) -> None:
    process = await left_running(home, MATCH)
    before = await watcher_of(home, process, WatcherKind.MATCH)
    await home.store.processes.ask_end(process.process_id)
    await end(home, process)
    await home.store.processes.forget(process.process_id)

    found = Finding(watcher=replace(before, log_offset=10, reports=1), output="ready")
    assert not await home.store.processes.report(before, found)


# ── how long they are kept ──────────────────────────────────────────────────────────────────────


async def test_a_process_is_kept_for_a_time_that_begins_with_its_end(home: Home) -> None:
    """S109: however long ago it was started."""
    process = await left_running(home)
    home.clock.move(10 * 3_600 * SECOND_MS)
    assert await outdated(home) == []
    await end(home, process)
    assert await outdated(home) == []
    home.clock.move(3_601 * SECOND_MS)

    assert await outdated(home) == [process.process_id]


async def test_of_too_many_the_oldest_ends_go_first(home: Home) -> None:
    claim = await home.work_on("start them")
    started = [await begin(home, claim) for _ in range(4)]
    running = await begin(home, claim)
    await home.answer(claim)
    for process in reversed(started):
        home.clock.move(SECOND_MS)
        await end(home, process)

    found = await outdated(home, kept=2)
    assert found == [started[3].process_id, started[2].process_id]
    assert running.process_id not in found


async def test_a_process_whose_call_has_no_result_is_kept(home: Home) -> None:
    """The one who takes the call up again asks its files how it ended."""
    claim = await home.work_on("start it")
    (call_id,) = await home.propose(claim, a_call("terminal", effect=Effect.RESUMABLE))
    await home.start(claim, call_id)
    process = await home.store.processes.begin(
        claim, call_id, command="make", workdir=".", is_foreground=True
    )
    await end(home, process)
    home.clock.move(7_200 * SECOND_MS)
    assert await outdated(home, kept=0) == []
    await home.finish(claim, call_id)

    assert await outdated(home, kept=0) == [process.process_id]


async def test_a_process_whose_report_was_not_heard_is_kept(home: Home) -> None:
    """The one who is told of the end is told from its row."""
    claim = await home.work_on("start it")
    process = await begin(home, claim)
    await end(home, process)
    home.clock.move(7_200 * SECOND_MS)
    assert await outdated(home, kept=0) == []
    await home.answer(claim)

    assert await outdated(home, kept=0) == [process.process_id]


async def test_a_process_goes_with_its_watchers_and_only_when_it_has_ended(home: Home) -> None:
    process = await left_running(home, EXIT, MATCH)
    await home.store.processes.ask_end(process.process_id)
    await end(home, process)
    await home.store.processes.forget(process.process_id)

    assert await home.store.processes.get(process.process_id) is None
    assert await home.store.processes.watchers(process.process_id) == ()


async def test_what_is_said_about_it_can_be_asked_for_when_it_is_gone(home: Home) -> None:
    process = await left_running(home, EXIT)
    await end(home, process)
    await home.store.processes.forget(process.process_id)

    (entry,) = await home.store.views.reports_of(process.process_id)
    assert isinstance(entry, EntryView)
    assert entry.turn_id is not None
