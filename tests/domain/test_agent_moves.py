"""What is done next with a foreign agent that is slow, silent or wants too much."""

from dataclasses import replace

from koboshi.domain.agent import (
    ANSWER_MS_MAX,
    REPLAY_BYTES_MAX,
    AgentMessage,
    AgentProcess,
    AgentRequest,
    AgentStanding,
    EndAgent,
    GiveUpAgent,
    MessageKind,
    Move,
    ReadOn,
    Serve,
    Sight,
    next_move,
)
from koboshi.domain.agent_talk import waited_for
from koboshi.domain.ids import ProcessId, TurnId
from koboshi.domain.recovery import RecoveryPolicy

PROCESS, TURN = ProcessId(1), TurnId(1)
ALIVE = Sight(is_alive=True, unread=0)


def message(number: int, kind: MessageKind, *, is_settled: bool = True) -> AgentMessage:
    return AgentMessage(
        process_id=PROCESS,
        number=number,
        kind=kind,
        turn_id=None,
        updates=0,
        begun=None,
        is_asked=False,
        is_settled=is_settled,
        error=None,
        stop=None,
        tokens_in=0,
        tokens_out=0,
        made_ms=0,
    )


GREETED = message(1, MessageKind.INITIALIZE)
LOADS = message(2, MessageKind.LOAD, is_settled=False)


def standing(*messages: AgentMessage) -> AgentStanding:
    process = AgentProcess(
        process_id=PROCESS,
        read_offset=0,
        said="",
        can_load=True,
        replayed_turn=None,
        is_drained=False,
        is_elsewhere=False,
        messages=messages,
        workdir="own",
        requests=(),
    )
    return AgentStanding(
        turn_id=TURN,
        agent="fake",
        agent_session_id=1,
        external_id="x",
        process=process,
        prompts=(),
        has_history=True,
        deaths=0,
        policy=RecoveryPolicy.AUTO,
        is_interactive=True,
    )


def rule_of(move: Move) -> str | None:
    return move.rule if isinstance(move, GiveUpAgent) else None


def test_an_agent_is_waited_for_until_its_time_is_over() -> None:
    for waits in (
        standing(message(1, MessageKind.INITIALIZE, is_settled=False)),
        standing(GREETED, message(2, MessageKind.NEW, is_settled=False)),
        standing(GREETED, LOADS),
    ):
        assert next_move(waits, replace(ALIVE, waited_ms=ANSWER_MS_MAX)) == ReadOn()
        move = next_move(waits, replace(ALIVE, waited_ms=ANSWER_MS_MAX + 1))
        assert rule_of(move) == "agent-silent"
        assert isinstance(move, GiveUpAgent)
        assert move.ends_it


def test_what_it_has_written_is_read_before_it_is_judged() -> None:
    late = replace(ALIVE, waited_ms=10 * ANSWER_MS_MAX, unread=1)

    assert next_move(standing(GREETED, LOADS), late) == ReadOn()


def test_a_replay_without_an_end_is_none() -> None:
    floods = replace(ALIVE, unread=1, told_since=REPLAY_BYTES_MAX + 1)

    assert rule_of(next_move(standing(GREETED, LOADS), floods)) == "agent-silent"
    chats = replace(ALIVE, unread=1, is_overdue=True)
    assert rule_of(next_move(standing(GREETED, LOADS), chats)) == "agent-silent"


def test_an_agent_that_refuses_to_begin_is_ended_so_that_the_next_try_is_a_new_one() -> None:
    refused = replace(GREETED, error="log in first")

    move = next_move(standing(refused), ALIVE)

    assert isinstance(move, GiveUpAgent)
    assert (move.rule, move.ends_it) == ("agent-refused", True)


def test_many_requests_are_answered_before_more_is_read() -> None:
    request = AgentRequest(
        process_id=PROCESS,
        offset=1,
        turn_id=TURN,
        external_id="1",
        method="m",
        params="{}",
        call_id=None,
    )
    asks = standing(GREETED, replace(LOADS, is_settled=True))
    assert asks.process is not None
    few = replace(asks, process=replace(asks.process, requests=(request,)))
    many = replace(asks, process=replace(asks.process, requests=(request,), has_many_requests=True))
    more = replace(ALIVE, unread=1)

    assert next_move(few, more) == ReadOn()
    assert next_move(many, more) == Serve(request=request)
    assert next_move(many, replace(more, is_alive=False)) == ReadOn(), "of a dead one all is read"


def test_an_idle_agent_in_a_folder_that_is_not_the_chats_any_more_is_ended() -> None:
    opened = (GREETED, replace(LOADS, is_settled=True))
    prompt = replace(message(3, MessageKind.PROMPT, is_settled=False), turn_id=TURN)

    assert next_move(standing(*opened), ALIVE, workdir="other") == EndAgent()
    assert next_move(standing(*opened, prompt), ALIVE, workdir="other") == ReadOn()
    assert next_move(standing(*opened), ALIVE, workdir="own") != EndAgent()


def test_the_time_counts_from_when_it_was_fed_and_a_clock_that_was_set_ends_no_agent() -> None:
    assert waited_for(made_ms=0, fed_ms=500, now_ms=600) == 100, "the gateway was dead meanwhile"
    assert waited_for(made_ms=500, fed_ms=0, now_ms=600) == 100, "the clock went forward since"
    assert waited_for(made_ms=500, fed_ms=9_000, now_ms=600) == 100, "the clock went back since"
