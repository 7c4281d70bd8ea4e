"""What Slack tells is stored, then acknowledged; what it gave up on is read from the history."""

import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field

import pytest
from anyio import Event as Signal
from anyio import create_task_group, fail_after
from anyio.streams.memory import MemoryObjectReceiveStream

from koboshi.channels.common.calls import NoAnswer
from koboshi.channels.slack.linking import Links
from koboshi.channels.slack.sockets import Arrived
from koboshi.domain.errors import ChannelUnusable
from koboshi.ports.channel import NO_WATERMARKS, Inbound, Receipt
from tests.channels.fakes import FakeGateway, until
from tests.channels.slack_rig import a_slack_channel, receiving
from tests.fakes.slack.happenings import Fate
from tests.fakes.slack.limits import DISTRIBUTED
from tests.fakes.slack.server import FakeSlack, serving
from tests.fakes.slack.world import BOT_USER
from tests.harness.polling import WITHIN_S


@dataclass
class Inbox:
    """What was committed, in order, with how far was read."""

    gate: Signal | None = None
    is_reached: Signal = field(default_factory=Signal)
    texts: list[str] = field(default_factory=list)
    entries: list[Inbound] = field(default_factory=list)
    cursor: str | None = None
    watermarks: dict[str, str] = field(default_factory=dict)
    gateway: FakeGateway = field(default_factory=FakeGateway)

    async def accept(
        self,
        batch: Sequence[Inbound],
        cursor: str | None = None,
        watermarks: Mapping[str, str] = NO_WATERMARKS,
    ) -> tuple[Receipt, ...]:
        if self.gate is not None and batch:
            self.is_reached.set()
            await self.gate.wait()
        receipts = await self.gateway.accept(batch, cursor, watermarks)
        new = [each for each, told in zip(batch, receipts, strict=True) if not told.is_duplicate]
        self.entries += new
        self.texts += [each.words.text for each in new]
        self.watermarks |= watermarks
        self.cursor = self.cursor if cursor is None else cursor
        return receipts


async def down_while(fake: FakeSlack, inbox: Inbox) -> None:
    """A life of the channel comes to its end; Slack gives up on what it could not tell."""
    async with a_slack_channel(fake) as channel, receiving(channel, inbox.accept, inbox.cursor):
        pass
    await until(lambda: not fake.sockets.connections)


async def test_an_envelope_is_acknowledged_behind_its_commit() -> None:
    """S162: also a repeat of it, whatever its number."""
    async with serving() as fake, a_slack_channel(fake) as channel:
        fake.world.happenings.ack_s_max = 0.05
        inbox, ann = Inbox(gate=Signal()), fake.world.user()
        async with receiving(channel, inbox.accept):
            said = fake.world.event_of(fake.world.say(fake.world.im(ann), ann, "hello"))
            await until(lambda: said.attempts >= 1)
            assert said.fate is not Fate.ACKNOWLEDGED
            fake.world.happenings.ack_s_max = 30
            assert inbox.gate is not None
            inbox.gate.set()
            await until(lambda: said.fate is Fate.ACKNOWLEDGED)
        assert inbox.texts == ["hello"]


async def test_a_mention_is_one_message_however_often_it_is_told() -> None:
    async with serving() as fake, a_slack_channel(fake) as channel:
        inbox, ann = Inbox(), fake.world.user()
        room = fake.world.channel()
        async with receiving(channel, inbox.accept):
            said = fake.world.say(room, ann, f"<@{BOT_USER}> hello &amp; good day")
            await until(lambda: not fake.world.happenings.unsettled)
        (entry,) = inbox.entries
        assert entry.words.text == "hello & good day"
        assert (entry.route.chat, entry.route.thread) == (room.channel_id, said.ts)
        assert (entry.is_addressed, entry.is_group, entry.sender_name) == (True, True, "Ann")
        assert entry.zone == "Europe/Vienna"


async def test_a_first_connection_takes_nothing_from_before() -> None:
    async with serving() as fake, a_slack_channel(fake) as channel:
        inbox, ann = Inbox(), fake.world.user()
        fake.world.clock = lambda: time.time() - 5
        fake.world.say(fake.world.im(ann), ann, "a while ago")
        fake.world.clock = time.time
        fake.world.happenings.give_up_all()
        async with receiving(channel, inbox.accept):
            fake.world.say(fake.world.im(ann), ann, "now")
            await until(lambda: inbox.texts)
        assert inbox.texts == ["now"]
        await until(lambda: not fake.sockets.connections)
        again = a_slack_channel(fake, inbox.watermarks)
        async with again as channel, receiving(channel, inbox.accept, inbox.cursor):
            await until(lambda: not channel.hearing.chats_behind)
        assert inbox.texts == ["now"], "nor does the next one"


