"""A look at a home in which no gateway runs. A small part of what owning it takes, because somebody
waits at a keyboard: no event loop, no thread, and nothing is loaded that changes anything."""

from collections.abc import Coroutine
from typing import Any, TypeVar

from koboshi.app.boot_config import boot_config_of
from koboshi.clock import SystemClock
from koboshi.config import Config
from koboshi.control.read import ReadRequests
from koboshi.control.replies import Done
from koboshi.control.requests import Look
from koboshi.stores.sqlite.looking import looked_at

Answer = TypeVar("Answer")


def look_at_home(config: Config, request: Look) -> Done:
    """What the owner of the home would answer.

    Raises HomeHeld when somebody else owns it.
    """
    views = looked_at(
        config.home,
        world=boot_config_of(config),
        clock=SystemClock(),
        who="the koboshi command line",
    )
    with views as found:
        return _now(ReadRequests(views=found, is_running=False, channels={}).answer(request))


def _now(asked: Coroutine[Any, Any, Answer]) -> Answer:
    """What is answered without waiting for anything, as these views do."""
    try:
        asked.send(None)
    except StopIteration as end:
        answer: Answer = end.value
        return answer
    raise RuntimeError("a look at a home waited for something")
