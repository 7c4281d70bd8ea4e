"""The names of things. Numbers come from the database, in the order of its commits."""

from typing import NewType

SessionId = NewType("SessionId", int)
TurnId = NewType("TurnId", int)
EntryId = NewType("EntryId", int)
DeliveryId = NewType("DeliveryId", int)
ProcessId = NewType("ProcessId", int)
WatcherId = NewType("WatcherId", int)
WorkerId = NewType("WorkerId", int)
ScheduleId = NewType("ScheduleId", int)
GoalId = NewType("GoalId", int)
ChildId = NewType("ChildId", int)

CallId = NewType("CallId", str)
"""`<seq of the reply>.<place in it>`: ours, so that it is unique whatever a provider sends."""

ChannelName = NewType("ChannelName", str)
"""One configured connection to a platform, as in `telegram:main`."""

Generation = NewType("Generation", int)
Epoch = NewType("Epoch", int)
Seq = NewType("Seq", int)

PREFIXES = {
    "session": "s",
    "turn": "t",
    "message": "m",
    "delivery": "d",
    "process": "p",
    "browser": "b",
    "schedule": "c",
    "goal": "g",
    "child": "a",
    "memory": "n",
}


def shown(kind: str, number: int) -> str:
    """The form in which people meet an id: `t12` is turn 12."""
    return f"{PREFIXES[kind]}{number}"


def parse_shown(text: str) -> tuple[str, int] | None:
    """What an id as people write it names, as (kind, number); None if it names nothing."""
    for kind, prefix in PREFIXES.items():
        digits = text[len(prefix) :]
        if text.startswith(prefix) and digits.isascii() and digits.isdigit() and len(digits) < 19:
            return kind, int(digits)
    return None
