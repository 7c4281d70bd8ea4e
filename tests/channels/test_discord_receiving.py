"""Events of Discord into the inbox: resumed, begun anew, caught up with. Nothing lost or twice."""

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import suppress

import pytest
from anyio import create_task_group, fail_after

from koboshi.channels.common.calls import NoAnswer
from koboshi.channels.discord.cursor import place_in
from koboshi.channels.discord.watermarks import FLOOR
from koboshi.domain.errors import ChannelUnusable, StoreFailed
from koboshi.ports.channel import NO_WATERMARKS, Inbound, Receipt
from tests.channels.discord_rig import Bot, route_of
from tests.channels.fakes import until
from tests.fakes.discord.server import FakeDiscord, serving_discord
from tests.fakes.discord.state import DiscordChannel, DiscordUser
from tests.harness.polling import WITHIN_S


@pytest.fixture
async def fake() -> AsyncIterator[FakeDiscord]:
    async with serving_discord() as served:
        yield served


@pytest.fixture
def ann(fake: FakeDiscord) -> DiscordUser:
    return fake.world.user("Ann")


@pytest.fixture
def place(fake: FakeDiscord) -> DiscordChannel:
    """A channel of a server, in which something was said before the bot first connected."""
    made = fake.world.text_channel(fake.world.guild())
    fake.world.say(made, fake.world.user("Bob"), f"<@{fake.world.bot.user_id}> long ago")
    fake.world.forward(2)
    return made


def to_us(fake: FakeDiscord, text: str) -> str:
    return f"<@{fake.world.bot.user_id}> {text}"


async def test_a_first_connection_takes_nothing_from_before(
    fake: FakeDiscord, place: DiscordChannel, ann: DiscordUser
) -> None:
    bot = Bot(fake, options={"people": (str(ann.user_id),)})
    fake.world.say(fake.world.dm(ann), ann, "long ago, in private")
    fake.world.forward(2)
    async with bot.connected():
        await bot.is_whole()
        fake.world.say(place, ann, to_us(fake, "now"))
        await bot.stores("now")

    assert bot.texts == ["now"]
    assert bot.gateway.watermarks[FLOOR].isdecimal()


async def test_a_restart_resumes_the_session_and_misses_nothing(
    fake: FakeDiscord, place: DiscordChannel, ann: DiscordUser
) -> None:
    bot = Bot(fake)
    async with bot.connected():
        await bot.is_whole()
        fake.world.say(place, ann, to_us(fake, "one"))
        await bot.stores("one")
    fake.world.say(place, ann, to_us(fake, "two"))
    fake.world.say(fake.world.dm(ann), ann, "three")
    async with bot.connected():
        await bot.stores("two", "three")

    assert bot.texts == ["one", "two", "three"]
    assert (fake.gateway.sessions.identified, fake.gateway.sessions.resumed) == (1, 1)
    assert not fake.history.of("getMessages")


async def test_a_planned_stop_closes_with_a_code_that_keeps_the_session(
    fake: FakeDiscord, place: DiscordChannel
) -> None:
    bot = Bot(fake)
    async with bot.connected():
        await bot.is_whole()
    await until(lambda: fake.gateway.closes)

    (code,) = fake.gateway.closes
    assert code is not None
    assert code not in (1000, 1001)


async def test_behind_the_resume_window_the_histories_are_read(
    fake: FakeDiscord, place: DiscordChannel, ann: DiscordUser
) -> None:
    """In every channel, thread and private channel, in order, once; 250 in one of them."""
    world, bot = fake.world, Bot(fake)
    thread, forum = world.thread(place), world.forum(world.guild("other"))
    async with bot.connected():
        await bot.is_whole()
        world.say(world.dm(ann), ann, "before")
        await bot.stores("before")
    bot.forget_session()
    many = [f"number {number}" for number in range(250)]
    for text in many:
        world.say(place, ann, to_us(fake, text))
    world.say(thread, ann, to_us(fake, "in a thread"))
    world.post(forum, ann, "How?", to_us(fake, "in a post"))
    world.say(world.thread(place, "new"), ann, to_us(fake, "in a new thread"))
    world.say(world.dm(ann), ann, "in private")
    async with bot.connected():
        await bot.is_whole()

    assert [each for each in bot.texts if each in many] == many
    assert {*bot.texts} - {*many} == {
        "before",
        "in a thread",
        "in a post",
        "in a new thread",
        "in private",
    }
    assert fake.gateway.sessions.refused == 1


async def test_a_first_private_message_while_we_are_down_is_found_for_people_we_know(
    fake: FakeDiscord, ann: DiscordUser
) -> None:
    """The platform lists no private channels, so those of people who are allowed are opened."""
    bot = Bot(fake, options={"people": (str(ann.user_id), "*")})
    async with bot.connected():
        await bot.is_whole()
    bot.forget_session()
    fake.world.say(fake.world.dm(ann), ann, "hello")
    async with bot.connected():
        await bot.is_whole()

    assert bot.texts == ["hello"]


