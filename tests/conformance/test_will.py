"""`/queue`, `/steer`, `/resume`, `/drop`, `/retry` and the settings: effect and reply are one."""

import pytest

from koboshi.clock import SystemClock
from koboshi.commands.parse import message_in, parse_command
from koboshi.commands.run import respond
from koboshi.domain.command import ActionStanding, OperatorAction
from koboshi.domain.ids import TurnId
from koboshi.domain.inbox import EntryState
from koboshi.domain.recovery import RecoveryPolicy
from koboshi.domain.session import Busy, Settings
from koboshi.domain.transcript import Effect, Message, ResultStatus
from koboshi.domain.turn import Claim
from koboshi.ports.channel import Receipt
from koboshi.ports.wakeups import TURNS
from koboshi.runtime.intake import Intake
from tests.harness.fake_time import DAY_MS, HOUR_MS
from tests.harness.homes import WEB, Home, OpenHome, a_call, a_world


async def tell(home: Home, text: str, *, person: str = "ann", key: str | None = None) -> Receipt:
    """What a person writes, looked at as the gateway does."""

    async def no_output(_process_id: object) -> str:
        return ""

    intake = Intake(
        store=home.store,
        clock=SystemClock(),
        respond=respond,
        output_of=no_output,
    )
    arrival = intake.look_at(home.inbound(text, person=person, key=key))
    (receipt,) = await home.accept(arrival, respond=respond)
    return receipt


async def last_words(home: Home) -> str:
    return (await home.deliver())[-1].text


async def requests(home: Home) -> list[tuple[str, str]]:
    return [(turn.request, turn.state) for turn in await home.turns()]


async def messages(home: Home, claim: Claim) -> list[str]:
    steps = (await home.store.turns.load(claim)).steps
    return [step.body.text for step in steps if isinstance(step.body, Message)]


async def set_policy(home: Home, policy: RecoveryPolicy) -> None:
    home.configure(await home.session_id(), Settings(policy=policy))


async def set_aside(home: Home) -> TurnId:
    """A turn that was interrupted where recovery is off."""
    claim = await home.work_on("build it")
    await set_policy(home, RecoveryPolicy.OFF)
    await home.die_and_recover(claim.turn_id)
    return claim.turn_id


async def failed(home: Home, text: str = "build it") -> TurnId:
    claim = await home.work_on(text)
    await home.store.turns.fail(claim, "it broke")
    return claim.turn_id


# ── /queue and /steer ───────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("busy", Busy)
async def test_queued_words_wait_for_their_own_turn_in_every_mode(home: Home, busy: Busy) -> None:
    """S92, S96: the words are a message of the person; the command is not part of them."""
    claim = await home.work_on("one")
    home.configure(claim.session_id, Settings(busy=busy))
    first = await tell(home, "/queue two")
    await tell(home, "/queue three")

    assert first.state is EntryState.WAITING
    assert "after this one" in (await home.deliver())[0].text
    await home.step(claim)
    assert await messages(home, claim) == ["one"]
    await home.answer(claim)
    claim = await home.claim()
    assert await messages(home, claim) == ["two"]
    await home.answer(claim)
    assert await messages(home, await home.claim()) == ["three"]


@pytest.mark.parametrize("busy", Busy)
async def test_steering_words_join_the_running_turn_in_every_mode(home: Home, busy: Busy) -> None:
    """At the next step boundary, and not lost by a death before it."""
    claim = await home.work_on("one")
    home.configure(claim.session_id, Settings(busy=busy))
    assert (await tell(home, "/steer be quick")).state is EntryState.WAITING
    assert "next step" in await last_words(home)
    claim = await home.resume(claim.turn_id)

    await home.step(claim)

    assert await messages(home, claim) == ["one", "be quick"]


@pytest.mark.parametrize("command", ["/queue", "/steer"])
async def test_on_an_idle_session_the_words_open_a_turn(home: Home, command: str) -> None:
    receipt = await tell(home, f"{command} hello")

    assert receipt.state is EntryState.ATTACHED
    assert await requests(home) == [("hello", "queued")]
    assert await home.deliver() == []


@pytest.mark.parametrize("command", ["/queue", "/steer"])
async def test_redelivered_words_are_taken_once(home: Home, command: str) -> None:
    await home.work_on("one")
    first = await tell(home, f"{command} two", key="k")
    before = await home.everything()
    again = await tell(home, f"{command} two", key="k")

    assert (again.is_duplicate, again.is_same, again.entry_id) == (True, True, first.entry_id)
    assert await home.everything() == before


