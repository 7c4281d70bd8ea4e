"""What is remembered: changed once for a call, shown once to a turn, and never to other people."""

from dataclasses import replace

import pytest

from koboshi.commands.parse import parse_command
from koboshi.commands.run import respond
from koboshi.domain.errors import Fenced
from koboshi.domain.memory import (
    KEPT_REVISIONS,
    AddMemory,
    EditedFile,
    MemoryLimits,
    MemoryOutcome,
    MemoryStatus,
    MemoryView,
    RemoveMemory,
    ReplaceMemory,
    ScopeKind,
    Shelf,
    UndoMemory,
    picture,
)
from koboshi.domain.schedule import WorkPlace
from koboshi.domain.transcript import Reply
from koboshi.domain.turn import Claim
from koboshi.ports.memory import FileFate
from koboshi.ports.store import Arrival
from tests.harness.family import after_a_death, claim_of, delegates
from tests.harness.homes import FRONT, Home
from tests.harness.timed import HOUR_MS, a_clockwork, an_order

DONE, SAME, REFUSED = MemoryStatus.DONE, MemoryStatus.SAME, MemoryStatus.REFUSED
MEMORY, USER = Shelf.MEMORY, Shelf.USER


async def turn_of(
    home: Home, text: str = "hello", *, chat: str = "ann", is_group: bool = False
) -> Claim:
    """A turn on the channel where only ann is known, in private or in a group."""
    inbound = home.inbound(text, chat=chat, channel=FRONT)
    inbound = replace(inbound, is_private=not is_group, is_group=is_group)
    await home.accept(Arrival(inbound=inbound))
    return await home.claim()


async def ended(home: Home, claim: Claim, chat: str = "ann") -> None:
    await home.answer(claim)
    await home.deliver(chat, FRONT)


async def add(home: Home, claim: Claim, text: str, shelf: Shelf = MEMORY) -> MemoryOutcome:
    home.keys += 1
    wish = AddMemory(shelf=shelf, text=text)
    return await home.store.memory.wish(claim, wish, f"call:{home.keys}")


async def memory_of(home: Home, claim: Claim) -> MemoryView:
    view = (await home.store.memory.look(claim)).memory
    assert view is not None
    return view


async def texts(home: Home, claim: Claim, shelf: Shelf = MEMORY) -> list[str]:
    return (await memory_of(home, claim)).texts(shelf)


async def test_what_is_added_replaced_and_removed_is_there_once_for_a_call(home: Home) -> None:
    claim = await turn_of(home)
    wish = home.store.memory.wish
    first = AddMemory(shelf=USER, text="likes tea\n\n")
    told = await wish(claim, first, "call:1")
    assert (told.status, told.words) == (DONE, "Remembered: likes tea")
    again = await wish(claim, first, "call:1")
    assert (again.status, again.words) == (SAME, told.words)
    assert (await wish(claim, first, "call:2")).status is SAME
    (entry,) = (await memory_of(home, claim)).entries
    assert (entry.text, entry.turn_id, entry.revision) == ("likes tea", claim.turn_id, 1)

    await wish(claim, ReplaceMemory(which=entry.shown, text="likes coffee"), "call:3")
    await wish(claim, ReplaceMemory(which="tea", text="lost"), "call:3")
    assert await texts(home, claim, USER) == ["likes coffee"]
    assert (await wish(claim, RemoveMemory(which="tea"), "call:4")).status is REFUSED
    assert (await wish(claim, RemoveMemory(which="coffee"), "call:5")).status is DONE
    assert (await wish(claim, RemoveMemory(which="coffee"), "call:5")).status is SAME
    view = await memory_of(home, claim)
    assert (view.entries, view.revision) == ((), 3)


async def test_a_kill_behind_the_commit_does_not_double_it(home: Home) -> None:
    claim = await turn_of(home)
    wish = AddMemory(shelf=MEMORY, text="the door code is on the fridge")
    await home.store.memory.wish(claim, wish, "call:1")
    claim = await home.resume(claim.turn_id)
    assert (await home.store.memory.wish(claim, wish, "call:1")).status is SAME
    assert await texts(home, claim) == [wish.text]


