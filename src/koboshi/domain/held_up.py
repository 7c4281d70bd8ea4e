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
        case _:
            return None
    return Reason(words=words, remedy="`koboshi turns list` shows what runs; /stop ends this one")
