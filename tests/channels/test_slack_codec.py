"""What Slack tells, read: the same message has one key, and nothing that is told stops the rest."""

from typing import Any

import msgspec
import pytest

from koboshi.channels.common.reading import DELETED
from koboshi.channels.slack.codec import SlackReader
from koboshi.channels.slack.places import ChatPlace, place_in
from koboshi.channels.slack.types import SlackMessage
from koboshi.channels.slack.words import escaped, plain_words, without_name
from koboshi.domain.ids import ChannelName
from koboshi.ports.channel import Inbound

ME = "U0BOT"
READER = SlackReader(
    channel=ChannelName("slack:main"),
    me=ME,
    bot_id="B0BOT",
    chars_max=50,
    commands=frozenset({"stop"}),
)
TS = "1700000000.000100"


def read(**event: Any) -> Inbound | None:
    told = {"type": "message", "channel": "D1", "user": "U1", "ts": TS, "text": "hello", **event}
    payload = {"type": "event_callback", "event_id": "Ev1", "event": told}
    return READER.read("events_api", msgspec.json.encode(payload))


def taken(**event: Any) -> Inbound:
    found = read(**event)
    assert found is not None
    return found


def test_a_message_and_a_mention_of_it_have_one_key() -> None:
    said = {"channel": "C1", "text": f"<@{ME}> hello"}
    message, mention = taken(**said), taken(type="app_mention", **said)
    listed = READER.message(SlackMessage(user="U1", ts=TS, text=f"<@{ME}> hello"), "C1")
    assert message == mention == listed
    assert (message.external_id, message.words.anchor) == (f"C1/{TS}", TS)
    assert message.words.sent_ms == 1_700_000_000_000
    assert message.route.thread == TS


def test_words_of_a_thread_stay_in_it_and_those_of_a_person_alone_where_they_are() -> None:
    assert taken().route.thread == ""
    assert taken(thread_ts="1.2").route.thread == "1.2"
    assert taken(channel="C1", thread_ts="1.2", parent_user_id=ME).is_addressed
    assert not taken(channel="C1", thread_ts="1.2", parent_user_id="U9").is_addressed
    assert taken(channel="C1").route.thread == ""


@pytest.mark.parametrize(
    "event",
    [
        {"bot_id": "B0BOT"},
        {"bot_id": "B9"},
        {"user": ME},
        {"user": ""},
        {"text": "  "},
        {"text": None},
        {"subtype": "channel_join"},
        {"subtype": "bot_message"},
        {"type": "reaction_added"},
        {"type": "assistant_thread_started"},
        {"subtype": "message_changed", "message": {"user": "U1", "ts": TS, "text": "unfurled"}},
        {"subtype": "message_changed"},
        {"subtype": "message_deleted"},
    ],
)
def test_what_is_not_said_to_us_is_passed_over(event: dict[str, Any]) -> None:
    assert read(**event) is None


def test_an_edit_names_what_it_replaces() -> None:
    edited = {"user": "U1", "ts": "1700000009.000000"}
    new = {"user": "U1", "ts": TS, "text": "in other words", "edited": edited}
    found = taken(subtype="message_changed", message=new, previous_message={**new, "text": "old"})
    assert (found.edits, found.words.text) == (f"D1/{TS}", "in other words")
    assert found.external_id == f"D1/{TS}/1700000009.000000"


def test_a_message_that_is_deleted_is_not_to_be_acted_on() -> None:
    old = {"user": "U1", "ts": TS, "text": "never mind"}
    found = taken(subtype="message_deleted", deleted_ts=TS, previous_message=old)
    assert (found.edits, found.words.text) == (f"D1/{TS}", DELETED)


def test_words_that_are_passed_on_command_nothing() -> None:
    shared = [{"is_share": True, "text": "yes", "author_name": "Eve"}]
    found = taken(text="", attachments=shared)
    assert found.words.is_forwarded
    assert found.words.text == "[forwarded from Eve] yes"
    assert not taken(text="look", attachments=shared).words.is_forwarded


def test_a_press_is_bound_to_its_person_and_its_question() -> None:
    press = {
        "type": "block_actions",
        "user": {"id": "U7", "name": "eve"},
        "container": {"message_ts": "5.000001", "channel_id": "C1", "thread_ts": "4.000001"},
        "actions": [{"action_id": "q12:yes", "value": "q12:yes", "action_ts": "6.000001"}],
    }
    found = READER.read("interactive", msgspec.json.encode(press))
    assert found is not None
    assert (found.sender, found.words.question, found.words.choice_id) == ("U7", 12, "yes")
    assert (found.route.chat, found.route.thread) == ("C1", "4.000001")
    press["actions"] = [{"action_id": "x", "value": "another app's", "action_ts": "6.000001"}]
    assert READER.read("interactive", msgspec.json.encode(press)) is None


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"nonsense",
        b'{"type":"event_callback","event_id":"Ev7","event":{"type":"message","ts":7}}',
        b'{"type":"event_callback","event_id":"Ev8","event":{"type":"message","ts":"x","user":"U1"'
        b',"text":"a"}}',
        b'{"event":' + b"[" * 100_000,
    ],
)
def test_what_cannot_be_read_is_kept_and_stops_nothing(raw: bytes) -> None:
    found = READER.read("events_api", raw)
    assert found is not None
    assert found.ignored is not None
    assert found.ignored.startswith("malformed")
    assert found.external_id == READER.read("events_api", raw).external_id  # type: ignore[union-attr]


def test_marks_of_slack_become_plain_words() -> None:
    text = (
        "<@U1|ann> in <#C1|general>: <https://a.org|a> <https://b.org> <!here> <mailto:a@b.c|a@b.c>"
    )
    assert plain_words(text) == "@ann in #general: a (https://a.org) https://b.org @here a@b.c"
    assert plain_words("1 &lt; 2 &amp;&amp; 3 &gt; 2") == "1 < 2 && 3 > 2"
    assert plain_words(escaped("<@U1> & &lt;")) == "<@U1> & &lt;"
    assert without_name(f"<@{ME}>, hello <@{ME}>", ME) == "hello"
    assert without_name(f"<@{ME}>", ME) == f"<@{ME}>"


def test_a_long_message_is_cut_and_says_so() -> None:
    found = taken(text="x" * 60)
    assert found.words.text.startswith("x" * 50 + "\n[koboshi]")


def test_a_place_never_goes_back_and_keeps_the_last_threads() -> None:
    place = ChatPlace(newest="10.000005")
    moved = place.moved("9.000000", "1.0").moved("11.5", "2.0").moved("11.400000", "1.0")
    assert (moved.newest, moved.threads) == ("11.5", ("1.0", "2.0"))
    assert place_in(moved.token) == moved
    assert place_in("nonsense") is None
    assert place_in("") is None
