"""Shared fixtures. Keep this file tiny: a fixture used by one folder lives in that folder."""

import gc
import signal

import pytest
import structlog

# A shell starts its background jobs with SIGINT ignored, and every program inherits that: whoever
# runs the tests so would wait for programs that ignore a Ctrl-C.
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

# Each worker collects all tests. Looking for garbage among them takes a quarter of that time, and
# is repeated whenever a test leaves some.
gc.disable()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Long tests first: one that begins last is waited for by idle processes."""
    items.sort(key=lambda item: item.get_closest_marker("slow") is None)


def pytest_collection_finish() -> None:
    gc.enable()
    gc.freeze()
