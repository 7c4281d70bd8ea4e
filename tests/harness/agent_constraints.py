"""Constraints of foreign agents, each with a statement that it refuses."""

_SESSION = (
    "INSERT INTO agent_sessions (agent_session_id, session_id, agent, state, opened_ms, closed_ms) "
    "VALUES "
)
_A_SESSION = f"{_SESSION} (1, 1, 'a', 'open', 1, NULL); "
_A_PROCESS = (
    f"{_A_SESSION} INSERT INTO processes (process_id, session_id, generation, turn_id, call_id, "
    "foreground, command, workdir, state, started_ms) "
    "VALUES (50, 1, 1, 2, 'agent:1', 0, 'a', '.', 'running', 1); "
    "INSERT INTO agent_processes (process_id, session_id, agent_session_id, used_ms) "
    "VALUES (50, 1, 1, 1); "
)
_MESSAGE = (
    "INSERT INTO agent_messages (process_id, session_id, body, made_ms, number, kind, turn_id) "
    "VALUES (50, 1, '', 1, "
)
_A_MESSAGE = f"{_A_PROCESS} {_MESSAGE} 1, 'prompt', 2); "
_REQUEST = (
    "INSERT INTO agent_requests (external_id, method, params, at_ms, process_id, session_id, "
    "turn_id, spool_offset) VALUES ('1', 'm', '', 1, "
)
_EVENT = (
    "INSERT INTO agent_events (kind, body, at_ms, process_id, session_id, turn_id, spool_offset) "
    "VALUES ('plan', '', 1, "
)

REFUSED_BY_AGENTS: dict[str, list[tuple[str, str]]] = {
    "agent_sessions": [
        ("CHECK state IN ('open', 'closed')", f"{_SESSION} (1, 1, 'a', 'x', 1, NULL)"),
        (
            "CHECK (state = 'closed') = (closed_ms IS NOT NULL)",
            f"{_SESSION} (1, 1, 'a', 'open', 1, 2)",
        ),
        (
            "CHECK (state = 'closed') = (closed_ms IS NOT NULL)",
            f"{_SESSION} (1, 1, 'a', 'closed', 1, NULL)",
        ),
        ("INDEX one_agent_session", f"{_A_SESSION} {_SESSION} (2, 1, 'b', 'open', 1, NULL)"),
    ],
    "agent_processes": [
        ("CHECK can_load IN (0, 1)", f"{_A_PROCESS} UPDATE agent_processes SET can_load = 2"),
        ("CHECK read_offset >= 0", f"{_A_PROCESS} UPDATE agent_processes SET read_offset = -1"),
    ],
    "agent_messages": [
        (
            "CHECK kind IN ('initialize', 'new', 'load', 'prompt', 'cancel', 'reply')",
            f"{_A_PROCESS} {_MESSAGE} 1, 'x', 2)",
        ),
        ("CHECK begun IN (0, 1)", f"{_A_MESSAGE} UPDATE agent_messages SET begun = 2"),
        (
            "UNIQUE agent_messages.process_id, agent_messages.number",
            f"{_A_MESSAGE} {_MESSAGE} 1, 'new', NULL)",
        ),
        (
            "CHECK settled_ms IS NOT NULL OR (error IS NULL AND stop IS NULL)",
            f"{_A_MESSAGE} UPDATE agent_messages SET stop = 'end_turn'",
        ),
        ("INDEX one_prompt", f"{_A_MESSAGE} {_MESSAGE} 2, 'prompt', 2)"),
    ],
    "agent_requests": [
        (
            "UNIQUE agent_requests.process_id, agent_requests.spool_offset",
            f"{_A_PROCESS} {_REQUEST} 50, 1, 2, 7); {_REQUEST} 50, 1, 2, 7)",
        ),
    ],
    "agent_events": [
        (
            "UNIQUE agent_events.process_id, agent_events.spool_offset",
            f"{_A_PROCESS} {_EVENT} 50, 1, 2, 7); {_EVENT} 50, 1, 2, 7)",
        ),
    ],
}
MESSAGES_OF_AGENTS = {
    "INDEX one_agent_session": "UNIQUE constraint failed: agent_sessions.session_id",
    "INDEX one_prompt": "UNIQUE constraint failed: agent_messages.process_id, agent_messages.turn",
}
AGENTS_POINTING_NOWHERE = {
    "agent_sessions.session_id": f"{_SESSION} (1, 99, 'a', 'open', 1, NULL)",
    "agent_processes.session_id": f"{_A_PROCESS} UPDATE agent_processes SET session_id = 99",
    "agent_processes.agent_session_id": (
        f"{_A_PROCESS} UPDATE agent_processes SET agent_session_id = 99"
    ),
    "agent_messages.process_id": f"{_A_MESSAGE} UPDATE agent_messages SET process_id = 99",
    "agent_messages.session_id": f"{_A_MESSAGE} UPDATE agent_messages SET session_id = 99",
    "agent_messages.turn_id": f"{_A_MESSAGE} UPDATE agent_messages SET turn_id = 99",
    "agent_requests.process_id": f"{_A_PROCESS} {_REQUEST} 99, 1, 2, 7)",
    "agent_requests.session_id": f"{_A_PROCESS} {_REQUEST} 50, 99, 2, 7)",
    "agent_requests.turn_id": f"{_A_PROCESS} {_REQUEST} 50, 1, 99, 7)",
    "agent_events.process_id": f"{_A_PROCESS} {_EVENT} 99, 1, 2, 7)",
    "agent_events.session_id": f"{_A_PROCESS} {_EVENT} 50, 99, 2, 7)",
    "agent_events.turn_id": f"{_A_PROCESS} {_EVENT} 50, 1, 99, 7)",
}
