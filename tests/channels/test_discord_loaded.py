"""What a Discord channel needs is loaded before it serves, and by no gateway without one."""

import json
import subprocess
import sys

TALK = """
import dataclasses, json, sys
from tests.channels.discord_rig import owed
import koboshi.channels.discord.channel
from koboshi.channels.discord.codec import MessageReader
from koboshi.channels.discord.messages import message_of, parts_of
from koboshi.channels.discord.types import ChannelMessage, DiscordPerson, DiscordPlace
from koboshi.domain.ids import ChannelName
from koboshi.domain.route import Route

before = set(sys.modules)
name = ChannelName("discord:main")
me = DiscordPerson(id="1", username="bot", is_bot=True)
reader = MessageReader(channel=name, me=me, chars_max=1_000)
ann = DiscordPerson(id="7", username="ann")
message = ChannelMessage(id="9", channel_id="5", author=ann, content="<@1> hello", mentions=(me,))
assert reader.message(message, DiscordPlace(id="5")).words.text == "hello"
words = "# Title\\n\\n*words* [a](https://example.org) `code`\\n\\n"
text = (words + "| a | b |\\n|---|---|\\n| 1 | 2 |\\n") * 40
for part in parts_of(text + chr(0xD83D)):
    message_of(dataclasses.replace(owed(Route(channel=name, chat="42")), text=part))
print(json.dumps(sorted(set(sys.modules) - before)))
"""

TELEGRAM_ALONE = """
import json, sys
import koboshi.app.serve
import koboshi.app.builders.gateway
import koboshi.channels.telegram.channel
from koboshi.app.platforms.registry import platform_of

platform_of("telegram")
theirs = ("websockets", "koboshi.channels.discord")
print(json.dumps([each for each in sys.modules if each.startswith(theirs)]))
"""


def _told(code: str) -> object:
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return json.loads(said.stdout)


def test_reading_and_answering_load_nothing() -> None:
    assert _told(TALK) == []


def test_a_gateway_with_telegram_alone_loads_nothing_of_discord() -> None:
    assert _told(TELEGRAM_ALONE) == []
