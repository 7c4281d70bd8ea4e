"""What a tool is given with a call."""

from koboshi.domain.ids import CallId, ChannelName, Epoch, Generation, SessionId, TurnId, WorkerId
from koboshi.domain.route import Route
from koboshi.domain.turn import Claim
from koboshi.ports.tool import ToolContext

CONTEXT = ToolContext(
    claim=Claim(
        turn_id=TurnId(1),
        session_id=SessionId(1),
        generation=Generation(1),
        epoch=Epoch(1),
        worker_id=WorkerId(1),
    ),
    call_id=CallId("5.0"),
    route=Route(channel=ChannelName("web:main"), chat="ann"),
)
