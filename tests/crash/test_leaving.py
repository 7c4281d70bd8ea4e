"""A gateway is asked to leave, once, twice and over and over, and killed while it does."""

import json
import signal
from pathlib import Path

import pytest

from tests.cli.process import Gateway, gateway, koboshi, starting, until
from tests.crash.stories import pauses, script
from tests.harness.holds import MODEL, tool
from tests.harness.rows import Rows, glance, read_rows
from tests.harness.watched_gateway import hold, wait_held, watched

SLOW = script(*[pauses(0)] * 4, {"text": "through"})
PAUSE = tool("pause")
LONG = {"KOBOSHI__GATEWAY__DRAIN_SECONDS": "30"}
BREAKER = {"KOBOSHI__RECOVERY__BOOT_BREAKER": "true"}


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


def rows(home: Path) -> Rows:
    return read_rows(home)


def said(home: Path) -> list[str]:
    return [row["text"] for row in glance(home).of("outbox", state="delivered")]


def is_started(home: Path) -> bool:
    """Whether a call is under way: one that was proposed only is not begun in a drain."""
    return any(call["started_ms"] is not None for call in glance(home).calls)


def wait_draining(one: Gateway) -> None:
    until(lambda: one.events("gateway_draining"), "it is draining", otherwise=lambda: one.err)


def finish(home: Path, message: str) -> Rows:
    """The story after one more boot, when the turn of the message is done."""
    with gateway(home) as one:
        one.wait_state(message, "done")
        one.stop()
    return rows(home)


def test_a_stop_lets_the_step_finish_and_the_turn_goes_on_after_it(home: Path) -> None:
    """S23, S32: what runs comes to the end of its step, nothing new is begun, the thread is
    told once, and the turn goes on in the next boot with what was done."""
    with hold(home, PAUSE) as held, watched(home, **LONG) as one:
        message = one.say("a", SLOW)
        held.let()
        wait_held(home, held, times=2)
        one.signal(signal.SIGTERM)
        wait_draining(one)
        held.let()
        assert one.wait_end() == 0
    left = rows(home)
    assert left.one("turns")["state"] == "queued"
    assert left.one("workers")["ended_how"] == "leftovers"
    assert len(left.calls) == 2, "nothing new was begun"
    assert all(call["finished_ms"] for call in left.calls), "no call was cut off"

    after = finish(home, message)

    (note,) = after.of("steps", cause="recovery")
    assert "was restarted" in note["body"]
    assert after.one("turns")["crash_streak"] == 0
    told = [text for text in said(home) if "restarted" in text]
    assert told == ["I am being restarted. What I cannot finish now goes on afterwards."]
    assert said(home).count("through") == 1


@pytest.mark.parametrize("seconds", ["30", "0"])
def test_a_gateway_that_is_killed_inside_its_drain(home: Path, seconds: str) -> None:
    """S24: SIGTERM, and SIGKILL before it has left; without time for a drain it may have left."""
    settings = {"KOBOSHI__GATEWAY__DRAIN_SECONDS": seconds}
    with hold(home, PAUSE) as held, watched(home, **settings) as one:
        message = one.say("a", script(pauses(0), pauses(0), {"text": "through"}))
        held.let()
        wait_held(home, held, times=2)
        one.signal(signal.SIGTERM)
        wait_draining(one)
        one.kill()
    left = rows(home).one("turns")["state"]
    assert left == "running" or seconds == "0"

    finish(home, message)

    assert said(home).count("through") == 1
    assert sum("restarted" in text for text in said(home)) <= 1


