"""Killed with SIGKILL on a platform that cannot tell repeats apart, with tools that must not be
run twice. What happened in the world is read from what was written down before it happened."""

from collections import Counter
from pathlib import Path

import pytest

from koboshi.clock import SystemClock
from tests.crash.rig_life import RigLife, rig
from tests.crash.stories import script
from tests.harness.invariants import answers
from tests.harness.polling import until
from tests.harness.rig import Line
from tests.harness.rows import read_rows


def uses(*tools: str) -> str:
    """A turn that calls these tools, then answers."""
    made: dict[str, object] = {"calls": [{"tool": tool} for tool in tools]}
    return script(made, {"text": "through"})


@pytest.mark.parametrize(
    "crash_at, runs, is_asked",
    [
        ("turns.append:before", 1, False),
        ("turns.append:after", 1, False),
        ("turns.start_call:before", 1, False),
        ("turns.start_call:after", 0, True),
        ("turns.finish_call:before", 1, True),
        ("turns.finish_call:after", 1, False),
    ],
)
async def test_what_must_not_run_twice_does_not(
    home: Path, crash_at: str, runs: int, is_asked: bool
) -> None:
    """S68, S69, S159: a call that was proposed and not started has not run, so it runs. One that
    was started and has no result is never run again: the person is asked."""
    async with rig(home) as life:
        life.write(uses("do_once"))
        await life.die_at(crash_at)
        if is_asked:
            await life.live_until(lambda: _asked(life), "the person is asked")
            life.write("", question=_asked(life)["question"], choice="yes")
        await life.live_until(lambda: _texts(life)[-1:] == ["through"], "the answer")
        rows = await life.finish()

    assert life.ran() == ["do_once"] * runs
    assert answers(rows, "room") == ["through"]
    assert len(rows.of("steps", kind="result")) == 1


@pytest.mark.parametrize(
    "tool, crash_at, ran",
    [
        ("do_none", "turns.finish_call:before", ["do_none", "do_none"]),
        ("do_repeatable", "turns.finish_call:before", ["do_repeatable", "do_repeatable"]),
        ("do_resumable", "turns.finish_call:before", ["do_resumable", "do_resumable:resumed"]),
        ("do_resumable", "turns.finish_call:after", ["do_resumable"]),
    ],
)
async def test_the_others_are_run_again_or_taken_up(
    home: Path, tool: str, crash_at: str, ran: list[str]
) -> None:
    """S55, S57, S159: as the tool declares; no question is asked."""
    async with rig(home) as life:
        life.write(uses(tool))
        await life.die_at(crash_at)
        await life.finish()

    assert life.ran() == ran
    assert _texts(life) == ["through"]


@pytest.mark.parametrize(
    "kind, crash_points, sent",
    [
        # Not sent, and the outcome is unknown: it comes with a label.
        ("plain", ["outbox.claim:after"], [True]),
        # Sent, and the outcome is unknown: the second copy has a label.
        ("plain", ["outbox.settle:before"], [False, True]),
        ("plain", ["outbox.settle:after"], [False]),
        # Killed again around the commit of the label: it was not sent a second time yet.
        ("plain", ["outbox.settle:before", "outbox.label:before"], [False, True]),
        ("plain", ["outbox.settle:before", "outbox.label:after"], [False, True]),
        # Killed again behind the second send: it is unknown again, and it says so again.
        ("plain", ["outbox.settle:before", "outbox.settle:before"], [False, True, True]),
        # The platform recognises a repeat by its key: it never needs a label.
        ("idempotent", ["outbox.settle:before"], [False, False]),
        ("idempotent", ["outbox.claim:after"], [False]),
        # The platform can be asked: what is there is not sent again.
        ("finding", ["outbox.settle:before"], [False]),
        ("finding", ["outbox.claim:after"], [True]),
    ],
)
async def test_a_send_of_unknown_outcome_says_so(
    home: Path, kind: str, crash_points: list[str], sent: list[bool]
) -> None:
    """S145, S146, S149, S150: never lost, and where a copy could be seen twice, the second says
    that it may be one."""
    async with rig(home, kind) as life:
        life.write("echo hello")
        await life.die_at(*crash_points)
        rows = await life.finish()

    assert [line["labelled"] for line in life.sent()] == sent
    assert {line["text"] for line in life.sent()} == {"hello"}
    assert answers(rows, "room") == ["hello"]
    assert rows.one("outbox")["state"] == "delivered"


@pytest.mark.parametrize("moment", ["before", "after"])
@pytest.mark.parametrize("time", [1, 3])
async def test_a_feed_is_read_to_its_end_and_nothing_of_it_twice(
    home: Path, moment: str, time: int
) -> None:
    """S97, S162: how far we have read is stored together with what was read. Killed around that,
    the platform sends again what was not acknowledged. What the first life has left is answered
    together."""
    async with rig(home) as life:
        for number in range(6):
            life.write(f"echo {number}")
        await life.die_at(f"inbox.accept:{moment}:{time}")
        rows = await life.finish()

    numbers = [str(number) for number in range(6)]
    assert "\n\n".join(answers(rows, "room")).split("\n\n") == numbers
    assert set("\n\n".join(_texts(life)).split("\n\n")) == set(numbers)
    assert max(Counter(_plain(life)).values()) == 1
    assert rows.one("cursors")["token"] == "6"


@pytest.mark.parametrize("moment", ["before", "after"])
async def test_a_question_that_expires_is_let_go_once(home: Path, moment: str) -> None:
    """S60, S140: killed around the moment when no person has answered for too long."""
    async with rig(home) as life:
        life.write("ask me which drink: tea or coffee")
        await life.live_until(life.sent, "the question")
        life.process.kill()
        await _until_expired(life)
        await life.die_at(f"turns.expire:{moment}")
        rows = await life.finish()

    assert [row["cause"].partition(":")[0] for row in rows.outbox] == ["step", "expired"]
    assert rows.one("turns")["state"] == "stopped"
    assert len(_plain(life)) == len(set(_plain(life)))


@pytest.mark.parametrize("moment", ["before", "after"])
async def test_a_model_that_stays_busy_fails_the_turn_once(home: Path, moment: str) -> None:
    """S45, S72: the tries and the time are counted on the disk."""
    async with rig(home) as life:
        life.write(script({"busy": {}}))
        await life.die_at(f"turns.retry_model:{moment}")
        assert life.remains[0].one("turns")["model_tries"] == int(moment == "after")
        rows = await life.finish()

    assert rows.one("turns")["state"] == "failed"
    # The kill cut a wait of one second short, so that one is made again.
    assert rows.one("turns")["model_tries"] == 2 + int(moment == "after")
    (apology,) = life.sent()
    assert "the model did not answer" in apology["text"]


async def _until_expired(life: RigLife) -> None:
    """Until the question on the disk is older than it may be."""
    (turn,) = read_rows(life.process.home).turns
    await until(lambda: SystemClock().now_ms() > turn["expires_ms"], "the question expires")


def _texts(life: RigLife) -> list[str]:
    return [str(line["text"]) for line in life.sent()]


def _plain(life: RigLife) -> list[str]:
    """What was sent without a label: of these there is one of each."""
    return [str(line["text"]) for line in life.sent() if not line["labelled"]]


def _asked(life: RigLife) -> Line:
    found = [line for line in life.sent() if line["question"] is not None]
    return found[-1] if found else {}
