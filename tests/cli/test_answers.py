"""What the owner of a home answers, on a real store with the time in the hands of the test."""

from collections.abc import AsyncIterator
from datetime import UTC
from pathlib import Path
from typing import Any

import pytest

from koboshi.cli.explain import render
from koboshi.control.handle import answer
from koboshi.domain.ids import TurnId
from koboshi.domain.outbox import DeliveryState, Postpone, Settle
from koboshi.domain.recovery import Policy, RecoveryPolicy
from koboshi.ports.store import Arrival
from tests.harness.asked_owner import asked, jobs
from tests.harness.backends import Limits, SqliteBackend
from tests.harness.fake_time import HOUR_MS, SECOND_MS, FakeClock, RecordingWakeups
from tests.harness.homes import Home, a_world


@pytest.fixture
async def home(tmp_path: Path) -> AsyncIterator[Home]:
    one = Home(
        backend=SqliteBackend(tmp_path),
        clock=FakeClock(),
        wakeups=RecordingWakeups(),
        world=a_world(),
        limits=Limits(waiting_max=1),
    )
    await one.boot()
    yield one
    await one.store.close()


async def text(home: Home, what: str, *, is_running: bool = True) -> list[str]:
    said = await asked(home, what, is_running=is_running)
    return render(said, home.clock.now_ms(), UTC).splitlines()


async def why(home: Home, what: str, *, is_running: bool = True) -> str:
    lines = await text(home, what, is_running=is_running)
    return next(line for line in lines if line.startswith("why       ")).removeprefix("why       ")


# ── why a turn stands where it does ─────────────────────────────────────────────────────────────


async def test_a_turn_that_no_worker_has_begun(home: Home) -> None:
    await home.say()

    assert await why(home, "t1") == (
        "it has not been worked on yet; it begins as soon as there is room (rule fresh)"
    )
    assert (await why(home, "t1", is_running=False)).startswith(
        "it has not been worked on yet; it begins when a gateway runs again (rule fresh)"
    )


async def test_a_turn_that_waits_for_the_model(home: Home) -> None:
    claim = await home.work_on()
    await home.store.turns.postpone(claim, HOUR_MS, "model: full")

    assert await why(home, "t1") == (
        "the model could not answer yet; it is asked again when the wait is over (rule fresh)"
    )
    assert any("set down for a while: model: full" in line for line in await text(home, "t1"))


async def test_a_turn_that_this_gateway_works_on_was_not_interrupted(home: Home) -> None:
    await home.work_on()

    said = await asked(home, "t1")

    assert said["is_worked_on"] is True
    assert said["why"]["rule"] == "worked-on"
    assert await why(home, "t1") == "this gateway is working on it (rule worked-on)"


async def test_a_turn_of_a_dead_gateway_was_interrupted(home: Home) -> None:
    """S168: before the rescuer has looked, one can ask what it will do."""
    await home.work_on()
    await home.reopen()

    lines = await text(home, "t1")

    assert lines[2].startswith("stands    interrupted: the gateway died over it")
    assert lines[3].endswith("(rule fresh)")


async def test_a_turn_whose_question_was_answered(home: Home) -> None:
    await home.ask(await home.work_on())
    await home.say("tea")

    assert await why(home, "t1") == (
        "the person has answered; it goes on as soon as there is room (rule fresh)"
    )


async def test_a_turn_that_was_interrupted_long_ago(home: Home) -> None:
    """S48, S161: the verdict is the one that recovery would come to."""
    await home.step(await home.work_on())
    home.clock.move(2 * HOUR_MS)
    await home.reopen()

    assert await why(home, "t1") == (
        "it was interrupted long ago and may not be wanted any more (rule stale)"
    )


async def test_a_turn_whose_person_is_no_longer_allowed(home: Home) -> None:
    """S43"""
    await home.work_on()
    await home.reopen(world=a_world(revoked=["ann"]))

    assert (await why(home, "t1")).endswith("(rule person-not-allowed)")


async def test_a_turn_where_recovery_is_off(home: Home) -> None:
    """S168"""
    await home.work_on()
    await home.reopen(world=a_world(policy=Policy(recovery=RecoveryPolicy.OFF)))
    await home.recover(TurnId(1))

    lines = await text(home, "t1")

    assert lines[2].startswith("stands    set aside, since ")
    assert lines[3].endswith("/resume continues it (rule policy-off)")
    assert any("set aside (rule policy-off): recovery is switched off" in line for line in lines)


async def test_a_turn_that_failed(home: Home) -> None:
    await home.store.turns.fail(await home.work_on(), "empty-reply")

    lines = await text(home, "t1")

    assert lines[2].startswith("stands    failed, since ")
    assert lines[3] == "why       the model sent an empty answer twice"
    assert any(line.endswith("failed: the model sent an empty answer twice") for line in lines)


async def test_a_turn_that_is_answered_and_not_delivered(home: Home) -> None:
    await home.answer(await home.work_on(), "one", "two")

    lines = await text(home, "t1")

    assert lines[2].startswith("stands    answered, and the answer is on its way, since ")
    assert lines[3].endswith("(rule answered)")
    assert lines[-2:] == [
        "  d1 part 1/2  «one»  it is sent next",
        "  d2 part 2/2  «two»  it is sent next",
    ]


