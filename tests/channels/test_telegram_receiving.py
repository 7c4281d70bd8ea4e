"""Updates from Telegram into the inbox: nothing is acknowledged before it is stored."""

import logging
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import httpx2
import pytest
from anyio import Event, create_task_group, fail_after
from structlog.testing import capture_logs

from koboshi.channels.common.calls import NoAnswer, NotReached
from koboshi.channels.telegram import receiving as module
from koboshi.channels.telegram.channel import TelegramChannel
from koboshi.channels.telegram.client import BotApi
from koboshi.channels.telegram.options import TelegramOptions
from koboshi.channels.telegram.receiving import place_of
from koboshi.domain.errors import ChannelUnusable
from koboshi.domain.ids import EntryId
from koboshi.domain.inbox import EntryState
from koboshi.domain.outbox import Sent
from koboshi.http_pool import HttpPool
from koboshi.ports.channel import NO_WATERMARKS, Inbound, Receipt
from tests.channels.fakes import NOW_MS, FakeClock, FakeGateway, until
from tests.channels.telegram_rig import MAIN, YES_NO, a_channel, owed, receiving, route_of
from tests.fakes.telegram import server
from tests.fakes.telegram.params import Params
from tests.fakes.telegram.server import FakeTelegram
from tests.fakes.telegram.state import Chat, User
from tests.harness.polling import WITHIN_S
from tests.harness.telegram_updates import HOSTILE


@dataclass
class Inbox:
    """What was accepted, and how far."""

    gateway: FakeGateway = field(default_factory=FakeGateway)
    cursors: list[str] = field(default_factory=list)
    batches: list[list[Inbound]] = field(default_factory=list)
    state: EntryState | None = None

    async def accept(
        self,
        batch: Sequence[Inbound],
        cursor: str | None = None,
        watermarks: Mapping[str, str] = NO_WATERMARKS,
    ) -> tuple[Receipt, ...]:
        receipts = await self.gateway.accept(batch, cursor, watermarks)
        if batch:
            self.batches.append(list(batch))
        if cursor is not None:
            self.cursors.append(cursor)
        if self.state is None:
            return receipts
        return tuple(
            Receipt(entry_id=EntryId(each.entry_id), state=self.state, is_duplicate=False)
            for each in receipts
        )

    @property
    def texts(self) -> list[str]:
        """The words of all messages, each once."""
        stored = self.gateway.stored.values()
        return [each.words.text for _, each in stored if each.ignored is None]


@pytest.fixture
def clock() -> Callable[[], float]:
    """The channel waits in real time, and the platform counts it."""
    return time.time


@pytest.fixture
async def channel(fake: FakeTelegram) -> AsyncIterator[TelegramChannel]:
    async with a_channel(fake, commands=(("stop", "ends it"),)) as made:
        yield made


async def test_what_is_being_stored_is_not_acknowledged(
    fake: FakeTelegram, channel: TelegramChannel, chat: Chat, ann: User
) -> None:
    """S162: a second question would be the acknowledgement."""
    inbox = Inbox(FakeGateway(gate=Event()))
    async with receiving(channel, inbox.accept):
        fake.world.say(chat, ann, "hello")
        await until(lambda: any(each.result for each in fake.history.recorded("getUpdates")))
        assert len(fake.world.updates) == 1
        asked = len(fake.history.of("getUpdates"))
        assert inbox.gateway.gate is not None
        inbox.gateway.gate.set()
        await until(lambda: not len(fake.world.updates))

        assert len(fake.history.of("getUpdates")) > asked
        assert inbox.texts == ["hello"]


async def test_what_could_not_be_stored_comes_again(
    fake: FakeTelegram, channel: TelegramChannel, chat: Chat, ann: User
) -> None:
    """S166."""
    inbox = Inbox()

    def fail() -> None:
        raise OSError("no space left")

    inbox.gateway.may_commit = fail
    fake.world.say(chat, ann, "hello")
    with fail_after(WITHIN_S), pytest.raises(OSError, match="no space"):
        await channel.receive(None, inbox.accept)
    assert len(fake.world.updates) == 1
    assert channel.trouble is not None

    inbox.gateway.may_commit = lambda: None
    async with receiving(channel, inbox.accept):
        await until(lambda: inbox.texts == ["hello"])