async def test_a_turn_that_was_stopped_remembers_nothing(home: Home) -> None:
    claim = await home.work_on()
    await home.stop()
    with pytest.raises(Fenced):
        await add(home, claim, "too late")
    with pytest.raises(Fenced):
        await home.store.memory.show(claim, "too late", None)


async def test_what_does_not_fit_is_answered_with_what_could_go(home: Home) -> None:
    claim = await turn_of(home)
    limit = MemoryLimits().memory_chars
    for letter in "ab":
        assert (await add(home, claim, letter * (limit // 2 - 100))).status is DONE
    told = await add(home, claim, "c" * 300)
    assert told.status is REFUSED
    for entry in (await memory_of(home, claim)).entries:
        assert f"{entry.shown} ({len(entry.text)} characters)" in told.words
    assert len(await texts(home, claim)) == 2
    assert (await add(home, claim, "x" * 1_001)).status is REFUSED
    assert (await add(home, claim, " \n§\n")).status is REFUSED


async def test_what_a_turn_was_shown_is_the_same_after_a_crash(home: Home) -> None:
    claim = await turn_of(home)
    await add(home, claim, "one")
    view = await memory_of(home, claim)
    assert await home.store.memory.show(claim, "shown: one", view) == "shown: one"
    await add(home, claim, "two")
    claim = await home.resume(claim.turn_id)
    seen = await home.store.memory.look(claim)
    assert seen.text == "shown: one"
    assert await home.store.memory.show(claim, "shown: one, two", seen.memory) == "shown: one"
    shown = await home.store.memory.revision_shown(claim.turn_id)
    assert shown == (view.scope_id, 1)


async def test_a_group_and_its_people_do_not_see_each_others_memory(home: Home) -> None:
    private = await turn_of(home, "my secret garden")
    await add(home, private, "of ann alone")
    await ended(home, private)
    group = await turn_of(home, "our garden", chat="room", is_group=True)
    assert (await home.store.memory.look(group)).memory is None
    await add(home, group, "of the room")
    assert [each.text for each in await home.store.memory.recall(group, "garden", 9)] == []
    await ended(home, group, "room")

    private = await turn_of(home)
    assert await texts(home, private) == ["of ann alone"]
    found = await home.store.memory.recall(private, "garden", 9)
    assert [each.text for each in found] == ["my secret garden"]
    await ended(home, private)
    # All chats of the page are one owner's, and another channel's.
    page = await home.work_on(chat="ann")
    assert (await home.store.memory.look(page)).memory is None
    assert (await home.store.memory.look(page)).scope.name == ""


async def test_a_private_chat_that_others_join_is_a_group(home: Home) -> None:
    claim = await turn_of(home, chat="room")
    await add(home, claim, "private")
    await ended(home, claim, "room")
    claim = await turn_of(home, chat="room", is_group=True)
    seen = await home.store.memory.look(claim)
    assert (seen.memory, seen.scope.kind) == (None, ScopeKind.CHAT)


async def test_two_chats_of_one_person_change_one_memory(home: Home) -> None:
    one, two = await turn_of(home, chat="a"), await turn_of(home, chat="b")
    await add(home, one, "from one")
    await add(home, two, "from two")
    assert await texts(home, one) == ["from one", "from two"]
    assert (await memory_of(home, two)).revision == 2


@pytest.mark.parametrize("is_indexed", [False, True])
async def test_recall_finds_what_was_said_before_and_not_what_was_erased(
    home: Home, is_indexed: bool
) -> None:
    for text in ("the plum tree", "another plum", "nothing"):
        await ended(home, await turn_of(home, text))
    if is_indexed:
        for _ in range(3):
            await home.store.search.index(1_000)
    claim = await turn_of(home, "where is the plum?")
    found = await home.store.memory.recall(claim, "plum", 9)
    assert [each.text for each in found] == ["another plum", "the plum tree"]
    assert [each.text for each in await home.store.memory.recall(claim, "plum", 1)] == [
        "another plum"
    ]
    assert await home.store.memory.recall(claim, '" OR *:(', 9) == ()
    await ended(home, claim)
    await home.store.erasures.erase(FRONT, "ann", "operator")
    claim = await turn_of(home)
    assert await home.store.memory.recall(claim, "plum", 9) == ()


async def test_undo_goes_back_one_change_after_the_other(home: Home) -> None:
    claim = await turn_of(home)
    for text in ("one", "two"):
        await add(home, claim, text)
    await home.store.memory.wish(claim, RemoveMemory(which="one"), "call:r")
    await home.store.memory.wish(claim, ReplaceMemory(which="two", text="three"), "call:s")
    seen = [await texts(home, claim)]
    for key in "abcd":
        told = await home.store.memory.wish(claim, UndoMemory(), f"entry:{key}")
        assert told.status is DONE, told.words
        await home.store.memory.wish(claim, UndoMemory(), f"entry:{key}")
        seen.append(await texts(home, claim))
    assert seen == [["three"], ["two"], ["two", "one"], ["one"], []]
    told = await home.store.memory.wish(claim, UndoMemory(), "entry:e")
    assert told.status is REFUSED


async def test_a_person_sees_it_and_takes_a_change_back_by_command(home: Home) -> None:
    claim = await home.work_on()
    await add(home, claim, "likes tea", USER)
    await add(home, claim, "wrong")
    await home.answer(claim)
    await home.deliver()

    async def told(text: str) -> str:
        arrival = Arrival(inbound=home.inbound(text), command=parse_command(text))
        await home.accept(arrival, respond=respond)
        (delivery,) = await home.deliver()
        return delivery.text

    listed = await told("/memory")
    assert "likes tea" in listed
    assert "wrong" in listed
    assert await told("/memory undo") == "Taken back:\n− wrong"
    assert "Removed" in await told("/memory remove tea")
    assert "nothing" in await told("/memory")


def edited(shelf: Shelf, content: str) -> EditedFile:
    return EditedFile(shelf=shelf, content=content)


async def test_a_hand_edit_is_a_revision_and_a_written_file_is_stale(home: Home) -> None:
    claim = await turn_of(home)
    for text in ("one", "two"):
        await add(home, claim, text)
    memory, view = home.store.memory, await memory_of(home, claim)
    painting = await memory.paint(view.scope_id, tuple(Shelf))
    await memory.painted(painting)
    assert await memory.behind(9) == ()
    content = dict(painting.files)[MEMORY]
    assert await memory.read_back(view.scope_id, edited(MEMORY, content)) is FileFate.CURRENT

    by_hand = content.replace("one\n", "eins\n") + "§\nthree\n"
    await add(home, claim, "meanwhile")  # what the hand did not see stays
    assert len(await memory.behind(9)) == 1
    assert await memory.read_back(view.scope_id, edited(MEMORY, by_hand)) is FileFate.REWRITE
    assert await texts(home, claim) == ["two", "meanwhile", "eins", "three"]
    revision = (await memory_of(home, claim)).revision
    # A kill before the file was written anew finds it known.
    assert await memory.read_back(view.scope_id, edited(MEMORY, by_hand)) is FileFate.REWRITE
    assert await memory.read_back(view.scope_id, edited(MEMORY, content)) is FileFate.REWRITE
    assert await memory.read_back(view.scope_id, edited(MEMORY, "\n")) is FileFate.REWRITE
    assert (await memory_of(home, claim)).revision == revision


async def test_a_hand_edit_that_does_not_fit_stays_where_it_is(home: Home) -> None:
    claim = await turn_of(home)
    await add(home, claim, "one")
    memory, view = home.store.memory, await memory_of(home, claim)
    long = picture(["one", *(letter * 900 for letter in "abc")], 1)
    for _ in range(2):
        assert await memory.read_back(view.scope_id, edited(MEMORY, long)) is FileFate.KEEP
    view = await memory_of(home, claim)
    assert (view.texts(MEMORY), view.revision) == (["one"], 1)
    assert view.troubles == ("MEMORY.md: it has 2,712 characters, and 2,200 fit",)
    short = picture(["one", "two"], 1)
    assert await memory.read_back(view.scope_id, edited(MEMORY, short)) is FileFate.REWRITE
    assert (await memory_of(home, claim)).troubles == ()


async def test_after_an_erasure_no_row_and_no_file_brings_the_words_back(home: Home) -> None:
    claim = await turn_of(home)
    await add(home, claim, "xylophone")
    memory, view = home.store.memory, await memory_of(home, claim)
    painting = await memory.paint(view.scope_id, tuple(Shelf))
    await memory.painted(painting)
    await memory.show(claim, "you know: xylophone", view)
    await ended(home, claim)
    group = await turn_of(home, chat="room", is_group=True)
    await add(home, group, "xylophone in the room")
    await ended(home, group, "room")

    await home.store.erasures.erase(FRONT, "ann", "operator")
    for content in (dict(painting.files)[MEMORY], "by hand: xylophone"):
        assert await memory.read_back(view.scope_id, edited(MEMORY, content)) is FileFate.REWRITE
    for table in ("memories", "memory_revisions", "shown_texts"):
        assert "xylophone" not in str(home.sql(f"SELECT * FROM {table}"))
    (erasure,) = await home.store.erasures.unfinished()
    assert f"home:memory/{view.folder}/MEMORY.md" in erasure.files
    claim = await turn_of(home)
    assert await texts(home, claim) == []
    told = await home.store.memory.wish(claim, UndoMemory(), "entry:u")
    assert told.status is REFUSED


async def test_the_operator_sees_and_removes_what_is_remembered(home: Home) -> None:
    claim = await turn_of(home)
    await add(home, claim, "one")
    (view,) = await home.store.memory.views(9)
    (entry,) = view.entries
    story = await home.store.memory.story(entry.memory_id)
    assert story is not None
    assert (story.memory, story.view.scope.name) == (entry, "ann")
    wish = RemoveMemory(which=entry.shown)
    assert (await home.store.memory.order(view.scope_id, wish, "operator:1")).status is DONE
    assert await home.store.memory.story(entry.memory_id) is None


async def test_many_revisions_leave_a_bounded_number_of_rows(home: Home) -> None:
    claim = await turn_of(home)
    await add(home, claim, "0")
    for number in range(1, KEPT_REVISIONS + 30):
        wish = ReplaceMemory(which=str(number - 1), text=str(number))
        await home.store.memory.wish(claim, wish, f"call:m{number}")
    ((rows,),) = home.sql("SELECT count(*) FROM memories")
    assert rows == KEPT_REVISIONS + 1
    assert await texts(home, claim) == [str(KEPT_REVISIONS + 29)]


async def test_what_old_turns_were_shown_is_forgotten(home: Home) -> None:
    claim = await turn_of(home)
    await home.store.memory.show(claim, "some text", None)
    await ended(home, claim)
    assert await home.store.memory.forget(home.clock.now_ms(), 100) == 0
    home.clock.move(10_000)
    assert await home.store.memory.forget(home.clock.now_ms(), 100) == 1
    assert home.sql("SELECT * FROM shown_texts") == []


async def test_a_schedule_that_works_beside_a_chat_has_the_memory_of_the_chat(home: Home) -> None:
    """Also when the chat has become another's, or a group, since the schedule was made."""
    clock = await a_clockwork(home)
    await clock.make(an_order(place=WorkPlace.FRESH))
    for person in ("ann", "bob"):
        home.sql(f"UPDATE sessions SET person = '{person}' WHERE session_id = {clock.session_id}")
        home.clock.move(HOUR_MS)
        assert await clock.fire()
        claim = await home.claim()
        assert claim.session_id != clock.session_id
        assert (await home.store.memory.look(claim)).scope.name == person
        await home.store.turns.answer(claim, Reply(text="nothing"), (), is_silent=True)


@pytest.mark.parametrize("is_group", [False, True])
async def test_a_child_has_the_memory_of_the_chat_of_its_parent(home: Home, is_group: bool) -> None:
    """Also a child of a child, and after a death."""
    chat = "room" if is_group else "ann"
    parent = await turn_of(home, chat=chat, is_group=is_group)
    await add(home, parent, "of this chat")
    other = await turn_of(home, chat="ann" if is_group else "room", is_group=not is_group)
    await add(home, other, "of another")
    own = (await home.store.memory.look(parent)).scope
    assert own.kind is (ScopeKind.CHAT if is_group else ScopeKind.PERSON)

    child = await delegates(home, parent)
    work = await claim_of(home, child)
    grandchild = await delegates(home, work)
    for claim in (work, await claim_of(home, grandchild)):
        assert (await home.store.memory.look(claim)).scope == own
        assert await texts(home, claim) == ["of this chat"]
    again = (await after_a_death(home))[work.session_id]
    assert await texts(home, again) == ["of this chat"]
