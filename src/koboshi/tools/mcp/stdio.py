"""A server that we start: its messages are lines on its standard input and output.

Our own and not the library's, because a server's line must not fill our memory or hold the event
loop, and because the server must not outlive us.
"""

import os
import signal
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import TypeAlias

import structlog
from anyio import (
    BrokenResourceError,
    CancelScope,
    ClosedResourceError,
    EndOfStream,
    Event,
    create_memory_object_stream,
    create_task_group,
    current_time,
    move_on_after,
    open_process,
    sleep,
)
from anyio.abc import ByteReceiveStream, ByteSendStream, Process
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.shared.message import SessionMessage
from mcp_types import jsonrpc_message_adapter

from koboshi.boundary import launch
from koboshi.boundary.launching import folder_of_start, held_command
from koboshi.tools.mcp.endpoint import Program, ServerLimits
from koboshi.tools.mcp.results import harmless

log = structlog.get_logger()

LINES_LOGGED_MAX = 200
SILENCE_SECONDS = 5.0
"""For the pipes of a server that was killed to end; longer only if another process holds them."""
_GONE = (BrokenResourceError, ClosedResourceError, EndOfStream, OSError)

Incoming: TypeAlias = SessionMessage | Exception
Streams: TypeAlias = tuple[
    MemoryObjectReceiveStream[Incoming], MemoryObjectSendStream[SessionMessage]
]


@asynccontextmanager
async def open_program(
    program: Program, limits: ServerLimits, server: str, on_end: Callable[[str], None]
) -> AsyncIterator[Streams]:
    """Start a server and pass messages to and fro until the block is left; then it is ended.

    `on_end` is told once, in words, when the server cannot be heard any more. Raises OSError if
    nothing can be started.
    """
    if program.blocked:
        raise OSError(program.blocked)
    command = (program.command, *program.args)
    # Shielded, and no await until the block below is entered: a cancellation before would leave
    # the process and its pipes without an owner.
    with CancelScope(shield=True):
        process = await open_process(
            held_command(program.confinement, program.ports, command),
            env=program.environment,
            cwd=folder_of_start(program.confinement, program.workdir),
            start_new_session=True,
        )
    heard, incoming = create_memory_object_stream[Incoming](0)
    outgoing, to_say = create_memory_object_stream[SessionMessage](0)
    errors = _ErrorLines(server)
    readers = _Readers()
    is_left = False

    async def listen() -> None:
        stdout = _stream(process.stdout)
        reason = await _listen(stdout, heard, limits.message_bytes_max)
        if not is_left:
            await _wait_for_exit(process, limits.farewell_s)
            await errors.wait(limits.farewell_s)
            on_end(_ending(reason, process.returncode, errors.last))
        heard.close()
        await _drain(stdout)

    async with create_task_group() as tasks:
        tasks.start_soon(readers.run, listen)
        tasks.start_soon(readers.run, partial(errors.read, _stream(process.stderr)))
        tasks.start_soon(_speak, _sink(process.stdin), to_say)
        try:
            yield incoming, outgoing
        finally:
            is_left = True
            incoming.close()
            outgoing.close()
            with CancelScope(shield=True):
                await _end(process, limits.farewell_s)
                await readers.finish(SILENCE_SECONDS)
            tasks.cancel_scope.cancel()
            to_say.close()
            heard.close()


class _Readers:
    """Tasks that read until there is nothing more, even if they are cancelled: a pipe is closed by
    reading it to its end, and a server that cannot write does not end either."""

    def __init__(self) -> None:
        self._scopes: dict[CancelScope, Event] = {}

    async def run(self, read: Callable[[], Awaitable[None]]) -> None:
        with CancelScope(shield=True) as scope:
            self._scopes[scope] = Event()
            await read()
        self._scopes[scope].set()

    async def finish(self, seconds: float) -> None:
        """Wait for them, not for ever: another process may hold the other end."""
        with move_on_after(seconds):
            for ended in self._scopes.values():
                await ended.wait()
        for scope in self._scopes:
            scope.cancel()