@pytest.mark.parametrize("command", ["/queue", "/steer"])
async def test_the_words_answer_no_question(home: Home, command: str) -> None:
    """S141: a command passes through and leaves the question open."""
    claim = await home.work_on("one")
    await home.ask(claim)
    receipt = await tell(home, f"{command} yes")

    assert receipt.state is EntryState.WAITING
    assert (await home.view(claim.turn_id)).state == "waiting"
    assert (await home.recover(claim.turn_id)).rule == "question-open"
    await home.say("the red one")
    claim = await home.claim()
    await home.answer(claim)
    assert await messages(home, await home.claim()) == ["yes"]


async def test_a_command_without_words_says_how_it_is_used(home: Home) -> None:
    await home.say()
    assert (await tell(home, "/queue  ")).state is EntryState.HANDLED
    assert "/queue" in await last_words(home)


async def test_a_full_inbox_takes_no_queued_words_and_says_so(open_home: OpenHome) -> None:
    """S92: a rejected message is reported as rejected."""
    home = await open_home(waiting_max=1)
    await home.work_on("one")
    await tell(home, "/queue two")
    assert (await tell(home, "/queue three")).state is EntryState.DROPPED
    assert "did not take this one" in await last_words(home)


# ── /busy, /resume-policy, /whoami ──────────────────────────────────────────────────────────────


async def test_a_setting_holds_from_then_on_and_says_where_it_comes_from(home: Home) -> None:
    await tell(home, "/busy")
    assert "(queue)" in (words := await last_words(home))
    assert "configuration" in words
    await tell(home, "/busy steer")
    await home.reopen(crash=True)
    await tell(home, "/busy")
    assert "(steer)" in (words := await last_words(home))
    assert "set for this chat" in words
    claim = await home.work_on("one")
    await home.say("two")
    await home.step(claim)
    assert await messages(home, claim) == ["one", "two"]


async def test_both_settings_are_kept_and_can_go_back_to_the_configuration(home: Home) -> None:
    for command in ("/busy interrupt", "/resume-policy ask", "/busy default", "/busy nonsense"):
        await tell(home, command)

    session = await home.store.sessions.find(home.inbound().route)
    assert session is not None
    assert session.settings == Settings(policy=RecoveryPolicy.ASK)


@pytest.mark.parametrize("policy, state", [("auto", "queued"), ("ask", "waiting"), ("off", "x")])
async def test_the_policy_of_a_chat_decides_what_becomes_of_its_turns(
    home: Home, policy: str, state: str
) -> None:
    claim = await home.work_on("one")
    await tell(home, f"/resume-policy {policy}")
    await home.die_and_recover(claim.turn_id)

    assert (await home.view(claim.turn_id)).state == state.replace("x", "suspended")


async def test_a_redelivered_setting_changes_nothing(home: Home) -> None:
    await tell(home, "/busy steer", key="k")
    await tell(home, "/busy queue")
    await tell(home, "/busy steer", key="k")

    session = await home.store.sessions.find(home.inbound().route)
    assert session is not None
    assert session.settings.busy is Busy.QUEUE


async def test_whoami_says_who_and_where(home: Home) -> None:
    await tell(home, "/whoami", person="u-17")
    words = await last_words(home)
    assert "u-17" in words
    assert WEB in words


async def test_one_who_is_not_allowed_commands_nothing(open_home: OpenHome) -> None:
    home = await open_home(a_world(revoked=["eve"]))
    turn_id = await set_aside(home)
    for command in ("/resume", "/drop", "/retry", "/queue hello", "/busy steer", "/whoami"):
        assert (await tell(home, command, person="eve")).state is EntryState.IGNORED
    assert (await home.view(turn_id)).state == "suspended"


# ── /resume ─────────────────────────────────────────────────────────────────────────────────────


async def test_resume_takes_up_what_was_set_aside(home: Home) -> None:
    """S79: rules 6 to 12 do not apply, whatever restarts in between."""
    turn_id = await set_aside(home)
    home.wakeups.hints.clear()
    await tell(home, "/resume", person="bob")
    assert TURNS in home.wakeups.hints
    assert await last_words(home) == "I go on with «build it»."
    home.clock.move(DAY_MS)
    await home.reopen(crash=True)

    claim = await home.claim()
    assert claim.turn_id == turn_id
    assert len(await home.notes(turn_id)) == 1


