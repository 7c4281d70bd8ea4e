"""Write docs/state-machines.md from the tables in the code. Run it with the project's Python."""

import inspect
import re
from collections.abc import Collection, Iterable
from dataclasses import replace
from enum import StrEnum
from itertools import product
from pathlib import Path
from typing import Any

from koboshi.domain import child, goal, inbox, outbox, process, schedule, turn, watch
from koboshi.domain.child import ChildState
from koboshi.domain.goal import ENDED as GOAL_ENDED
from koboshi.domain.goal import GoalState
from koboshi.domain.ids import ChannelName, DeliveryId, SessionId
from koboshi.domain.inbox import EntryState
from koboshi.domain.machine import Machine
from koboshi.domain.outbox import (
    MOVES_MAX,
    UNSETTLED,
    Delivery,
    DeliveryChange,
    DeliveryState,
    Later,
    Moved,
    Refused,
    Reroute,
    Resolution,
    SendOutcome,
    Sent,
    Settle,
    Unsure,
    after_send,
    resolution_of,
)
from koboshi.domain.process import ENDED, ProcessState
from koboshi.domain.route import Route
from koboshi.domain.schedule import ScheduleState
from koboshi.domain.turn import CLOSED, OPEN, TurnState
from koboshi.domain.watch import WatcherKind, WatcherState

PAGE = Path(__file__).resolve().parent.parent / "docs" / "state-machines.md"

TEMPLATE = """\
<!-- Written by scripts/state_diagrams.py from the tables in the code. Do not edit. -->

# State machines

Turns, entries, deliveries, processes, watchers, schedules, goals and children each have a stored
state, and one table of what may follow what (`src/koboshi/domain/machine.py`). Every statement that
sets a state passes the door in `src/koboshi/kernel/moves.py`, which asks `advance()` of the machine
first. Every pair of state and event that is not in a table is refused as a bug, and changes
nothing.

## Turns

A turn is one unit of agent work, from what woke it to its answer (`src/koboshi/domain/turn.py`). A
session has at most one open turn; closed states have no way out.

{turn}

## Entries

An entry is what arrived: a message, a command, a report about a process, or what is ignored
(`src/koboshi/domain/inbox.py`).

{entry}

## Deliveries

A delivery is one part of one text owed to a person (`src/koboshi/domain/outbox.py`). A settled one
never changes. One that is held is not sent before the operator says so.

{delivery}

What an attempt to send makes of it:

{outcomes}

How a send of unknown outcome is resolved, by what the platform can do:

{resolutions}

## Processes

A process is a program started by a tool, under its runner (`src/koboshi/domain/process.py`).

{process}

## Watchers

A watcher looks at a process; what it says is a report (`src/koboshi/domain/watch.py`). Only an
armed one says anything. Kinds: {watcher_kinds}.

{watcher}

## Schedules

A schedule is a standing order with a next due time; what became of each due time is an *occasion*
(`src/koboshi/domain/schedule.py`, [time](time.md)). Only an armed one fires.

{schedule}

## Goals

A goal is what the agent keeps at until it is done (`src/koboshi/domain/goal.py`). It moves on only
by a judged answer.

{goal}

## Children

A child is a session that works for a turn, a [sub-agent](sub-agents.md)
(`src/koboshi/domain/child.py`). How it ended is stored beside its state.

{child}
"""


def render() -> str:
    """The whole page, as the code stands now."""
    return TEMPLATE.format(
        turn=machine_section(
            turn.MACHINE, states_table(TurnState, {"open": OPEN, "closed": CLOSED})
        ),
        entry=machine_section(inbox.MACHINE, states_table(EntryState, {})),
        delivery=machine_section(
            outbox.MACHINE, states_table(DeliveryState, {"unsettled": UNSETTLED}, "settled")
        ),
        outcomes=outcomes_table(),
        resolutions=resolutions_table(),
        process=machine_section(
            process.MACHINE, states_table(ProcessState, {"ended": ENDED}, "not ended")
        ),
        watcher_kinds=", ".join(f"`{kind}`" for kind in WatcherKind),
        watcher=machine_section(watch.MACHINE, states_table(WatcherState, {})),
        schedule=machine_section(schedule.MACHINE, states_table(ScheduleState, {})),
        child=machine_section(child.MACHINE, states_table(ChildState, {})),
        goal=machine_section(goal.MACHINE, states_table(GoalState, {"ended": GOAL_ENDED})),
    )