async def test_what_slack_gave_up_on_is_read_from_the_history_in_order() -> None:
    """S1: in conversations that are known and in new ones, in threads and in new threads."""
    async with serving() as fake:
        inbox, world = Inbox(), fake.world
        ann, bob = world.user("Ann"), world.user("Bob")
        room = world.channel()
        async with a_slack_channel(fake) as channel, receiving(channel, inbox.accept):
            root = world.say(room, ann, f"<@{BOT_USER}> zero")
            await until(lambda: inbox.texts == ["zero"] and not world.happenings.unsettled)
        await until(lambda: not fake.sockets.connections)

        world.say(room, ann, f"<@{BOT_USER}> one", thread=root)
        world.say(room, ann, "not for us")
        other = world.say(room, ann, f"<@{BOT_USER}> two")
        world.say(room, ann, f"<@{BOT_USER}> three", thread=other)
        first = world.say(world.im(bob), bob, "four")
        world.edit(first, "four, in other words")
        world.delete(world.say(world.im(bob), bob, "never mind"))
        world.say(world.im(bob), bob, "five", thread=first)
        assert world.happenings.give_up_all()

        async with (
            a_slack_channel(fake, inbox.watermarks) as channel,
            receiving(channel, inbox.accept, inbox.cursor),
        ):
            await until(lambda: not channel.hearing.chats_behind)
        of_room = [e.words.text for e in inbox.entries if e.route.chat == room.channel_id]
        of_bob = [e.words.text for e in inbox.entries if e.route.chat != room.channel_id]
        assert [text for text in of_room if text != "not for us"] == ["zero", "one", "two", "three"]
        assert of_bob == ["four, in other words", "five"]


async def test_one_message_that_cannot_be_read_does_not_hide_the_others() -> None:
    async with serving() as fake:
        inbox, world = Inbox(), fake.world
        ann = world.user()
        await down_while(fake, inbox)
        world.say(world.im(ann), ann, "before")
        world.say(world.im(ann), ann, "broken").body["files"] = "nonsense"
        world.say(world.im(ann), ann, "behind")
        world.happenings.give_up_all()
        async with (
            a_slack_channel(fake, inbox.watermarks) as channel,
            receiving(channel, inbox.accept, inbox.cursor),
        ):
            await until(lambda: not channel.hearing.chats_behind)
        assert inbox.texts == ["before", "behind"]


async def test_live_words_wait_for_older_ones_and_are_acknowledged_then() -> None:
    async with serving() as fake:
        inbox, world = Inbox(), fake.world
        world.happenings.ack_s_max = 0.2
        world.happenings.retry_waits_s = (0.0,) * 500
        ann = world.user()
        await down_while(fake, inbox)
        world.say(world.im(ann), ann, "older")
        world.happenings.give_up_all()
        hang = fake.faults.add("hang", "conversations.history")
        async with (
            a_slack_channel(fake, inbox.watermarks) as channel,
            receiving(channel, inbox.accept, inbox.cursor),
        ):
            live = world.event_of(world.say(world.im(ann), ann, "newer"))
            await until(lambda: live.attempts >= 1)
            assert not inbox.texts
            hang.lift()
            await until(lambda: live.fate is Fate.ACKNOWLEDGED)
        assert inbox.texts == ["older", "newer"]


async def taken_together(links: Links, arriving: MemoryObjectReceiveStream[Arrived]) -> None:
    """The next two envelopes as one batch, as if both had come while another one was stored."""
    both = [await arriving.receive(), await arriving.receive()]
    await links.take([(each.envelope.type, bytes(each.envelope.payload)) for each in both])


async def test_a_command_beside_words_that_wait_ends_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """While the command is stored, the conversation is read to its end."""
    monkeypatch.setattr(Links, "_keep_taking", taken_together)
    async with serving() as fake:
        inbox, world = Inbox(), fake.world
        ann = world.user()
        await down_while(fake, inbox)
        world.say(world.im(ann), ann, "older")
        world.happenings.give_up_all()
        hang = fake.faults.add("hang", "conversations.history")
        async with a_slack_channel(fake, inbox.watermarks) as channel:

            async def accept(
                batch: Sequence[Inbound],
                cursor: str | None = None,
                watermarks: Mapping[str, str] = NO_WATERMARKS,
            ) -> tuple[Receipt, ...]:
                if any(each.words.text == "/stop" for each in batch):
                    hang.lift()
                    await until(lambda: not channel.hearing.chats_behind)
                return await inbox.accept(batch, cursor, watermarks)

            async with receiving(channel, accept, inbox.cursor):
                await until(lambda: hang.hits)
                world.say(world.im(ann), ann, "newer")
                world.command(world.im(ann), ann, "stop")
                await until(lambda: len(inbox.texts) == 3)
        assert [each for each in inbox.texts if each != "/stop"] == ["older", "newer"]


