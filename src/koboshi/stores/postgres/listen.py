"""Hints between nodes: what one has committed may be work for another.

A hint inside a transaction would make all commits of the server wait for each other. So hints are
told after the commit, on a connection of their own, at most every 20 ms and many at once. A hint
may be lost with its connection, and a caller that is told nothing looks by itself: polling is the
truth.
"""

import json
import os
import secrets
import threading
from collections.abc import Callable, Iterable
from contextlib import suppress

from koboshi.ports.clock import Clock
from koboshi.stores.postgres.batches import PAUSES_SECONDS
from koboshi.stores.postgres.reach import ROUND_SECONDS_MAX
from koboshi.stores.postgres.wire import NOTHING, Lost, ServerError, Wire, WireRequest

TOPIC = "koboshi_hints"
LISTEN = WireRequest(f"LISTEN {TOPIC}", NOTHING)
EVERY_SECONDS = 0.02
STILL_SECONDS = 30.0
"""A connection on which nothing came for so long is tried."""
BYTES_MAX = 7_000
"""The server takes 8,000."""
EVERYTHING = "*"


class NodeHints:
    """One thread: tells the other nodes, and hears them."""

    def __init__(
        self, connect: Callable[[], Wire], clock: Clock, on_heard: Callable[[frozenset[str]], None]
    ) -> None:
        """`on_heard` is called in the thread, with topics or `EVERYTHING`."""
        self._connect = connect
        self._clock = clock
        self._on_heard = on_heard
        self._name = secrets.token_hex(8)
        self._pending: set[str] = set()
        self._lock = threading.Lock()
        self._reading, self._writing = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        self._is_over = threading.Event()
        self.is_listening = threading.Event()
        self.told = 0
        self.heard = 0
        self._thread = threading.Thread(target=self._work, name="koboshi-hints", daemon=True)
        self._thread.start()

    def tell(self, topics: Iterable[str]) -> None:
        """Tell the other nodes soon. Called from any thread."""
        with self._lock:
            was_empty = not self._pending
            self._pending.update(topics)
            if was_empty and self._pending:
                self._wake()

    def close(self) -> None:
        self._is_over.set()
        with self._lock:
            self._wake()
        self._thread.join()
        os.close(self._reading)
        os.close(self._writing)

    def _wake(self) -> None:
        with suppress(BlockingIOError):  # it has been woken more often than it could look
            os.write(self._writing, b"!")

    def _work(self) -> None:
        tries = 0
        while not self._is_over.is_set():
            try:
                wire = self._connect()
            except Lost:
                tries += 1
                self._is_over.wait(PAUSES_SECONDS[min(tries, len(PAUSES_SECONDS) - 1)])
                continue
            try:
                wire.round([LISTEN], within_s=ROUND_SECONDS_MAX)
                # What was told while no connection was there is not known.
                if tries:
                    self._on_heard(frozenset({EVERYTHING}))
                tries = 0
                self.is_listening.set()
                self._talk(wire)
            except (Lost, ServerError):
                tries += 1
            finally:
                self.is_listening.clear()
                wire.close()

    def _talk(self, wire: Wire) -> None:
        last = self._clock.monotonic()
        while not self._is_over.is_set():
            wire.wait_for(self._reading, STILL_SECONDS)
            self._drain_pipe()
            self._hear(wire)
            with self._lock:
                topics, self._pending = self._pending, set()
            if topics:
                payload = payload_of(self._name, topics)
                asked = WireRequest("hints_tell", {"payload": payload})
                wire.round([asked], within_s=ROUND_SECONDS_MAX)
                self.told += 1
                self._hear(wire)
                last = self._clock.monotonic()
                self._is_over.wait(EVERY_SECONDS)
            elif self._clock.monotonic() - last >= STILL_SECONDS:
                wire.one("server_clock", within_s=ROUND_SECONDS_MAX)
                last = self._clock.monotonic()

    def _hear(self, wire: Wire) -> None:
        topics: set[str] = set()
        for payload in wire.notifications():
            topics |= topics_in(self._name, payload)
        if topics:
            self.heard += 1
            self._on_heard(frozenset(topics))

    def _drain_pipe(self) -> None:
        with suppress(BlockingIOError):
            while os.read(self._reading, 4_096):
                """All of it only says that there is something to tell."""


def payload_of(name: str, topics: Iterable[str]) -> str:
    """What is told. Too many topics are one that means all."""
    payload = json.dumps([name, *sorted(topics)], separators=(",", ":"))
    return payload if len(payload) <= BYTES_MAX else json.dumps([name, EVERYTHING])


def topics_in(name: str, payload: str) -> set[str]:
    """What was told by another node than the one of this name."""
    try:
        told = json.loads(payload)
    except ValueError:
        return set()
    if not isinstance(told, list) or not told or told[0] == name:
        return set()
    return {each for each in told[1:] if isinstance(each, str)}
