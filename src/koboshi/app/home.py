"""A home in which no gateway runs, owned for a moment. Nothing is loaded here that only a gateway
needs: somebody waits at a keyboard."""

import os
import socket
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

from koboshi.app.birth import birth_of
from koboshi.app.boot_config import boot_config_of
from koboshi.app.control_context import control_context_of, pairing_limits
from koboshi.clock import SystemClock
from koboshi.config import Config
from koboshi.control.handle import answer
from koboshi.runtime.memory import count_kills
from koboshi.runtime.wakeups import LocalWakeups
from koboshi.stores import faults
from koboshi.stores.sqlite.store import SqliteStore, StoreOptions, open_store


@asynccontextmanager
async def owned_store(config: Config, *, who: str) -> AsyncIterator[SqliteStore]:
    """The store of a home in which no gateway runs, owned for a moment.

    Raises HomeHeld at once when one does.
    """
    store = await open_store(
        config.home,
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
        ),
    )
    try:
        yield store
    finally:
        await store.close()


async def answer_from_home(config: Config, request: Mapping[str, object]) -> Mapping[str, object]:
    """What the owner of the home would answer, with this process as the owner."""
    async with owned_store(config, who="the koboshi command line") as store:
        # What an earlier owner of the home held is nobody's, and its row says so first.
        await store.workers.end_left(socket.gethostname(), birth_of(), count_kills())
        return await answer(
            control_context_of(config, store, SystemClock(), is_running=False), request
        )
