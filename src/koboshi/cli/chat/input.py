"""Lines from standard input, read in a thread that does not keep the process alive."""

import codecs
import os
import threading
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import CancelledError
from contextlib import asynccontextmanager

from anyio import BrokenResourceError, ClosedResourceError, create_memory_object_stream
from anyio.from_thread import BlockingPortal
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream

CHUNK_BYTES = 65_536


@asynccontextmanager
async def typed_lines(descriptor: int) -> AsyncIterator[MemoryObjectReceiveStream[str]]:
    """A stream of the lines that come from `descriptor`; it ends where they end.

    The thread may hang in a read for ever: it is a daemon, and reads from the descriptor itself,
    so that it holds no lock which the interpreter wants when it exits.
    """
    sender, receiver = create_memory_object_stream[str](16)
    async with BlockingPortal() as portal:
        reader = threading.Thread(
            target=_read, args=(descriptor, portal, sender), name="stdin", daemon=True
        )
        reader.start()
        with sender, receiver:
            yield receiver
        await portal.stop(cancel_remaining=True)


def _read(descriptor: int, portal: BlockingPortal, sender: MemoryObjectSendStream[str]) -> None:
    try:
        for line in lines_of(descriptor):
            portal.call(sender.send, line)
        portal.call(sender.aclose)
    except (RuntimeError, CancelledError, BrokenResourceError, ClosedResourceError):
        # The receiver has gone.
        return


def lines_of(descriptor: int) -> Iterator[str]:
    """The lines that can be read from `descriptor`, without their ends."""
    decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
    rest = ""
    while chunk := os.read(descriptor, CHUNK_BYTES):
        *lines, rest = (rest + decoder.decode(chunk)).split("\n")
        yield from (line.rstrip("\r") for line in lines)
    rest += decoder.decode(b"", final=True)
    if rest:
        yield rest
