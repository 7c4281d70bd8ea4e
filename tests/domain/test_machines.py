"""Issue 14, point 3: five machines, each an enum of states, an enum of events and one table."""

from collections.abc import Iterator
from enum import StrEnum
from itertools import product
from typing import Any

import pytest

from koboshi.domain import inbox, outbox, process, turn, watch
from koboshi.domain.errors import IllegalTransition
from koboshi.domain.inbox import EntryEvent, EntryState
from koboshi.domain.machine import Machine
from koboshi.domain.outbox import SETTLED, UNSETTLED, DeliveryEvent, DeliveryState, Settle, held
from koboshi.domain.process import ENDED, ProcessEvent, ProcessState
from koboshi.domain.turn import CLOSED, TurnEvent, TurnState
from koboshi.domain.watch import WatcherEvent, WatcherState

Kind = tuple[Machine[Any, Any], type[StrEnum], type[StrEnum], frozenset[StrEnum]]

# The states without a way out, once more and in other words.
MACHINES: dict[str, Kind] = {
    "turn": (turn.MACHINE, TurnState, TurnEvent, frozenset(CLOSED)),
    "entry": (
        inbox.MACHINE,
        EntryState,
        EntryEvent,
        frozenset(set(EntryState) - {EntryState.WAITING}),
    ),
    "delivery": (outbox.MACHINE, DeliveryState, DeliveryEvent, frozenset(SETTLED)),
    "process": (process.MACHINE, ProcessState, ProcessEvent, frozenset(ENDED)),
    "watcher": (
        watch.MACHINE,
        WatcherState,
        WatcherEvent,
        frozenset({WatcherState.FIRED, WatcherState.DISARMED}),
    ),
}

machines = pytest.mark.parametrize("name", MACHINES)


def pairs() -> Iterator[tuple[str, StrEnum, StrEnum]]:
    for name, (_machine, states, events, _ends) in MACHINES.items():
        for state, event in product(states, events):
            yield name, state, event


@pytest.mark.parametrize("name, state, event", list(pairs()))
def test_a_pair_of_state_and_event_is_in_the_table_or_refused(
    name: str, state: StrEnum, event: StrEnum
) -> None:
    """Issue 14, point 3: what is not in the table raises, and changes nothing."""
    machine = MACHINES[name][0]
    before = dict(machine.transitions)
    if (state, event) in before:
        assert machine.advance(state, event) is before[state, event]
        assert state in machine.origins(event)
    else:
        with pytest.raises(IllegalTransition, match=f"the {name} is {state}: {event} is no way"):
            machine.advance(state, event)
        assert state not in machine.origins(event)
    assert machine.transitions == before


@machines
def test_every_event_happens_and_every_state_is_reached(name: str) -> None:
    """Issue 14, point 3."""
    machine, states, events, _ends = MACHINES[name]
    assert {event for _before, event in machine.transitions} == set(events)
    assert machine.begins | set(machine.transitions.values()) == set(states)


@machines
def test_the_states_that_end_a_row_have_no_way_out(name: str) -> None:
    """Issue 14, point 3."""
    machine, states, _events, ends = MACHINES[name]
    assert set(states) - {before for before, _event in machine.transitions} == ends


@machines
def test_the_table_of_a_machine_cannot_be_changed(name: str) -> None:
    """Issue 14, point 3."""
    machine = MACHINES[name][0]
    with pytest.raises(TypeError):
        machine.transitions["new", "event"] = "state"  # type: ignore[index]


def test_only_the_operator_lets_go_of_what_is_held() -> None:
    """Issue 14, point 3: neither a claim nor the clock brings a held delivery back."""
    ways = {
        event: after
        for (before, event), after in outbox.TRANSITIONS.items()
        if before is DeliveryState.HELD
    }
    assert ways == {
        DeliveryEvent.HELD: DeliveryState.HELD,
        DeliveryEvent.RELEASED: DeliveryState.OWED,
        DeliveryEvent.DROPPED: DeliveryState.ABANDONED,
        DeliveryEvent.WITHDRAWN: DeliveryState.ABANDONED,
        DeliveryEvent.OUTLIVED: DeliveryState.ABANDONED,
    }
    assert DeliveryState.HELD in UNSETTLED


@pytest.mark.parametrize("state", sorted(SETTLED))
def test_the_end_of_a_send_is_an_event_that_leads_there(state: DeliveryState) -> None:
    """Issue 14, point 3."""
    ending = Settle(state=state)
    assert outbox.advance(DeliveryState.SENDING, ending.event) is state


def test_holding_is_an_event_of_its_own() -> None:
    """Issue 14, point 3."""
    change = held("it may have arrived")
    assert outbox.advance(DeliveryState.SENDING, change.event) is DeliveryState.HELD


@pytest.mark.parametrize("state", sorted(ENDED))
def test_the_end_of_a_process_has_the_name_of_its_state(state: ProcessState) -> None:
    """Issue 14, point 3."""
    for before in set(ProcessState) - ENDED:
        assert process.advance(before, ProcessEvent(state)) is state
