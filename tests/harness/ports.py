"""Ports for servers whose address must be known before they listen."""

import random
import socket
from contextlib import suppress

# Below those that the system gives to requests for any port. One of them could be given to another
# program before it is used, and a client that tries it could be connected to itself.
_RANGE = range(20_000, 30_000)
_TRIES = 100


def free_port() -> int:
    """A port of the loopback on which nothing listens now."""
    for port in random.sample(_RANGE, _TRIES):
        with suppress(OSError), socket.create_server(("127.0.0.1", port)):
            return port
    raise AssertionError(f"{_TRIES} ports are in use")
