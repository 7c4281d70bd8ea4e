"""The verbs of memory, one after the other, for the story that is killed at each."""

from collections.abc import AsyncIterator

from koboshi.domain.memory import (
    AddMemory,
    EditedFile,
    RemoveMemory,
    Shelf,
    picture,
)
from koboshi.domain.transcript import Reply
from tests.harness.homes import Home

CHAT = "mnemo"


async def with_memory(home: Home) -> AsyncIterator[str]:
    """Each verb changes something."""
    await home.say("remember", chat=CHAT)
    yield "inbox.accept"
    claim = await home.claim()
    yield "turns.claim"
    memory = home.store.memory
    await memory.wish(claim, AddMemory(shelf=Shelf.MEMORY, text="one"), "call:m1")
    yield "memory.wish"
    view = (await memory.look(claim)).memory
    assert view is not None
    await memory.show(claim, "you know: one", view)
    yield "memory.show"
    painting = await memory.paint(view.scope_id, tuple(Shelf))
    yield "memory.paint"
    await memory.painted(painting)
    yield "memory.painted"
    edited = EditedFile(shelf=Shelf.MEMORY, content=picture(["one", "two"], 1))
    await memory.read_back(view.scope_id, edited)
    yield "memory.read_back"
    await memory.order(view.scope_id, RemoveMemory(which="two"), "operator:m1")
    yield "memory.order"
    await home.store.turns.answer(claim, Reply(text="noted"), (), is_silent=True)
    yield "turns.answer"
    home.clock.move(1)
    assert await memory.forget(home.clock.now_ms(), 10)
    yield "memory.forget"