async def test_it_goes_on_where_it_was(
    fake: FakeTelegram, channel: TelegramChannel, chat: Chat, ann: User
) -> None:
    inbox = Inbox()
    fake.world.say(chat, ann, "one")
    async with receiving(channel, inbox.accept):
        await until(lambda: inbox.texts == ["one"])
    fake.world.say(chat, ann, "two")
    async with receiving(channel, inbox.accept, inbox.cursors[-1]):
        await until(lambda: inbox.texts == ["one", "two"])

    assert [inbound.words.text for batch in inbox.batches for inbound in batch] == ["one", "two"]


async def test_numbers_that_start_again_lose_nothing(
    fake: FakeTelegram, channel: TelegramChannel, chat: Chat, ann: User
) -> None:
    """After a quiet week the platform counts from elsewhere, lower or higher."""
    inbox = Inbox()
    week_ago = f"700000500@{NOW_MS - 7 * 86_400_000}"
    fake.world.renumber(1_000)
    fake.world.say(chat, ann, "lower")
    async with receiving(channel, inbox.accept, week_ago):
        await until(lambda: inbox.texts == ["lower"])
        fake.world.renumber(400)
        fake.world.say(chat, ann, "lower still")
        await until(lambda: len(inbox.texts) == 2)
        fake.world.renumber(900_000_000)
        fake.world.say(chat, ann, "higher")
        await until(lambda: len(inbox.texts) == 3)


async def test_the_same_in_any_order_and_number_is_the_same(
    fake: FakeTelegram, channel: TelegramChannel, chat: Chat, ann: User
) -> None:
    """S97."""
    inbox = Inbox()
    for text in ("one", "two", "three"):
        fake.world.say(chat, ann, text)
    fake.world.reorder()
    async with receiving(channel, inbox.accept):
        await until(lambda: len(inbox.texts) == 3)
        for number in fake.world.updates.told:
            fake.world.redeliver(number)
            fake.world.redeliver(number, renumbered=True)
        await until(lambda: sum(map(len, inbox.batches)) >= 9 and not len(fake.world.updates))

    assert sorted(inbox.texts) == ["one", "three", "two"]


# An answer that ends in the middle is no answer.
@pytest.mark.parametrize("kind", sorted(HOSTILE.keys() - {"nothing", "cut off"}))
async def test_a_broken_update_is_set_aside_and_the_others_are_served(
    fake: FakeTelegram, channel: TelegramChannel, chat: Chat, ann: User, kind: str
) -> None:
    broken = HOSTILE[kind]
    inbox = Inbox()
    fake.world.renumber(5)
    fake.world.say(chat, ann, "before")
    fake.world.raw(broken)
    fake.world.say(chat, ann, "after")
    async with receiving(channel, inbox.accept):
        await until(lambda: inbox.texts == ["before", "after"])
        await until(lambda: not len(fake.world.updates))

    (aside,) = [each for _, each in inbox.gateway.stored.values() if each.ignored is not None]
    assert aside.ignored


@pytest.fixture
def quick_conflicts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "CONFLICT_SECONDS", (0.05, 0.1))


@pytest.mark.usefixtures("quick_conflicts")
async def test_a_second_program_on_the_bot_is_named_and_waited_for(
    fake: FakeTelegram, channel: TelegramChannel, chat: Chat, ann: User
) -> None:
    inbox = Inbox()
    words = "Conflict: terminated by other getUpdates request"
    conflict = fake.faults.add("status", "getUpdates", status=409, count=None, description=words)
    with capture_logs() as logs:
        async with create_task_group() as tasks:
            tasks.start_soon(channel.receive, None, inbox.accept)
            await until(lambda: channel.trouble and words in channel.trouble)
            fake.world.say(chat, ann, "hello")
            hits = conflict.hits
            await until(lambda: conflict.hits > hits)
            assert inbox.texts == []
            conflict.lift()
            await until(lambda: inbox.texts == ["hello"])
            assert channel.trouble is None
            tasks.cancel_scope.cancel()

    assert "telegram_conflict" in [line["event"] for line in logs]


async def test_a_webhook_is_taken_away_and_what_waits_is_kept(
    fake: FakeTelegram, channel: TelegramChannel, chat: Chat, ann: User
) -> None:
    fake.webhook.set(_params({"url": "http://127.0.0.1:9/hook"}))
    fake.world.say(chat, ann, "hello")
    inbox = Inbox()
    async with receiving(channel, inbox.accept):
        await until(lambda: inbox.texts == ["hello"])

    assert fake.webhook.hook is None
    assert not fake.history.asked_to_drop()
    assert fake.world.updates.dropped == []


