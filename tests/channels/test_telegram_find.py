"""Whether a message arrived: found, not there, or not to be told; and nothing of anyone altered."""

import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace

import pytest

from koboshi.channels.telegram import channel as module
from koboshi.channels.telegram.channel import TelegramChannel
from koboshi.channels.telegram.probe import MISSING_MAX, PROBES_MAX, SPARSE_PROBES_MAX
from koboshi.domain.outbox import Delivery, Later, Near, SendOutcome, Sent, Unsure
from koboshi.domain.transcript import Choice
from tests.channels.telegram_rig import YES_NO, near, owed, route_of
from tests.fakes.telegram.server import FakeTelegram
from tests.fakes.telegram.state import Chat, Message, User
from tests.fakes.telegram.world import World


@pytest.fixture
def clock() -> Callable[[], float]:
    """The channel waits in real time, and the platform counts it."""
    return time.time


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "SETTLE_SECONDS", 0.0)


@pytest.fixture(autouse=True)
def harmless(fake: FakeTelegram) -> Iterator[None]:
    yield
    assert not fake_altered(fake), "a probe changed a message"


def fake_altered(fake: FakeTelegram) -> list[object]:
    """Probes that the platform carried out: each would have changed something."""
    return [each.params for each in fake.history.recorded("editMessageReplyMarkup")]


@pytest.fixture
def group(world: World) -> Chat:
    return world.supergroup()


@contextmanager
def unchanged(world: World) -> Iterator[None]:
    """Every message of everyone is as it was."""

    def all_of_them() -> str:
        chats = world.chats.values()
        every = [each.as_json() for chat in chats for each in chat.messages.values()]
        return json.dumps(every, sort_keys=True)

    before = all_of_them()
    yield
    assert all_of_them() == before


async def look(
    channel: TelegramChannel, world: World, delivery: Delivery, around: Near
) -> SendOutcome | None:
    with unchanged(world):
        return await channel.find(replace(delivery, is_ambiguous=True), around)


def probes(fake: FakeTelegram) -> list[int]:
    return [int(each.params["message_id"]) for each in fake.history.of("editMessageReplyMarkup")]


async def arrive(channel: TelegramChannel, delivery: Delivery) -> Sent:
    sent = await channel.send(delivery)
    assert isinstance(sent, Sent)
    return sent


@pytest.mark.parametrize("where", ["chat", "group"])
@pytest.mark.parametrize("choices", [(), YES_NO])
async def test_what_arrived_is_found(
    channel: TelegramChannel,
    world: World,
    ann: User,
    request: pytest.FixtureRequest,
    where: str,
    choices: tuple[Choice, ...],
) -> None:
    """S146: with its own buttons, so that it keeps them."""
    chat: Chat = request.getfixturevalue(where)
    asked = world.say(chat, ann, "why?")
    delivery = owed(route_of(chat), choices=choices, question=12 if choices else None)
    sent = await arrive(channel, delivery)

    assert await look(channel, world, delivery, near(asked)) == sent


async def test_what_is_not_in_a_supergroup_was_not_sent(
    channel: TelegramChannel, world: World, fake: FakeTelegram, ann: User, group: Chat
) -> None:
    """S146: its messages are counted without gaps."""
    asked = world.say(group, ann, "why?")
    found = await look(channel, world, owed(route_of(group)), near(asked))

    assert isinstance(found, Later)
    assert len(probes(fake)) == 2 * MISSING_MAX, "it is looked for a second time"


async def test_in_private_no_one_can_tell_what_was_not_sent(
    channel: TelegramChannel, world: World, fake: FakeTelegram, ann: User, chat: Chat
) -> None:
    """The count goes over all chats of the bot, so that gaps mean nothing."""
    asked = world.say(chat, ann, "why?")

    assert await look(channel, world, owed(route_of(chat)), near(asked)) is None
    assert len(probes(fake)) == SPARSE_PROBES_MAX


async def test_among_other_chats_it_is_found_in_private(
    channel: TelegramChannel, world: World, ann: User, chat: Chat
) -> None:
    asked = world.say(chat, ann, "why?")
    bob = world.user("Bob")
    for number in range(10):
        world.say(world.private_chat(bob), bob, f"{number}")
    sent = await arrive(channel, owed(route_of(chat)))

    assert await look(channel, world, owed(route_of(chat)), near(asked)) == sent


async def test_what_people_say_meanwhile_is_passed_over(
    channel: TelegramChannel, world: World, ann: User, group: Chat
) -> None:
    asked = world.say(group, ann, "why?")
    for number in range(10):
        world.say(group, ann, f"anybody? {number}")
    sent = await arrive(channel, owed(route_of(group)))
    world.say(group, ann, "ah")

    assert await look(channel, world, owed(route_of(group)), near(asked)) == sent


async def test_people_who_talk_without_end_are_not_listened_to_without_end(
    channel: TelegramChannel, world: World, fake: FakeTelegram, ann: User, group: Chat
) -> None:
    asked = world.say(group, ann, "why?")
    for number in range(PROBES_MAX + 5):
        world.say(group, ann, f"anybody? {number}")

    assert await look(channel, world, owed(route_of(group)), near(asked)) is None
    assert len(probes(fake)) == PROBES_MAX


