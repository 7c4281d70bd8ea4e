"""Where Slack calls us: signed over the raw body, answered behind the commit."""

import json
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager

import httpx2
import pytest
from anyio import Event as Signal
from anyio import create_task_group, fail_after

from koboshi.domain.errors import StoreFailed
from koboshi.ports.channel import NO_WATERMARKS, Accept, Inbound, Receipt
from tests.channels.fakes import FakeClock, FakeGateway, until
from tests.channels.slack_rig import a_slack_channel, receiving
from tests.fakes.slack.happenings import Fate
from tests.fakes.slack.request_url import signature
from tests.fakes.slack.server import FakeSlack, serving
from tests.fakes.slack.world import BOT_USER
from tests.harness.http import connection
from tests.harness.polling import WITHIN_S
from tests.harness.ports import free_port

BODY = json.dumps(
    {
        "type": "event_callback",
        "event_id": "Ev1",
        "event": {"type": "message", "channel": "D1", "user": "U1", "ts": "7.000001", "text": "hi"},
    }
).encode()


class WallClock(FakeClock):
    def now_ms(self) -> int:
        return int(time.time() * 1000)


@asynccontextmanager
async def called_at(
    fake: FakeSlack, accept: Accept, cursor: str | None = None
) -> AsyncIterator[str]:
    """The channel that waits to be called, and its address."""
    port = free_port()
    async with (
        a_slack_channel(
            fake,
            app_token="",
            signing_secret=fake.signing_secret,
            webhook_port=port,
            clock=WallClock(),
        ) as channel,
        receiving(channel, accept, cursor),
    ):
        yield f"http://127.0.0.1:{port}/slack"


def texts(gateway: FakeGateway) -> list[str]:
    return [each.words.text for _, each in gateway.stored.values() if each.ignored is None]


async def posted(url: str, body: bytes, headers: dict[str, str]) -> httpx2.Response:
    async with connection(url) as client:
        return await client.post("", content=body, headers=headers)


async def test_the_challenge_is_answered_and_what_people_write_is_brought() -> None:
    gateway = FakeGateway()
    async with serving() as fake:
        world, ann = fake.world, fake.world.user()
        async with called_at(fake, gateway.accept) as url:
            assert await fake.call_app_at(url)
            room = world.channel()
            world.say(world.im(ann), ann, "hello")
            world.say(room, ann, f"<@{BOT_USER}> you")
            world.command(world.im(ann), ann, "stop")
            await until(lambda: all(each.is_over for each in world.happenings.all))
        assert {*texts(gateway)} == {"hello", "you", "/stop"}
        assert {each.fate for each in world.happenings.all} == {Fate.ACKNOWLEDGED}
        assert not fake.sockets.opened


@pytest.mark.parametrize(
    "headers",
    [
        {},
        signature(BODY, str(int(time.time())), "another secret"),
        signature(BODY + b" ", str(int(time.time()))),
        signature(BODY, str(int(time.time()) - 4_000)),
        {**signature(BODY, "0"), "X-Slack-Request-Timestamp": str(int(time.time()))},
        {"X-Slack-Request-Timestamp": "nonsense", "X-Slack-Signature": "v0="},
    ],
)
async def test_what_slack_did_not_sign_is_not_heard(headers: dict[str, str]) -> None:
    gateway = FakeGateway()
    async with serving() as fake, called_at(fake, gateway.accept) as url:
        kind = {"Content-Type": "application/json"}
        assert (await posted(url, BODY, {**headers, **kind})).status_code == 401
        signed = signature(BODY, str(int(time.time())))
        assert (await posted(url, BODY, {**signed, **kind})).status_code == 200
    assert texts(gateway) == ["hi"]


async def test_a_call_is_answered_behind_its_commit() -> None:
    gateway = FakeGateway(gate=Signal())
    async with serving() as fake:
        world, ann = fake.world, fake.world.user()
        async with called_at(fake, gateway.accept) as url:
            assert await fake.call_app_at(url)
            event = world.event_of(world.say(world.im(ann), ann, "hello"))
            await until(lambda: event.fate is Fate.SENT)
            assert gateway.gate is not None
            gateway.gate.set()
            await until(lambda: event.fate is Fate.ACKNOWLEDGED)
        assert texts(gateway) == ["hello"]


