"""Discord at its worst: addresses that are gone, refusals at the wrong moment, words that change
while they are read. Nothing is lost, and nothing is taken that its author took back."""

from collections.abc import AsyncIterator

import msgspec
import pytest
from anyio import fail_after

from koboshi.channels.common.calls import NoAnswer
from koboshi.channels.common.reading import DELETED
from koboshi.channels.discord import receiving
from koboshi.channels.discord.gateway import GatewayClosed
from koboshi.clock import SystemClock
from koboshi.domain.outbox import Later, Unsure
from tests.channels.discord_rig import Bot, owed, route_of
from tests.channels.fakes import until
from tests.fakes.discord.server import FakeDiscord, serving_discord
from tests.fakes.discord.state import DiscordChannel, DiscordUser
from tests.harness.polling import WITHIN_S
from tests.harness.ports import free_port


@pytest.fixture
async def fake() -> AsyncIterator[FakeDiscord]:
    async with serving_discord() as served:
        yield served


@pytest.fixture
def ann(fake: FakeDiscord) -> DiscordUser:
    return fake.world.user("Ann")


@pytest.fixture
def place(fake: FakeDiscord, ann: DiscordUser) -> DiscordChannel:
    """The private channel of a person, where everything is for us."""
    return fake.world.dm(ann)


@pytest.fixture
async def bot(fake: FakeDiscord, place: DiscordChannel, ann: DiscordUser) -> Bot:
    """One that was connected before, and has read that channel."""
    made = Bot(fake)
    async with made.connected():
        await made.is_whole()
        fake.world.say(place, ann, "hello")
        await made.stores("hello")
    return made


async def test_a_session_whose_address_is_gone_is_resumed_at_the_common_one(
    fake: FakeDiscord, bot: Bot, place: DiscordChannel, ann: DiscordUser
) -> None:
    """Else a host that Discord has put out of use would keep the channel down for good."""
    assert bot.gateway.cursor is not None
    stored = msgspec.json.decode(bot.gateway.cursor)
    bot.gateway.cursor = msgspec.json.encode(
        stored | {"url": f"ws://127.0.0.1:{free_port()}"}
    ).decode()
    fake.world.say(place, ann, "missed")
    async with bot.connected():
        await bot.stores("missed")

    assert fake.gateway.sessions.resumed == 1