async def test_other_words_of_ours_are_not_asked_for(
    channel: TelegramChannel, world: World, fake: FakeTelegram, ann: User
) -> None:
    """Notices of progress, and what was said in other topics, with buttons and without."""
    forum = world.supergroup(forum=True)
    work, rest = (world.topic(forum, name, ann) for name in ("work", "rest"))
    asked = world.say(forum, ann, "why?", topic=work)
    progress = await arrive(channel, owed(route_of(forum, work), "Still at it."))
    question = owed(route_of(forum, rest), "Shall I?", choices=YES_NO, question=5)
    elsewhere = await arrive(channel, question)
    sent = await arrive(channel, owed(route_of(forum, work)))
    known = (progress.platform_id, elsewhere.platform_id)

    found = await look(channel, world, owed(route_of(forum, work)), near(asked, known=known))
    assert found == sent
    assert set(map(str, probes(fake))).isdisjoint(known)


async def test_known_words_of_ours_are_no_gap(
    channel: TelegramChannel, world: World, ann: User, group: Chat
) -> None:
    asked = world.say(group, ann, "why?")
    for _ in range(MISSING_MAX - 1):
        world.delete(world.say(group, ann, "never mind"))
    known = await arrive(channel, owed(route_of(group), "Still at it."))
    for _ in range(MISSING_MAX - 1):
        world.delete(world.say(group, ann, "never mind"))
    sent = await arrive(channel, owed(route_of(group)))
    around = near(asked, known=(known.platform_id,))

    assert await look(channel, world, owed(route_of(group)), around) == sent


@pytest.mark.parametrize("around", ["another unsure", "nothing known", "no numbers"])
async def test_where_it_could_be_another_nothing_is_asked(
    channel: TelegramChannel,
    world: World,
    fake: FakeTelegram,
    ann: User,
    group: Chat,
    around: str,
) -> None:
    asked = world.say(group, ann, "why?")
    await arrive(channel, owed(route_of(group)))
    known: dict[str, Near] = {
        "another unsure": near(asked, is_alone=False),
        "nothing known": near(),
        "no numbers": Near(before=("", "x1"), known=(), is_alone=True),
    }

    assert await look(channel, world, owed(route_of(group)), known[around]) is None
    assert probes(fake) == []


@pytest.mark.parametrize("act", ["drop", "garble", "500", "502"])
async def test_trouble_while_looking_is_to_be_asked_again(
    channel: TelegramChannel, world: World, fake: FakeTelegram, ann: User, group: Chat, act: str
) -> None:
    asked = world.say(group, ann, "why?")
    sent = await arrive(channel, owed(route_of(group)))
    method = "editMessageReplyMarkup"
    if act.isdigit():
        fake.faults.add("status", method, status=int(act))
    else:
        fake.faults.add(act, method)

    first = await look(channel, world, owed(route_of(group)), near(asked))
    assert isinstance(first, Unsure)
    assert await look(channel, world, owed(route_of(group)), near(asked)) == sent


async def test_a_long_wait_while_looking_is_handed_on(
    channel: TelegramChannel, world: World, fake: FakeTelegram, ann: User, group: Chat
) -> None:
    asked = world.say(group, ann, "why?")
    fake.faults.add("too_many", "editMessageReplyMarkup", seconds=30)
    found = await look(channel, world, owed(route_of(group)), near(asked))

    assert isinstance(found, Unsure)
    assert found.wait_ms == 30_000
    assert len(probes(fake)) == 1


async def test_looking_comes_to_an_end_where_the_platform_wants_pauses(
    channel: TelegramChannel, world: World, fake: FakeTelegram, ann: User, group: Chat
) -> None:
    """The one who began anew after each pause would ask the same for ever."""
    asked = world.say(group, ann, "why?")
    for _ in range(3):
        world.say(group, ann, "anybody?")
    sent = await arrive(channel, owed(route_of(group)))
    fake.limits.switch_on(chat_per_s=2, chat_burst=1)

    assert await look(channel, world, owed(route_of(group)), near(asked)) == sent
    assert fake.limits.refusals
    assert not fake.limits.too_early


async def test_a_chat_that_is_closed_to_us_tells_nothing(
    channel: TelegramChannel, world: World, ann: User, chat: Chat
) -> None:
    asked = world.say(chat, ann, "why?")
    world.block(ann)

    assert await look(channel, world, owed(route_of(chat)), near(asked)) is None


async def test_a_message_of_ours_that_was_deleted_was_still_sent_or_not(
    channel: TelegramChannel, world: World, ann: User, chat: Chat
) -> None:
    """A person took it away: it cannot be told, and so it is not said that it was not sent."""
    asked = world.say(chat, ann, "why?")
    sent = await arrive(channel, owed(route_of(chat)))
    message: Message = chat.messages[int(sent.platform_id)]
    world.delete(message)

    assert await look(channel, world, owed(route_of(chat)), near(asked)) is None
