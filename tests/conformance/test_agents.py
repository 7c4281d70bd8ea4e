"""Foreign agents: what they told is applied once, and a prompt reaches one process once."""

from dataclasses import replace

import pytest

from koboshi.domain.agent import (
    REQUEST_BYTES_MAX,
    REQUESTS_MAX,
    AgentStanding,
    GiveUpAgent,
    MessageKind,
    Sight,
    next_move,
)
from koboshi.domain.agent_talk import (
    Asked,
    CallBegan,
    CallEnded,
    Echoed,
    Heard,
    Said,
    Settled,
    ToldMore,
    terminal_calls,
)
from koboshi.domain.budget import BudgetLimits, BudgetUnit, OverBudget
from koboshi.domain.command import CommandName
from koboshi.domain.errors import Fenced
from koboshi.domain.ids import CallId, ProcessId
from koboshi.domain.process import ProcessState
from koboshi.domain.recovery import VerdictKind
from koboshi.domain.sandbox import Boundary
from koboshi.domain.transcript import Reply, Result, ResultStatus
from koboshi.domain.turn import Claim
from tests.harness.fake_time import DAY_MS
from tests.harness.homes import Home, OpenHome

NAME = "external"


async def begin(home: Home, claim: Claim) -> ProcessId:
    process = await home.store.agents.begin(
        claim, "fake", "{}", command="fake", workdir=".", boundary=Boundary.NONE
    )
    return process.process_id


async def opened(home: Home, claim: Claim) -> ProcessId:
    """An agent with a session, which has nothing to do yet."""
    process_id = await begin(home, claim)
    agents = home.store.agents
    await agents.take(process_id, 0, 10, [Settled(offset=0, number=1, can_load=True)], claim)
    await agents.say(claim, process_id, MessageKind.NEW, "{}")
    await agents.take(process_id, 10, 20, [Settled(offset=10, number=2, external_id=NAME)], claim)
    return process_id


async def prompted(home: Home, claim: Claim) -> ProcessId:
    process_id = await opened(home, claim)
    await home.store.agents.say(claim, process_id, MessageKind.PROMPT, "{}")
    return process_id


async def standing(home: Home, claim: Claim) -> AgentStanding:
    return await home.store.agents.standing(claim, "fake")


def said(text: str, offset: int = 0, session: str = NAME) -> Said:
    return Said(offset=offset, session=session, text=text)


def a_call_began(name: str = "c1") -> CallBegan:
    return CallBegan(
        offset=0, session=NAME, external_id=name, kind="execute", title="ls", arguments="{}"
    )


async def test_a_prompt_is_stored_once_for_a_process(home: Home) -> None:
    claim = await home.work_on()
    process_id = await prompted(home, claim)

    await home.store.agents.say(claim, process_id, MessageKind.PROMPT, "{}")

    bodies = await home.store.agents.bodies(process_id, 1)
    assert [(number, kind) for number, kind, _ in bodies] == [
        (1, MessageKind.INITIALIZE),
        (2, MessageKind.NEW),
        (3, MessageKind.PROMPT),
    ]


async def test_what_was_read_is_applied_once(home: Home) -> None:
    """Two readers, or one that does not know that it has stored it."""
    claim = await home.work_on()
    process_id = await prompted(home, claim)
    heard: list[Heard] = [said("a "), a_call_began(), said("b")]

    first = await home.store.agents.take(process_id, 20, 90, heard, claim)
    second = await home.store.agents.take(process_id, 20, 90, heard, claim)

    assert (first, second) == (90, None)
    replies = [each for each in await home.bodies(claim.turn_id) if isinstance(each, Reply)]
    assert [each.text for each in replies] == ["a "]
    process = (await standing(home, claim)).process
    assert process is not None
    assert (process.said, process.read_offset) == ("b", 90)


async def test_a_call_of_the_agent_gets_its_result(home: Home) -> None:
    claim = await home.work_on()
    process_id = await prompted(home, claim)
    ended = CallEnded(offset=0, session=NAME, external_id="c1", is_ok=False, text="no")

    await home.store.agents.take(process_id, 20, 30, [a_call_began(), ended, ended], claim)

    (result,) = (await home.results(claim.turn_id)).values()
    assert (result.status, result.text) == (ResultStatus.ERROR, "no")


