"""What the platform has to tell an app: each event until it is acknowledged, or given up.

An event goes to one connection of the app, or to its request URL. What is not acknowledged in time,
or cannot be sent at all, is tried again: at once, after a minute, after five more; then it is lost.
A press of a button and a slash command are tried once: the person sees that it failed.
"""

import asyncio
import itertools
import time
import uuid
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

JSON = dict[str, Any]

ACK_S_MAX = 3.0
RETRY_WAITS_S = (0.0, 60.0, 300.0)


class Fate(StrEnum):
    WAITING = "waiting"
    SENT = "sent"
    ACKNOWLEDGED = "acknowledged"
    LOST = "lost"


@dataclass(slots=True, kw_only=True, eq=False)
class Happening:
    """`kind` is the type of its envelope."""

    number: int
    kind: str
    payload: JSON
    fate: Fate = Fate.WAITING
    attempts: int = 0
    reason: str = ""
    """Why the last attempt failed."""
    answer: JSON | None = None
    """What the acknowledgement carried."""
    envelopes: list[str] = field(default_factory=list)
    timer: asyncio.TimerHandle | None = None

    @property
    def is_over(self) -> bool:
        return self.fate in (Fate.ACKNOWLEDGED, Fate.LOST)

    @property
    def event(self) -> JSON:
        return self.payload.get("event") or {}


Transmit = Callable[[Happening, str], Awaitable[bool]]
"""Send it under an envelope id. Returns whether it left."""


class Happenings:
    def __init__(self) -> None:
        self.all: list[Happening] = []
        self.ack_s_max = ACK_S_MAX
        self.retry_waits_s: tuple[float, ...] = RETRY_WAITS_S
        self.transmit: Transmit | None = None
        self._numbers = itertools.count(1)
        self._has_news = asyncio.Event()
        self._by_envelope: dict[str, Happening] = {}

    def add(self, kind: str, payload: JSON) -> Happening:
        happening = Happening(number=next(self._numbers), kind=kind, payload=payload)
        self.all.append(happening)
        self._has_news.set()
        return happening

    @property
    def unsettled(self) -> list[Happening]:
        return [each for each in self.all if not each.is_over]

    def repeat(self, happening: Happening) -> None:
        """Send it once more, as after an acknowledgement that was lost on its way."""
        happening.fate = Fate.WAITING
        self._has_news.set()

    def give_up_all(self) -> int:
        """So much time has passed that nothing is tried any more."""
        given_up = self.unsettled
        for each in given_up:
            _stop_timer(each)
            each.fate = Fate.LOST
        return len(given_up)

    def acknowledge(self, envelope_id: str, answer: JSON | None = None) -> None:
        happening = self._by_envelope.pop(envelope_id, None)
        if happening is None or happening.is_over:
            return
        _stop_timer(happening)
        happening.fate = Fate.ACKNOWLEDGED
        happening.answer = answer

    def fail(self, envelope_id: str, reason: str) -> None:
        """The attempt under this envelope came to nothing."""
        happening = self._by_envelope.pop(envelope_id, None)
        if happening is None or happening.is_over or happening.envelopes[-1] != envelope_id:
            return
        self._retry(happening, reason)

    async def keep_sending(self) -> None:
        while True:
            await self._has_news.wait()
            self._has_news.clear()
            for happening in [each for each in self.all if each.fate is Fate.WAITING]:
                if happening.timer is None:
                    await self._send(happening)

    async def _send(self, happening: Happening) -> None:
        envelope_id = str(uuid.uuid4())
        happening.envelopes.append(envelope_id)
        self._by_envelope[envelope_id] = happening
        happening.fate = Fate.SENT
        happening.timer = asyncio.get_running_loop().call_later(
            self.ack_s_max, self.fail, envelope_id, "timeout"
        )
        if self.transmit is None or not await self.transmit(happening, envelope_id):
            self.fail(envelope_id, "connection_failed")

    def _retry(self, happening: Happening, reason: str) -> None:
        _stop_timer(happening)
        happening.reason = reason
        if happening.kind != "events_api" or happening.attempts >= len(self.retry_waits_s):
            happening.fate = Fate.LOST
            return
        wait_s = self.retry_waits_s[happening.attempts]
        happening.attempts += 1
        happening.fate = Fate.WAITING
        if wait_s:
            happening.timer = asyncio.get_running_loop().call_later(wait_s, self._due, happening)
        else:
            self._has_news.set()

    def _due(self, happening: Happening) -> None:
        happening.timer = None
        self._has_news.set()


def event_payload(event: JSON, *, team_id: str, app_id: str, number: int, bot: str) -> JSON:
    """The outer part of an event, the same on both ways."""
    return {
        "token": "unused-verification-token",
        "team_id": team_id,
        "api_app_id": app_id,
        "event": event,
        "type": "event_callback",
        "event_id": f"Ev{number:010d}",
        "event_time": int(time.time()),
        "authorizations": [
            {
                "enterprise_id": None,
                "team_id": team_id,
                "user_id": bot,
                "is_bot": True,
                "is_enterprise_install": False,
            }
        ],
        "is_ext_shared_channel": False,
        "event_context": f"4-context-{number}",
    }


def _stop_timer(happening: Happening) -> None:
    if happening.timer is not None:
        happening.timer.cancel()
        happening.timer = None
