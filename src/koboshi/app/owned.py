"""A home in which no gateway runs, owned for a moment to change something. Nothing is loaded here
that only a gateway needs: a person waits at a keyboard."""

import os
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from koboshi.app.birth import birth_of
from koboshi.app.boot_config import boot_config_of
from koboshi.app.builders.control import (
    child_limits,
    control_context_of,
    goal_limits,
    memory_limits,
    pairing_limits,
)
from koboshi.app.stores import GatewayStore, open_configured
from koboshi.app.zone import zone_rules, zones_of
from koboshi.clock import SystemClock
from koboshi.config import Config
from koboshi.control.handle import reply_to
from koboshi.control.read import ReadRequests
from koboshi.control.replies import Done
from koboshi.control.requests import ControlRequest, Look
from koboshi.runtime.memory import count_kills
from koboshi.runtime.wakeups import LocalWakeups
from koboshi.stores import faults
from koboshi.stores.options import StoreOptions


@asynccontextmanager
async def owned_store(config: Config, *, who: str) -> AsyncIterator[GatewayStore]:
    """The store of a home in which no gateway runs, owned for a moment.

    Raises HomeHeld at once when one does.
    """
    store = await open_configured(
        config,
        world=boot_config_of(config),
        clock=SystemClock(),
        wakeups=LocalWakeups(),
        options=StoreOptions(
            lock_wait_seconds=0,
            who=who,
            may_replace=False,
            crash_at=os.environ.get(faults.VARIABLE, ""),
            question_age_ms_max=config.limits.question_age_ms,
            pairing=pairing_limits(config),
            zone_named=zones_of(config),
            zone_rules=zone_rules(config),
            goal_limits=goal_limits(config),
            child_limits=child_limits(config),
            memory_limits=memory_limits(config),
        ),
    )
    try:
        yield store
    finally:
        await store.close()


async def answer_as_owner(config: Config, request: ControlRequest) -> Done:
    """The answer to what takes more than a look, or to a look at a database outside of the home."""
    async with owned_store(config, who="the koboshi command line") as store:
        # The row of an earlier owner says first that it has ended: what it held is free.
        await store.workers.end_left(socket.gethostname(), birth_of(), count_kills())
        if isinstance(request, Look):
            reading = ReadRequests(views=store.views, is_running=False, channels={})
            return await reading.answer(request)
        context = control_context_of(config, store, SystemClock(), is_running=False)
        return await reply_to(context, request)