async def test_a_turn_that_was_taken_up_again_says_how_often(home: Home) -> None:
    await home.work_on()
    await home.reopen()
    await home.recover(TurnId(1))

    lines = await text(home, "t1")

    assert "restarts  taken up again 1 time, 1 of them without a new step" in lines
    assert any("taken up again after the gateway had died (rule fresh)" in line for line in lines)


# ── messages without a turn ─────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "reason,words",
    [
        ("not-allowed", "ignored: its sender is not allowed to use this gateway (not-allowed)"),
        ("blank", "ignored: there are no words in it (blank)"),
        ("edited", "ignored: edited (edited)"),
    ],
)
async def test_a_message_that_was_ignored(home: Home, reason: str, words: str) -> None:
    """S43, S67"""
    await home.accept(Arrival(inbound=home.inbound(), ignored=reason))

    assert (await text(home, "m1"))[2] == f"became    {words}"


async def test_a_message_that_was_cut_off(home: Home) -> None:
    """S85: what /stop did to a waiting message can be asked for."""
    await home.work_on()
    await home.say("later")
    await home.stop()

    words = "dropped: the person cut the conversation with /stop or /new while it waited (cut)"
    assert (await text(home, "m2"))[2] == f"became    {words}"


async def test_a_message_too_many(home: Home) -> None:
    """S92: a rejected message is reported as rejected."""
    await home.work_on()
    await home.say("second")
    await home.say("third")

    assert (await text(home, "m3"))[2].endswith("its sender was told so (inbox-full)")


async def test_a_button_of_a_question_that_is_closed(home: Home) -> None:
    await home.say("yes", question=7, choice="yes")

    assert (await text(home, "m1"))[2] == (
        "became    dropped: it answered a question that was closed by then (question-closed)"
    )


async def test_a_message_that_waits_behind_a_question_of_another_turn(home: Home) -> None:
    await home.work_on("the first")
    home.clock.move(90 * SECOND_MS)
    await home.say("the second")

    assert (await text(home, "m2"))[2:] == [
        "became    waiting behind turn t1, «the first»",
        "          which is being worked on, since 2027-01-15 08:00:00 (1 min 30 s ago)",
        "remedy    `koboshi explain t1` says why that has not ended; `koboshi inbox drop m2` "
        "drops it",
    ]


# ── deliveries ──────────────────────────────────────────────────────────────────────────────────


async def test_a_delivery_that_waits_for_the_one_before_it(home: Home) -> None:
    await home.answer(await home.work_on(), "one", "two")

    lines = await text(home, "d2")

    assert lines[0].startswith("delivery d2 in session s1, part 2 of 2, stored at ")
    assert lines[2] == "stands    it is sent next"
    assert lines[3] == "why       d1 goes first, and is not settled yet"


async def test_a_delivery_that_was_put_off(home: Home) -> None:
    """S148"""
    await home.answer(await home.work_on())
    delivery = await home.take_delivery()
    later = Postpone(wait_ms=HOUR_MS, is_ambiguous=False, reason="too many requests")
    await home.store.outbox.settle(delivery, home.worker.worker_id, later)

    lines = await text(home, "d1")

    assert lines[2] == "stands    not sent yet, 1 try so far: too many requests"
    assert lines[-1].endswith("  d1 was put off: too many requests")


async def test_a_delivery_that_was_refused(home: Home) -> None:
    await home.answer(await home.work_on())
    delivery = await home.take_delivery()
    refused = Settle(state=DeliveryState.REJECTED, reason="the chat is gone")
    await home.store.outbox.settle(delivery, home.worker.worker_id, refused)

    lines = await text(home, "d1")

    assert lines[2] == "stands    refused by the platform: the chat is gone"
    assert lines[3].startswith("settled   at 2027-01-15 08:00:00")


async def test_a_delivery_that_died_on_its_way(home: Home) -> None:
    """S146"""
    await home.answer(await home.work_on())
    await home.take_delivery()

    assert (await text(home, "d1"))[2] == "stands    being sent now"
    assert (await text(home, "d1", is_running=False))[2].endswith(
        "it is not known whether it arrived"
    )


async def test_a_reply_to_a_command_belongs_to_no_turn(home: Home) -> None:
    await home.stop()

    said = await asked(home, "d1")

    assert said["turn"] is None
    assert (await text(home, "d1"))[2] == "stands    it is sent next"


# ── names ───────────────────────────────────────────────────────────────────────────────────────


async def test_a_platform_may_use_ids_that_look_like_ours(home: Home) -> None:
    await home.say("mine", key="t77")

    assert (await text(home, "t77"))[1] == "asked     «mine»"


@pytest.mark.parametrize("what", ["", "t0", "\ud800", "x" * 60_000])
async def test_nonsense_is_not_found(home: Home, what: str) -> None:
    said = await asked(home, what)

    assert said["ok"] is False
    assert said["error"]["type"] == "not-found"


@pytest.mark.parametrize("request_", [{}, {"ask": "everything"}, {"ask": ["status"]}])
async def test_an_unknown_question_is_answered_so(home: Home, request_: dict[str, object]) -> None:
    said = await answer(jobs(home), request_)

    assert said["ok"] is False


async def test_status_counts_every_state_that_is_not_closed(home: Home) -> None:
    await home.work_on(chat="a")
    await home.say(chat="b")

    said: Any = await answer(jobs(home), {"ask": "status"})

    assert said["turns"] == {
        "queued": 1,
        "running": 1,
        "waiting": 0,
        "suspended": 0,
        "answered": 0,
    }
