"""What looks at processes, what it finds, and who is told of it."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import StrEnum

from koboshi.domain.durations import duration
from koboshi.domain.ids import ProcessId, WatcherId, shown
from koboshi.domain.machine import Machine, transitions_of
from koboshi.domain.phrases import excerpt
from koboshi.domain.process import Process, ProcessState, how_ended
from koboshi.domain.text import plain


class WatcherKind(StrEnum):
    EXIT = "exit"  # say how it ended
    MATCH = "match"  # say when its output matches
    EVERY = "every"  # say now and then how it goes, and how it ended


class WatcherState(StrEnum):
    ARMED = "armed"  # it looks, or waits for the end
    FIRED = "fired"  # it has said the end
    DISARMED = "disarmed"  # it is not needed any more


class WatcherEvent(StrEnum):
    EXAMINED = "examined"
    FIRED = "fired"
    DISARMED = "disarmed"


TRANSITIONS = transitions_of(
    {
        WatcherEvent.EXAMINED: {WatcherState.ARMED: WatcherState.ARMED},
        WatcherEvent.FIRED: {WatcherState.ARMED: WatcherState.FIRED},
        WatcherEvent.DISARMED: {WatcherState.ARMED: WatcherState.DISARMED},
    }
)

MACHINE = Machine(name="watcher", begins=frozenset({WatcherState.ARMED}), transitions=TRANSITIONS)
advance = MACHINE.advance


@dataclass(frozen=True, slots=True, kw_only=True)
class WatcherSpec:
    """A watcher that is asked for with its process."""

    kind: WatcherKind
    argument: str = ""
    """The patterns of a MATCH, one on a line; the seconds of an EVERY."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Watcher:
    """Looks at a process. It has no route: its process has a session, and that has one."""

    watcher_id: WatcherId
    process_id: ProcessId
    kind: WatcherKind
    argument: str
    state: WatcherState
    log_offset: int
    reports: int
    reported_ms: int = 0
    """When it last had something to say, and was heard."""
    noisy: int = 0
    """How many reports in a row could not show all they had found."""

    @property
    def patterns(self) -> tuple[str, ...]:
        return tuple(self.argument.split("\n"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Chunk:
    """Bytes of a log from `offset` on; `is_last` once the process has ended."""

    offset: int
    content: bytes
    is_last: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """What a look found: the watcher as it is behind what was examined, and what to say; nothing if
    there is nothing to say."""

    watcher: Watcher
    output: str = ""
    turn_log_size: int | None = None
    """What was known, when it looked, of where the turn that started the process has ended."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportLimits:
    """How much may be said about matches and progress. An end is always said."""

    every_ms: int = 15_000
    """At most one report of a process in this time."""
    session_max: int = 5
    """So many reports of a session in that time."""
    total_max: int = 40
    """So many reports of all sessions in that time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportsSoFar:
    """What was reported in the last `ReportLimits.every_ms`, and what was not heard yet."""

    of_process_waits: bool
    of_session: int
    of_all: int


class Notify(StrEnum):
    """What the person hears of the ends that the agent does not tell them."""

    ALL = "all"  # each end, with the last of its output
    RESULT = "result"  # each end, in one line
    ERROR = "error"  # only what went wrong, with the last of its output
    OFF = "off"


MATCH_LINES_MAX = 20
LINE_BYTES_MAX = 65_536
SEARCHED_CHARS_MAX = 4_000
"""What is searched of one line."""
SHOWN_CHARS_MAX = 500
NOISY_MAX = 3
NOTICE_CHARS_MAX = 1_500
"""What a person is shown of the output."""

Matches = Callable[[str], bool]
"""Whether a line is one that a watcher looks for."""


def examine(
    watcher: Watcher,
    chunk: Chunk,
    matches: Matches,
    *,
    until: int | None,
    redact: Callable[[str], str] = str,
) -> Finding:
    """What a MATCH watcher finds in `chunk`, below the offset `until` if there is one. A line that
    is not complete is left for the next chunk, so that a match split over two reads is found; a
    line of unreasonable length is examined as it is. Lines are redacted before they are cut, so
    that no half of a secret is shown.

    Reports that cannot show all they found, `NOISY_MAX` times in a row, are the last: then only
    the end is worth a report.
    """
    if watcher.state is not WatcherState.ARMED or watcher.kind is not WatcherKind.MATCH:
        return Finding(watcher=watcher)
    begin = max(watcher.log_offset, chunk.offset)
    content = chunk.content[begin - chunk.offset :]
    if until is not None:
        content = content[: max(0, until - begin)]
    is_whole = chunk.is_last and until is None
    complete = content if is_whole else content[: content.rfind(b"\n") + 1]
    if not complete and len(content) >= LINE_BYTES_MAX:
        complete = content
    lines = plain(complete.decode("utf-8", errors="replace")).splitlines()
    matched = [line for line in lines if matches(line[:SEARCHED_CHARS_MAX])]
    moved = replace(watcher, log_offset=begin + len(complete))
    if not matched:
        return Finding(watcher=moved)
    shown_lines = [redact(line)[:SHOWN_CHARS_MAX] for line in matched[:MATCH_LINES_MAX]]
    left_out = len(matched) - len(shown_lines)
    if left_out:
        shown_lines.append(f"… and {left_out} more matching lines")
    noisy = watcher.noisy + 1 if left_out else 0
    moved = replace(moved, reports=watcher.reports + 1, noisy=noisy)
    if noisy >= NOISY_MAX:
        moved = disarmed(moved)
        shown_lines.append("Too many lines match: I stop looking for them and only say its end.")
    return Finding(watcher=moved, output="\n".join(shown_lines))


def disarmed(watcher: Watcher) -> Watcher:
    """It looks no more."""
    return replace(watcher, state=advance(watcher.state, WatcherEvent.DISARMED))


def is_due(watcher: Watcher, process: Process, now_ms: int, limits: ReportLimits) -> bool:
    """Whether an armed watcher of matches or progress may say something again."""
    if watcher.state is not WatcherState.ARMED:
        return False
    match watcher.kind:
        case WatcherKind.EXIT:
            return False
        case WatcherKind.MATCH:
            return _is_past(watcher.reported_ms, limits.every_ms, now_ms)
        case WatcherKind.EVERY:
            since_ms = watcher.reported_ms or process.started_ms
            every_ms = max(int(float(watcher.argument) * 1000), limits.every_ms)
            return process.ended_ms is None and _is_past(since_ms, every_ms, now_ms)


def _is_past(since_ms: int, span_ms: int, now_ms: int) -> bool:
    """Whether the span is over; a clock that was set back does not make it longer."""
    return not 0 <= now_ms - since_ms < span_ms


def may_say(said: ReportsSoFar, limits: ReportLimits) -> bool:
    """Whether there is room for one more report. What is found meanwhile is not lost: it is in the
    log, and is said together with what follows."""
    if said.of_process_waits:
        return False
    return said.of_session < limits.session_max and said.of_all < limits.total_max


def headline(process: Process, kind: WatcherKind, now_ms: int) -> str:
    """The first line of a report: which process, and what is the matter with it."""
    name = f"Background process {shown('process', process.process_id)} ({excerpt(process.command)})"
    took = duration((process.ended_ms or now_ms) - process.started_ms)
    if process.ended_ms is None:
        prints = " printed what you are looking for" if kind is WatcherKind.MATCH else ""
        return f"{name} is running for {took}{f' and{prints}' if prints else ''}:"
    before = " and printed before what you were looking for" if kind is WatcherKind.MATCH else ""
    return f"{name} {_ended(process)} after {took}{before}:"


def _ended(process: Process) -> str:
    words = how_ended(process.state, process.exit_code)
    is_plain = process.state is ProcessState.EXITED and process.exit_code is not None
    return words if is_plain or not process.reason else f"{words} ({process.reason})"


def notice(process: Process, output: str, notify: Notify) -> str | None:
    """What the person is told of an end that the agent does not tell; None for nothing."""
    if notify is Notify.OFF or (notify is Notify.ERROR and not process.has_failed):
        return None
    first = headline(process, WatcherKind.EXIT, process.started_ms)
    if notify is Notify.RESULT or not output.strip():
        return first.removesuffix(":") + "."
    return f"{first}\n{last_lines(output, NOTICE_CHARS_MAX)}"


def last_lines(text: str, chars_max: int) -> str:
    """The end of a text, cut at a line, with a mark where something is missing."""
    text = text.rstrip("\n")
    if len(text) <= chars_max:
        return text
    tail = text[-chars_max:]
    _, newline, whole = tail.partition("\n")
    return "…\n" + (whole if newline else tail)
