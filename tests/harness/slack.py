"""A real gateway with an app of Slack, and the workspace of the tests behind it."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from tests.fakes.slack.server import FakeSlack, serving
from tests.fakes.slack.state import Conversation, Member, Post
from tests.fakes.slack.world import SlackWorld
from tests.harness.polling import until
from tests.harness.process import GatewayProcess
from tests.harness.rows import Rows, glance, read_rows

SECTION = "KOBOSHI__CHANNELS__SLACK__MAIN__"


@dataclass(slots=True)
class SlackApp:
    """A gateway on one home, its app, and a person who is allowed to talk to it."""

    fake: FakeSlack
    gateway: GatewayProcess
    ann: Member
    place: Conversation
    env: dict[str, str] = field(default_factory=dict)

    @property
    def world(self) -> SlackWorld:
        return self.fake.world

    def start(self, crash_at: str = "") -> None:
        self.gateway.start(crash_at=crash_at, env=self.env)

    async def connected(self, crash_at: str = "") -> None:
        """Start, and wait until Slack can tell it something."""
        before = self.fake.sockets.opened
        self.start(crash_at)
        await until(lambda: self.fake.sockets.opened > before, "it connects", otherwise=self._all)

    async def dies(self) -> None:
        """Wait until it has died at its crash point, and Slack has seen it."""
        await self.gateway.wait_exit()
        await self.gone()

    async def killed(self) -> None:
        self.gateway.kill()
        await self.gone()

    async def gone(self) -> None:
        await until(lambda: not self.fake.sockets.connections, "Slack sees that it is gone")

    def say(self, text: str, place: Conversation | None = None, thread: Post | str = "") -> Post:
        return self.world.say(place or self.place, self.ann, text, thread=thread)

    def said(self, place: Conversation | None = None) -> list[str]:
        """What the app has said, in order."""
        return [post.shown for post in self.world.said(place or self.place)]

    async def hears(self, text: str, place: Conversation | None = None) -> Post:
        """Wait until the app has said something that holds `text`."""

        def look() -> Post | None:
            seen = self.world.said(place or self.place)
            return next((post for post in seen if text in post.shown), None)

        return await until(look, f"the app says {text!r}", otherwise=self._all)

    async def comes_to_rest(self) -> Rows:
        """Wait until nothing is owed and no turn runs."""
        return await until(self._at_rest, "the gateway comes to rest", otherwise=self._all)

    def _at_rest(self) -> Rows | None:
        rows = glance(self.gateway.home)
        is_over = all(turn["closed_ms"] is not None for turn in rows.turns)
        is_settled = all(row["settled_ms"] is not None for row in rows.outbox)
        waits = [row for row in rows.inbox if row["state"] == "waiting"]
        is_at_rest = is_over and is_settled and not waits
        return read_rows(self.gateway.home) if is_at_rest else None

    def _all(self) -> str:
        asked = [(each.method, each.status, each.error) for each in self.fake.history.calls[-12:]]
        return f"{self.said()}\n{asked}\n{self.gateway.log[-3000:]}"


@asynccontextmanager
async def a_slack_app(
    home: Path, *, env: Mapping[str, str] | None = None
) -> AsyncIterator[SlackApp]:
    async with serving() as fake:
        ann = fake.world.user("Ann")
        settings = {
            f"{SECTION}ALLOW": f'["{ann.user_id}"]',
            f"{SECTION}RATE_PER_SECOND": "0",
            f"{SECTION}API_BASE": fake.api,
            "SLACK_BOT_TOKEN": fake.bot_token,
            "SLACK_APP_TOKEN": fake.app_token,
        }
        gateway = GatewayProcess(home, env={**settings, **(env or {})})
        app = SlackApp(fake, gateway, ann, fake.world.im(ann))
        try:
            yield app
        finally:
            gateway.bury()
