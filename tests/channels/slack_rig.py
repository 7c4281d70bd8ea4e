"""The Slack channel in the test's own loop, with the fake platform behind it."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from anyio import create_task_group, fail_after

from koboshi.channels.slack.channel import SlackChannel
from koboshi.channels.slack.options import SlackOptions
from koboshi.domain.ids import ChannelName
from koboshi.domain.outbox import Near
from koboshi.domain.route import Route
from koboshi.ports.channel import Accept
from tests.channels.fakes import FakeClock, until
from tests.fakes.slack.happenings import Fate, Happening
from tests.fakes.slack.server import FakeSlack
from tests.fakes.slack.state import Conversation, Member, Post
from tests.harness.polling import WITHIN_S

SLACK = ChannelName("slack:main")
NOTHING_NEAR = Near(before=(), known=(), is_alone=True)


@asynccontextmanager
async def a_slack_channel(
    fake: FakeSlack, watermarks: Mapping[str, str] | None = None, **options: Any
) -> AsyncIterator[SlackChannel]:
    """The channel of the fake's app; without limits of its own unless told."""
    given: dict[str, Any] = {
        "name": SLACK,
        "token": fake.bot_token,
        "app_token": fake.app_token,
        "api_base": fake.api,
        "ambiguous": "probe",
        "per_second": 0,
        "home": Path("nowhere"),
        "commands": frozenset({"stop", "status"}),
        **options,
    }
    clock = given.pop("clock", None) or FakeClock()

    async def stored(_: str) -> Mapping[str, str]:
        return watermarks or {}

    channel = SlackChannel(SlackOptions(**given), clock, stored)
    try:
        yield channel
    finally:
        await channel.close()


@asynccontextmanager
async def receiving(
    channel: SlackChannel, accept: Accept, cursor: str | None = None
) -> AsyncIterator[None]:
    """The channel, connected, for the length of the block."""
    async with create_task_group() as tasks:
        tasks.start_soon(channel.receive, cursor, accept)
        await until(lambda: channel.trouble is None)
        yield
        tasks.cancel_scope.cancel()


def route_of(place: Conversation, thread: Post | str = "") -> Route:
    root = thread.ts if isinstance(thread, Post) else thread
    return Route(channel=SLACK, chat=place.channel_id, thread=root)


@dataclass
class SlackRig:
    """As the tests of the contract hold it: a person alone with the app."""

    channel: SlackChannel
    fake: FakeSlack
    ann: Member
    place: Conversation
    near: Near = NOTHING_NEAR
    said: dict[int, Happening] = field(default_factory=dict)

    @property
    def route(self) -> Route:
        return route_of(self.place)

    async def ready(self) -> None:
        await until(lambda: self.channel.trouble is None)

    async def write(self, text: str, number: int) -> bool:
        """Whether Slack was told that we have it. A number that was used is an event that Slack
        brings once more."""
        world = self.fake.world
        await until(lambda: self.fake.sockets.connections)
        if number in self.said:
            event = self.said[number]
            world.happenings.repeat(event)
        else:
            event = self.said[number] = world.event_of(world.say(self.place, self.ann, text))
        with fail_after(WITHIN_S):
            await until(lambda: event.is_over or (event.attempts and event.reason))
        return event.fate is Fate.ACKNOWLEDGED


@asynccontextmanager
async def slack_rig_at(fake: FakeSlack, **options: Any) -> AsyncIterator[SlackRig]:
    ann = fake.world.user("Ann")
    async with a_slack_channel(fake, **options) as channel:
        yield SlackRig(channel, fake, ann, fake.world.im(ann))
