"""A connection that is watched: a sign keeps it, silence ends it, and it is closed first."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from anyio import sleep_forever

from koboshi.channels.common.watched import ConnectionSilent, Watch, WatchLimits, run_watched
from koboshi.clock import SystemClock

LIMITS = WatchLimits(ping_after_s=0.01, answer_within_s=0.05)
ANSWERED = 3


class Line:
    """A connection that answers so many pings, and then none."""

    def __init__(self, watch: Watch, answers: int) -> None:
        self.watch, self.answers, self.pings = watch, answers, 0
        self.is_open = False

    @asynccontextmanager
    async def opened(self) -> AsyncIterator["Line"]:
        self.is_open = True
        try:
            yield self
        finally:
            self.is_open = False

    async def ping(self) -> None:
        self.pings += 1
        if self.pings <= self.answers:
            self.watch.hear()


async def use(_line: Line) -> None:
    await sleep_forever()


async def test_a_connection_that_falls_silent_is_closed_and_given_up() -> None:
    watch = Watch(SystemClock(), LIMITS)
    line = Line(watch, ANSWERED)

    with pytest.raises(ExceptionGroup) as ended:
        await run_watched(line.opened(), use, Line.ping, watch)

    assert ended.group_contains(ConnectionSilent)
    assert line.pings == ANSWERED + 1, "each answer counts as a sign"
    assert not line.is_open
    assert watch.heard_ms is not None


async def test_a_connection_that_ends_by_itself_is_closed_without_a_word() -> None:
    watch = Watch(SystemClock(), LIMITS)
    line = Line(watch, ANSWERED)

    async def done(_line: Line) -> None:
        return

    await run_watched(line.opened(), done, Line.ping, watch)
    assert not line.is_open