async def test_words_that_are_changed_while_their_page_is_on_its_way() -> None:
    """The page has the old words, so the new ones wait for it."""
    async with serving() as fake:
        inbox, world = Inbox(), fake.world
        world.happenings.ack_s_max = 0.2
        world.happenings.retry_waits_s = (0.0,) * 500
        ann = world.user()
        await down_while(fake, inbox)
        post = world.say(world.im(ann), ann, "old words")
        world.happenings.give_up_all()
        hang = fake.faults.add("hang", "conversations.history", moment="after")
        async with (
            a_slack_channel(fake, inbox.watermarks) as channel,
            receiving(channel, inbox.accept, inbox.cursor),
        ):
            await until(lambda: hang.hits)
            edit = world.edit(post, "new words")
            await until(lambda: edit.attempts >= 2)
            hang.lift()
            await until(lambda: edit.fate is Fate.ACKNOWLEDGED)
        assert inbox.texts == ["old words", "new words"]
        assert inbox.entries[1].edits == inbox.entries[0].external_id


@pytest.mark.parametrize("status", [404, 403])
async def test_a_history_that_is_refused_on_the_way_is_not_taken_for_read(status: int) -> None:
    """What stands between us and Slack says nothing about a conversation."""
    async with serving() as fake:
        inbox, world = Inbox(), fake.world
        ann = world.user()
        await down_while(fake, inbox)
        world.say(world.im(ann), ann, "missed")
        world.happenings.give_up_all()
        fake.faults.add("status", "conversations.history", status=status)
        async with a_slack_channel(fake, inbox.watermarks) as channel:
            with fail_after(WITHIN_S), pytest.raises(NoAnswer):
                await channel.receive(inbox.cursor, inbox.accept)
        async with (
            a_slack_channel(fake, inbox.watermarks) as channel,
            receiving(channel, inbox.accept, inbox.cursor),
        ):
            await until(lambda: not channel.hearing.chats_behind)
        assert inbox.texts == ["missed"]


async def test_pages_of_fifteen_once_a_minute_are_waited_for() -> None:
    """An app that is given to others: 429 with the time to wait, and the catch-up goes on."""
    async with serving() as fake:
        inbox, world = Inbox(), fake.world
        ann = world.user()
        await down_while(fake, inbox)
        for number in range(40):
            world.say(world.im(ann), ann, f"{number}")
        world.happenings.give_up_all()
        fake.tiers.history, fake.tiers.is_on, fake.tiers.minute_s = DISTRIBUTED, True, 0.5
        async with (
            a_slack_channel(fake, inbox.watermarks) as channel,
            receiving(channel, inbox.accept, inbox.cursor),
        ):
            await until(lambda: not channel.hearing.chats_behind)
        assert inbox.texts == [f"{number}" for number in range(40)]
        assert fake.tiers.refusals


async def test_a_connection_that_is_renewed_leaves_no_gap() -> None:
    async with serving() as fake, a_slack_channel(fake) as channel:
        inbox, world = Inbox(), fake.world
        ann = world.user()
        async with receiving(channel, inbox.accept):
            await fake.sockets.warn()
            await until(lambda: len(fake.sockets.connections) == 2)
            old, _ = fake.sockets.connections
            for number in range(4):
                world.say(world.im(ann), ann, f"{number}")
            await until(lambda: len(inbox.texts) == 4)
            await old.close()
            world.say(world.im(ann), ann, "still there")
            await until(lambda: len(inbox.texts) == 5)
            assert channel.trouble is None
        assert not fake.history.of("conversations.history")


async def lost_after(fake: FakeSlack, act: Callable[[FakeSlack], Awaitable[None]]) -> Exception:
    """What receiving ends with when this happens to a channel that is connected."""
    ended: list[Exception] = []
    async with a_slack_channel(fake) as channel, create_task_group() as tasks:

        async def receive() -> None:
            try:
                await channel.receive(None, Inbox().accept)
            except (NoAnswer, ChannelUnusable) as error:
                ended.append(error)
            assert channel.trouble

        tasks.start_soon(receive)
        await until(lambda: channel.trouble is None)
        await act(fake)
        await until(lambda: ended)
    return ended[0]


