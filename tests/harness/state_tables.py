"""Which table holds the states of which machine."""

from koboshi.domain.child import ChildState
from koboshi.domain.goal import GoalState
from koboshi.domain.inbox import EntryState
from koboshi.domain.outbox import DeliveryState
from koboshi.domain.process import ProcessState
from koboshi.domain.schedule import ScheduleState
from koboshi.domain.turn import TurnState
from koboshi.domain.watch import WatcherState

TABLES = {
    "turns": TurnState,
    "inbox": EntryState,
    "outbox": DeliveryState,
    "processes": ProcessState,
    "watchers": WatcherState,
    "schedules": ScheduleState,
    "goals": GoalState,
    "children": ChildState,
}
TABLE_OF = {
    "turn": "turns",
    "entry": "inbox",
    "delivery": "outbox",
    "process": "processes",
    "watcher": "watchers",
    "schedule": "schedules",
    "goal": "goals",
    "child": "children",
}
