"""Catching up with chats from their watermarks: nothing is left out, or overtaken."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import pytest
from anyio import Event, create_task_group, fail_after

from koboshi.channels.common import catch_up as module
from koboshi.channels.common.catch_up import CatchUp, HistoryPage, OlderPage, page_back
from koboshi.channels.common.choices import key_of, number_in, numbered, press_of, read_press
from koboshi.channels.common.watched import PING, RENEW, WatchLimits, next_look
from koboshi.domain.hearing import Hearing, hearing_words
from koboshi.domain.transcript import Choice
from koboshi.ports.channel import NO_WATERMARKS, Inbound, Receipt
from tests.channels.fakes import FakeClock, FakeGateway
from tests.channels.said import said
from tests.harness.polling import WITHIN_S

PAGE = 2


@dataclass
class Archive:
    """A platform's history: the numbers of each chat. A place is the last number that was read."""

    chats: dict[str, list[int]]
    asked: list[tuple[str, str]] = field(default_factory=list)
    gates: dict[str, Event] = field(default_factory=dict)
    is_asked: Event = field(default_factory=Event)

    async def after(self, chat: str, place: str) -> HistoryPage:
        self.asked.append((chat, place))
        newer = [number for number in self.chats[chat] if number > int(place)]
        page = newer[:PAGE]
        self.is_asked.set()
        if chat in self.gates:
            await self.gates[chat].wait()
        last = str(page[-1]) if page else place
        messages = [said(chat, number) for number in page]
        return HistoryPage(messages=messages, place=last, is_last=len(newer) <= PAGE)


@dataclass
class Kept:
    """What was committed, in order."""

    texts: list[str] = field(default_factory=list)
    cursors: list[str] = field(default_factory=list)
    watermarks: dict[str, str] = field(default_factory=dict)
    gateway: FakeGateway = field(default_factory=FakeGateway)

    async def accept(
        self,
        batch: Sequence[Inbound],
        cursor: str | None = None,
        watermarks: Mapping[str, str] = NO_WATERMARKS,
    ) -> tuple[Receipt, ...]:
        receipts = await self.gateway.accept(batch, cursor, watermarks)
        new = [each.words.text for each, told in zip(batch, receipts, strict=True)]
        self.texts += [
            text for text, told in zip(new, receipts, strict=True) if not told.is_duplicate
        ]
        self.watermarks |= watermarks
        if cursor is not None:
            self.cursors.append(cursor)
        return receipts


def catching(archive: Archive, kept: Kept) -> CatchUp:
    return CatchUp(history=archive, accept=kept.accept, clock=FakeClock())


async def test_a_chat_that_is_told_of_again_while_it_is_read_is_asked_once_more() -> None:
    """The page on its way may be older than the reason to look again."""
    archive, kept = Archive({"a": [1]}, gates={"a": Event()}), Kept()
    catch_up = catching(archive, kept)
    catch_up.add({"a": "0"})
    with fail_after(WITHIN_S):
        async with create_task_group() as tasks:
            tasks.start_soon(catch_up.run)
            await archive.is_asked.wait()
            archive.chats["a"].append(2)
            catch_up.add({"a": "0"})
            archive.gates["a"].set()

    assert kept.texts == ["a1", "a2"]
    assert not catch_up.chats_behind


async def test_every_chat_is_read_from_its_watermark_to_its_end_in_order() -> None:
    archive, kept = Archive({"a": [1, 2, 3, 4, 5], "b": [7, 8]}), Kept()
    catch_up = catching(archive, kept)
    catch_up.add({"a": "2", "b": "6"})
    assert catch_up.chats_behind == 2

    await catch_up.run()

    assert [text for text in kept.texts if text[0] == "a"] == ["a3", "a4", "a5"]
    assert [text for text in kept.texts if text[0] == "b"] == ["b7", "b8"]
    assert kept.watermarks == {"a": "5", "b": "8"}
    assert (catch_up.chats_behind, catch_up.since_ms) == (0, None)


