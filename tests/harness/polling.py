"""Waiting for something without an announcement: look again and again, up to a bound."""

from collections.abc import Awaitable, Callable
from typing import TypeVar

from anyio import current_time, sleep

Found = TypeVar("Found")

LOOK_EVERY_S = 0.01
PAUSE_S_MAX = 0.2
WITHIN_S = 100.0
"""Only a hang reaches it: a busy machine takes half a minute to start a program."""


def pause_after(look_s: float) -> float:
    """How long to wait after a look that took so long. What is waited for needs the processor, too:
    a look at all rows of a database takes more than one at a file."""
    return min(max(LOOK_EVERY_S, 3 * look_s), PAUSE_S_MAX)


async def until(
    look: Callable[[], Found | None],
    what: str,
    *,
    within_s: float = WITHIN_S,
    otherwise: Callable[[], str] = lambda: "",
) -> Found:
    """What `look` finds, as soon as it finds something. Fails when the time is up, naming `what`
    was waited for and what `otherwise` tells about it."""
    begun = current_time()
    limit = begun + within_s
    while not (found := look()):
        now = current_time()
        if now > limit:
            raise AssertionError(f"{what}: not within {within_s:g} s. {otherwise()}")
        await sleep(pause_after(now - begun))
        begun = current_time()
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
