"""The log: one event per line on stderr, as JSON for machines or compact for people.

Everything that is printed goes through here, the standard library's logging included: known secrets
are replaced by `***`, and no value can break out of its line.
"""

import base64
import json
import logging
import os
import re
import sys
from collections.abc import Callable, Mapping, MutableMapping, Sequence
from pathlib import PurePath
from threading import Lock
from typing import Any, Final, TextIO, TypeAlias
from urllib.parse import quote

import structlog

SECRET_CHARS_MIN: Final = 6  # shorter ones would blank half the log
VALUE_CHARS_MAX: Final = 32_000  # a traceback fits
DEPTH_MAX: Final = 6
ITEMS_MAX: Final = 200

_LEVELS: Final[Mapping[str, int]] = {
    "debug": logging.DEBUG,
    "info": logging.INFO,
    "warning": logging.WARNING,
    "error": logging.ERROR,
    "critical": logging.CRITICAL,
}
_FIRST: Final = ("timestamp", "level", "event")
_TRACES: Final = ("exception", "stack")
_COLOURS: Final[Mapping[str, str]] = {
    "debug": "\x1b[2m",
    "info": "\x1b[32m",
    "warning": "\x1b[33m",
    "error": "\x1b[31m",
    "critical": "\x1b[1;31m",
}

# What a line is made of once every value is tame.
Plain: TypeAlias = "bool | int | float | str | list[Plain] | dict[str, Plain] | None"
# Any is structlog's own word for what a caller may log.
Event: TypeAlias = MutableMapping[str, Any]
Redact: TypeAlias = Callable[[str], str]


def configure(
    level: str,
    as_json: bool | None,
    secrets: Sequence[str] = (),
    *,
    stream: TextIO | None = None,
    colours: bool | None = None,
) -> None:
    """Send every event of at least `level` to `stream` (stderr), with `secrets` blanked out.

    `as_json` None means JSON unless the stream is a terminal; `colours` None means on a terminal,
    unless NO_COLOR is set. The standard library's loggers are heard from WARNING on. Calling it
    again replaces the former set-up. Raises ValueError if `level` is not a level.
    """
    if level not in _LEVELS:
        raise ValueError(f'log level "{level}" is unknown; known levels: {", ".join(_LEVELS)}')
    target = stream or sys.stderr or _nowhere()
    is_json = not target.isatty() if as_json is None else as_json
    if colours is None:
        colours = target.isatty() and not os.environ.get("NO_COLOR")
    redact = redactor(secrets)
    render = _render_json if is_json else _human_renderer(redact, colours)
    lines = _Lines(target)
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="%Y-%m-%dT%H:%M:%S.%f", utc=True),
            structlog.processors.StackInfoRenderer(),
            structlog.processors.format_exc_info,
            lambda _logger, _method, event: render(_tame_event(event, redact)),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(_LEVELS[level]),
        logger_factory=lambda *_: lines,
        # Loggers are made at import time; a later set-up must reach them, too.
        cache_logger_on_first_use=False,
    )
    _take_over_standard_logging(max(_LEVELS[level], logging.WARNING))


def redactor(secrets: Sequence[str]) -> Redact:
    """A function that replaces every known secret in a text by `***`.

    A secret is also recognised as it looks in an address, in base64, in JSON and in a repr.
    """
    long_enough = (secret for secret in secrets if len(secret) >= SECRET_CHARS_MIN)
    forms = {form for secret in long_enough for form in _forms(secret)}
    if not forms:
        return str
    # The longest first: a secret may begin with another one.
    pattern = re.compile("|".join(re.escape(form) for form in sorted(forms, key=len, reverse=True)))
    return lambda text: pattern.sub("***", text)