async def test_a_stopped_turn_hears_nothing_and_its_words_are_kept_as_events(home: Home) -> None:
    claim = await home.work_on()
    process_id = await prompted(home, claim)
    await home.stop()

    with pytest.raises(Fenced):
        await home.store.agents.take(process_id, 20, 30, [said("late")], claim)
    assert await home.store.agents.take(process_id, 20, 30, [said("late")])

    (late,) = await home.store.views.agent_words(claim.turn_id, 10)
    assert (late.kind, late.text) == ("outside", "late")
    (living,) = await home.store.agents.living()
    assert (living.is_abandoned, living.cancelled_ms) == (True, None)
    await home.store.agents.cancel(process_id, claim.turn_id, "{}")
    (living,) = await home.store.agents.living()
    assert living.cancelled_ms is not None


async def test_words_of_another_session_and_outside_of_a_prompt_are_not_said(home: Home) -> None:
    claim = await home.work_on()
    process_id = await opened(home, claim)

    await home.store.agents.take(process_id, 20, 30, [said("too early")], claim)
    await home.store.agents.say(claim, process_id, MessageKind.PROMPT, "{}")
    await home.store.agents.take(process_id, 30, 40, [said("other", session="x")], claim)

    process = (await standing(home, claim)).process
    assert process is not None
    assert process.said == ""


async def test_a_replay_is_no_step_and_its_marks_are_noted(home: Home) -> None:
    claim = await home.work_on()
    process_id = await prompted(home, claim)
    await home.store.agents.drained(process_id, begun=True)
    again = await begin(home, claim)
    agents = home.store.agents
    await agents.take(again, 0, 10, [Settled(offset=0, number=1, can_load=True)], claim)
    await agents.say(claim, again, MessageKind.LOAD, "{}")
    mark = f"[koboshi turn {claim.turn_id}]"
    replay: list[Heard] = [
        Echoed(offset=0, session=NAME, text=f"do it {mark}"),
        said("earlier"),
        a_call_began(),
    ]

    await agents.take(again, 10, 20, [*replay, Settled(offset=0, number=2)], claim)

    found = await standing(home, claim)
    assert found.process is not None
    assert (found.process.said, found.process.replayed_turn) == ("", claim.turn_id)
    assert (found.deaths, found.has_history, found.external_id) == (1, True, NAME)
    assert not [each for each in await home.bodies(claim.turn_id) if isinstance(each, Reply)]


async def test_a_turn_whose_agent_may_live_is_attached_whatever_its_age(home: Home) -> None:
    claim = await home.work_on()
    process_id = await prompted(home, claim)
    await home.store.agents.take(process_id, 20, 30, [a_call_began()], claim)
    home.clock.move(3 * DAY_MS)

    verdict = await home.die_and_recover(claim.turn_id)

    assert (verdict.kind, verdict.rule) == (VerdictKind.RESUME, "agent-attached")
    assert await home.notes(claim.turn_id) == []
    assert await home.results(claim.turn_id) == {}
    assert (await home.claim()).turn_id == claim.turn_id


async def test_a_turn_whose_agent_is_dead_is_judged_like_any_other(home: Home) -> None:
    claim = await home.work_on()
    process_id = await prompted(home, claim)
    await home.store.agents.take(process_id, 20, 30, [a_call_began()], claim)
    await home.store.agents.drained(process_id, begun=True)
    home.clock.move(3 * DAY_MS)

    verdict = await home.die_and_recover(claim.turn_id)

    assert verdict.rule == "stale"
    (result,) = (await home.results(claim.turn_id)).values()
    assert result.status is ResultStatus.UNKNOWN


async def test_a_request_is_answered_once(home: Home) -> None:
    claim = await home.work_on()
    process_id = await prompted(home, claim)
    asked = Asked(offset=25, session=NAME, external_id="7", method="m", params="{}")
    await home.store.agents.take(process_id, 20, 30, [asked, a_plan()], claim)
    found = (await standing(home, claim)).process
    assert found is not None
    (request,) = found.requests

    for _ in range(2):
        await home.store.agents.reply(request, "{}", "done")

    kinds = [kind for _, kind, _ in await home.store.agents.bodies(process_id, 4)]
    assert kinds == [MessageKind.REPLY]
    (plan,) = await home.store.views.agent_words(claim.turn_id, 10)
    assert (plan.kind, plan.text) == ("plan", "[completed] first")


