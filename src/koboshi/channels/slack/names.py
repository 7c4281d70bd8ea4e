"""What people call themselves: asked for once, remembered, and never waited for long."""

from contextlib import suppress
from dataclasses import dataclass, field

from anyio import move_on_after

from koboshi.channels.common.calls import NoAnswer, NotReached
from koboshi.channels.common.pacing import Bucket
from koboshi.channels.slack.api import SlackApi
from koboshi.channels.slack.types import SlackPerson, SlackPersonReply
from koboshi.ports.clock import Clock

NAMES_MAX = 10_000
ASK_SECONDS = 1.0
QUIET_SECONDS = 60.0
"""So long none is asked for behind one that did not come: each would be waited for."""
ASKED_PER_SECOND = 1.0
ASKED_AT_ONCE = 60


@dataclass(slots=True, kw_only=True)
class PeopleNames:
    api: SlackApi
    clock: Clock
    _known: dict[str, SlackPerson] = field(default_factory=dict)
    _bucket: Bucket = field(init=False)
    _quiet_until: float = float("-inf")

    def __post_init__(self) -> None:
        self._bucket = Bucket(
            ASKED_PER_SECOND, ASKED_AT_ONCE, ASKED_AT_ONCE, self.clock.monotonic()
        )

    async def person(self, user: str) -> SlackPerson:
        """The name and the zone of a person; empty where Slack does not tell them now."""
        known = self._known.get(user)
        if known is not None or not user:
            return known or SlackPerson()
        now = self.clock.monotonic()
        if now < self._quiet_until or self._bucket.wait_seconds(now):
            return SlackPerson()
        self._bucket.take(now)
        with move_on_after(ASK_SECONDS), suppress(NotReached, NoAnswer):
            answered = await self.api.read("users.info", {"user": user}, seconds=ASK_SECONDS)
            reply = answered.read(SlackPersonReply)
            if reply.ok:
                self._remember(user, reply.user)
            return self._known.get(user, SlackPerson())
        self._quiet_until = now + QUIET_SECONDS
        return SlackPerson()

    def _remember(self, user: str, found: SlackPerson) -> None:
        while len(self._known) >= NAMES_MAX:
            del self._known[next(iter(self._known))]
        self._known[user] = found