async def test_a_connection_that_breaks_ends_receiving() -> None:
    async def cut(fake: FakeSlack) -> None:
        fake.sockets.cut_all()

    async with serving() as fake:
        assert isinstance(await lost_after(fake, cut), NoAnswer)


async def test_socket_mode_that_is_switched_off_makes_the_channel_unusable() -> None:
    async with serving() as fake:
        lost = await lost_after(fake, lambda fake: fake.sockets.disable())
    assert isinstance(lost, ChannelUnusable)
    assert "switched off" in str(lost)


@pytest.mark.parametrize("which", ["bot_token", "app_token"])
async def test_a_token_that_is_refused_makes_the_channel_unusable(which: str) -> None:
    async with serving() as fake, a_slack_channel(fake) as channel:
        setattr(fake, which, "xoxb-another")
        with fail_after(WITHIN_S), pytest.raises(ChannelUnusable, match="invalid_auth"):
            await channel.receive(None, Inbox().accept)


async def test_names_that_do_not_come_are_not_waited_for_one_by_one() -> None:
    """Slack waits for an acknowledgement for three seconds; a crowd without names must not take
    a second for each person."""
    async with serving() as fake, a_slack_channel(fake) as channel:
        inbox, world = Inbox(), fake.world
        fake.faults.add("hang", "users.info", count=None)
        crowd = [world.user(f"Person{number}") for number in range(4)]
        async with receiving(channel, inbox.accept):
            for person in crowd:
                world.say(world.im(person), person, person.name)
            await until(lambda: len(inbox.texts) == len(crowd))
        assert len(fake.history.of("users.info")) == 1


async def test_tokens_of_two_apps_make_the_channel_unusable() -> None:
    """What one app is told cannot be answered by the other."""
    async with serving() as fake, a_slack_channel(fake) as channel:
        fake.sockets.app_id = "A0OTHER"
        with fail_after(WITHIN_S), pytest.raises(ChannelUnusable, match=r"A0OTHER.*A0KOBOSHI"):
            await channel.receive(None, Inbox().accept)
        fake.world.scopes -= {"users:read"}  # now Slack does not tell whose bot it is
        async with receiving(channel, Inbox().accept):
            pass


async def test_a_scope_that_a_later_start_needs_is_told_by_the_first() -> None:
    """Else the app works until it has to catch up, and is down from then on."""
    async with serving() as fake, a_slack_channel(fake) as channel:
        fake.world.scopes -= {"mpim:read"}
        with fail_after(WITHIN_S), pytest.raises(ChannelUnusable, match="mpim:read"):
            await channel.receive(None, Inbox().accept)


async def test_presses_and_commands_are_stored_once() -> None:
    async with serving() as fake, a_slack_channel(fake) as channel:
        inbox, world = Inbox(), fake.world
        ann = world.user()
        async with receiving(channel, inbox.accept):
            world.command(world.im(ann), ann, "stop")
            world.command(world.im(ann), ann, "what is new?")
            world.command(world.im(ann), ann, "")
            await until(lambda: len(inbox.texts) == 3)
        assert inbox.texts == ["/stop", "what is new?", "/help"]


async def acknowledged_first(links: Links, arriving: MemoryObjectReceiveStream[Arrived]) -> None:
    """A bug that others have: the acknowledgement goes out before the commit."""
    async for each in arriving:
        await each.link.acknowledge(each.envelope.envelope_id)
        await links.take([(each.envelope.type, bytes(each.envelope.payload))])


@pytest.mark.parametrize("is_planted", [False, True])
async def test_a_planted_early_acknowledgement_is_found(
    is_planted: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Killed before the commit, Slack has to know that we do not have it."""
    if is_planted:
        monkeypatch.setattr(Links, "_keep_taking", acknowledged_first)
    async with serving() as fake, a_slack_channel(fake) as channel:
        inbox, ann = Inbox(gate=Signal()), fake.world.user()
        async with receiving(channel, inbox.accept):
            said = fake.world.event_of(fake.world.say(fake.world.im(ann), ann, "hello"))
            with fail_after(WITHIN_S):
                await inbox.is_reached.wait()
        await until(lambda: said.is_over or said.attempts)
        assert (said.fate is Fate.ACKNOWLEDGED) is is_planted
