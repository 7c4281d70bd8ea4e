"""Messages of Discord as the gateway understands them."""

from pathlib import Path
from typing import Any

import msgspec
import pytest

from koboshi.channels.discord.codec import MessageReader
from koboshi.channels.discord.options import DiscordOptions
from koboshi.channels.discord.places import PRIVATE, id_at, moment_of, time_of
from koboshi.channels.discord.types import ChannelMessage, DiscordPerson, DiscordPlace
from koboshi.domain.ids import ChannelName
from tests.fakes.discord.server import TOKEN
from tests.fakes.discord.world import BOT_ID, DiscordWorld

ME = DiscordPerson(id=str(BOT_ID), username="koboshi", global_name="Koboshi", is_bot=True)
READER = MessageReader(channel=ChannelName("discord:main"), me=ME, chars_max=200)
ROOM = DiscordPlace(id="5")


def read(world: DiscordWorld, text: str, **how: Any) -> Any:
    """What a message in a server says, as the platform tells it."""
    place = world.text_channel(world.guild())
    said = world.say(place, world.user("Ann"), text, **how)
    told = msgspec.convert(world.shown(said, can_read=True), ChannelMessage)
    return READER.message(told, ROOM)


@pytest.mark.parametrize(
    "said, words",
    [
        (f"<@{BOT_ID}> hello", "hello"),
        (f"<@!{BOT_ID}>, hello", "hello"),
        (f"hello <@{BOT_ID}>", "hello"),
        (f"ask <@{BOT_ID}> now", "ask @Koboshi now"),
        (f"<@{BOT_ID}> /stop all", "/stop all"),
        (f"<@{BOT_ID}>", "@Koboshi"),
        ("hello", "hello"),
    ],
)
def test_our_name_is_how_we_are_called(said: str, words: str) -> None:
    inbound = read(DiscordWorld(), said)
    assert inbound.words.text == words
    assert inbound.is_addressed is (str(BOT_ID) in said)


def test_other_people_are_named() -> None:
    world = DiscordWorld()
    bob = world.user("Bob")
    assert read(world, f"tell <@{bob.user_id}>").words.text == "tell @Bob"


def test_a_reply_to_us_is_for_us_and_one_to_another_says_to_what() -> None:
    world = DiscordWorld()
    place = world.text_channel(world.guild())
    ours, theirs = world.say(place, world.bot, "yes?"), world.say(place, world.user("Bob"), "lunch")
    to_us, to_bob = read(world, "no", reply_to=ours), read(world, "at two", reply_to=theirs)
    assert (to_us.is_addressed, to_us.words.text) == (True, "no")
    assert (to_bob.is_addressed, to_bob.words.text) == (False, "[in answer to «lunch»]\nat two")


def test_what_is_passed_on_commands_nothing() -> None:
    world = DiscordWorld()
    place = world.text_channel(world.guild())
    other = world.say(place, world.user("Bob"), "/stop", files={"a.txt": "x"})
    inbound = read(world, "", passes_on=other)
    assert inbound.words.is_forwarded
    assert inbound.words.text == "[forwarded]\n/stop"
    assert len(inbound.words.files) == 1


def test_too_long_a_message_is_cut_and_says_so() -> None:
    text = read(DiscordWorld(), "x" * 500).words.text
    assert text.startswith("x" * 200)
    assert "500 characters" in text


def test_a_thread_belongs_to_its_channel_and_a_private_channel_to_one_person() -> None:
    thread = READER.route(DiscordPlace(id="7", kind=11, parent_id="5"))
    private = READER.route(DiscordPlace(id="9", kind=PRIVATE))
    assert (thread.chat, thread.thread) == ("5", "7")
    assert (private.chat, private.thread) == ("9", "")


def test_an_id_holds_its_time() -> None:
    assert time_of("175928847299117063") == 1_462_015_105_796
    assert id_at(1_462_015_105_796) == 175_928_847_299_117_063 >> 22 << 22
    assert moment_of("2016-04-30T11:18:25.796000+00:00") == id_at(1_462_015_105_796)
    assert moment_of("nonsense") == 0
    assert time_of("nonsense") == 0


@pytest.mark.parametrize(
    "token, account",
    [
        (TOKEN, str(BOT_ID)),
        ("MTE.x.y", "11"),
        ("secret", ""),
        ("c2VjcmV0.x.y", ""),
        ("é.x", ""),
        ("", ""),
    ],
)
def test_the_account_is_in_the_token_and_nothing_else_of_it_is(token: str, account: str) -> None:
    options = DiscordOptions(
        name=ChannelName("discord:main"),
        token=token,
        api_base="",
        ambiguous="probe",
        per_second=0,
        home=Path(),
    )
    assert options.account == account
    assert not token or token not in repr(options)
