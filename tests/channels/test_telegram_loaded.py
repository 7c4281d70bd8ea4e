"""Issue 12, C18: what a Telegram channel needs is loaded before it serves. A gateway whose
descriptors have run out can load nothing, and its answers must not depend on that."""

import json
import subprocess
import sys

TALK = """
import json, sys
import koboshi.channels.telegram.channel
from koboshi.channels.telegram.codec import UpdateReader
from koboshi.channels.telegram.messages import message_of, parts_of
from koboshi.channels.telegram.types import User
from tests.channels.telegram_rig import owed
from koboshi.domain.ids import ChannelName
from koboshi.domain.route import Route
import dataclasses

before = set(sys.modules)
me = User(id=1, is_bot=True, first_name="Bot", username="bot")
reader = UpdateReader(channel=ChannelName("telegram:main"), me=me, chars_max=1_000)
update = {
    "update_id": 1,
    "message": {
        "message_id": 1,
        "date": 1,
        "chat": {"id": -100, "type": "supergroup"},
        "from": {"id": 7, "first_name": "Eve"},
        "text": "@bot hello",
        "entities": [{"type": "mention", "offset": 0, "length": 4}],
    },
}
read = reader.read(json.dumps(update).encode())
assert read.inbound.words.text == "hello", read
words = "# Title\\n\\n*words* [a](https://example.org) `code`\\n\\n"
text = (words + "| a | b |\\n|---|---|\\n| 1 | 2 |\\n") * 40
parts = parts_of(text + chr(0xD83D))
delivery = owed(Route(channel=ChannelName("telegram:main"), chat="42"))
for part in parts:
    message_of(dataclasses.replace(delivery, text=part), is_plain=False)
print(json.dumps(sorted(set(sys.modules) - before)))
"""


def test_reading_and_answering_load_nothing() -> None:
    """The first answer failed with "an error of mine": markdown-it was loaded by its first use."""
    said = subprocess.run(
        [sys.executable, "-c", TALK], capture_output=True, text=True, check=True
    ).stdout

    assert json.loads(said) == []
