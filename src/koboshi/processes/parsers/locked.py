"""Runs a parser for one file: in the locked boundary, without network, with limits.

Parsers of pictures, pages and documents have a long history of faults that a crafted file turns
into code. Each runs as a process of its own that sees the system and its own library, and nothing
else; it gets the bytes on standard input and has so many seconds and so much memory. What dies, is
too slow or says too much is *not parsed*; the caller stores that, so no boot tries it again.
"""

import json
import os
import signal
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from anyio import (
    BrokenResourceError,
    CancelScope,
    CapacityLimiter,
    ClosedResourceError,
    EndOfStream,
    create_task_group,
    fail_after,
    move_on_after,
    open_process,
)
from anyio.abc import ByteReceiveStream, ByteSendStream, Process

from koboshi.boundary import launch
from koboshi.boundary.launching import folder_of_start, held_command
from koboshi.ports.parsers import NotParsed, ParserKind
from koboshi.ports.runners import Confinement

AT_ONCE_MAX = 2
SECONDS_MAX = 60.0
OUTPUT_BYTES_MAX = 16_000_000
ERROR_BYTES_MAX = 4_000
END_SECONDS_MAX = 10.0
LIBRARIES = {
    ParserKind.PAGE: ("trafilatura", "web"),
    ParserKind.SEARCH: ("ddgs", "web"),
    ParserKind.PICTURE: ("PIL", "media"),
    ParserKind.DOCUMENT: ("pypdf", "media"),
    ParserKind.SPEECH: ("faster_whisper", "whisper"),
}
"""By kind: what its program imports, and the extra that has it."""
_GONE = (BrokenResourceError, ClosedResourceError, EndOfStream, OSError)


@cache
def is_installed(library: str) -> bool:
    return find_spec(library) is not None


def program_of(kind: ParserKind) -> Path:
    """The script of a parser."""
    return Path(__file__).with_name(f"{kind}_program.py")


@dataclass(frozen=True, slots=True, kw_only=True)
class ParserLimits:
    seconds_max: float = SECONDS_MAX
    output_bytes_max: int = OUTPUT_BYTES_MAX


@dataclass(frozen=True, slots=True, kw_only=True)
class ParserStart:
    """What a parser is started with."""

    confinement: Confinement
    environment: Mapping[str, str] = field(default_factory=dict)
    workdir: str = "/"
    """As the parser calls it."""
    seconds_max: float | None = None
    """If it has another time than most."""
    blocked: str = ""
    """Why no boundary holds for it on this machine: then it is not started."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LockedParsers:
    """`ports.parsers.Parsers` on this machine."""

    prepare: Callable[[ParserKind], ParserStart]
    """Asked once for each kind, when it is first needed."""
    limits: ParserLimits = field(default_factory=ParserLimits)
    _starts: dict[ParserKind, ParserStart] = field(default_factory=dict)
    python: str = sys.executable
    has_library: Callable[[str], bool] = field(default_factory=lambda: is_installed)
    """Whether that interpreter has it."""
    _slots: CapacityLimiter = field(default_factory=lambda: CapacityLimiter(AT_ONCE_MAX))
    _slow_slot: CapacityLimiter = field(default_factory=lambda: CapacityLimiter(1))
    """For what takes minutes: pictures and pages do not wait behind it."""

    def is_installed(self, kind: ParserKind) -> bool:
        return self.has_library(LIBRARIES[kind][0])

    def why_not(self, kind: ParserKind) -> str:
        library, extra = LIBRARIES[kind]
        if not self.has_library(library):
            return f"{library} is not installed. Remedy: pip install 'koboshi[{extra}]'"
        return self._start_of(kind).blocked

    async def parse(
        self, kind: ParserKind, source: bytes, options: Mapping[str, object] | None = None
    ) -> bytes:
        if reason := self.why_not(kind):
            raise NotParsed(reason)
        said = json.dumps(dict(options or {}))
        command = (self.python, "-I", "-B", str(program_of(kind)), said)
        async with self._slow_slot if kind is ParserKind.SPEECH else self._slots:
            try:
                return await self._run(self._start_of(kind), command, source)
            except OSError as error:
                raise NotParsed(f"its parser did not start: {error.strerror}") from None

    def _start_of(self, kind: ParserKind) -> ParserStart:
        if kind not in self._starts:
            self._starts[kind] = self.prepare(kind)
        return self._starts[kind]

    async def _run(self, start: ParserStart, command: tuple[str, ...], source: bytes) -> bytes:
        seconds = start.seconds_max or self.limits.seconds_max
        # Shielded: a cancellation here would leave a process without an owner.
        with CancelScope(shield=True):
            process = await open_process(
                held_command(start.confinement, (), command),
                env=start.environment,
                cwd=folder_of_start(start.confinement, start.workdir),
                start_new_session=True,
            )
        try:
            with fail_after(seconds):
                return await self._talk(process, source)
        except TimeoutError:
            raise NotParsed(f"its parser took longer than {seconds:g} seconds") from None
        finally:
            with CancelScope(shield=True):
                await _end(process)

    async def _talk(self, process: Process, source: bytes) -> bytes:
        output, errors = _Bounded(self.limits.output_bytes_max), _Bounded(ERROR_BYTES_MAX)
        async with create_task_group() as tasks:
            tasks.start_soon(_feed, process.stdin, source)
            tasks.start_soon(errors.read, process.stderr)
            await output.read(process.stdout)
            code = await process.wait()
            tasks.cancel_scope.cancel()
        if code != 0:
            raise NotParsed(_how_it_died(code, errors.text()))
        if output.is_cut:
            raise NotParsed(f"its parser gave more than {output.bytes_max} bytes")
        return bytes(output.taken)


class _Bounded:
    """What a process says, up to a limit; the rest is read and forgotten."""

    def __init__(self, bytes_max: int) -> None:
        self.bytes_max = bytes_max
        self.taken = bytearray()
        self.is_cut = False

    async def read(self, stream: ByteReceiveStream | None) -> None:
        assert stream is not None, "the process is opened with pipes"
        with suppress(*_GONE):
            while True:
                chunk = await stream.receive()
                room = self.bytes_max - len(self.taken)
                self.taken += chunk[:room]
                self.is_cut = self.is_cut or len(chunk) > room

    def text(self) -> str:
        return self.taken.decode("utf-8", "replace")


async def _feed(stream: ByteSendStream | None, source: bytes) -> None:
    assert stream is not None, "the process is opened with pipes"
    # A parser that has died is noticed by its end.
    with suppress(*_GONE):
        await stream.send(source)
        await stream.aclose()


def _how_it_died(code: int, errors: str) -> str:
    if code < 0:
        return f"its parser was killed by signal {-code}"
    last = next((line for line in reversed(errors.splitlines()) if line.strip()), "")
    return f"its parser failed: {last.strip()[:200]}" if last else f"its parser ended with {code}"


async def _end(process: Process) -> None:
    """End the parser and everything it has started."""
    if process.returncode is None:
        with suppress(ProcessLookupError, PermissionError):
            os.kill(process.pid, launch.END)
        with move_on_after(END_SECONDS_MAX):
            await process.wait()
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    with move_on_after(END_SECONDS_MAX):
        await process.aclose()