async def test_what_comes_live_waits_for_what_is_older_and_the_cursor_with_it() -> None:
    """A watermark or a cursor that moved before it would leave the older words out for good."""
    archive, kept = Archive({"a": [1, 2, 3]}, gates={"a": Event()}), Kept()
    catch_up = catching(archive, kept)
    catch_up.add({"a": "1"})

    with fail_after(WITHIN_S):
        async with create_task_group() as tasks:
            tasks.start_soon(catch_up.run)
            await archive.is_asked.wait()
            await catch_up.take([(said("a", 4), "4"), (said("c", 9), "9")], "s1")
            assert (kept.texts, kept.cursors) == (["c9"], [])
            assert kept.watermarks == {"c": "9"}
            archive.gates["a"].set()

    assert kept.texts == ["c9", "a2", "a3", "a4"]
    assert kept.watermarks["a"] == "4"
    await catch_up.take([(said("a", 5), "5")], "s2")
    assert (kept.texts[-1], kept.cursors) == ("a5", ["s2"])


async def test_what_is_too_much_to_hold_is_read_from_the_history(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "HELD_MAX", 3)
    archive, kept = Archive({"a": [1, 2]}, gates={"a": Event()}), Kept()
    catch_up = catching(archive, kept)
    catch_up.add({"a": "0"})

    with fail_after(WITHIN_S):
        async with create_task_group() as tasks:
            tasks.start_soon(catch_up.run)
            await archive.is_asked.wait()
            for number in range(3, 9):
                archive.chats["a"].append(number)
                await catch_up.take([(said("a", number), str(number))])
            archive.gates["a"].set()

    assert kept.texts == [f"a{number}" for number in range(1, 9)]


async def test_a_catch_up_that_breaks_off_goes_on_at_the_stored_watermarks() -> None:
    archive, kept = Archive({"a": [1, 2, 3, 4]}), Kept()

    class Broken(Exception):
        pass

    async def breaks(chat: str, place: str) -> HistoryPage:
        if place != "0":
            raise Broken
        return await archive.after(chat, place)

    broken = catching(archive, kept)
    broken.history = type("History", (), {"after": staticmethod(breaks)})()
    broken.add({"a": "0"})
    with pytest.raises(ExceptionGroup):
        await broken.run()
    assert kept.watermarks == {"a": "2"}

    again = catching(archive, kept)
    again.add(kept.watermarks)
    await again.run()

    assert kept.texts == ["a1", "a2", "a3", "a4"]
    assert ("a", "0") not in archive.asked[1:]


async def test_a_history_that_goes_backwards_is_read_to_the_place_and_no_further() -> None:
    pages = {None: ([6, 5], "5"), "5": ([4, 3], "3"), "3": ([2, 1], None)}

    async def older(before: str | None) -> OlderPage:
        numbers, following = pages[before]
        messages = [said("a", number) for number in numbers if number > 3]
        return OlderPage(messages=messages, before=following, reaches=min(numbers) <= 3)

    found, reached = await page_back(older, 10)
    assert ([each.words.text for each in found], reached) == (["a4", "a5", "a6"], True)
    assert (await page_back(older, 1))[1] is False


def test_a_silent_connection_is_pinged_and_then_given_up() -> None:
    limits = WatchLimits(ping_after_s=30, answer_within_s=10)

    assert next_look(100.0, 90.0, None, limits) == 20.0
    assert next_look(120.0, 90.0, None, limits) == PING
    assert next_look(125.0, 90.0, 120.0, limits) == 5.0
    assert next_look(130.0, 90.0, 120.0, limits) == RENEW
    assert next_look(125.0, 121.0, 120.0, limits) == 26.0


def test_a_button_carries_its_question_and_a_number_names_a_choice() -> None:
    choices = (Choice(choice_id="yes", label="Yes"), Choice(choice_id="no", label="No"))

    assert read_press(press_of(7, "yes")) == (7, "yes")
    assert read_press("anything") is None
    assert numbered(choices) == "\n1. Yes\n2. No"
    assert [number_in(mark) for mark in (key_of(2), "2", " 1. ", "yes", "👍", "123")] == [
        2, 2, 1, None, None, None,
    ]  # fmt: skip


def test_how_well_a_channel_hears_is_said_in_words() -> None:
    assert hearing_words(Hearing(), 10_000) == ""
    assert hearing_words(Hearing(heard_ms=7_000), 10_000) == "heard 3 s ago"
    behind = Hearing(heard_ms=10_000, chats_behind=2, behind_since_ms=5_000)
    assert hearing_words(behind, 10_000) == "heard just now; 2 chats behind, catching up for 5 s"