class _Lines:
    """Writes finished lines; what structlog calls a logger.

    A log that cannot be written must not stop the gateway: such lines are counted, and the number
    is told as soon as writing works again.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._lock = Lock()
        self._lost = 0

    def msg(self, line: str) -> None:
        with self._lock:
            try:
                if self._lost:
                    lost = {"level": "warning", "event": "log_lines_lost", "count": self._lost}
                    self._stream.write(json.dumps(lost) + "\n")
                self._stream.write(line + "\n")
                self._stream.flush()
                self._lost = 0
            except (OSError, ValueError):
                self._lost += 1

    debug = info = warning = error = critical = exception = fatal = log = msg


class _IntoStructlog(logging.Handler):
    """Hands records of the standard library to structlog, so that there is one log."""

    def emit(self, record: logging.LogRecord) -> None:
        try:
            event = record.getMessage()
        except (TypeError, ValueError, KeyError, IndexError):
            event = f"{record.msg} {record.args!r}"
        # Libraries may log at levels of their own; structlog knows only ours.
        known = [number for number in _LEVELS.values() if number <= record.levelno]
        log = structlog.get_logger()
        log.log(
            max(known, default=logging.DEBUG),
            event,
            logger=record.name,
            exc_info=record.exc_info or None,
        )


def _take_over_standard_logging(level: int) -> None:
    root = logging.getLogger()
    for present in list(root.handlers):
        # Plain stream handlers print past the redaction; those of a test runner only listen.
        if isinstance(present, _IntoStructlog) or type(present) is logging.StreamHandler:
            root.removeHandler(present)
    root.addHandler(_IntoStructlog())
    root.setLevel(level)
    logging.captureWarnings(True)


def _forms(secret: str) -> set[str]:
    """How a secret looks in the places a log line may quote it from, even quoted twice."""
    content = secret.encode("utf-8", "surrogatepass")
    forms = {
        secret,
        quote(content, safe=""),
        quote(content),
        base64.b64encode(content).decode("ascii").rstrip("="),
        base64.urlsafe_b64encode(content).decode("ascii").rstrip("="),
    }
    for _ in range(2):
        forms |= {quoted[1:-1] for form in forms for quoted in _quotations(form)}
    return forms


def _quotations(text: str) -> tuple[str, ...]:
    return json.dumps(text), json.dumps(text, ensure_ascii=False), repr(text), ascii(text)


def _tame_event(event: Event, redact: Redact) -> dict[str, Plain]:
    stamp = str(event.pop("timestamp"))
    ordered: dict[str, object] = {
        "timestamp": f"{stamp[:-3]}Z",  # milliseconds
        "level": event.pop("level"),
        "event": event.pop("event", ""),
        **event,
    }
    if not isinstance(ordered["event"], str):
        ordered["event"] = repr(ordered["event"])
    return {
        name if name in _FIRST else _bounded(redact(str(name))): _tame(value, redact, DEPTH_MAX)
        for name, value in ordered.items()
    }


def _tame(value: object, redact: Redact, depth: int) -> Plain:
    """`value` as something JSON knows, bounded, with the secrets out."""
    match value:
        case None | bool():
            return value
        case int() | float():
            # Also refuses "not a number", and a number that happens to spell a secret.
            is_small = isinstance(value, float) or value.bit_length() <= 64
            digits = str(value) if is_small else "a large number"
            is_plain = digits[-1].isdigit() and redact(digits) == digits
            return value if is_plain else redact(digits)
        case str() | PurePath():
            return _bounded(redact(str(value)))
        case Mapping() if depth:
            pairs = list(value.items())[:ITEMS_MAX]
            return {
                _bounded(redact(str(name))): _tame(below, redact, depth - 1)
                for name, below in pairs
            }
        case list() | tuple() | set() | frozenset() if depth:
            return [_tame(below, redact, depth - 1) for below in list(value)[:ITEMS_MAX]]
        case _:
            return _bounded(redact(repr(value)))


def _bounded(text: str) -> str:
    over = len(text) - VALUE_CHARS_MAX
    return f"{text[:VALUE_CHARS_MAX]}… ({over} more)" if over > 0 else text


def _render_json(event: dict[str, Plain]) -> str:
    # ASCII only: there are line breaks and terminal controls beyond it as well.
    return json.dumps(event, ensure_ascii=True, allow_nan=False)


def _human_renderer(redact: Redact, colours: bool) -> Callable[[dict[str, Plain]], str]:
    def paint(text: str, colour: str) -> str:
        return f"{colour}{text}\x1b[0m" if colours else text

    def render(event: dict[str, Plain]) -> str:
        level = str(event["level"])
        words = [
            paint(str(event["timestamp"]), "\x1b[2m"),
            paint(f"{_escaped(level):<8}", _COLOURS.get(level, "")),
            paint(_escaped(str(event["event"])), "\x1b[1m"),
        ]
        for name, value in event.items():
            if name not in _FIRST and name not in _TRACES:
                words.append(f"{paint(_escaped(name), _COLOURS['debug'])}={_shown(value)}")
        traces = [str(event[name]) for name in _TRACES if event.get(name)]
        # Indented, so that no line of a traceback can pass for an event.
        below = [f"    {_escaped(line)}" for trace in traces for line in trace.split("\n")]
        return "\n".join(redact(line) for line in (" ".join(words), *below))

    return render


def _shown(value: Plain) -> str:
    if not isinstance(value, str):
        return _escaped(json.dumps(value, ensure_ascii=False))
    if re.fullmatch(r"[^\s\"'=\\]+", value) and value.isprintable():
        return value
    return _escaped(json.dumps(value, ensure_ascii=False))


def _escaped(text: str) -> str:
    """`text` with everything unprintable (controls, bidi marks, surrogates) written out."""
    if text.isprintable():
        return text
    return "".join(
        char if char.isprintable() else char.encode("unicode_escape").decode("ascii")
        for char in text
    )


def _nowhere() -> TextIO:
    """For a process whose stderr was closed before it began."""
    return open(os.devnull, "w", encoding="utf-8")
