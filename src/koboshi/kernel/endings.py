"""A turn that ends, and what there is beside it to which the end may mean something.

One look answers for all of it. Most turns end without a process, a schedule, a goal or a child, and
with nothing behind them: they ask nothing more.
"""

from typing import NamedTuple

from koboshi.domain.ids import TurnId
from koboshi.kernel.decode import text
from koboshi.kernel.transaction import Reading


class TurnEnding(NamedTuple):
    """What `turn_ending` selects."""

    anchor: str
    has_progress: bool
    """It may owe a progress message."""
    has_calls: bool
    """A call of it has no result."""
    has_ends: bool
    """It may know how a process ended."""
    has_occasion: bool
    """It was opened by something else than words; by a schedule, perhaps."""
    has_goal: bool
    has_waiting: bool
    """An entry waits behind it."""
    is_of_child: bool


def read_ending(tx: Reading, turn_id: TurnId) -> TurnEnding | None:
    """What there is now; None if there is no such turn. Nothing that the end of a turn brings about
    adds to it, so the look may come before that."""
    row = tx.row("turn_ending", turn_id=turn_id)
    if row is None:
        return None
    anchor, has_progress, has_calls, has_processes, has_others, *rest = row
    has_goal, has_waiting, is_of_child = rest
    return TurnEnding(
        anchor=text(anchor),
        has_progress=bool(has_progress),
        has_calls=bool(has_calls),
        has_ends=bool(has_processes or has_others),
        has_occasion=bool(has_others),
        has_goal=bool(has_goal),
        has_waiting=bool(has_waiting),
        is_of_child=bool(is_of_child),
    )
