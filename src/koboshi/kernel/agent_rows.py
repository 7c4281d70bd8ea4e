"""Rows of foreign agents as typed values."""

from typing import NamedTuple

from koboshi.domain.agent import (
    REQUEST_BYTES_MAX,
    REQUESTS_MAX,
    AgentMessage,
    AgentProcess,
    AgentRequest,
    MessageKind,
)
from koboshi.domain.ids import CallId, ProcessId, SessionId, TurnId
from koboshi.kernel.decode import maybe_number, maybe_text, number, text
from koboshi.kernel.process_rows import read_process
from koboshi.kernel.transaction import Reading, Row

REQUESTS_LOOKED_AT = 20


class AgentProcessRow(NamedTuple):
    """How far a process of an agent was read: the columns of `agent_process`."""

    process_id: ProcessId
    session_id: SessionId
    agent_session_id: int
    read_offset: int
    said: str
    can_load: int
    replayed_turn: TurnId | None
    drained_ms: int | None
    events: int


def read_agent_process(tx: Reading, process_id: ProcessId) -> AgentProcessRow | None:
    row = tx.row("agent_process", process_id=process_id)
    return None if row is None else AgentProcessRow._make(row)


def message_of(row: Row) -> AgentMessage:
    process_id, place, kind, turn_id, updates, begun, asked_ms, settled_ms, *outcome = row
    error, stop, tokens_in, tokens_out, made_ms = outcome
    turn = maybe_number(turn_id)
    return AgentMessage(
        process_id=ProcessId(number(process_id)),
        number=number(place),
        kind=MessageKind(text(kind)),
        turn_id=None if turn is None else TurnId(turn),
        updates=number(updates),
        begun=None if begun is None else bool(begun),
        is_asked=asked_ms is not None,
        is_settled=settled_ms is not None,
        error=maybe_text(error),
        stop=maybe_text(stop),
        tokens_in=number(tokens_in),
        tokens_out=number(tokens_out),
        made_ms=number(made_ms),
    )


def messages_of(tx: Reading, process_id: ProcessId) -> tuple[AgentMessage, ...]:
    rows = tx.rows("agent_messages_of", process_id=process_id)
    return tuple(message_of(row) for row in rows)


def prompts_of(tx: Reading, turn_id: TurnId) -> tuple[AgentMessage, ...]:
    rows = tx.rows("agent_prompts_of", turn_id=turn_id)
    return tuple(message_of(row) for row in rows)


def requests_of(tx: Reading, process_id: ProcessId) -> tuple[AgentRequest, ...]:
    rows = tx.rows("agent_requests_open", process_id=process_id, limit=REQUESTS_LOOKED_AT)
    return tuple(_request(row) for row in rows)


def _request(row: Row) -> AgentRequest:
    process_id, offset, turn_id, external_id, method, params, call_id = row
    turn, call = maybe_number(turn_id), maybe_text(call_id)
    return AgentRequest(
        process_id=ProcessId(number(process_id)),
        offset=number(offset),
        turn_id=None if turn is None else TurnId(turn),
        external_id=text(external_id),
        method=text(method),
        params=text(params),
        call_id=None if call is None else CallId(call),
    )


def requests_waiting(tx: Reading, process_id: ProcessId) -> tuple[int, int]:
    """How many requests have no answer, and how long their words are."""
    row = tx.row("agent_requests_waiting", process_id=process_id)
    return (0, 0) if row is None else (number(row[0]), number(row[1]))


def _has_many(tx: Reading, process_id: ProcessId) -> bool:
    count, size = requests_waiting(tx, process_id)
    return count * 2 > REQUESTS_MAX or size * 2 > REQUEST_BYTES_MAX


def newest_process(tx: Reading, agent_session_id: int, home: str) -> AgentProcess | None:
    found = tx.row("agent_process_newest", agent_session_id=agent_session_id)
    if found is None:
        return None
    process = read_agent_process(tx, ProcessId(number(found[0])))
    row = read_process(tx, ProcessId(number(found[0])))
    assert process is not None
    assert row is not None
    requests = requests_of(tx, process.process_id)
    return AgentProcess(
        process_id=process.process_id,
        read_offset=process.read_offset,
        said=process.said,
        can_load=bool(process.can_load),
        replayed_turn=process.replayed_turn,
        is_drained=process.drained_ms is not None,
        is_elsewhere=row.home != home,
        workdir=row.workdir,
        messages=messages_of(tx, process.process_id),
        requests=requests,
        has_many_requests=bool(requests) and _has_many(tx, process.process_id),
        is_starting=row.ended_ms is None and row.birth is None,
        is_end_asked=row.is_end_asked,
    )


def is_elsewhere(tx: Reading, process_id: ProcessId, home: str) -> bool:
    process = read_process(tx, process_id)
    return process is not None and process.home != home
