"""Where foreign agents stand, read from their rows."""

from dataclasses import dataclass

from koboshi.domain.agent import AgentMessage, AgentStanding, MessageKind
from koboshi.domain.ids import ProcessId, SessionId, TurnId
from koboshi.domain.process import ProcessState
from koboshi.domain.turn import Claim
from koboshi.kernel.agent_rows import is_elsewhere, messages_of, newest_process, prompts_of
from koboshi.kernel.context import VerbContext
from koboshi.kernel.decode import maybe_number, maybe_text, number, text
from koboshi.kernel.facts import policy_of
from koboshi.kernel.rows import TurnRow, read_session, read_turn
from koboshi.kernel.transaction import Reading
from koboshi.ports.agents import LivingAgent
from koboshi.ports.views import AgentWords


@dataclass(frozen=True, slots=True)
class _Opened:
    agent_session_id: int
    agent: str
    external_id: str | None


def read_standing(tx: Reading, context: VerbContext, claim: Claim, agent: str) -> AgentStanding:
    prompts = prompts_of(tx, claim.turn_id)
    opened = _session_for(tx, claim, agent)
    session = read_session(tx, claim.session_id)
    process = None if opened is None else newest_process(tx, opened.agent_session_id, context.home)
    has_history = False
    if opened is not None and process is not None:
        before = {"process_id": process.process_id, "agent_session_id": opened.agent_session_id}
        has_history = tx.row("agent_has_history", **before) is not None
    deaths = {"turn_id": claim.turn_id, "session_id": claim.session_id}
    return AgentStanding(
        turn_id=claim.turn_id,
        agent=agent,
        agent_session_id=None if opened is None else opened.agent_session_id,
        external_id=None if opened is None else opened.external_id,
        process=process,
        prompts=prompts,
        has_history=has_history,
        deaths=tx.number("agent_deaths", **deaths),
        policy=policy_of(context, session).recovery,
        is_interactive=context.world.channels.get(session.route.channel, False),
        is_prompt_away=bool(prompts) and is_elsewhere(tx, prompts[-1].process_id, context.home),
    )


def _session_for(tx: Reading, claim: Claim, agent: str) -> _Opened | None:
    """The agent session of the chat, if it is with this agent."""
    row = tx.row("agent_session_open", session_id=claim.session_id)
    if row is None or row[1] != agent:
        return None
    return _Opened(number(row[0]), text(row[1]), maybe_text(row[2]))


def open_prompt(tx: Reading, process_id: ProcessId) -> AgentMessage | None:
    """The prompt that a process works on."""
    prompts = [each for each in messages_of(tx, process_id) if each.kind is MessageKind.PROMPT]
    return next((each for each in prompts if not each.is_settled), None)


def turn_worked_on(tx: Reading, process_id: ProcessId) -> TurnRow | None:
    prompt = open_prompt(tx, process_id)
    if prompt is None or prompt.turn_id is None:
        return None
    return read_turn(tx, prompt.turn_id)


def words_of(tx: Reading, turn_id: TurnId, limit: int) -> tuple[AgentWords, ...]:
    rows = tx.rows("agent_words_of_turn", turn_id=turn_id, limit=limit)
    return tuple(
        AgentWords(kind=text(kind), text=text(body), at_ms=number(at_ms))
        for kind, body, at_ms in reversed(rows)
    )


def living_of(*row: object) -> LivingAgent:
    process_id, session_id, used_ms, state, agent, end_asked, _number, turn_id, *rest = row
    closed_ms, cancelled_ms, open_turns, offset, unanswered, process_state = rest
    turn = maybe_number(turn_id)
    return LivingAgent(
        process_id=ProcessId(number(process_id)),
        session_id=SessionId(number(session_id)),
        agent=text(agent),
        used_ms=number(used_ms),
        is_session_open=state == "open",
        is_end_asked=end_asked is not None,
        busy_with=None if turn is None else TurnId(turn),
        is_abandoned=turn is not None and closed_ms is not None,
        cancelled_ms=maybe_number(cancelled_ms),
        has_open_turn=bool(open_turns),
        is_ready=not unanswered,
        read_offset=number(offset),
        is_starting=process_state == ProcessState.STARTING,
    )
