"""Chats as the operator keeps them: named, pinned, archived, deleted."""

from dataclasses import replace

from koboshi.domain.chat import ChatMark
from koboshi.domain.erasure import ERASED
from koboshi.domain.files import Attachment
from koboshi.domain.transcript import Answer, Message
from koboshi.ports.store import Arrival
from koboshi.ports.views import ChatView
from tests.harness.homes import WEB, Home

SECRET = "xylophone-4711"


async def chats(home: Home) -> dict[str, ChatView]:
    return {each.chat: each for each in await home.store.views.chats(WEB, 50)}


async def test_a_chat_is_named_by_its_first_line_until_it_is_given_a_name(home: Home) -> None:
    await home.answer(await home.work_on("\n  a first line  \nand a second"))
    assert (await chats(home))["ann"].title == "a first line"

    assert await home.store.chats.name(WEB, "ann", "The garden")
    named = (await chats(home))["ann"]
    await home.store.chats.name(WEB, "ann", "")

    assert (named.title, named.is_named) == ("The garden", True)
    assert (await chats(home))["ann"].title == "a first line"


async def test_marks_are_set_and_taken_back_and_outlive_the_gateway(home: Home) -> None:
    await home.answer(await home.work_on("hello"))
    for mark in (ChatMark.PIN, ChatMark.ARCHIVE):
        assert await home.store.chats.mark(WEB, "ann", mark)
    await home.reopen(crash=True)

    both = (await chats(home))["ann"]
    await home.store.chats.mark(WEB, "ann", ChatMark.UNPIN)
    await home.store.chats.mark(WEB, "ann", ChatMark.UNARCHIVE)
    none = (await chats(home))["ann"]

    assert (both.is_pinned, both.is_archived) == (True, True)
    assert (none.is_pinned, none.is_archived) == (False, False)


async def test_nothing_is_done_to_a_chat_that_is_not_there(home: Home) -> None:
    assert not await home.store.chats.name(WEB, "nowhere", "x")
    assert not await home.store.chats.mark(WEB, "nowhere", ChatMark.PIN)
    assert await home.store.chats.delete(WEB, "nowhere", "operator") is None


async def test_a_deleted_chat_says_nothing_any_more_and_its_work_ends(home: Home) -> None:
    await home.answer(await home.work_on("of another chat", chat="bob"))
    await home.answer(await home.work_on(f"remember {SECRET}"), f"noted {SECRET}")
    await home.deliver()
    files = (Attachment(reference="r", path=f"received/{SECRET}.txt", kind="text/plain"),)
    inbound = home.inbound(f"still open {SECRET}", chat="ann")
    inbound = replace(inbound, words=replace(inbound.words, files=files))
    await home.accept(Arrival(inbound=inbound))
    await home.store.chats.name(WEB, "ann", SECRET)

    assert await home.store.chats.delete(WEB, "ann", "operator") == 2

    assert not await home.claims()
    bodies = [body for turn in await home.turns() for body in await home.bodies(turn.turn_id)]
    said = {body.text for body in bodies if isinstance(body, Message | Answer)}
    assert said == {ERASED}
    assert list(await chats(home)) == ["bob"]
    (erasure,) = await home.store.erasures.unfinished()
    assert f"work:received/{SECRET}.txt" in erasure.files
    assert (await home.turns("bob"))[0].request == "of another chat"


async def test_a_deleted_chat_is_listed_again_when_it_is_spoken_in(home: Home) -> None:
    await home.answer(await home.work_on(f"remember {SECRET}"))
    await home.store.chats.delete(WEB, "ann", "operator")
    home.clock.move(1_000)

    await home.say("a new beginning")

    assert (await chats(home))["ann"].title == "a new beginning"
