"""A connected socket to a host that may have several addresses.

Each further address is tried a moment after the one before, while that one is still waited for, so
an address that answers nothing costs a moment and no timeout.
"""

import asyncio
import socket
from contextlib import ExitStack
from itertools import chain, zip_longest
from typing import Any, TypeAlias

from anyio import Event, create_task_group, move_on_after

NEXT_SECONDS = 0.25

Address: TypeAlias = tuple[int, int, int, str, Any]
"""As `getaddrinfo` tells it."""


async def dial(host: str, port: int) -> socket.socket:
    """Raises OSError if no address answers."""
    loop = asyncio.get_running_loop()
    found: list[Address] = list(await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM))
    if len(found) == 1:
        return await _connect(found[0])
    opened: list[socket.socket] = []
    errors: list[OSError] = []
    with ExitStack() as undo:
        undo.callback(_close_all, opened)
        async with create_task_group() as tasks:

            async def attempt(address: Address, has_failed: Event) -> None:
                try:
                    opened.append(await _connect(address))
                except OSError as error:
                    errors.append(error)
                    has_failed.set()
                else:
                    tasks.cancel_scope.cancel()

            for address in in_turn(found):
                has_failed = Event()
                tasks.start_soon(attempt, address, has_failed)
                with move_on_after(NEXT_SECONDS):
                    await has_failed.wait()
        if opened:
            return opened.pop()  # all others are closed
    raise errors[-1] if errors else OSError(f"{host} has no address")


def in_turn(found: list[Address]) -> list[Address]:
    """The families by turns, each in the order in which the system prefers its addresses."""
    if not found:
        return []
    first = [each for each in found if each[0] == found[0][0]]
    others = [each for each in found if each[0] != found[0][0]]
    both = chain.from_iterable(zip_longest(first, others))
    return [each for each in both if each is not None]


def _close_all(opened: list[socket.socket]) -> None:
    for each in opened:
        each.close()


async def _connect(address: Address) -> socket.socket:
    family, kind, protocol, _, place = address
    opened = socket.socket(family, kind, protocol)
    with ExitStack() as undo:
        undo.callback(opened.close)
        opened.setblocking(False)
        opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        await asyncio.get_running_loop().sock_connect(opened, place)
        undo.pop_all()
    return opened
