"""Waiting for something without an announcement: look again and again, up to a bound."""

from collections.abc import Awaitable, Callable
from typing import TypeVar

from anyio import current_time, sleep

Found = TypeVar("Found")

LOOK_EVERY_S = 0.01
WITHIN_S = 100.0
"""Only a hang reaches it: a busy machine takes half a minute to start a program."""


async def until(
    look: Callable[[], Found | None],
    what: str,
    *,
    within_s: float = WITHIN_S,
    otherwise: Callable[[], str] = lambda: "",
) -> Found:
    """What `look` finds, as soon as it finds something. Fails when the time is up, naming `what`
    was waited for and what `otherwise` tells about it."""
    limit = current_time() + within_s
    while not (found := look()):
        if current_time() > limit:
            raise AssertionError(f"{what}: not within {within_s:g} s. {otherwise()}")
        await sleep(LOOK_EVERY_S)
    return found


async def until_asked(
    ask: Callable[[], Awaitable[Found | None]], what: str, *, within_s: float = WITHIN_S
) -> Found:
    """The same for an asynchronous look."""
    limit = current_time() + within_s
    while not (found := await ask()):
        if current_time() > limit:
            raise AssertionError(f"{what}: not within {within_s:g} s")
        await sleep(LOOK_EVERY_S)
    return found
