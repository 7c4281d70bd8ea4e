"""Shared fixtures. Keep this file tiny: a fixture used by one folder lives in that folder."""

import gc
import signal

# A shell starts its background jobs with SIGINT ignored, and every program inherits that: whoever
# runs the tests so would wait for programs that ignore a Ctrl-C.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# Each worker collects all tests. Looking for garbage among them takes a quarter of that time, and
# is repeated whenever a test leaves some.
gc.disable()


def pytest_collection_finish() -> None:
    gc.enable()
    gc.freeze()