async def test_resume_is_a_yes_to_the_question_of_the_gateway(home: Home) -> None:
    """S45: what is stale is offered once, and the question is not sent after it was answered."""
    claim = await home.work_on("build it")
    home.clock.move(2 * HOUR_MS)
    assert (await home.die_and_recover(claim.turn_id)).rule == "stale"
    await tell(home, "/resume")

    assert [delivery.text for delivery in await home.deliver()] == ["I go on with «build it»."]
    assert (await home.claim()).turn_id == claim.turn_id
    view = await home.view(claim.turn_id)
    assert (view.recoveries, view.crash_streak) == (0, 0)


async def test_resume_takes_up_what_a_dead_worker_held(home: Home) -> None:
    """A call that must not be repeated is settled as unknown, once."""
    claim = await home.work_on("build it")
    (call_id,) = await home.propose(claim, a_call(effect=Effect.ONCE))
    await home.start(claim, call_id)
    await home.reopen(crash=True)
    await tell(home, "/resume")

    assert (await home.claim()).turn_id == claim.turn_id
    assert (await home.results(claim.turn_id))[call_id].status is ResultStatus.UNKNOWN


async def test_resume_ends_a_back_off(home: Home) -> None:
    claim = await home.work_on("build it")
    await home.die_and_recover(claim.turn_id)
    assert await home.claims() == ()
    await tell(home, "/resume")

    assert (await home.claim()).turn_id == claim.turn_id
    assert len(await home.notes(claim.turn_id)) == 1


async def test_resume_ends_a_wait_that_the_work_chose_and_tells_the_model_nothing(
    home: Home,
) -> None:
    claim = await home.work_on("build it")
    await home.store.turns.postpone(claim, HOUR_MS, "busy")
    await tell(home, "/resume")

    assert (await home.claim()).turn_id == claim.turn_id
    assert await home.notes(claim.turn_id) == []


async def test_a_redelivered_resume_changes_nothing(home: Home) -> None:
    turn_id = await set_aside(home)
    await tell(home, "/resume", key="k")
    claim = await home.claim()
    await home.die_and_recover(turn_id)
    before = await home.everything()
    await tell(home, "/resume", key="k")

    assert await home.everything() == before
    assert claim.turn_id == turn_id


@pytest.mark.parametrize("command", ["/resume", "/drop"])
async def test_what_is_worked_on_next_or_asked_is_left_alone(home: Home, command: str) -> None:
    await tell(home, command)
    assert "nothing to" in await last_words(home)
    await home.say("one")
    await tell(home, command)
    assert "next in the queue" in await last_words(home)
    claim = await home.claim()
    await tell(home, command)
    assert "I am working on «one»" in await last_words(home)
    await home.ask(claim)
    await tell(home, command)
    assert "I wait for your answer" in await last_words(home)
    assert (await home.view(claim.turn_id)).state == "waiting"


# ── /drop ───────────────────────────────────────────────────────────────────────────────────────


async def test_drop_ends_the_turn_and_lets_what_waits_have_its_own(home: Home) -> None:
    """The generation stays: what waits is not dropped, other than by /stop."""
    claim = await home.work_on("one")
    home.clock.move(2 * HOUR_MS)
    await home.say("two")
    await home.die_and_recover(claim.turn_id)
    before = await home.store.sessions.find(home.inbound().route)
    await tell(home, "/drop")

    assert await requests(home) == [("one", "stopped"), ("two", "queued")]
    view = await home.view(claim.turn_id)
    assert (view.event, view.reason) == ("dropped", "dropped by the person")
    assert [each.state for each in await home.deliveries(claim.turn_id)] == ["abandoned"]
    assert await last_words(home) == "Dropped: «one»."
    after = await home.store.sessions.find(home.inbound().route)
    assert before is not None
    assert after is not None
    assert after.generation == before.generation


async def test_drop_leaves_no_call_without_a_result(home: Home) -> None:
    claim = await home.work_on("one")
    (call_id,) = await home.propose(claim, a_call(effect=Effect.ONCE))
    await home.start(claim, call_id)
    await home.reopen(crash=True)
    await tell(home, "/drop")

    assert (await home.results(claim.turn_id))[call_id].status is ResultStatus.UNKNOWN


