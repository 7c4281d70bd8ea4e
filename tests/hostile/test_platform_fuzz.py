"""Whatever Discord or Slack tell, or are said to tell: each event is stored or passed over, and the
one behind it is taken as ever."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import PurePosixPath
from typing import Any

import msgspec
import pytest
from anyio import create_task_group, run
from hypothesis import example, given
from hypothesis import strategies as st

from koboshi.channels.common.calls import NotReached
from koboshi.channels.discord.codec import MessageReader
from koboshi.channels.discord.events import EventIntake
from koboshi.channels.discord.places import PRIVATE
from koboshi.channels.discord.types import DiscordPerson, DiscordPlace, GatewayFrame
from koboshi.channels.discord.watermarks import read_marks
from koboshi.channels.slack.codec import SlackReader
from koboshi.channels.slack.types import SlackEnvelope
from koboshi.domain.files import RECEIVED
from koboshi.domain.ids import ChannelName, EntryId
from koboshi.domain.inbox import EntryState, Words
from koboshi.ports.channel import NO_WATERMARKS, Inbound, Receipt
from koboshi.runtime.intake import Intake, storable
from tests.channels.fakes import FakeClock
from tests.hostile.wild import JSON, NUMBERS, TEXTS, as_bytes, fuzzed, objects

ROOM, ALONE, ANN = "500000000000000005", "500000000000000006", "500000000000000007"
TS = "1700000000.000100"
IDS = st.sampled_from([ROOM, ALONE, ANN, "1" * 20, "9" * 21, "-1", "٣", "../x"]) | TEXTS
READER = MessageReader(
    channel=ChannelName("discord:main"),
    me=DiscordPerson(id="1", username="koboshi", is_bot=True),
    chars_max=1_000,
)
SLACK = SlackReader(
    channel=ChannelName("slack:main"),
    me="U0BOT",
    bot_id="B0BOT",
    chars_max=1_000,
    commands=frozenset({"stop"}),
)


def check(inbound: Inbound) -> None:
    """Fail if it could not be stored, or would lead out of its folder."""
    arrival = Intake.look_at(None, inbound)  # type: ignore[arg-type]
    words = arrival.inbound.words
    assert msgspec.json.decode(msgspec.json.encode(words), type=Words) == words
    assert inbound.external_id
    for text in (inbound.external_id, inbound.sender, inbound.route.chat, inbound.route.thread):
        storable(text).encode()
    for file in inbound.words.files:
        path = PurePosixPath(file.path)
        assert path.parts[: len(PurePosixPath(RECEIVED).parts)] == PurePosixPath(RECEIVED).parts
        assert ".." not in path.parts
        assert not path.is_absolute()
        assert "\0" not in file.path
        assert file.size >= 0


PERSON = objects(id=IDS, username=TEXTS, global_name=TEXTS | st.none(), bot=st.booleans() | JSON)
FILE = objects(id=IDS, filename=TEXTS, size=NUMBERS, url=TEXTS, content_type=TEXTS)
PLACE = objects(id=IDS, type=NUMBERS, guild_id=IDS, parent_id=IDS, last_message_id=IDS)
SAID = objects(
    id=IDS,
    channel_id=st.sampled_from([ROOM, ALONE]) | IDS,
    author=PERSON | st.just({"id": ANN}) | JSON,
    content=TEXTS | JSON,
    type=st.sampled_from([0, 19]) | NUMBERS,
    mentions=st.lists(PERSON, max_size=2) | JSON,
    attachments=st.lists(FILE, max_size=2) | JSON,
    message_snapshots=st.lists(objects(message=objects(content=TEXTS)), max_size=2) | JSON,
    message_reference=objects(type=NUMBERS, message_id=IDS) | JSON,
    referenced_message=objects(id=IDS, channel_id=IDS, author=PERSON, content=TEXTS) | JSON,
    poll=JSON,
    edited_timestamp=TEXTS,
    webhook_id=TEXTS,
)
USED = objects(
    id=IDS,
    token=TEXTS,
    type=st.sampled_from([2, 3]) | NUMBERS,
    data=objects(custom_id=TEXTS, name=TEXTS, options=st.lists(objects(name=TEXTS, value=JSON)))
    | JSON,
    channel_id=st.sampled_from([ROOM, ALONE]),
    channel=PLACE | st.none(),
    user=PERSON,
    message=SAID,
)
KINDS = "MESSAGE_CREATE MESSAGE_UPDATE INTERACTION_CREATE CHANNEL_DELETE THREAD_UPDATE".split()
TOLD = (SAID | USED | PLACE | JSON).map(as_bytes) | st.binary(max_size=60)
GOOD = as_bytes(
    {"id": "600000000000000001", "channel_id": ALONE, "author": {"id": ANN}, "content": "hello"}
)


class _NoApi:
    """Discord, out of reach of questions."""

    async def call(self, *_: object, **__: object) -> Any:
        raise NotReached("not in this test")


async def _taken_by_discord(kind: str, raw: bytes) -> list[Inbound]:
    taken: list[Inbound] = []

    async def accept(
        batch: Sequence[Inbound],
        cursor: str | None = None,
        watermarks: Mapping[str, str] = NO_WATERMARKS,
    ) -> tuple[Receipt, ...]:
        taken.extend(batch)
        return tuple(
            Receipt(entry_id=EntryId(1), state=EntryState.HANDLED, is_duplicate=False)
            for _ in batch
        )

    async def may_read() -> bool:
        return True

    async with create_task_group() as tasks:
        intake = EventIntake(
            api=_NoApi(),  # type: ignore[arg-type]
            reader=READER,
            marks=read_marks({}),
            accept=accept,
            tasks=tasks,
            clock=FakeClock(),
            people=(),
            may_read=may_read,
        )
        for frame in (
            GatewayFrame(op=0, seq=1, event=kind, content=msgspec.Raw(raw)),
            GatewayFrame(op=0, seq=2, event="MESSAGE_CREATE", content=msgspec.Raw(GOOD)),
        ):
            intake.directory.places.learn(DiscordPlace(id=ROOM))
            intake.directory.places.learn(DiscordPlace(id=ALONE, kind=PRIVATE))
            with suppress(NotReached):  # the channel is made anew, and the event comes again
                await intake.take([frame])
    return taken


@fuzzed(150)
@example(kind="MESSAGE_CREATE", raw=b"[" * 100_000)
@example(kind="MESSAGE_CREATE", raw=GOOD.replace(b"hello", b"\\ud800"))
@example(kind="MESSAGE_CREATE", raw=GOOD.replace(b"600000000000000001", b"no id"))
@example(kind="INTERACTION_CREATE", raw=b'{"id": "1", "token": "t", "channel_id": "' + b"9" * 5000)
@given(kind=st.sampled_from(KINDS), raw=TOLD)
def test_any_event_of_discord_is_stored_or_passed_over(kind: str, raw: bytes) -> None:
    taken = run(_taken_by_discord, kind, raw)

    for inbound in taken:
        check(inbound)
    assert [each.words.text for each in taken][-1] == "hello", "what is behind it is taken"


SLACK_FILE = objects(id=TEXTS, name=TEXTS | st.none(), mimetype=TEXTS, size=NUMBERS, title=TEXTS)
SLACK_MESSAGE = objects(
    type=st.just("message"),
    subtype=st.sampled_from(["", "file_share", "message_changed", "message_deleted"]) | TEXTS,
    user=TEXTS | st.just("U1"),
    text=TEXTS | JSON,
    ts=st.just(TS) | TEXTS | JSON,
    thread_ts=st.just(TS) | TEXTS,
    channel=st.sampled_from(["D1", "C1"]) | TEXTS,
    files=st.lists(SLACK_FILE, max_size=2) | JSON,
    attachments=JSON,
    blocks=JSON,
    edited=objects(ts=TEXTS) | JSON,
    deleted_ts=TEXTS,
    message=JSON,
    previous_message=JSON,
)
CHANGED = st.builds(
    lambda message, old: {**message, "message": old, "previous_message": old},
    SLACK_MESSAGE,
    SLACK_MESSAGE,
)
CALLBACK = objects(
    event_id=TEXTS | st.just("Ev1"), event=SLACK_MESSAGE | CHANGED | JSON, type=TEXTS
)
PRESS = objects(
    type=st.just("block_actions") | TEXTS,
    user=objects(id=TEXTS, name=TEXTS),
    container=objects(channel_id=TEXTS, message_ts=TEXTS, thread_ts=TEXTS),
    channel=objects(id=TEXTS),
    actions=st.lists(objects(value=TEXTS, action_ts=TEXTS | st.just(TS)), max_size=2) | JSON,
)
COMMAND = objects(
    trigger_id=TEXTS, channel_id=TEXTS, user_id=TEXTS, user_name=TEXTS, text=TEXTS, command=TEXTS
)
ENVELOPES = st.sampled_from("events_api interactive slash_commands hello x".split())
PAYLOADS = (CALLBACK | PRESS | COMMAND | JSON).map(as_bytes) | st.binary(max_size=60)


@fuzzed(200)
@example(kind="events_api", payload=b"[" * 100_000)
@example(kind="events_api", payload=b'{"event": {"type": "message", "text": "\\ud800"}}')
@given(kind=ENVELOPES, payload=PAYLOADS)
def test_any_payload_of_slack_is_stored_or_passed_over(kind: str, payload: bytes) -> None:
    found = SLACK.read(kind, payload)

    if found is not None:
        check(found)
        assert len(found.words.text) < 20_000


@fuzzed(100)
@given(raw=PAYLOADS | objects(envelope_id=TEXTS, type=TEXTS, payload=JSON).map(as_bytes))
def test_any_frame_of_a_socket_is_an_envelope_or_broken(raw: bytes) -> None:
    """Only what `SocketLink` expects is raised."""
    try:
        msgspec.json.decode(raw, type=SlackEnvelope)
    except (msgspec.DecodeError, RecursionError):
        return


@pytest.mark.parametrize("reader", ["discord", "slack"])
def test_a_good_event_is_read(reader: str) -> None:
    """So that the fuzz above does not only see what is refused at the door."""
    if reader == "discord":
        assert [each.words.text for each in run(_taken_by_discord, "x", b"{}")] == ["hello"]
    else:
        said = {"type": "message", "user": "U1", "text": "hello", "ts": TS, "channel": "D1"}
        found = SLACK.read("events_api", as_bytes({"event_id": "Ev1", "event": said}))
        assert found is not None
        assert found.words.text == "hello"