def _params(values: dict[str, object]) -> Params:
    return Params(values=dict(values), uploads={})


async def test_a_token_that_is_refused_is_named_and_not_shown(
    fake: FakeTelegram, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    wrong = "123:not-the-token-of-any-bot"
    with capture_logs() as logs:
        async with a_channel(fake, token=wrong) as channel:
            with fail_after(WITHIN_S), pytest.raises(ChannelUnusable) as refused:
                await channel.receive(None, Inbox().accept)

    assert "telegram:main" in str(refused.value)
    assert "Unauthorized" in str(refused.value)
    # Other tests of this process may have led the records of libraries here, which a gateway
    # does not let through (tests/test_logs.py).
    ours = [each for each in logs if not str(each.get("logger", "")).startswith("http")]
    assert wrong not in f"{refused.value} {refused.value.__cause__} {ours} {channel.trouble}"


async def test_the_token_is_in_no_error(fake: FakeTelegram, channel: TelegramChannel) -> None:
    for act in ("drop", "garble"):
        fake.faults.add(act, "getUpdates")
        with fail_after(WITHIN_S), pytest.raises(NoAnswer) as failed:
            await channel.receive(None, Inbox().accept)
        assert fake.token not in repr(failed.value)
        assert failed.value.__context__ is None or failed.value.__suppress_context__
    await fake.stop()
    with fail_after(WITHIN_S), pytest.raises((NotReached, NoAnswer)) as unreached:
        await channel.receive(None, Inbox().accept)
    assert fake.token not in repr(unreached.value)
    await fake.start()


def test_the_token_is_not_shown_with_what_holds_it() -> None:
    options = TelegramOptions(
        name=MAIN, token="123:secret", api_base="", ambiguous="", per_second=0, home=Path()
    )
    lanes = HttpPool(count_max=1, timeout=httpx2.Timeout(1))
    api = BotApi(lanes=lanes, base="", token="123:secret")

    assert "secret" not in f"{options} {api!r}"


async def test_a_platform_that_wants_a_pause_gets_it(
    fake: FakeTelegram, channel: TelegramChannel, chat: Chat, ann: User
) -> None:
    fake.faults.add("too_many", "getUpdates", seconds=1)
    fake.world.say(chat, ann, "hello")
    inbox = Inbox()
    async with receiving(channel, inbox.accept):
        await until(lambda: inbox.texts == ["hello"])

    assert not fake.limits.too_early


async def test_what_people_may_write_is_told_to_the_platform(
    fake: FakeTelegram, channel: TelegramChannel
) -> None:
    async with receiving(channel, Inbox().accept):
        (told,) = fake.history.recorded("setMyCommands")

    assert told.params["commands"] == [{"command": "stop", "description": "ends it"}]


async def test_it_is_connected_as_soon_as_it_is(
    fake: FakeTelegram, channel: TelegramChannel
) -> None:
    """The first question is answered at once, although no message comes."""
    async with receiving(channel, Inbox().accept):
        first, *_ = fake.history.of("getUpdates")

    assert first.params["timeout"] == 0
    assert channel.trouble is not None, "it is not connected any more"


async def test_a_message_that_waits_is_marked_and_a_button_is_released(
    fake: FakeTelegram, channel: TelegramChannel, chat: Chat, ann: User
) -> None:
    inbox = Inbox(state=EntryState.WAITING)
    async with receiving(channel, inbox.accept):
        said = fake.world.say(chat, ann, "hello")
        await until(lambda: said.reaction)

    assert said.reaction == [{"type": "emoji", "emoji": "👀"}]


async def test_marks_that_fail_cost_nothing(
    fake: FakeTelegram, channel: TelegramChannel, chat: Chat, ann: User
) -> None:
    """S32."""
    inbox = Inbox(state=EntryState.WAITING)
    failing = fake.faults.add("drop", "setMessageReaction", count=None)
    async with receiving(channel, inbox.accept):
        for number in range(12):
            fake.world.say(chat, ann, f"{number}")
        await until(lambda: len(inbox.texts) == 12 and failing.hits)

    assert inbox.texts == [f"{number}" for number in range(12)]


async def until_hushed(channel: TelegramChannel, fake: FakeTelegram, chat: Chat) -> None:
    """Until the channel shows nothing that passes in a chat, because the platform said so."""
    with fail_after(WITHIN_S):
        shown = -1
        while shown < (shown := len(fake.history.of("sendChatAction"))):
            await channel.typing(route_of(chat))


async def test_marks_wait_as_long_as_the_platform_asks_for(
    fake: FakeTelegram, chat: Chat, ann: User
) -> None:
    """A platform that is asked on and on in spite of its 429 shuts the bot out for longer."""
    clock, inbox = FakeClock(), Inbox(state=EntryState.WAITING)
    fake.faults.add("too_many", "setMessageReaction", seconds=30)
    bob = fake.world.user("Bob")
    other = fake.world.private_chat(bob)

    def marked() -> list[int]:
        calls = fake.history.of("setMessageReaction")
        return [int(each.params["message_id"]) for each in calls]

    async with a_channel(fake, clock=clock) as channel, receiving(channel, inbox.accept):
        refused = fake.world.say(chat, ann, "one")
        await until_hushed(channel, fake, chat)
        fake.world.say(chat, ann, "two")
        elsewhere = fake.world.say(other, bob, "three")
        await until(lambda: elsewhere.reaction)
        clock.passed_s = 31
        later = fake.world.say(chat, ann, "four")
        await until(lambda: later.reaction)

    assert marked() == [refused.message_id, elsewhere.message_id, later.message_id]


async def test_a_button_is_not_released_while_the_platform_wants_to_be_left_alone(
    fake: FakeTelegram, chat: Chat
) -> None:
    clock, inbox = FakeClock(), Inbox()
    fake.faults.add("too_many", "answerCallbackQuery", seconds=30)
    async with a_channel(fake, clock=clock) as channel, receiving(channel, inbox.accept):
        asked = await channel.send(owed(route_of(chat), choices=YES_NO, question=1))
        assert isinstance(asked, Sent)
        button = chat.messages[int(asked.platform_id)]
        fake.world.press(button, "Yes")
        await until_hushed(channel, fake, chat)
        fake.world.press(button, "No")
        await until(lambda: len(inbox.batches) == 2)
        clock.passed_s = 31
        fake.world.press(button, "Yes")
        await until(lambda: fake.history.recorded("answerCallbackQuery"))

    assert len(fake.history.of("answerCallbackQuery")) == 2


@pytest.mark.parametrize("cursor", [None, "", "x", "5", "-5@3", "5@x", "٣@٣", "5@6@7"])
def test_a_place_that_cannot_be_read_is_the_beginning(cursor: str | None) -> None:
    offset, at_ms = place_of(cursor)

    assert offset >= 0
    assert at_ms >= 0


async def test_a_server_that_holds_no_question_open_is_asked_once_a_second(
    fake: FakeTelegram,
    channel: TelegramChannel,
    chat: Chat,
    ann: User,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Issue 13, C17: a Bot API that answers `getUpdates` at once was asked 1,400 times a second."""
    monkeypatch.setattr(server, "POLL_S_MAX", 0)
    inbox = Inbox()
    began = time.monotonic()
    async with receiving(channel, inbox.accept):
        await until(lambda: len(fake.history.of("getUpdates")) >= 7)
        assert time.monotonic() - began >= 0.05 + 0.1 + 0.2 + 0.4 + 0.8 + 1.0

        fake.world.say(chat, ann, "hello")
        await until(lambda: inbox.texts == ["hello"])


def test_the_pause_behind_empty_answers_grows_to_a_second_and_ends_with_an_answer_that_was_held(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Issue 13, C17: a long poll that a server held open is followed by the next one at once."""
    now = 100.0
    monkeypatch.setattr(module, "current_time", lambda: now)
    floor = module.EmptyFloor()

    def pause_after(seconds: float) -> float:
        nonlocal now
        floor.begin()
        now += seconds
        return round(floor.rest_s(), 3)

    assert [pause_after(0.01) for _ in range(7)] == [0.04, 0.09, 0.19, 0.39, 0.79, 0.99, 0.99]
    assert pause_after(0.3) == 0.7
    assert pause_after(50.0) == 0.0
    assert pause_after(0.01) == 0.04
