"""A home in which no gateway runs: the one way in which a command asks it.

What only looks is answered from the views, with a small part of what owning a home takes, because a
person waits at a keyboard: no event loop, no thread, and nothing is loaded that changes anything.
Everything else owns the home for a moment, as a gateway would (`app/owned.py`).
"""

from collections.abc import Coroutine
from typing import Any, TypeVar

from koboshi.app.boot_config import boot_config_of
from koboshi.clock import SystemClock
from koboshi.config import Config
from koboshi.control.read import ReadRequests
from koboshi.control.replies import Done
from koboshi.control.request_wire import cleaned
from koboshi.control.requests import ControlRequest, Look
from koboshi.stores.sqlite.idle_home import idle_home_views

Outcome = TypeVar("Outcome")

WHO = "the koboshi command line"


def answer_from_home(config: Config, request: ControlRequest) -> Done:
    """What a gateway would answer. Raises HomeHeld when another process owns the home."""
    request = cleaned(request)
    if isinstance(request, Look) and not config.store.url:
        return _looked(config, request)
    import anyio

    from koboshi.app.owned import answer_as_owner

    return anyio.run(answer_as_owner, config, request)


def _looked(config: Config, request: Look) -> Done:
    world = boot_config_of(config)
    with idle_home_views(config.home, world=world, clock=SystemClock(), who=WHO) as views:
        return _now(ReadRequests(views=views, is_running=False, channels={}).answer(request))


def _now(asked: Coroutine[Any, Any, Outcome]) -> Outcome:
    """What is answered without waiting for anything, as these views do."""
    try:
        asked.send(None)
    except StopIteration as end:
        outcome: Outcome = end.value
        return outcome
    raise RuntimeError("a look at a home waited for something")