async def _listen(
    stdout: ByteReceiveStream, heard: MemoryObjectSendStream[Incoming], bytes_max: int
) -> str:
    """Pass on what the server says, line by line. Returns why there is no more to hear."""
    parts: list[bytes] = []
    size = 0
    try:
        while True:
            chunk = await stdout.receive()
            *whole, rest = chunk.split(b"\n")
            for end in whole:
                message = _message(b"".join([*parts, end]))
                parts, size = [], 0
                if message is not None:
                    await heard.send(message)
            parts.append(rest)
            size += len(rest)
            if size > bytes_max:
                return f"it sent a message of more than {bytes_max} bytes"
    except _GONE:
        return ""


async def _drain(stdout: ByteReceiveStream) -> None:
    with suppress(*_GONE):
        while True:
            await stdout.receive()


def _message(line: bytes) -> SessionMessage | None:
    """The message on a line; None for a blank line, or what a program prints by mistake."""
    if not line.strip():
        return None
    try:
        return SessionMessage(jsonrpc_message_adapter.validate_json(line, by_name=False))
    except ValueError:
        log.debug("mcp_line_ignored", bytes=len(line))
        return None


async def _speak(stdin: ByteSendStream, to_say: MemoryObjectReceiveStream[SessionMessage]) -> None:
    # A pipe that is closed at the other end shows at the reading side, which ends the connection.
    with suppress(*_GONE):
        async for message in to_say:
            line = message.message.model_dump_json(by_alias=True, exclude_unset=True)
            await stdin.send(f"{line}\n".encode())


class _ErrorLines:
    """What a server writes to its standard error: into our log, as long as it is not too much."""

    def __init__(self, server: str) -> None:
        self._server = server
        self._logged = 0
        self._ended = Event()
        self.last = ""

    async def read(self, stderr: ByteReceiveStream) -> None:
        kept = b""
        with suppress(*_GONE):
            while True:
                *lines, kept = (kept + await stderr.receive()).split(b"\n")
                kept = kept[:4_096]
                for line in lines:
                    self._take(line)
        self._take(kept)
        self._ended.set()

    async def wait(self, seconds: float) -> None:
        """Until there is nothing more, not for ever."""
        with move_on_after(seconds):
            await self._ended.wait()

    def _take(self, line: bytes) -> None:
        words = harmless(line[:4_096].decode("utf-8", "replace"))
        if not words:
            return
        self.last = words
        self._logged += 1
        if self._logged <= LINES_LOGGED_MAX:
            log.debug("mcp_server_said", server=self._server, line=words)


async def _end(process: Process, farewell_s: float) -> None:
    """End a server and everything it has started: by closing its input, by asking, by force."""
    with suppress(*_GONE):
        await _sink(process.stdin).aclose()
    if not await _wait_for_exit(process, farewell_s):
        _ask(process, signal.SIGTERM)
        if not await _wait_for_exit(process, farewell_s):
            _ask(process, launch.END)
            await _wait_for_exit(process, launch.END_SECONDS_MAX)
    # Also when it ended by itself: without a keeper (macOS) it may have left children.
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    await _wait_for_exit(process, farewell_s)


def _ask(process: Process, number: signal.Signals) -> None:
    """Signal the process that looks after the server (`launch.py`), which passes it on."""
    with suppress(ProcessLookupError, PermissionError):
        os.kill(process.pid, number)


async def _wait_for_exit(process: Process, seconds: float) -> bool:
    """Whether the process ended in time. By looking: waiting for it would also wait for
    those that inherited its pipes."""
    until = current_time() + seconds
    while process.returncode is None:
        if current_time() >= until:
            return False
        await sleep(0.01)
    return True


def _ending(reason: str, returncode: int | None, last_words: str) -> str:
    if reason:
        return reason
    how = "it closed its output" if returncode is None else f"it ended with {returncode}"
    return f"{how}; its last words: {last_words}" if last_words else how


def _stream(stream: ByteReceiveStream | None) -> ByteReceiveStream:
    assert stream is not None, "the process is opened with pipes"
    return stream


def _sink(stream: ByteSendStream | None) -> ByteSendStream:
    assert stream is not None, "the process is opened with pipes"
    return stream