async def test_a_gateway_that_begins_no_session_is_left(
    fake: FakeDiscord, bot: Bot, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It greets and acknowledges heartbeats, so the connection looks alive; we would wait for
    ever."""
    monkeypatch.setattr(receiving, "BEGIN_SECONDS", 0.05, raising=False)
    fake.gateway.begins_none = True
    async with bot.channel() as channel:
        with fail_after(WITHIN_S), pytest.raises(GatewayClosed, match="no session"):
            await channel.receive(bot.gateway.cursor, bot.gateway.accept)
        assert channel.trouble is not None


async def test_a_private_channel_is_opened_when_the_platform_lets_us(
    fake: FakeDiscord, bot: Bot
) -> None:
    """Asked for too many at once, the platform refuses some for a while."""
    eve = fake.world.user("Eve")
    bot.options["people"], bot.clock = (str(eve.user_id),), SystemClock()
    bot.forget_session()
    fake.world.say(fake.world.dm(eve), eve, "and me")
    fake.faults.add("too_many", "createDm", seconds=0.01, count=2)
    async with bot.connected():
        await bot.is_whole()

    assert "and me" in bot.texts


async def test_what_a_new_session_tells_of_is_read_by_the_reading_under_way(
    fake: FakeDiscord, ann: DiscordUser, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The page on its way is from before the message, and no session was told of it."""
    monkeypatch.setattr(receiving, "INVALID_SECONDS", 0.01)
    world, bot = fake.world, Bot(fake)
    place = world.text_channel(world.guild())
    named = f"<@{world.bot.user_id}>"
    async with bot.connected():
        await bot.is_whole()
    bot.forget_session()
    world.say(place, ann, f"{named} one")
    slow = fake.faults.add("hang", "getMessages", moment="after", skip=1, chat=place.channel_id)
    async with bot.connected():
        await until(lambda: slow.hits)
        fake.gateway.sessions.expire()
        world.say(place, ann, f"{named} two")
        fake.gateway.drop()
        await until(lambda: fake.gateway.sessions.identified == 3)
        world.say(world.dm(ann), ann, "elsewhere")
        await bot.stores("elsewhere")
        slow.lift()
        await bot.is_whole()

    assert [each for each in bot.texts if each != "elsewhere"] == ["one", "two"]


@pytest.mark.parametrize("page", [0, 1])
async def test_words_that_are_changed_while_a_channel_is_behind(
    fake: FakeDiscord, bot: Bot, place: DiscordChannel, ann: DiscordUser, page: int
) -> None:
    """Whether the page with the old ones is on its way or stored already."""
    world = fake.world
    bot.forget_session()
    said = world.say(place, ann, "old")
    other = world.text_channel(world.guild())
    slow = fake.faults.add("hang", "getMessages", moment="after", skip=page, chat=place.channel_id)
    async with bot.connected():
        await until(lambda: slow.hits)
        world.edit(said, "new")
        world.say(other, ann, f"<@{world.bot.user_id}> elsewhere")
        await bot.stores("elsewhere")
        slow.lift()
        await bot.is_whole()

    stored = {key: inbound for key, (_, inbound) in bot.gateway.stored.items()}
    message = stored[f"m{said.message_id}"]
    edits = [each.words.text for each in stored.values() if each.edits == message.external_id]
    assert [message.words.text, *edits][-1] == "new"


async def test_a_message_that_was_deleted_before_it_was_read_is_not_taken(
    fake: FakeDiscord, bot: Bot, place: DiscordChannel, ann: DiscordUser
) -> None:
    """A session that is resumed tells of the message, and then that it is gone."""
    fake.world.delete(fake.world.say(place, ann, "take that back"))
    fake.world.say(place, ann, "what stays")
    async with bot.connected():
        await bot.stores("what stays")

    assert "take that back" not in bot.texts


async def test_of_a_message_that_waits_and_is_deleted_the_agent_is_told(
    fake: FakeDiscord, bot: Bot, place: DiscordChannel, ann: DiscordUser
) -> None:
    async with bot.connected():
        said = fake.world.say(place, ann, "take that back")
        await bot.stores("take that back")
        fake.world.delete(said)
        await bot.stores(DELETED)

    (gone,) = [each for _, each in bot.gateway.stored.values() if each.words.text == DELETED]
    assert (gone.edits, gone.sender) == (f"m{said.message_id}", str(ann.user_id))


async def test_what_stands_before_the_platform_asks_for_a_long_pause_without_its_words(
    fake: FakeDiscord, bot: Bot, place: DiscordChannel
) -> None:
    """A page instead of JSON. Asked again in vain, it would shut us out for longer."""
    fake.faults.add("status", "createMessage", status=429, seconds=600)
    async with bot.channel() as channel:
        delivery = owed(route_of(place))
        assert isinstance(await channel.send(delivery), Later)
        again = await channel.send(delivery)

    assert isinstance(again, Later)
    assert again.wait_ms >= 590_000
    assert len(fake.history.of("createMessage")) == 1


@pytest.mark.parametrize("status", [403, 404])
async def test_what_stands_before_the_platform_says_nothing_about_a_channel_or_a_message(
    fake: FakeDiscord, bot: Bot, place: DiscordChannel, ann: DiscordUser, status: int
) -> None:
    """A page instead of JSON. Taken for the platform's word it would lose what was missed, and an
    answer with it."""
    bot.forget_session()
    fake.world.say(place, ann, "missed")
    fake.faults.add("status", "getMessages", status=status)
    fake.faults.add("status", "createMessage", status=status)
    async with bot.channel() as channel:
        with fail_after(WITHIN_S), pytest.raises(NoAnswer):
            await channel.receive(bot.gateway.cursor, bot.gateway.accept)
        assert isinstance(await channel.send(owed(route_of(place))), Unsure)
    async with bot.connected():
        await bot.is_whole()

    assert "missed" in bot.texts
