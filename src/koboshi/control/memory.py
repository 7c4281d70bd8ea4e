"""What an operator sees and does of memories."""

from typing import TYPE_CHECKING
from uuid import uuid4

from koboshi.control.memory_replies import (
    MemoryDone,
    MemoryExplained,
    MemoryList,
    MemoryRow,
    MemoryScopeRow,
)
from koboshi.control.replies import Done, refusal
from koboshi.control.requests import ListMemory, RemoveMemoryEntry
from koboshi.domain.ids import parse_shown, shown
from koboshi.domain.memory import MemoryEntry, MemoryId, MemoryStatus, MemoryView, RemoveMemory
from koboshi.ports.memory import MemoryStory

if TYPE_CHECKING:
    from koboshi.ports.store import Store  # a look at a home does not load it

LISTED_MAX = 500


async def answer(store: "Store", request: ListMemory | RemoveMemoryEntry) -> Done:
    match request:
        case ListMemory():
            return await listed(store)
        case RemoveMemoryEntry(what=what):
            return await remove(store, what)


async def listed(store: "Store") -> MemoryList:
    views = await store.memory.views(LISTED_MAX)
    known = (view for view in views if view.entries or view.troubles)
    return MemoryList(scopes=tuple(map(_scope, known)))


async def remove(store: "Store", what: str) -> Done:
    named = parse_shown(what.strip())
    story = None
    if named is not None and named[0] == "memory":
        story = await store.memory.story(MemoryId(named[1]))
    if story is None:
        words = f'there is no memory "{what}"; `koboshi memory list` shows them, as n1'
        return refusal("not-found", words)
    wish = RemoveMemory(which=story.memory.shown)
    outcome = await store.memory.order(story.view.scope_id, wish, f"operator:{uuid4().hex}")
    if outcome.status is MemoryStatus.REFUSED:
        return refusal("refused", outcome.words)
    return MemoryDone(words=outcome.words)


def memory_told(story: MemoryStory, *, is_running: bool) -> MemoryExplained:
    return MemoryExplained(
        kind="memory",
        is_running=is_running,
        memory=_row(story.memory),
        scope=_scope(story.view),
        since=story.memory.revision,
    )


def _scope(view: MemoryView) -> MemoryScopeRow:
    return MemoryScopeRow(
        channel=view.scope.channel,
        kind=view.scope.kind,
        name=view.scope.name,
        revision=view.revision,
        changed_ms=view.changed_ms,
        folder=view.folder,
        memories=tuple(map(_row, view.entries)),
        troubles=view.troubles,
    )


def _row(memory: MemoryEntry) -> MemoryRow:
    turn_id = memory.turn_id
    return MemoryRow(
        memory=memory.shown,
        shelf=memory.shelf,
        text=memory.text,
        turn=None if turn_id is None else shown("turn", turn_id),
    )
