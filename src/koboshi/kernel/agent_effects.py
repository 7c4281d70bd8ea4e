"""Single effects of the verbs of foreign agents."""

from koboshi.domain import agent_words
from koboshi.domain.agent import REQUESTS_MAX
from koboshi.domain.agent_talk import CALLS_MAX, terminal_calls
from koboshi.domain.ids import ProcessId, SessionId, TurnId
from koboshi.domain.transcript import Reply, Result
from koboshi.domain.turn import Claim
from koboshi.kernel.agent_rows import AgentProcessRow, read_agent_process
from koboshi.kernel.decode import maybe_text, number
from koboshi.kernel.enqueue import enqueue_delivery_once
from koboshi.kernel.process_rows import read_process
from koboshi.kernel.record import add_result, add_step, close_agent_session
from koboshi.kernel.rows import TurnRow, read_turn
from koboshi.kernel.transaction import Transaction
from koboshi.ports.wakeups import PROCESSES


def open_agent_session(tx: Transaction, session_id: SessionId, agent: str) -> int:
    """The agent session of the chat; one with another agent is closed first."""
    row = tx.row("agent_session_open", session_id=session_id)
    if row is not None and row[1] == agent:
        return number(row[0])
    if row is not None:
        close_agent_session(tx, session_id, "another agent")
    return tx.insert("agent_session_insert", session_id=session_id, agent=agent, now=tx.now_ms)


def keep_words(tx: Transaction, turn: TurnRow, process_id: ProcessId) -> None:
    """What an agent had said when it died becomes a step: the next process does not say it."""
    row, process = read_agent_process(tx, process_id), read_process(tx, process_id)
    if row is not None and process is not None and row.said:
        reply = Reply(text=row.said, model=process.agent)
        add_step(tx, turn.session_id, turn.turn_id, turn.epoch, "agent", reply)


def end_terminals(tx: Transaction, agent: AgentProcessRow, turn_id: TurnId | None = None) -> None:
    """End what an agent has us run, of one turn or at all. Nothing would ask for it any more."""
    touched = tx.change(
        "terminals_ask_end",
        session_id=agent.session_id,
        calls=terminal_calls(agent.process_id),
        turn_id=turn_id or 0,
        now=tx.now_ms,
    )
    if touched:
        tx.hints.add(PROCESSES)


def finish_permission(tx: Transaction, turn: TurnRow, result: Result) -> None:
    """The call that asked a person gets its result. One that was denied has it already."""
    row = tx.row("call_open", turn_id=turn.turn_id, call_id=result.call_id)
    if row is None:
        return
    approved_ms, seal = row
    if approved_ms is not None:  # one that no person allowed never runs
        tx.change(
            "call_start",
            turn_id=turn.turn_id,
            call_id=result.call_id,
            epoch=turn.epoch,
            seal=maybe_text(seal),
            now=tx.now_ms,
        )
    add_result(tx, turn.session_id, turn.turn_id, turn.epoch, result)


def tell_of_bounds(tx: Transaction, claim: Claim, agent: str, *, asks: bool, does: bool) -> None:
    """Say once in a turn that the agent asks for more, or does more, than is kept."""
    told = {}
    if asks:
        told["agent-asks"] = agent_words.asks_too_much(agent, REQUESTS_MAX)
    if does:
        told["agent-does"] = agent_words.does_too_much(agent, CALLS_MAX)
    for cause, words in told.items():
        turn = read_turn(tx, claim.turn_id)
        assert turn is not None
        name = f"{cause}:{claim.turn_id}"
        enqueue_delivery_once(tx, claim.session_id, name, words, anchor=turn.anchor)