async def test_a_call_that_could_not_be_stored_is_refused_and_ends_receiving() -> None:
    async def accept(
        batch: Sequence[Inbound],
        cursor: str | None = None,
        watermarks: Mapping[str, str] = NO_WATERMARKS,
    ) -> tuple[Receipt, ...]:
        if batch:
            raise StoreFailed("the outcome of a commit is unknown")
        return ()

    async with serving() as fake:
        port = free_port()
        statuses: list[int] = []

        async def call() -> None:
            await until(lambda: channel.trouble is None)
            headers = {**signature(BODY, str(int(time.time()))), "Content-Type": "application/json"}
            answer = await posted(f"http://127.0.0.1:{port}/", BODY, headers)
            statuses.append(answer.status_code)

        async with (
            a_slack_channel(
                fake,
                app_token="",
                signing_secret=fake.signing_secret,
                webhook_port=port,
                clock=WallClock(),
            ) as channel,
            create_task_group() as tasks,
        ):
            tasks.start_soon(call)
            with fail_after(WITHIN_S), pytest.raises(StoreFailed):
                await channel.receive(None, accept)
            await until(lambda: statuses)
        assert statuses == [503]


async def test_where_slack_could_not_reach_us_the_history_is_read_again() -> None:
    """Others may be lost by then: no connection tells us that there was a gap."""
    gateway = FakeGateway()
    async with serving() as fake:
        world, ann = fake.world, fake.world.user()
        async with called_at(fake, gateway.accept) as url:
            world.say(world.im(ann), ann, "never told")
            world.happenings.give_up_all()
            kept = world.say(world.im(ann), ann, "told late")
            event = world.event_of(kept)
            body = json.dumps(event.payload).encode()
            world.happenings.give_up_all()
            headers = {
                **signature(body, str(int(time.time()))),
                "Content-Type": "application/json",
                "X-Slack-Retry-Num": "2",
                "X-Slack-Retry-Reason": "http_timeout",
            }
            assert (await posted(url, body, headers)).status_code == 200
            await until(lambda: len(texts(gateway)) == 2)
    assert sorted(texts(gateway)) == ["never told", "told late"]


async def test_what_slack_tells_stands_for_nothing_before_it() -> None:
    """A later event may come behind a lost one: only the history moves watermarks."""
    gateway = FakeGateway()
    async with serving() as fake:
        world, ann = fake.world, fake.world.user()
        async with called_at(fake, gateway.accept) as url:
            assert await fake.call_app_at(url)
            world.say(world.im(ann), ann, "hello")
            await until(lambda: texts(gateway) == ["hello"])
            begun = gateway.cursor
    assert not gateway.watermarks
    assert gateway.cursor == begun


async def test_a_gap_that_is_noticed_while_histories_are_read_is_read_as_well() -> None:
    """The conversation may have been read before the message that was lost."""
    gateway = FakeGateway()
    async with serving() as fake:
        world, ann, bob = fake.world, fake.world.user("Ann"), fake.world.user("Bob")
        async with called_at(fake, gateway.accept):
            world.im(ann), world.im(bob)
        slow = fake.faults.add("hang", "conversations.history", chat=world.im(bob).channel_id)
        async with called_at(fake, gateway.accept, gateway.cursor) as url:
            await until(lambda: slow.hits)
            world.say(world.im(ann), ann, "never told")
            world.happenings.give_up_all()
            kept = world.say(world.im(ann), ann, "told late")
            body = json.dumps(world.event_of(kept).payload).encode()
            world.happenings.give_up_all()
            headers = {
                **signature(body, str(int(time.time()))),
                "Content-Type": "application/json",
                "X-Slack-Retry-Num": "2",
                "X-Slack-Retry-Reason": "http_timeout",
            }
            assert (await posted(url, body, headers)).status_code == 200
            slow.lift()
            await until(lambda: len(texts(gateway)) == 2)
    assert sorted(texts(gateway)) == ["never told", "told late"]
