"""Which table holds the states of which machine."""

from koboshi.domain.inbox import EntryState
from koboshi.domain.outbox import DeliveryState
from koboshi.domain.process import ProcessState
from koboshi.domain.turn import TurnState
from koboshi.domain.watch import WatcherState

TABLES = {
    "turns": TurnState,
    "inbox": EntryState,
    "outbox": DeliveryState,
    "processes": ProcessState,
    "watchers": WatcherState,
}
TABLE_OF = {
    "turn": "turns",
    "entry": "inbox",
    "delivery": "outbox",
    "process": "processes",
    "watcher": "watchers",
}