async def test_a_thread_that_was_archived_meanwhile_is_read_all_the_same(
    fake: FakeDiscord, place: DiscordChannel, ann: DiscordUser
) -> None:
    world, bot = fake.world, Bot(fake)
    thread = world.thread(place)
    async with bot.connected():
        await bot.is_whole()
        world.say(thread, ann, to_us(fake, "one"))
        await bot.stores("one")
    bot.forget_session()
    world.say(thread, ann, to_us(fake, "two"))
    world.archive(thread)
    async with bot.connected():
        await bot.is_whole()

    assert bot.texts == ["one", "two"]
    assert [each.route for _, each in bot.gateway.stored.values()] == [route_of(thread)] * 2


async def test_what_comes_live_does_not_overtake_what_was_missed(
    fake: FakeDiscord, place: DiscordChannel, ann: DiscordUser
) -> None:
    """While a channel is behind, an event only says that there is more."""
    world, bot = fake.world, Bot(fake)
    async with bot.connected():
        await bot.is_whole()
    bot.forget_session()
    world.say(place, ann, to_us(fake, "missed"))
    slow = fake.faults.add("hang", "getMessages")
    async with bot.connected():
        await until(lambda: slow.hits)
        world.say(place, ann, to_us(fake, "live"))
        world.say(world.dm(ann), ann, "elsewhere")
        await bot.stores("elsewhere")
        before = bot.gateway.cursor
        slow.lift()
        await bot.stores("missed", "live")
        await bot.is_whole()

    assert [each for each in bot.texts if each != "elsewhere"] == ["missed", "live"]
    assert place_in(before).session != place_in(bot.gateway.cursor).session


@pytest.mark.parametrize("commit", range(1, 9))
async def test_killed_at_any_commit_of_a_catch_up_nothing_is_lost_or_twice(
    fake: FakeDiscord, place: DiscordChannel, ann: DiscordUser, commit: int
) -> None:
    """Each life of the catch-up ends at its first, second … commit, which is lost with it."""
    world, bot = fake.world, Bot(fake)
    thread = world.thread(place)
    async with bot.connected():
        await bot.is_whole()
    bot.forget_session()
    wanted = [f"number {number}" for number in range(150)]
    for text in wanted:
        world.say(place, ann, to_us(fake, text))
        world.say(thread, ann, to_us(fake, f"thread {text}"))
    left = [commit]

    async def accept(
        batch: Sequence[Inbound],
        cursor: str | None = None,
        watermarks: Mapping[str, str] = NO_WATERMARKS,
    ) -> tuple[Receipt, ...]:
        if batch or cursor or watermarks:
            left[0] -= 1
            if left[0] == 0:
                raise StoreFailed("killed here")
        return await bot.gateway.accept(batch, cursor, watermarks)

    with fail_after(WITHIN_S), suppress(ExceptionGroup):
        async with bot.channel() as channel, create_task_group() as life:
            life.start_soon(channel.receive, bot.gateway.cursor, accept)
            await until(lambda: len(bot.texts) == 300 and channel.trouble is None)
            await bot.is_whole()
            life.cancel_scope.cancel()
    async with bot.connected():
        await bot.is_whole()

    assert [each for each in bot.texts if not each.startswith("thread")] == wanted
    assert [each for each in bot.texts if each.startswith("thread")] == [
        f"thread {text}" for text in wanted
    ]


@pytest.mark.parametrize("how", ["drop", "reconnect", "invalidate", "4000", "4009", "silence"])
async def test_a_connection_that_ends_is_made_anew_at_once(
    fake: FakeDiscord, place: DiscordChannel, ann: DiscordUser, how: str
) -> None:
    fake.gateway.heartbeat_ms = 150 if how == "silence" else fake.gateway.heartbeat_ms
    bot = Bot(fake)
    async with bot.connected():
        await bot.is_whole()
        fake.world.say(place, ann, to_us(fake, "one"))
        await bot.stores("one")
        match how:
            case "drop":
                fake.gateway.drop()
            case "reconnect":
                fake.gateway.reconnect()
            case "invalidate":
                fake.gateway.invalidate()
            case "silence":
                fake.gateway.acks = False
            case code:
                fake.gateway.close(int(code))
        fake.world.say(place, ann, to_us(fake, "two"))
        sessions = fake.gateway.sessions
        await until(lambda: sessions.resumed + sessions.identified >= 2)
        fake.gateway.acks = True
        fake.world.say(place, ann, to_us(fake, "three"))
        await bot.stores("two", "three")

    assert bot.texts == ["one", "two", "three"]
    assert (fake.gateway.sessions.identified == 2) is (how in ("invalidate", "4009"))


