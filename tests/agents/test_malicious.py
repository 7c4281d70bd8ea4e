"""Agents that misbehave: bounded, told, and others are undisturbed."""

import json
import os

import pytest

from koboshi.domain.agent import REQUESTS_MAX
from koboshi.domain.agent_talk import CALLS_MAX
from tests.agents.agency import Agency
from tests.harness.polling import until
from tests.harness.tally import WANTS_ALL

SPAM = 2_000 if WANTS_ALL else 2 * REQUESTS_MAX + 10
SECRET = "the secret of the owner"


async def test_a_line_of_100_mb_and_floods_are_bounded_and_told_and_others_are_undisturbed(
    agency: Agency,
) -> None:
    agency.start()

    await agency.say("long 100000000", chat="bad")
    await agency.say("junk", "foreign", "all", "flood 20000", "say b", chat="odd")
    await agency.say("say fine", chat="good")
    answers = await agency.until_answered(2)

    told = await until(
        lambda: [each for each in agency.delivered() if "more than 8 MB" in each],
        "it is told",
        otherwise=agency.told,
    )
    assert len(told) == 1
    assert "fine" in answers
    (odd,) = [each for each in answers if each != "fine"]
    assert odd.endswith("b")
    assert "of another session" not in odd
    assert agency.is_right()
    kinds = {kind for (kind,) in agency.rows("SELECT DISTINCT kind FROM agent_events")}
    assert {"plan", "thought", "not-a-message", "unknown-update", "usage_update"} <= kinds


async def test_half_a_line_is_no_message_and_the_agent_goes_on(agency: Agency) -> None:
    agency.start()

    await agency.say("say a ", "half one", "say b")

    assert await agency.until_answered() == ["went on from 1. b"]
    halves = "SELECT count(*) FROM agent_events WHERE kind = 'half-line'"
    assert agency.rows(halves) == [(1,)]
    assert agency.is_right()


async def test_requests_for_files_and_terminals_do_not_lead_out(agency: Agency) -> None:
    """By names, by links that the agent made, and by folders to begin in."""
    outside = agency.home.parent / "outside"
    outside.mkdir(parents=True)
    (outside / "secret").write_text(SECRET)
    agency.start()
    link = f"run ln -s {outside} link; ln -s {outside}/secret leaf; ln -s {outside}/new leaf2"
    places = ("../outside/secret", f"{outside}/secret", "link/secret", "leaf", "../home/web-token")
    around = (f"/proc/self/root{outside}/secret", "/proc/self/cwd/leaf", "/proc/self/fd/0")
    odd = ("/proc/self/environ", "/proc/1/cwd/etc/shadow", "\0", ".", "/dev/zero", "\ud800")
    reads = [
        f"ask fs/read_text_file {json.dumps({'path': each})}" for each in (*places, *around, *odd)
    ]
    writes = [
        f"ask fs/write_text_file {json.dumps({'path': each, 'content': 'evil'})}"
        for each in (
            "../outside/new",
            f"{outside}/new",
            "link/new",
            "leaf2",
            f"/proc/self/root{outside}/new",
            "../home/koboshi.toml",
        )
    ]
    cat = json.dumps({"command": "cat secret", "cwd": str(outside)})
    named = json.dumps({"terminalId": "p2"})
    nul = json.dumps({"command": "true", "cwd": "\0"})
    ends = (
        f"ask terminal/create {nul}",
        f"ask terminal/wait_for_exit {named}",
        f"ask terminal/output {named}",
    )

    await agency.say(link, *reads, *writes, f"ask terminal/create {cat}", *ends)
    (answer,) = await agency.until_answered()

    assert SECRET not in answer
    assert agency.token not in answer
    assert answer.count('"error"') >= len(places) + len(writes)
    assert sorted(os.listdir(outside)) == ["secret"]
    assert "evil" not in (agency.home / "koboshi.toml").read_text()
    assert agency.is_right()


async def test_answers_to_no_question_and_ids_that_come_twice_do_no_harm(agency: Agency) -> None:
    agency.workdir.mkdir(parents=True)
    (agency.workdir / "one").write_text("1")
    (agency.workdir / "two").write_text("2")
    agency.start()

    await agency.say("say a ", "odd", "say b")
    await agency.until_answered()
    await agency.say("say c", key="k2")

    assert await agency.until_answered(2) == ["ab", "c"]
    assert "odd twice twice" in agency.log
    assert agency.rows("SELECT external_id FROM agent_sessions") == [("session-1",)]
    assert agency.is_right()


async def test_more_requests_than_may_wait_are_answered_in_order_and_that_is_told_once(
    agency: Agency,
) -> None:
    agency.start()

    await agency.say(f"spam {SPAM} {SPAM}", "say b")
    await agency.say("say fine", chat="good")
    most = 0

    def look() -> bool:
        nonlocal most
        waiting = agency.rows("SELECT count(*) FROM agent_requests WHERE answer IS NULL")
        most = max([most, *(each for (each,) in waiting if isinstance(each, int))])
        return len(agency.answers()) == 2

    await until(look, "both are answered", otherwise=agency.told)

    assert sorted(agency.answers()) == ["b", "fine"]
    assert most <= REQUESTS_MAX
    assert agency.rows("SELECT count(*), count(answer) FROM agent_requests") == [(SPAM, SPAM)]
    assert len([each for each in agency.delivered() if "things at once" in each]) == 1
    assert agency.is_right()


@pytest.mark.skipif(not WANTS_ALL, reason="`make torture` does it; tests/conformance has the bound")
async def test_tools_that_are_used_without_end_are_kept_up_to_a_bound_and_that_is_told_once(
    agency: Agency,
) -> None:
    agency.start()

    await agency.say(f"calls {CALLS_MAX + 200}", "say b")
    await agency.say("say fine", chat="good")
    first = await agency.until_answered()
    answers = await agency.until_answered(2)

    assert first == ["fine"], "others do not wait for it"
    assert sorted(answers) == ["b", "fine"]
    assert agency.rows("SELECT count(*) FROM calls") == [(CALLS_MAX,)]
    assert len([each for each in agency.delivered() if "is not recorded" in each]) == 1
    assert agency.is_right()


async def test_permission_spam_asks_a_person_one_thing_at_a_time_and_can_be_stopped(
    agency: Agency,
) -> None:
    agency.more = '\n[tools.terminal]\napproval = "always"\n'
    agency.start()
    await agency.say("spam 2000 2000", "say never")
    waits = "SELECT 1 FROM turns WHERE state = 'waiting'"
    await until(lambda: agency.rows(waits), "a person is asked", otherwise=agency.told)

    await agency.say("say fine", chat="good")
    assert await agency.until_answered() == ["fine"]
    assert agency.rows("SELECT count(*) FROM steps WHERE kind = 'question'") == [(1,)]
    ((kept,),) = agency.rows("SELECT count(*) FROM agent_requests")
    assert isinstance(kept, int)
    assert kept <= REQUESTS_MAX
    await agency.person().say("/stop", "stop")
    await agency.until_done("stop 1 cancelled")

    await agency.say("say after", key="k2")
    assert await agency.until_answered(2) == ["fine", "after"]