def asked_at(offset: int, params: str = "{}") -> Asked:
    return Asked(offset=offset, session=NAME, external_id="7", method="m", params=params)


async def test_more_requests_than_may_wait_are_left_in_the_spool_and_that_is_told_once(
    home: Home,
) -> None:
    claim = await home.work_on()
    process_id = await prompted(home, claim)
    agents = home.store.agents
    heard: list[Heard] = [asked_at(20 + place) for place in range(REQUESTS_MAX + 1)]
    last = 20 + REQUESTS_MAX

    assert await agents.take(process_id, 20, 999, [*heard, said("b", 500)], claim) == last
    assert await agents.take(process_id, last, 999, [heard[-1], said("b", 500)], claim) is None
    found = (await standing(home, claim)).process
    assert found is not None
    assert (found.read_offset, found.said, found.has_many_requests) == (last, "", True)
    await agents.reply(found.requests[0], "{}", "done")

    assert await agents.take(process_id, last, 999, [heard[-1], said("b", 500)], claim) == 999
    assert [kind for _, kind, _ in await agents.bodies(process_id, 4)] == [MessageKind.REPLY]
    told = home.sql("SELECT count(*) FROM outbox WHERE text LIKE '%things at once%'")
    assert told == [(1,)]


async def test_long_requests_wait_one_after_the_other_and_one_always_fits(home: Home) -> None:
    claim = await home.work_on()
    process_id = await prompted(home, claim)
    long = "x" * (REQUEST_BYTES_MAX // 2 + 1)

    place = await home.store.agents.take(
        process_id, 20, 99, [asked_at(20, long + long), asked_at(30, long)], claim
    )

    assert place == 30


async def test_requests_of_a_dead_agent_do_not_hold_up_what_lies_behind_them(home: Home) -> None:
    claim = await home.work_on()
    process_id = await prompted(home, claim)
    heard: list[Heard] = [asked_at(20 + place) for place in range(REQUESTS_MAX + 5)]

    take = home.store.agents.take
    place = await take(process_id, 20, 999, [*heard, said("b", 500)], claim, is_alive=False)

    assert place == 999
    assert home.sql("SELECT count(*) FROM agent_requests") == [(REQUESTS_MAX,)]


async def test_calls_beyond_the_bound_are_no_steps_and_that_is_told_once(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("koboshi.kernel.agent_hearing.CALLS_MAX", 2)
    claim = await home.work_on()
    process_id = await prompted(home, claim)
    take = home.store.agents.take

    heard: list[Heard] = [a_call_began(f"c{number}") for number in range(4)]
    await take(process_id, 20, 30, heard, claim)
    await take(process_id, 30, 40, [a_call_began("c9"), said("b")], claim)

    assert home.sql("SELECT count(*) FROM calls") == [(2,)]
    assert home.sql("SELECT count(*) FROM outbox WHERE text LIKE '%not recorded%'") == [(1,)]
    process = (await standing(home, claim)).process
    assert process is not None
    assert process.said == "b"


async def test_an_agent_that_is_given_up_is_to_end_in_the_transaction_that_fails_the_turn(
    home: Home,
) -> None:
    claim = await home.work_on()
    process_id = await begin(home, claim)
    (living,) = await home.store.agents.living()
    assert not living.is_ready

    await home.store.agents.give_up(claim, process_id, "agent-silent", "it does not answer")

    (living,) = await home.store.agents.living()
    assert (living.is_end_asked, living.has_open_turn) == (True, False)
    turn = home.rows().one("turns", turn_id=claim.turn_id)
    assert (turn["state"], turn["reason"]) == ("failed", "it does not answer")
    assert home.sql("SELECT count(*) FROM steps WHERE cause = 'agent:agent-silent'") == [(1,)]
    with pytest.raises(Fenced):
        await home.store.agents.give_up(claim, process_id, "agent-silent", "again")


async def test_an_open_turn_says_what_its_agent_has_not_answered(home: Home) -> None:
    claim = await home.work_on()
    await begin(home, claim)
    home.clock.move(61_000)

    explained = await home.store.views.explain(claim.turn_id)

    assert explained is not None
    assert explained.held_up is not None
    assert "fake has not answered initialize for 1 min 1 s" in explained.held_up.words


async def test_what_an_agent_used_is_counted_once_in_the_budget(open_home: OpenHome) -> None:
    home = await open_home()
    limits = BudgetLimits(unit=BudgetUnit.TOKENS, day=100)
    await home.reopen(crash=False, world=replace(home.world, budget=limits))
    claim = await home.work_on()
    process_id = await prompted(home, claim)
    settled = Settled(offset=20, number=3, stop="end_turn", tokens_in=70, tokens_out=40, cost=110)

    for _ in range(2):
        await home.store.agents.take(process_id, 20, 30, [settled, settled], claim)

    (purse,) = await home.store.budget.today()
    assert (purse.used, purse.reserved) == (110, 0)
    asked = await home.store.budget.reserve(claim.session_id, claim.turn_id, "fake", 1)
    assert isinstance(asked, OverBudget)


def a_plan() -> ToldMore:
    return ToldMore(offset=28, session=NAME, kind="plan", text="[completed] first")


async def test_the_end_of_an_agent_is_no_report_and_new_closes_its_session(home: Home) -> None:
    claim = await home.work_on()
    process_id = await prompted(home, claim)
    settled = Settled(offset=0, number=3, stop="end_turn", tokens_in=1, tokens_out=2)
    await home.store.agents.take(process_id, 20, 30, [settled], claim)
    await home.answer(claim, "done")

    await home.command(CommandName.NEW)
    (living,) = await home.store.agents.living()
    assert not living.is_session_open
    await home.store.agents.end(process_id)
    await home.store.processes.ended(
        process_id, ProcessState.KILLED, exit_code=None, reason="x", ended_ms=home.clock.now_ms()
    )
    await home.store.agents.drained(process_id, begun=False)

    assert await home.store.agents.living() == ()
    assert await home.store.agents.running() == 0
    assert home.sql("SELECT count(*) FROM inbox WHERE kind = 'report'") == [(0,)]
    await home.store.processes.forget(process_id)
    assert home.sql("SELECT count(*) FROM agent_messages") == [(0,)]


async def test_a_permission_becomes_a_call_that_needs_a_yes(home: Home) -> None:
    claim = await home.work_on()
    process_id = await prompted(home, claim)
    asked = Asked(offset=25, session=NAME, external_id="7", method="m", params="{}")
    await home.store.agents.take(process_id, 20, 30, [asked], claim)
    found = (await standing(home, claim)).process
    assert found is not None

    call_id = await home.store.agents.propose(claim, found.requests[0], "agent permission", "{}")

    again = (await standing(home, claim)).process
    assert again is not None
    assert again.requests[0].call_id == call_id
    assert call_id != CallId("")


async def test_a_permission_that_cannot_be_asked_is_refused_without_a_yes(home: Home) -> None:
    """It never ran: its result is there, and no start that a person has not allowed."""
    claim = await home.work_on()
    process_id = await prompted(home, claim)
    asked = Asked(offset=25, session=NAME, external_id="7", method="m", params="{}")
    await home.store.agents.take(process_id, 20, 30, [asked], claim)
    found = (await standing(home, claim)).process
    assert found is not None
    (request,) = found.requests
    call_id = await home.store.agents.propose(claim, request, "agent permission", "{}")

    refused = Result(call_id=call_id, status=ResultStatus.ERROR, text="too long")
    await home.store.agents.reply(request, "{}", "too long to be asked", refused)

    assert await home.results(claim.turn_id) == {call_id: refused}
    call = home.rows().one("calls", call_id=call_id)
    assert (call["started_ms"], call["outcome"]) == (None, "error")


async def test_an_erasure_takes_what_agents_were_told_and_told(home: Home) -> None:
    claim = await home.work_on("my secret")
    process_id = await opened(home, claim)
    agents = home.store.agents
    await agents.say(claim, process_id, MessageKind.PROMPT, '{"text":"my secret"}')
    asked = Asked(offset=25, session=NAME, external_id="7", method="m", params='["my secret"]')
    heard: list[Heard] = [said("my secret"), asked, replace(a_plan(), text="my secret")]
    await agents.take(process_id, 20, 30, heard, claim)

    channel = (await home.store.turns.load(claim)).session.route.channel
    assert await home.store.erasures.erase(channel, "ann", "operator")

    for table in ("agent_messages", "agent_requests", "agent_events", "agent_processes"):
        assert "my secret" not in str(home.sql(f"SELECT * FROM {table}")), table
    (body,) = [body for _, _, body in await agents.bodies(process_id, 3)]
    assert body == '{"method":"koboshi/erased"}'


async def test_a_session_without_a_name_is_none(home: Home) -> None:
    claim = await home.work_on()
    process_id = await begin(home, claim)
    agents = home.store.agents
    await agents.take(process_id, 0, 10, [Settled(offset=0, number=1)], claim)
    await agents.say(claim, process_id, MessageKind.NEW, "{}")

    await agents.take(process_id, 10, 20, [Settled(offset=10, number=2)], claim)

    move = next_move(await standing(home, claim), Sight(is_alive=True, unread=0))
    assert isinstance(move, GiveUpAgent)
    assert (move.rule, "names no session" in move.reason) == ("agent-refused", True)


async def test_a_new_plan_takes_the_place_of_the_old_one_however_much_was_told(home: Home) -> None:
    claim = await home.work_on()
    process_id = await prompted(home, claim)
    home.sql("UPDATE agent_processes SET events = 4999")
    plans: list[Heard] = [
        ToldMore(offset=20 + at, session=NAME, kind="plan", text=f"plan {at}") for at in range(3)
    ]

    await home.store.agents.take(process_id, 20, 30, plans, claim)

    assert home.sql("SELECT body FROM agent_events") == [("plan 2",)]


async def test_commands_of_an_agent_end_with_the_turn_that_is_stopped_and_with_the_agent(
    home: Home,
) -> None:
    first = await home.work_on("one")
    process_id = await prompted(home, first)
    early = await a_terminal(home, first, process_id, 1)
    await home.store.agents.take(
        process_id, 20, 30, [Settled(offset=20, number=3, stop="end_turn")], first
    )
    await home.answer(first, "done")
    second = await home.work_on("two", key="second")
    await home.store.agents.say(second, process_id, MessageKind.PROMPT, "{}")
    late = await a_terminal(home, second, process_id, 2)
    await home.stop()

    await home.store.agents.cancel(process_id, second.turn_id, "{}")
    assert await are_asked(home, early, late) == [False, True]

    await home.store.agents.drained(process_id, begun=True)
    assert await are_asked(home, early, late) == [True, True]


async def a_terminal(home: Home, claim: Claim, process_id: ProcessId, offset: int) -> ProcessId:
    process = await home.store.processes.begin(
        claim,
        CallId(f"{terminal_calls(process_id)}{offset}"),
        command="sleep 600",
        workdir=".",
        is_foreground=False,
        boundary=Boundary.NONE,
        agent="fake",
    )
    return process.process_id


async def are_asked(home: Home, *found: ProcessId) -> list[bool]:
    """Whether each is asked to end."""
    rows = [await home.store.processes.get(each) for each in found]
    return [each is not None and each.is_end_asked for each in rows]


async def test_files_that_an_agent_was_served_are_not_kept_for_good(home: Home) -> None:
    """Short requests are: they say what was permitted."""
    claim = await home.work_on()
    process_id = await prompted(home, claim)
    asked = [
        Asked(offset=20 + at, session=NAME, external_id=str(at), method="m", params=params)
        for at, params in enumerate(('{"content": "' + "x" * 9_000 + '"}', '{"title": "ls"}'))
    ]
    await home.store.agents.take(process_id, 20, 30, asked, claim)
    process = (await standing(home, claim)).process
    assert process is not None
    for request in process.requests:
        await home.store.agents.reply(request, '{"result": "' + "y" * 9_000 + '"}', "done")

    kept = home.sql("SELECT params FROM agent_requests ORDER BY spool_offset")
    assert kept == [("{}",), ('{"title": "ls"}',)]
    assert len((await home.store.agents.bodies(process_id, 4))[0][2]) > 9_000, "it is fed first"
    await home.store.agents.drained(process_id, begun=True)
    assert {body for *_, body in await home.store.agents.bodies(process_id, 4)} == {"{}"}