def test_a_turn_that_ends_during_the_drain_is_not_taken_up_again(home: Path) -> None:
    """S26: of two turns one comes to its end; only the other is resumed."""
    with hold(home, MODEL) as thinks, hold(home, PAUSE) as works, watched(home, **LONG) as one:
        long = one.say("b", script(pauses(0), {"text": "long"}))
        thinks.let()
        wait_held(home, works)
        short = one.say("a", script({"text": "short"}))
        wait_held(home, thinks, times=2)
        one.signal(signal.SIGTERM)
        wait_draining(one)
        thinks.let()
        until(lambda: "short" in said(home), "one ends in the drain")
        one.signal(signal.SIGTERM)
        assert one.wait_end() == 0
    left = {row["turn_id"]: row["state"] for row in rows(home).turns}
    assert sorted(left.values()) in (["done", "queued"], ["answered", "queued"])

    with hold(home, MODEL) as thinks, watched(home) as one:
        assert one.wait_state(short, "done")["turn"]["recoveries"] == 0
        assert one.wait_state(long, "running")["turn"]["recoveries"] == 1
    assert said(home).count("short") == 1


def test_a_second_signal_waits_for_nothing(home: Path) -> None:
    with gateway(home, **LONG) as one:
        one.say("a", script(pauses(60), {"text": "never"}))
        until(lambda: is_started(home), "it works")
        one.signal(signal.SIGTERM)
        wait_draining(one)
        one.signal(signal.SIGTERM)
        assert one.wait_end() == 0
    assert rows(home).one("turns")["state"] == "queued"


def test_a_message_during_the_drain_is_kept_and_its_sender_told(home: Path) -> None:
    """S31: accepted, not begun, and answered by the next boot."""
    with hold(home, MODEL) as held, watched(home, **LONG) as one:
        one.say("a", script({"text": "first"}))
        wait_held(home, held)
        one.signal(signal.SIGTERM)
        wait_draining(one)
        until(lambda: glance(home).one("workers")["draining"], "it has said so")
        late = one.say("b", "echo late")
        held.let()
        assert one.wait_end() == 0
    assert "first" in said(home)
    assert "Queued: I am being restarted and will answer afterwards." in said(home)
    assert rows(home).one("inbox", entry_id=int(late[1:]))["state"] == "attached"

    finish(home, late)

    assert said(home).count("late") == 1


def test_a_restart_from_the_chat_comes_back_in_the_same_thread_once(home: Path) -> None:
    """S74, S154: the same command, delivered again, does not restart again; a new one does."""
    with gateway(home) as one:
        one.say("a", "/restart", key="again")
        one.wait_serving(times=2)
        until(lambda: [each for each in said(home) if each.startswith("I am back")], "it is back")
        one.say("a", "/restart", key="again")
        one.wait_state(one.say("a", "echo still here"), "done")
        pid = koboshi("status", "--json", home=home).document["worker"]["pid"]
        assert pid == one.pid, "the same process, made anew: no other would start it"
        assert len([each for each in said(home) if each.startswith("I am back")]) == 1
        one.say("a", "/restart", key="once more")
        one.wait_serving(times=3)
        one.stop()
    assert [row["ended_how"] for row in rows(home).workers] == ["restart", "restart", "stopped"]


def calls_restart(reason: str) -> dict[str, object]:
    return {"calls": [{"tool": "gateway_restart", "arguments": {"reason": reason}}]}


@pytest.mark.parametrize("moment", ["", "before", "after"])
def test_an_agent_restarts_its_own_gateway_and_knows_it(home: Path, moment: str) -> None:
    """S33, S70: its turn is given back at once and not at the end of a drain of ten minutes, and
    the result says that it happened; so also when the gateway is killed around the request."""
    crash = {"KOBOSHI_CRASH_AT": f"workers.request_restart:{moment}"} if moment else {}
    with starting(home, KOBOSHI__GATEWAY__DRAIN_SECONDS="600", **crash) as one:
        message = one.say("a", script(calls_restart("new settings"), {"text": "through"}))
        if moment:
            one.wait_end()
        else:
            one.wait_state(message, "done")
    after = finish(home, message) if moment else rows(home)

    (result,) = after.of("steps", kind="result")
    told = json.loads(json.loads(result["body"])["text"])
    assert told["status"] == "restarted"
    assert told["boot"] >= 2
    assert said(home).count("through") == 1


