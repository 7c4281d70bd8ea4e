"""A thread whose children cannot listen on the gateway's own ports, nor connect to them.

A sandboxed program could otherwise take the port of a gateway that is just being restarted, and
browsers would hand it what proves who they are. Landlock has no rule that forbids one port: all
others are granted, which takes some tenths of a second. So it is done once, for a thread, when the
first program is started; what a thread starts inherits its rules.
"""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TypeVar

from koboshi.runner import landlock

R = TypeVar("R")


@dataclass(slots=True)
class PortGuard:
    ports: frozenset[int]
    _threads: ThreadPoolExecutor | None = field(default=None, init=False)
    _is_guarded: bool = field(default=False, init=False)

    def run(self, task: Callable[[], R]) -> R:
        """The result of the task, run in the guarded thread. Raises what it raises, and OSError if
        the kernel can guard the ports and did not. Blocks; safe in any thread."""
        if not self.ports or landlock.version() < landlock.ABI_OF_PORTS:
            return task()
        if self._threads is None:
            self._threads = ThreadPoolExecutor(1, "koboshi-guarded")
        return self._threads.submit(self._guarded, task).result()

    def _guarded(self, task: Callable[[], R]) -> R:
        if not self._is_guarded:
            landlock.deny_ports(self.ports)
            self._is_guarded = True
        return task()