def machine_section(machine: Machine[Any, Any], states: str) -> str:
    """The diagram of a machine, what its states mean, and its whole table."""
    transitions = table(
        ("event", "from", "to"),
        (
            (f"`{event}`", f"`{before}`", f"`{machine.transitions[before, event]}`")
            for event in dict.fromkeys(event for _before, event in machine.transitions)
            for before in states_of(machine)
            if (before, event) in machine.transitions
        ),
    )
    count = f"{len(machine.transitions)} transitions."
    return "\n\n".join((f"```mermaid\n{diagram(machine)}\n```", states, count, transitions))


def diagram(machine: Machine[Any, Any]) -> str:
    """A mermaid diagram with one arrow for each pair of states, named by all its events."""
    lines = ["stateDiagram-v2"]
    states = states_of(machine)
    lines += [f"    [*] --> {state}" for state in states if state in machine.begins]
    for before, after in product(states, states):
        ways = machine.transitions.items()
        events = [way[1] for way, leads in ways if (way[0], leads) == (before, after)]
        if events:
            lines.append(f"    {before} --> {after}: {', '.join(events)}")
    left = {before for before, _event in machine.transitions}
    lines += [f"    {state} --> [*]" for state in states if state not in left]
    return "\n".join(lines)


def states_of(machine: Machine[Any, Any]) -> list[StrEnum]:
    """All states, in the order of the source."""
    first: StrEnum = min(machine.begins)
    return list(type(first))


def states_table(
    states: type[StrEnum], groups: dict[str, Collection[StrEnum]], otherwise: str = ""
) -> str:
    """Every state with its group, and with what the comment beside it in the source says."""
    meanings = meanings_of(states)
    rows = []
    for state in states:
        group = next((name for name, members in groups.items() if state in members), otherwise)
        rows.append((f"`{state}`", group, meanings[state]))
    if not any(group for _state, group, _meaning in rows):
        return table(("state", "meaning"), ((state, meaning) for state, _, meaning in rows))
    return table(("state", "group", "meaning"), rows)


def meanings_of(states: type[StrEnum]) -> dict[str, str]:
    """What the comment beside each member says; empty where there is none."""
    member = re.compile(r'^ +[A-Z_]+ = "([^"]+)"(?: +# (.+))?$', re.MULTILINE)
    return dict(member.findall(inspect.getsource(states)))


def outcomes_table() -> str:
    """What after_send() says of each outcome, at the first attempt and after many."""
    first = Delivery(
        delivery_id=DeliveryId(1),
        session_id=SessionId(1),
        turn_id=None,
        route=Route(channel=ChannelName("web"), chat="1"),
        cause="step:1",
        part=1,
        parts=1,
        text="",
        choices=(),
        question=None,
        anchor="",
        attempts=1,
        created_ms=0,
        is_ambiguous=False,
        may_be_duplicate=False,
    )
    late = replace(first, attempts=MOVES_MAX, unsure=MOVES_MAX, may_be_duplicate=True)
    outcomes: dict[str, SendOutcome] = {
        "sent": Sent(platform_id="1"),
        "later: provably not sent, the platform wants us to wait": Later(wait_ms=0),
        "refused": Refused(reason=""),
        "moved: the chat lives elsewhere now": Moved(chat="2"),
        "unsure: it may have arrived": Unsure(),
    }
    return table(
        ("outcome", "becomes", "after many attempts"),
        (
            (words, *(words_of(after_send(delivery, outcome)) for delivery in (first, late)))
            for words, outcome in outcomes.items()
        ),
    )


def words_of(change: DeliveryChange) -> str:
    if isinstance(change, Settle):
        return f"`{change.state}`"
    if isinstance(change, Reroute):
        return f"`{DeliveryState.OWED}`, in the other chat"
    return f"`{DeliveryState.OWED}`" + (", ambiguous" if change.is_ambiguous else "")


def resolutions_table() -> str:
    meanings = meanings_of(Resolution)
    abilities = {
        "it keeps one copy of a repeated send": (True, False, False),
        "it can look up what was sent": (False, True, False),
        "neither": (False, False, False),
        "neither, and its owner wants to decide": (False, False, True),
    }
    rows = []
    for ability, (is_idempotent, finds_sent, holds) in abilities.items():
        resolution = resolution_of(is_idempotent=is_idempotent, finds_sent=finds_sent, holds=holds)
        rows.append((ability, f"`{resolution}`", meanings[resolution]))
    return table(("the platform", "resolution", "meaning"), rows)


def table(header: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    """A Markdown table."""
    lines = [header, ("---",) * len(header), *rows]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in lines)


if __name__ == "__main__":
    PAGE.parent.mkdir(exist_ok=True)
    PAGE.write_text(render(), encoding="utf-8")
