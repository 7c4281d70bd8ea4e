"""A small parent that starts the gateway again, for machines without a service manager."""

import ctypes
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from types import FrameType

import click

from koboshi.cli.options import OK, WRONG_SETUP

STEADY_SECONDS = 30.0
"""A gateway that lived this long starts the back-off anew."""
PAUSE_SECONDS = (0.2, 0.5, 1.0, 2.0, 5.0, 15.0)
_PR_SET_PDEATHSIG = 1


def supervise_gateway(arguments: Sequence[str]) -> int:
    """Run `koboshi run` as a child until it ends as asked, or can not be helped by a restart."""
    command = [sys.executable, "-m", "koboshi", *(a for a in arguments if a != "--supervise")]
    environment = {**os.environ, "KOBOSHI_SUPERVISED": "1"}
    is_asked_to_stop = threading.Event()
    child: subprocess.Popen[bytes] | None = None

    def pass_on(number: int, _frame: FrameType | None) -> None:
        is_asked_to_stop.set()
        if child is not None and child.poll() is None:
            child.send_signal(number)

    signal.signal(signal.SIGTERM, pass_on)
    signal.signal(signal.SIGINT, pass_on)
    deaths = 0
    while True:
        began = time.monotonic()
        child = subprocess.Popen(
            command, env=environment, preexec_fn=die_with_parent, start_new_session=True
        )
        code = child.wait()
        if code in (OK, WRONG_SETUP) or is_asked_to_stop.is_set():
            return max(code, 0)
        deaths = 0 if time.monotonic() - began > STEADY_SECONDS else deaths + 1
        pause = PAUSE_SECONDS[min(deaths, len(PAUSE_SECONDS) - 1)]
        click.echo(f"koboshi: the gateway {how_it_ended(code)}; it gets up again", err=True)
        if is_asked_to_stop.wait(pause):
            return OK


def how_it_ended(code: int) -> str:
    if code < 0:
        return f"was killed by {signal.Signals(-code).name}"
    return f"ended with code {code}"


def die_with_parent() -> None:
    """In the child: if this parent is killed, the gateway is asked to stop, too."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