# ── /retry ──────────────────────────────────────────────────────────────────────────────────────


async def test_retry_asks_what_failed_again_with_the_same_words(home: Home) -> None:
    turn_id = await failed(home)
    assert "/retry" in await last_words(home)
    closed = await home.explain(turn_id)
    await tell(home, "/retry")
    await home.reopen(crash=True)

    claim = await home.claim()
    assert claim.turn_id != turn_id
    assert await messages(home, claim) == ["build it"]
    loaded = await home.store.turns.load(claim)
    assert turn_id in {step.turn_id for step in loaded.context}, "it sees the history"
    assert await home.explain(turn_id) == closed


async def test_retry_asks_once(home: Home) -> None:
    """Neither a redelivery nor a second word asks the same turn twice; what comes of it can be
    retried in its turn."""
    await failed(home)
    await tell(home, "/retry", key="k")
    await tell(home, "/retry", key="k")
    await tell(home, "/retry")
    assert "nothing to retry" in await last_words(home)
    assert len(await home.turns()) == 2
    claim = await home.claim()
    await home.store.turns.fail(claim, "again")
    await tell(home, "/retry")

    assert [request for request, _ in await requests(home)] == ["build it"] * 3


async def test_retry_repeats_everything_that_was_said_in_the_turn(home: Home) -> None:
    claim = await home.work_on("build it")
    await tell(home, "/steer in red")
    await home.step(claim)
    await home.store.turns.fail(claim, "it broke")
    await tell(home, "/retry")

    assert await messages(home, await home.claim()) == ["build it\n\nin red"]


async def test_retry_of_what_was_dropped(home: Home) -> None:
    await set_aside(home)
    await tell(home, "/drop")
    await tell(home, "/retry")

    assert await requests(home) == [("build it", "stopped"), ("build it", "queued")]


async def test_retry_waits_behind_a_turn_that_runs(home: Home) -> None:
    claim = await home.work_on("one")
    await home.say("two")
    await home.store.turns.fail(claim, "it broke")
    claim = await home.claim()
    await tell(home, "/retry")
    assert "after this one" in await last_words(home)
    await home.answer(claim)

    assert await messages(home, await home.claim()) == ["one"]


async def test_there_is_nothing_to_retry_in_what_was_answered_stopped_or_forgotten(
    home: Home,
) -> None:
    claim = await home.work_on("one")
    await home.answer(claim)
    await tell(home, "/retry")
    await home.work_on("two")
    await home.stop()
    await tell(home, "/retry")
    await failed(home)
    await tell(home, "/new")
    await tell(home, "/retry")

    said = [each.text for each in await home.deliver() if "retry:" in each.text]
    assert len(said) == 3
    assert len(await home.turns()) == 3


async def test_retry_of_what_has_not_ended_points_to_resume(home: Home) -> None:
    await set_aside(home)
    await tell(home, "/retry")
    assert "/resume" in await last_words(home)
    assert len(await home.turns()) == 1


# ── the operator ────────────────────────────────────────────────────────────────────────────────


async def test_the_operator_resumes_only_what_is_served(open_home: OpenHome) -> None:
    home = await open_home()
    claim = await home.work_on("one")
    await home.die_and_recover(claim.turn_id, world=a_world(revoked=["ann"]))

    assert (
        await home.store.turns.will(claim.turn_id, OperatorAction.RESUME)
        is ActionStanding.NOT_SERVED
    )
    assert (await home.view(claim.turn_id)).state == "suspended"
    assert await home.store.turns.will(claim.turn_id, OperatorAction.DROP) is ActionStanding.LEFT
    assert (await home.view(claim.turn_id)).reason == "dropped by the operator"
    assert (
        await home.store.turns.will(claim.turn_id, OperatorAction.RESUME) is ActionStanding.CLOSED
    )
    assert await home.store.turns.will(TurnId(99), OperatorAction.RESUME) is None


def test_only_words_behind_the_command_are_a_message() -> None:
    for text, carried in (
        ("/queue a b", ("a b", Busy.QUEUE)),
        ("/steer@bot x\ny", ("x\ny", Busy.STEER)),
        ("/queue", None),
        ("/stop all", None),
    ):
        command = parse_command(text)
        assert command is not None
        assert message_in(command) == carried
