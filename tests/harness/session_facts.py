"""A session as a command finds it: idle, or with a turn at work."""

from dataclasses import replace

from koboshi.domain.command import (
    SessionFacts,
    TurnGlance,
)
from koboshi.domain.ids import ChannelName, Generation, Seq, SessionId
from koboshi.domain.route import Route
from koboshi.domain.session import Session
from koboshi.domain.turn import TurnState

NOW_MS = 1_800_000_000_000
MINUTE_MS = 60_000
TURN = TurnGlance(
    turn_id=12,
    state=TurnState.RUNNING,
    request="build the house",
    opened_ms=NOW_MS - 2 * MINUTE_MS,
    changed_ms=NOW_MS - 5_000,
    steps=7,
    reason=None,
    is_worked_on=True,
)
DONE = replace(TURN, state=TurnState.DONE)
IDLE = SessionFacts(
    session=Session(
        session_id=SessionId(1),
        route=Route(channel=ChannelName("web:main"), chat="ann"),
        generation=Generation(1),
        context_from=Seq(0),
    ),
    now_ms=NOW_MS,
    open_turn=None,
    last_turn=None,
    waiting=0,
    owed=0,
    running_processes=(),
)
BUSY = replace(IDLE, open_turn=TURN)