def test_an_agent_that_restarts_its_gateway_for_ever_is_asked_about(home: Path) -> None:
    """S52, S71: with other words each time; the person decides, and others are served."""
    items = [calls_restart(f"because {number}") for number in range(12)]
    with gateway(home) as one:
        message = one.say("a", script(*items, {"text": "through"}))
        told = until(lambda: _if_waiting(one, message), "the person is asked", within_s=120)
        assert told["turn"]["recoveries"] == 10
        one.wait_serving(times=11)
        one.wait_state(one.say("b", "echo served"), "done")
    assert sum("Shall I keep trying?" in text for text in said(home)) == 1


def _if_waiting(one: Gateway, message: str) -> dict[str, dict[str, object]] | None:
    """What is told of a turn that waits; nothing while it works, or the gateway is away."""
    if not glance(one.home).of("turns", state="waiting"):
        return None
    told = koboshi("explain", message, "--json", home=one.home)
    if told.code != 0:
        return None
    document: dict[str, dict[str, object]] = told.document
    return document if document["turn"]["state"] == "waiting" else None


def test_a_gateway_that_dies_over_and_over_resumes_nothing_and_serves_on(home: Path) -> None:
    """S73 and issue 13, B8: after five boots that found a dead turn, with progress in each, nothing
    is resumed; new messages and commands are served, and the lists and the chat say so."""
    with hold(home, PAUSE) as held:
        with watched(home, **BREAKER) as one:
            message = one.say("a", script(*[pauses(0)] * 30, {"text": "through"}))
            held.let()  # the first step of this boot
            wait_held(home, held, times=2)
            one.kill()
        for boot in range(2, 6):
            with watched(home, **BREAKER) as one:
                held.let()  # what was held when the last one died, and is now done
                wait_held(home, held, times=2 * boot)
                one.kill()
    with gateway(home, **BREAKER) as one:
        until(lambda: one.events("boot_report"), "it has looked around")
        assert one.explained(message)["why"]["rule"] == "boot-breaker"
        listed = koboshi("turns", "list", "--open", home=home).out
        assert "held back: the gateway keeps dying" in listed
        one.say("a", "/status")
        held_back = "Held back: the gateway keeps dying: "
        until(lambda: held_back in "\n".join(said(home)), "the chat is told so")
        one.wait_state(one.say("b", "echo served"), "done")
        status = koboshi("status", home=home)
        assert (
            "so interrupted work is paused for ten quiet minutes, or until /resume;" in status.out
        )
        one.say("a", "echo here I am")
        until(lambda: "here I am" in said(home), "who writes again is answered")
        one.stop()
    assert "through" not in said(home)
    assert rows(home).of("turns", state="stopped", rule="breaker-moved-on")


@pytest.mark.parametrize("how", ["stop", "drain"])
def test_the_command_line_asks_it_to_leave(home: Path, how: str) -> None:
    # What is stopped would take longer than any command to ask for it.
    sleep_ms = 700 if how == "drain" else 600_000
    with gateway(home, KOBOSHI__GATEWAY__DRAIN_SECONDS="0") as one:
        one.say("a", script({"sleep_ms": sleep_ms, "text": "first"}))
        until(lambda: glance(home).of("turns", state="running"), "it works")

        told = koboshi(how, home=home)

        assert told.code == 0, told.err
        assert told.out.endswith("it has stopped\n")
        assert one.wait_end() == 0
    is_through = how == "drain"
    assert ("first" in said(home)) == is_through
    assert koboshi(how, home=home).err.endswith("no gateway is running in this home\n")


def test_the_command_line_restarts_it(home: Path) -> None:
    with gateway(home) as one:
        told = koboshi("restart", home=home)

        assert told.out.endswith("it is back\n"), told.err
        one.stop()
    assert [row["ended_how"] for row in rows(home).workers] == ["restart", "stopped"]
