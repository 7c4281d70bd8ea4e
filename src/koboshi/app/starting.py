"""The row of this boot, under a name that no other gateway of the database has."""

import os
import socket

import structlog
from anyio import sleep

from koboshi import __version__
from koboshi.app.birth import birth_of
from koboshi.app.stores import GatewayStore
from koboshi.config import Config
from koboshi.domain.burial import Sighting, dead_among, looked_again
from koboshi.domain.errors import NodeTaken
from koboshi.domain.ids import WorkerId
from koboshi.domain.worker import Worker
from koboshi.ports.clock import Clock
from koboshi.runtime.memory import count_kills

log = structlog.get_logger()

WAIT_LEASES = 2.0
"""How long a name may be taken: the gateway before this one may still be stopping, or be dead."""
LOOK_PART = 1 / 15
"""Of the lease, between two looks."""
NO_WORKER = WorkerId(0)


async def started(config: Config, store: GatewayStore, clock: Clock) -> Worker:
    """The row of this boot. Raises NodeTaken if another gateway that lives has its name.

    Where no other node is there to bury one that died under this name in another home, this process
    does: it has watched the row for a whole lease, and reached the server all the time.
    """
    lease_s = config.store.lease_seconds
    until, seen = clock.monotonic() + WAIT_LEASES * lease_s, dict[WorkerId, Sighting]()
    looked_s, since_s = clock.monotonic(), clock.monotonic()
    while True:
        try:
            return await store.workers.start(
                socket.gethostname(), os.getpid(), birth_of(), __version__, count_kills()
            )
        except NodeTaken as error:
            if clock.monotonic() >= until:
                raise
            log.warning("node_name_taken", node=error.node)
            named = error.node
        signs = await store.workers.others(NO_WORKER)
        now_s = clock.monotonic()
        if now_s - looked_s >= lease_s / 2:
            since_s, seen = now_s, {}  # the server was out of reach: no row could change
        looked_s = now_s
        seen = looked_again(seen, (each for each in signs if each.node == named), now_s)
        if now_s - since_s >= lease_s:
            for sign in dead_among(seen, now_s, lease_s):
                if await store.workers.bury(sign):
                    log.warning("worker_buried", worker=sign.worker_id, node=sign.node)
        await sleep(lease_s * LOOK_PART)
