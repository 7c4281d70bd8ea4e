"""Shared fixtures. Keep this file tiny: a fixture used by one folder lives in that folder."""

import gc
import signal

import pytest
import structlog
from hypothesis import settings

from tests.harness.fewer import left_out
from tests.harness.tally import WANTS_ALL

# A shell starts its background jobs with SIGINT ignored, and every program inherits that: tests
# that are run so would wait for programs that ignore a Ctrl-C.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# What is logged in the process of a test is plain text: one traceback with colours and its source
# takes half a second.
structlog.configure(
    processors=[
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="%Y-%m-%d %H:%M:%S", utc=False),
        structlog.dev.ConsoleRenderer(
            colors=False, exception_formatter=structlog.dev.plain_traceback
        ),
    ]
)

# `make test` tries the same examples everywhere and at any speed, so that an unseen example fails
# in the long campaign, which looks for new ones, and not in a landing.
settings.register_profile(
    "koboshi", deadline=None, derandomize=not WANTS_ALL, database=None, print_blob=True
)
settings.load_profile("koboshi")

# Each worker collects all tests. Looking for garbage among them takes a quarter of that time, and
# is repeated whenever a test leaves some.
gc.disable()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Long tests first: one that begins last is waited for by idle processes."""
    if not WANTS_ALL and not any("::" in each for each in config.args):
        is_left_out = dict(zip(items, left_out(item.nodeid for item in items), strict=True))
        config.hook.pytest_deselected(items=[item for item in items if is_left_out[item]])
        items[:] = [item for item in items if not is_left_out[item]]
    items.sort(key=lambda item: item.get_closest_marker("slow") is None)


def pytest_collection_finish() -> None:
    gc.enable()
    gc.freeze()
