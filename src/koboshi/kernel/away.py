"""Whether a gateway looks after a process now."""

from koboshi.domain.ids import TurnId
from koboshi.domain.process import Process
from koboshi.kernel.decode import first_number, first_text
from koboshi.kernel.transaction import Reading


def away_since_ms(tx: Reading, home: str, process: Process) -> int | None:
    """Since when no gateway looks after a process of another home; None while one does, or it has
    ended."""
    if process.ended_ms is not None or process.home == home:
        return None
    return first_number(tx.row("home_away", home=process.home))


def is_agent_away(tx: Reading, home: str, turn_id: TurnId, wait_ms: int) -> bool:
    """Whether a foreign agent works on a turn on another node, which has been away for less than
    `wait_ms`."""
    there = first_text(tx.row("agent_elsewhere", turn_id=turn_id, home=home))
    since_ms = None if there is None else first_number(tx.row("home_away", home=there))
    return since_ms is not None and tx.now_ms - since_ms < wait_ms
