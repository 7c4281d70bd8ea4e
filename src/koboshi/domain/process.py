"""Programs started by tools, what looks at them, and what that has to say."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from koboshi.domain.ids import CallId, Generation, ProcessId, SessionId, TurnId, WatcherId


class ProcessState(StrEnum):
    STARTING = "starting"  # the intent is stored; the runner has not written its birth
    RUNNING = "running"
    EXITED = "exited"
    KILLED = "killed"
    LOST = "lost"  # it ended, or never began, and nobody saw how


ENDED = frozenset({ProcessState.EXITED, ProcessState.KILLED, ProcessState.LOST})


@dataclass(frozen=True, slots=True, kw_only=True)
class Birth:
    """Which process it is. A pid alone is not an identity: pids come back."""

    boot_id: str
    pid: int
    start_ticks: int


def is_same(birth: Birth, seen: Birth | None) -> bool:
    """Whether the process seen under the pid is the one that was born there."""
    return seen is not None and seen == birth


@dataclass(frozen=True, slots=True, kw_only=True)
class Process:
    process_id: ProcessId
    session_id: SessionId
    generation: Generation
    turn_id: TurnId
    call_id: CallId
    command: str
    workdir: str
    is_foreground: bool
    state: ProcessState
    birth: Birth | None
    exit_code: int | None
    reason: str | None
    """Why it ended."""
    started_ms: int
    ended_ms: int | None
    is_end_asked: bool
    exit_read_by: str | None
    """The call that showed the model how it ended."""
    turn_log_size: int | None
    """How long the log was when its turn was answered: matches below belong to that turn."""


class WatcherKind(StrEnum):
    EXIT = "exit"
    MATCH = "match"
    EVERY = "every"


class WatcherState(StrEnum):
    ARMED = "armed"
    FIRED = "fired"
    DISARMED = "disarmed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Watcher:
    """Looks at a process. It has no route: its process has a session, and that has one."""

    watcher_id: WatcherId
    process_id: ProcessId
    kind: WatcherKind
    argument: str
    """The pattern of a MATCH, the seconds of an EVERY."""
    state: WatcherState
    log_offset: int
    reports: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Chunk:
    """Bytes of a log from `offset` on; `is_last` once the process has ended."""

    offset: int
    content: bytes
    is_last: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """One thing to say. `ordinal` makes its key, so that filing it twice is filing it once."""

    watcher_id: WatcherId
    ordinal: int
    text: str


MATCH_LINES_MAX = 20
LINE_BYTES_MAX = 65_536
SEARCHED_CHARS_MAX = 4_000
"""What is searched of one line: a pattern may take very long on a very long one."""
SHOWN_CHARS_MAX = 500


def examine(watcher: Watcher, chunk: Chunk) -> tuple[Watcher, tuple[Report, ...]]:
    """What a MATCH watcher finds in `chunk`, and the watcher with its offset moved behind what was
    examined. A line that is not complete is left for the next chunk, so that a match split over
    two reads is found; a line of unreasonable length is examined as it is.

    A watcher that is not armed, or not a MATCH, finds nothing.
    """
    if watcher.state is not WatcherState.ARMED or watcher.kind is not WatcherKind.MATCH:
        return watcher, ()
    skipped = max(0, watcher.log_offset - chunk.offset)
    content = chunk.content[skipped:]
    begin = chunk.offset + skipped
    complete = content if chunk.is_last else content[: content.rfind(b"\n") + 1]
    if not complete and len(content) >= LINE_BYTES_MAX:
        complete = content
    lines = complete.decode("utf-8", errors="replace").splitlines()
    matched = matching_lines(watcher.argument, lines)
    moved = replace(watcher, log_offset=begin + len(complete))
    if not matched:
        return moved, ()
    shown = [line[:SHOWN_CHARS_MAX] for line in matched[:MATCH_LINES_MAX]]
    more = len(matched) - len(shown)
    text = "\n".join(shown) + (f"\n… and {more} more matching lines" if more else "")
    report = Report(watcher_id=watcher.watcher_id, ordinal=watcher.reports + 1, text=text)
    return replace(moved, reports=watcher.reports + 1), (report,)


def matching_lines(pattern: str, lines: Sequence[str]) -> list[str]:
    """The lines in which the pattern is found; one that is no regular expression is taken
    literally."""
    try:
        expression = re.compile(pattern)
    except (re.error, OverflowError, RecursionError):
        expression = re.compile(re.escape(pattern))
    return [line for line in lines if expression.search(line[:SEARCHED_CHARS_MAX])]
