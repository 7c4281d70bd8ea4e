"""What holds up a turn that is open: the gateway is full, or the model does not answer. Pure."""

from dataclasses import dataclass

from koboshi.domain.outage import Outage, Patience, standing
from koboshi.domain.reasons import Reason
from koboshi.domain.slots import SlotLimits
from koboshi.domain.turn import TurnState


@dataclass(frozen=True, slots=True, kw_only=True)
class HoldUpFacts:
    """What is stored about an open turn and the others beside it. `outage` is None while the model
    answers; a turn that backs off or was postponed is not due."""

    state: TurnState
    is_due: bool
    outage: Outage | None
    has_command_to_start: bool
    turns_claimed: int
    commands_running: int
    lacks_agent: bool = False
    """A foreign agent is to work on it, and none has been started for the chat."""
    agents_running: int = 0
    agent_awaited: str = ""
    """What its agent has to answer before it can work, in words."""


def why_held_up(facts: HoldUpFacts, limits: SlotLimits, patience: Patience) -> Reason | None:
    """Why an open turn does not get on; None if nothing holds it up."""
    if facts.outage is not None:
        words = standing(facts.outage, patience)
        return Reason(words=words, remedy="/stop in the chat ends it")
    match facts.state:
        case TurnState.QUEUED if facts.is_due and facts.turns_claimed >= limits.open_turns_max:
            words = (
                f"{facts.turns_claimed} turns are worked on, as many as may be at once "
                "(gateway.max_open_turns); it begins when one of them ends"
            )
        case TurnState.RUNNING if facts.has_command_to_start and not limits.has_room_for(
            facts.commands_running
        ):
            words = (
                f"{facts.commands_running} commands run, as many as may at once "
                "(gateway.max_commands); its command is started when one of them ends"
            )
        case TurnState.RUNNING if facts.lacks_agent and facts.agents_running >= limits.agents_max:
            words = all_agents_taken(facts.agents_running)
        case TurnState.RUNNING if facts.agent_awaited:
            return Reason(words=facts.agent_awaited, remedy="/stop in the chat ends it")
        case _:
            return None
    return Reason(words=words, remedy="`koboshi turns list` shows what runs; /stop ends this one")


def all_agents_taken(running: int) -> str:
    return (
        f"as many foreign agents live as may at once ({running}, gateway.max_agents); its own is "
        "started when one of them has nothing to do"
    )
