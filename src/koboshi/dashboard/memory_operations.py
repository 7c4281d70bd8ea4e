"""What the page asks and does of memories: a part of the table in `operations.py`."""

from koboshi.control.memory_replies import MemoryDone, MemoryList
from koboshi.control.requests import ListMemory, RemoveMemoryEntry
from koboshi.dashboard.operation import Operation, done_at, listed_at

MEMORY_OPERATIONS: tuple[Operation, ...] = (
    listed_at(
        "memory",
        "listMemory",
        "What the agent remembers of people and groups",
        MemoryList,
        lambda _call: ListMemory(),
    ),
    done_at(
        "memory/{what}/remove",
        "removeMemory",
        "Remove an entry, `n1`, from a memory",
        MemoryDone,
        RemoveMemoryEntry,
    ),
)
