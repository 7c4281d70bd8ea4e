"""An approval on its way to the person: the card that their chat can show, or why none is asked."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from koboshi.domain.approval import ApprovalCard, Unaskable, card_of
from koboshi.domain.ids import ChannelName
from koboshi.domain.transcript import Call, Message, Step
from koboshi.ports.clock import Clock
from koboshi.ports.tool import Tool, approval_of


@dataclass(frozen=True, slots=True, kw_only=True)
class ApprovalCards:
    clock: Clock
    age_ms_max: int
    """How long a question stays open."""
    units_max: Callable[[ChannelName], int | None] = lambda _: None
    """What one message of a channel shows, in UTF-16 code units; None where there is no limit."""
    has_page: bool = True
    """Whether the owner has a page, where everything is shown whole."""

    async def card(
        self, channel: ChannelName, tool: Tool, call: Call, steps: Sequence[Step]
    ) -> ApprovalCard | Unaskable:
        """What a person is asked before the call."""
        return card_of(
            call.tool,
            call.arguments,
            await approval_of(tool, call.arguments),
            asked_by=_asker(steps),
            expires_ms=self.clock.now_ms() + self.age_ms_max,
            lasts_ms=self.age_ms_max,
            units_max=self.units_max(channel),
            has_page=self.has_page,
        )


def _asker(steps: Sequence[Step]) -> str:
    """For whom the agent works: who wrote the newest message of the turn. The id comes first: a
    name may say anything."""
    said = [step.body for step in steps if isinstance(step.body, Message)]
    if not said:
        return "a report of a process"
    newest = said[-1]
    return f"{newest.sender} ({newest.name})" if newest.name else newest.sender
