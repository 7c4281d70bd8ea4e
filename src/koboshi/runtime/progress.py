"""Showing that a turn is being worked on: typing all the time, and a notice now and then.

A child of the turn's task group, so it cannot outlive the turn. The work does not wait for it, and
no error here harms the work.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import inf
from typing import assert_never

import structlog
from anyio import move_on_after, sleep

from koboshi.domain.errors import Fenced, StoreFailed
from koboshi.domain.ids import ChannelName
from koboshi.domain.progress import ProgressFacts, Rest, Rewrite, Say, telling_of
from koboshi.domain.turn import Claim
from koboshi.ports.channel import Channel
from koboshi.ports.clock import Clock
from koboshi.ports.store import Store
from koboshi.runtime.drain import Drain

log = structlog.get_logger()

FIRST_SECONDS = 1.0
"""An answer that comes sooner needs no sign of work."""
TYPING_SECONDS = 4.0
"""Platforms show it for five seconds or more."""
SHOW_SECONDS_MAX = 5.0
REST_SECONDS_MIN = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    store: Store
    clock: Clock
    drain: Drain
    channels: Mapping[ChannelName, Channel]
    every_seconds: float
    """Between two notices; 0 means that there are none."""
    redact: Callable[[str], str] = lambda text: text

    async def keep_showing(self, claim: Claim) -> None:
        """Show it until cancelled, until the turn is no longer ours or the gateway drains."""
        try:
            await self._keep_showing(claim)
        except Fenced as fence:
            log.debug("progress_fenced", reason=str(fence))
        except StoreFailed:
            raise
        except Exception:  # display only: the work goes on without it
            log.error("progress_failed", exc_info=True)

    async def _keep_showing(self, claim: Claim) -> None:
        await sleep(min(FIRST_SECONDS, self.every_seconds or FIRST_SECONDS))
        facts = await self.store.turns.progress(claim)
        channel = self.channels.get(facts.route.channel)
        if channel is None or not facts.is_shown:
            return
        told_next = self.clock.monotonic() if self.every_seconds else inf
        while not self.drain.is_begun:
            if self.clock.monotonic() >= told_next:
                facts = await self.store.turns.progress(claim)
                rest_seconds = await self._tell(claim, channel, facts)
                told_next = self.clock.monotonic() + max(rest_seconds, REST_SECONDS_MIN)
            if channel.abilities.typing:
                with move_on_after(SHOW_SECONDS_MAX):
                    await channel.typing(facts.route)
            left = max(told_next - self.clock.monotonic(), 0)
            await sleep(min(left, TYPING_SECONDS))

    async def _tell(self, claim: Claim, channel: Channel, facts: ProgressFacts) -> float:
        """Send the notice that is due. Returns for how many seconds there is none."""
        telling = telling_of(
            facts,
            every_ms=round(self.every_seconds * 1000),
            can_edit=channel.abilities.edits,
            redact=self.redact,
        )
        match telling:
            case Rest(wait_ms=wait_ms):
                return wait_ms / 1000
            case Say(ordinal=ordinal, text=text):
                await self.store.turns.tell_progress(claim, ordinal, text)
            case Rewrite(platform_id=platform_id, text=text):
                with move_on_after(SHOW_SECONDS_MAX):
                    await channel.edit(facts.route, platform_id, text)
            case _:
                assert_never(telling)
        log.debug("progress_told", change=type(telling).__name__)
        return self.every_seconds
