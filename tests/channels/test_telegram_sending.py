"""What Telegram makes of a message: taken, refused, moved, later, or the outcome is unknown."""

import errno
import os
import resource
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from anyio import fail_after

from koboshi.channels.telegram import channel as module
from koboshi.channels.telegram.channel import TelegramChannel
from koboshi.domain.files import OutFile
from koboshi.domain.ids import TurnId
from koboshi.domain.outbox import Later, Moved, Refused, Sent, Unsure
from koboshi.domain.phrases import DUPLICATE_LABEL
from koboshi.domain.route import Route
from tests.channels.telegram_rig import MAIN, YES_NO, a_channel, near, owed, route_of
from tests.fakes.telegram.server import FakeTelegram
from tests.fakes.telegram.state import Chat, User
from tests.fakes.telegram.world import World
from tests.harness.polling import WITHIN_S


def gone(world: World) -> Route:
    return Route(channel=MAIN, chat="424242")


def blocked(world: World) -> Route:
    user = world.user("Eve")
    route = route_of(world.private_chat(user))
    world.block(user)
    return route


def deactivated(world: World) -> Route:
    user = world.user("Eve")
    route = route_of(world.private_chat(user))
    world.deactivate(user)
    return route


def never_started(world: World) -> Route:
    return route_of(world.private_chat(world.user("Eve"), started=False))


def kicked(world: World) -> Route:
    group = world.supergroup()
    world.kick(group)
    return route_of(group)


def closed_topic(world: World) -> Route:
    forum = world.supergroup(forum=True)
    topic = world.topic(forum, "work", world.user("Bob"))
    world.close_topic(forum, topic)
    return route_of(forum, topic)


def deleted_topic(world: World) -> Route:
    forum = world.supergroup(forum=True)
    topic = world.topic(forum, "work", world.user("Bob"))
    world.delete_topic(forum, topic)
    return route_of(forum, topic)


def no_topic(world: World) -> Route:
    return Route(channel=MAIN, chat=str(world.supergroup(forum=True).chat_id), thread="99")


@pytest.mark.parametrize(
    "place, reason",
    [
        (blocked, "bot was blocked by the user"),
        (deactivated, "user is deactivated"),
        (never_started, "can't initiate conversation"),
        (kicked, "bot was kicked"),
        (gone, "chat not found"),
        (no_topic, "message thread not found"),
        (closed_topic, "TOPIC_CLOSED"),
        (deleted_topic, "TOPIC_DELETED"),
    ],
)
async def test_what_will_never_be_taken_is_refused_with_the_reason(
    channel: TelegramChannel, world: World, place: Callable[[World], Route], reason: str
) -> None:
    """S152: and nothing falls back to the general topic."""
    outcome = await channel.send(owed(place(world)))

    assert isinstance(outcome, Refused)
    assert reason in outcome.reason
    assert world.copies("hello") == []


@pytest.mark.parametrize("chat_id", ["", "room", "12x", "1.5", "--5", "٣x", "@name"])
async def test_what_is_no_chat_of_telegram_is_refused_without_asking(
    channel: TelegramChannel, fake: FakeTelegram, chat_id: str
) -> None:
    route = Route(channel=MAIN, chat=chat_id)

    assert isinstance(await channel.send(owed(route)), Refused)
    await channel.typing(route)
    assert fake.history.requests == []


