"""The one door of the eight state machines: every statement that sets a state passes here.

`MOVES` names each of these statements, with its machine and the events that it stands for. The
state that it sets is the one that `advance()` gives, as `:after`. The states that it moves from are
in its own text: either the very states in which its events may happen, or the one state `:before`
that its caller has seen. `tests/kernel/test_doors.py` reads `queries.sql` and compares.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from types import MappingProxyType
from typing import Any

from koboshi.domain import child, goal, inbox, outbox, process, schedule, turn, watch
from koboshi.domain.child import ChildEvent
from koboshi.domain.goal import GoalEvent
from koboshi.domain.inbox import EntryEvent
from koboshi.domain.machine import Machine
from koboshi.domain.outbox import DeliveryEvent
from koboshi.domain.process import ProcessEvent
from koboshi.domain.schedule import ScheduleEvent
from koboshi.domain.turn import TurnEvent
from koboshi.domain.watch import WatcherEvent
from koboshi.kernel.transaction import Row, Transaction, Value


@dataclass(frozen=True, slots=True)
class Move:
    """What a statement does to the rows of a machine."""

    machine: Machine[Any, Any]
    events: frozenset[StrEnum]
    is_of_one_state: bool = False
    """Whether it moves from the state `:before`; otherwise from all in which its events happen."""


def _from_any(machine: Machine[Any, Any], *events: StrEnum) -> Move:
    return Move(machine, frozenset(events))


def _from_one(machine: Machine[Any, Any], *events: StrEnum) -> Move:
    return Move(machine, frozenset(events), is_of_one_state=True)


MOVES: Mapping[str, Move] = MappingProxyType(
    {
        "turn_claim": _from_any(turn.MACHINE, TurnEvent.CLAIMED),
        "turn_move": _from_one(turn.MACHINE, *TurnEvent),
        "turn_settle": _from_any(turn.MACHINE, TurnEvent.SETTLED, TurnEvent.SILENCED),
        "entry_attach": _from_any(inbox.MACHINE, EntryEvent.ATTACHED),
        "entry_drop": _from_any(inbox.MACHINE, EntryEvent.DROPPED),
        "entry_handle": _from_any(inbox.MACHINE, EntryEvent.HANDLED),
        "entries_cut": _from_any(inbox.MACHINE, EntryEvent.CUT),
        "delivery_send": _from_any(outbox.MACHINE, DeliveryEvent.CLAIMED),
        "delivery_settle": _from_one(
            outbox.MACHINE, DeliveryEvent.DELIVERED, DeliveryEvent.REJECTED, DeliveryEvent.GAVE_UP
        ),
        "delivery_postpone": _from_one(outbox.MACHINE, DeliveryEvent.POSTPONED, DeliveryEvent.HELD),
        "delivery_give_up": _from_any(outbox.MACHINE, DeliveryEvent.GAVE_UP),
        "delivery_drop": _from_any(outbox.MACHINE, DeliveryEvent.DROPPED),
        "deliveries_abandon": _from_any(outbox.MACHINE, DeliveryEvent.WITHDRAWN),
        "progress_abandon": _from_any(outbox.MACHINE, DeliveryEvent.WITHDRAWN),
        "queued_notice_abandon": _from_any(outbox.MACHINE, DeliveryEvent.WITHDRAWN),
        "deliveries_said_there": _from_any(outbox.MACHINE, DeliveryEvent.WITHDRAWN),
        "farewell_abandon": _from_any(outbox.MACHINE, DeliveryEvent.OUTLIVED),
        "deliveries_release": _from_any(outbox.MACHINE, DeliveryEvent.RELEASED),
        "outbox_hold": _from_any(outbox.MACHINE, DeliveryEvent.HELD),
        "process_born": _from_any(process.MACHINE, ProcessEvent.BORN),
        "process_ended": _from_any(
            process.MACHINE, ProcessEvent.EXITED, ProcessEvent.KILLED, ProcessEvent.LOST
        ),
        "watcher_move": _from_any(watch.MACHINE, WatcherEvent.EXAMINED, WatcherEvent.DISARMED),
        "watchers_fire_of": _from_any(watch.MACHINE, WatcherEvent.FIRED),
        "watchers_disarm_of": _from_any(watch.MACHINE, WatcherEvent.DISARMED),
        "watchers_disarm_output": _from_any(watch.MACHINE, WatcherEvent.DISARMED),
        "schedule_move": _from_one(schedule.MACHINE, *ScheduleEvent),
        "goal_move": _from_one(goal.MACHINE, *GoalEvent),
        "child_begin": _from_any(child.MACHINE, ChildEvent.BEGUN),
        "child_end": _from_any(child.MACHINE, ChildEvent.ENDED),
    }
)


def move(tx: Transaction, query: str, event: StrEnum, /, **values: Value) -> int:
    """Carry out a statement of `MOVES` for one of its events; how many rows it moved."""
    return tx.change(query, **_way(query, event), **values)


def move_one(tx: Transaction, query: str, event: StrEnum, /, **values: Value) -> Row | None:
    """The same for a statement that returns something of the row that it moved; None without."""
    return tx.row(query, **_way(query, event), **values)


def move_from(
    tx: Transaction, query: str, event: StrEnum, before: StrEnum, /, **values: Value
) -> int:
    """The same for rows that are in one state. Raises IllegalTransition where the event leads
    nowhere from there; then nothing changes."""
    return tx.change(query, **_way(query, event, before), **values)


@cache
def _way(query: str, event: StrEnum, before: StrEnum | None = None) -> dict[str, Value]:
    """What the statement is told of where it leads. It follows from the tables alone, so it is
    worked out once; what raises is asked again."""
    known = MOVES[query]
    if event not in known.events or (before is not None) != known.is_of_one_state:
        raise ValueError(f"{query} does not stand for {event} like this")
    origins = known.machine.origins(event) if before is None else (before,)
    (after,) = {known.machine.advance(origin, event) for origin in origins}
    way: dict[str, Value] = {"after": after, "event": event}
    return way if before is None else {**way, "before": before}