@pytest.mark.parametrize(
    "code, remedy", [(4004, "token"), (4014, "Message Content Intent"), (4013, "intents")]
)
async def test_a_close_that_a_person_has_to_do_something_about(
    fake: FakeDiscord, code: int, remedy: str
) -> None:
    bot = Bot(fake)
    async with bot.channel() as channel, create_task_group() as tasks:
        fake.world.has_message_content = code != 4014

        async def close() -> None:
            await until(lambda: fake.gateway.sessions.identified)
            fake.gateway.close(code)

        if code != 4014:
            tasks.start_soon(close)
        with fail_after(WITHIN_S), pytest.raises(ChannelUnusable, match=remedy):
            await channel.receive(None, bot.gateway.accept)
        assert channel.trouble is not None
        assert remedy in channel.trouble


async def test_a_refused_token_is_told(fake: FakeDiscord) -> None:
    bot = Bot(fake, options={"token": fake.token + "x"})
    async with bot.channel() as channel:
        with pytest.raises(ChannelUnusable, match="token"):
            await channel.receive(None, bot.gateway.accept)


async def test_messages_without_content_make_the_channel_down_and_are_not_stored(
    fake: FakeDiscord, place: DiscordChannel, ann: DiscordUser
) -> None:
    """The intent was switched off while we are connected: they can be read when it is on again."""
    bot = Bot(fake)
    async with bot.channel() as channel, create_task_group() as tasks:
        tasks.start_soon(_switch_off, fake, place, ann)
        with fail_after(WITHIN_S), pytest.raises(ChannelUnusable, match="Message Content Intent"):
            await channel.receive(None, bot.gateway.accept)
    fake.world.has_message_content = True
    async with bot.connected():
        await until(lambda: len(bot.gateway.stored) == 1)

    ((_, stored),) = bot.gateway.stored.values()
    assert stored.words.text == "not to the bot"


async def _switch_off(fake: FakeDiscord, place: DiscordChannel, ann: DiscordUser) -> None:
    sessions = fake.gateway.sessions
    await until(lambda: sessions.identified)
    (session,) = sessions.all.values()
    session.intents &= ~(1 << 15)
    fake.world.has_message_content = False
    fake.world.say(place, ann, "not to the bot")


async def test_a_platform_that_answers_with_errors_is_tried_again_later(fake: FakeDiscord) -> None:
    fake.faults.add("status", "getMe", status=502)
    bot = Bot(fake)
    async with bot.channel() as channel:
        with pytest.raises(NoAnswer):
            await channel.receive(None, bot.gateway.accept)
        assert channel.trouble is not None


async def test_our_own_words_and_those_of_other_bots_are_not_for_us(
    fake: FakeDiscord, place: DiscordChannel, ann: DiscordUser
) -> None:
    world, bot = fake.world, Bot(fake)
    async with bot.connected():
        await bot.is_whole()
        world.say(place, world.bot, "mine")
        world.say(place, world.other_bot("Rob"), to_us(fake, "from a bot"))
        world.say(place, ann, to_us(fake, "by a webhook"), webhook=True)
        world.say(place, ann, "to others")
        world.say(place, ann, to_us(fake, "to us"))
        await bot.stores("to us")

    kept = {each.words.text: each for _, each in bot.gateway.stored.values()}
    assert bot.texts == ["to us"]
    assert not kept["to others"].is_addressed
    assert {*kept} == {"to others", "to us"}, "words of bots leave no row"


async def test_what_cannot_be_read_does_not_keep_the_rest_from_us(
    fake: FakeDiscord, place: DiscordChannel, ann: DiscordUser
) -> None:
    """Live it is kept as it came; in a history it is passed over."""
    world, bot = fake.world, Bot(fake)
    async with bot.connected():
        await bot.is_whole()
        world.dispatch("MESSAGE_CREATE", lambda _: {"id": "1", "channel_id": 7, "mentions": "?"})
        world.say(place, ann, to_us(fake, "one"))
        await bot.stores("one")
    bot.forget_session()
    world.say(place, ann, to_us(fake, "broken")).kind = "?"  # type: ignore[assignment]
    world.say(place, ann, to_us(fake, "two"))
    async with bot.connected():
        await bot.is_whole()

    assert bot.texts == ["one", "two"]
    ignored = [each.ignored for _, each in bot.gateway.stored.values() if each.ignored]
    assert [each.partition(":")[0] for each in ignored] == ["malformed"]


async def test_a_flood_is_stored_in_batches_and_in_order(
    fake: FakeDiscord, place: DiscordChannel, ann: DiscordUser
) -> None:
    bot = Bot(fake)
    wanted = [f"number {number}" for number in range(2_000)]
    async with bot.connected():
        await bot.is_whole()
        for text in wanted:
            fake.world.say(place, ann, to_us(fake, text))
        await until(lambda: len(bot.texts) == len(wanted), 60)

    assert bot.texts == wanted