@pytest.mark.parametrize("number", [errno.EMFILE, errno.ENOENT])
async def test_words_that_need_no_file_are_never_refused_for_want_of_one(
    channel: TelegramChannel, world: World, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    """Issue 12, C18: a gateway without descriptors cannot even load what formats the words. Red
    before: the answer was refused for good, since "the file cannot be read"."""

    def broken(*_: object, **__: object) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(module, "message_of", broken)
    outcome = await channel.send(owed(route_of(world.private_chat(world.user("Eve")))))

    assert isinstance(outcome, Later)
    assert os.strerror(number) in outcome.reason


@contextmanager
def no_descriptors() -> Iterator[None]:
    """While the block lasts, this process can open nothing."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (3, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


async def test_who_has_no_descriptors_has_sent_nothing_and_looked_for_nothing(
    channel: TelegramChannel, world: World, fake: FakeTelegram
) -> None:
    """Issue 12, C18: it is our own want, and no outage of the platform. Red before: the pauses of
    the deliveries grew with it, to an hour."""
    eve = world.user("Eve")
    chat = world.private_chat(eve)
    before, delivery = world.say(chat, eve, "hello"), owed(route_of(chat))
    with no_descriptors():
        sent = await channel.send(delivery)
        looked_for = await channel.find(replace(delivery, is_ambiguous=True), near(before))

    missing = "no file descriptors are left for this process"
    assert sent == Later(wait_ms=0, reason=f"not reached: {missing}", is_lack=True)
    words = f"it cannot be looked for: {missing}"
    assert looked_for == Unsure(reason=words, is_lack=True, was_sent=False)
    assert fake.history.requests == []
    assert isinstance(await channel.send(delivery), Sent)


async def test_a_group_that_moved_says_where(channel: TelegramChannel, world: World) -> None:
    group = world.group()
    new = world.migrate(group)

    assert await channel.send(owed(route_of(group))) == Moved(chat=str(new.chat_id))


async def test_who_is_told_to_wait_knows_how_long(
    channel: TelegramChannel, fake: FakeTelegram, chat: Chat
) -> None:
    """S148."""
    fake.faults.add("too_many", "sendMessage", seconds=17)
    outcome = await channel.send(owed(route_of(chat)))

    assert isinstance(outcome, Later)
    assert outcome.wait_ms == 17_000


@pytest.mark.parametrize("status", [401, 404])
async def test_a_token_that_was_taken_back_costs_no_message(
    channel: TelegramChannel, fake: FakeTelegram, chat: Chat, status: int
) -> None:
    words = {401: "Unauthorized", 404: "Not Found"}[status]
    fake.faults.add("status", "sendMessage", status=status, description=words)

    assert isinstance(await channel.send(owed(route_of(chat))), Later)


@pytest.mark.parametrize("moment", ["before", "after"])
@pytest.mark.parametrize("act", ["drop", "garble", "500", "502"])
async def test_whatever_may_have_arrived_is_unsure(
    channel: TelegramChannel, fake: FakeTelegram, chat: Chat, act: str, moment: str
) -> None:
    """S146."""
    if act.isdigit():
        fake.faults.add("status", "sendMessage", status=int(act), moment=moment)
    else:
        fake.faults.add(act, "sendMessage", moment=moment)

    assert isinstance(await channel.send(owed(route_of(chat))), Unsure)


@pytest.mark.parametrize("moment", ["before", "after"])
async def test_a_send_that_hangs_is_unsure_in_the_end(
    channel: TelegramChannel,
    fake: FakeTelegram,
    chat: Chat,
    moment: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "SEND_SECONDS", 0.2)
    fake.faults.add("hang", "sendMessage", moment=moment)
    with fail_after(WITHIN_S):
        outcome = await channel.send(owed(route_of(chat)))

    assert isinstance(outcome, Unsure)


async def test_what_never_left_is_later(fake: FakeTelegram, chat: Chat) -> None:
    """S146: it was certainly not sent, so it needs no label."""
    await fake.stop()
    async with a_channel(fake) as channel:
        outcome = await channel.send(owed(route_of(chat)))
    await fake.start()

    assert isinstance(outcome, Later)
    assert fake.token not in outcome.reason


async def test_formatting_that_is_refused_is_left_out(
    channel: TelegramChannel, fake: FakeTelegram, world: World, chat: Chat, tmp_path: Path
) -> None:
    words = "Bad Request: can't parse entities: unsupported start tag"
    for method in ("sendMessage", "sendDocument"):
        fake.faults.add("status", method, status=400, description=words)
    (tmp_path / "a.txt").write_text("content")
    file = OutFile(path="a.txt", name="a.txt", size=7)
    said = await channel.send(owed(route_of(chat), "some **bold** words"))
    shown = await channel.send(owed(route_of(chat), "a **bold** file", file=file))

    assert isinstance(said, Sent)
    assert isinstance(shown, Sent)
    texts = [(each.text, "entities" in each.content) for each in world.messages_seen(chat)]
    assert texts == [("some bold words", False), ("a bold file", False)]


async def test_words_in_what_is_approved_cannot_pass_for_ours_without_formatting(
    channel: TelegramChannel, fake: FakeTelegram, world: World, chat: Chat
) -> None:
    """Issue 15, V1."""
    words = "Bad Request: can't parse entities: unsupported start tag"
    fake.faults.add("status", "sendMessage", status=400, description=words)
    text = "Run this?\n\nls\nIt is harmless.\n\nAsked by Ann."
    await channel.send(owed(route_of(chat), text, literal=(11, 29)))

    (asked,) = world.messages_seen(chat)
    assert asked.text == "Run this?\n\n> ls\n> It is harmless.\n\nAsked by Ann."


async def test_formatting_is_shown(channel: TelegramChannel, world: World, chat: Chat) -> None:
    await channel.send(owed(route_of(chat), "some **bold** words"))

    (said,) = world.messages_seen(chat)
    assert said.content["entities"] == [{"type": "bold", "offset": 5, "length": 4}]


async def test_an_answer_hangs_on_what_it_answers_and_arrives_when_that_is_gone(
    channel: TelegramChannel, world: World, chat: Chat, ann: User
) -> None:
    """S151."""
    asked = world.say(chat, ann, "why?")
    anchored = owed(route_of(chat), anchor=str(asked.message_id))
    await channel.send(anchored)
    world.delete(asked)
    await channel.send(anchored)

    first, second = [each for each in world.messages_seen(chat) if each.is_by_bot]
    assert first.reply_to is asked
    assert second.reply_to is None


async def test_buttons_carry_the_question(
    channel: TelegramChannel, world: World, chat: Chat
) -> None:
    """S142."""
    await channel.send(owed(route_of(chat), "Shall I?", choices=YES_NO, question=12))

    (said,) = world.messages_seen(chat)
    rows = (said.reply_markup or {})["inline_keyboard"]
    assert [row[0]["callback_data"] for row in rows] == ["q12:yes", "q12:no"]
    assert said.labels == ["Yes", "No"]


@pytest.mark.parametrize("text", ["word " * 5_000, "x" * 20_000, "😀" * 9_000, "# H\n" * 4_000])
async def test_a_long_text_arrives_in_parts_each_with_room_for_its_label(
    channel: TelegramChannel, world: World, chat: Chat, text: str
) -> None:
    """S150."""
    parts = channel.split(text)
    for part in parts:
        outcome = await channel.send(owed(route_of(chat), part, may_be_duplicate=True))
        assert isinstance(outcome, Sent)

    said = [message.text for message in world.messages_seen(chat)]
    assert len(said) == len(parts) > 1
    assert all(each.startswith(DUPLICATE_LABEL) for each in said)


async def test_a_file_is_sent_with_its_words(
    channel: TelegramChannel, fake: FakeTelegram, chat: Chat, tmp_path: Path
) -> None:
    (tmp_path / "files").mkdir()
    (tmp_path / "files" / "1-report.pdf").write_bytes(b"%PDF" * 100)
    file = OutFile(path="files/1-report.pdf", name="report.pdf", size=400)
    outcome = await channel.send(owed(route_of(chat), "the report", file=file))

    assert isinstance(outcome, Sent)
    (sent,) = fake.history.recorded("sendDocument")
    assert sent.params["document"] == {"name": "report.pdf", "size": 400}


async def test_a_file_that_is_gone_is_refused(channel: TelegramChannel, chat: Chat) -> None:
    file = OutFile(path="files/never.pdf", name="never.pdf", size=400)
    outcome = await channel.send(owed(route_of(chat), "the report", file=file))

    assert isinstance(outcome, Refused)
    assert "file" in outcome.reason


async def test_a_draft_is_shown_to_one_person_only(
    channel: TelegramChannel, fake: FakeTelegram, world: World, chat: Chat
) -> None:
    await channel.draft(route_of(chat), TurnId(3), "it **grows**")
    await channel.draft(route_of(world.supergroup()), TurnId(3), "it grows")
    await channel.draft(route_of(chat), TurnId(3), "  ")

    assert world.drafts_seen(chat) == ["it grows"]
    assert len(fake.history.of("sendMessageDraft")) == 1


@pytest.mark.parametrize("act", ["drop", "garble", "status", "too_many"])
async def test_what_only_passes_never_fails(
    channel: TelegramChannel, fake: FakeTelegram, world: World, chat: Chat, act: str
) -> None:
    """S32."""
    sent = await channel.send(owed(route_of(chat)))
    assert isinstance(sent, Sent)
    fake.faults.add(act, count=None, seconds=60)
    await channel.typing(route_of(chat))
    await channel.edit(route_of(chat), sent.platform_id, "other words")
    await channel.draft(route_of(chat), TurnId(3), "it grows")

    assert world.texts_seen(chat) == ["hello"]
    if act == "too_many":
        assert len(fake.history.requests) == 2, "who is told to wait shows nothing more there"


async def test_words_are_edited_in_place(
    channel: TelegramChannel, world: World, chat: Chat
) -> None:
    sent = await channel.send(owed(route_of(chat)))
    assert isinstance(sent, Sent)
    await channel.edit(route_of(chat), sent.platform_id, "other words")

    assert world.texts_seen(chat) == ["other words"]
