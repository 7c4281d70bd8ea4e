"""What a person is told while a turn works: how long it has been, and what it does now.

All of it is derived from stored facts, so the next life of the gateway goes on where this one was.
"""

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from koboshi.domain import phrases
from koboshi.domain.durations import duration
from koboshi.domain.ids import TurnId
from koboshi.domain.route import Route
from koboshi.domain.text import plain
from koboshi.domain.transcript import Call, CallRecord

SHOWN_CHARS_MAX = 60
_LOOKED_AT_CHARS_MAX = 1_000
_MINUTE_MS = 60_000

# What looks like a secret although no configuration knows it: the value behind a telling name, what
# follows "Bearer", and the password in an address.
_NAMED_SECRET = re.compile(
    r"(?i)((?:password|passwd|secret|token|api[-_]?key)[\w-]{0,40}[\"']?\s{0,3}[=:\s]\s{0,3})[^\s&]+"
)
_BEARER = re.compile(r"(?i)(\b(?:bearer|basic)\s{1,3})\S+")
_IN_ADDRESS = re.compile(r"(://[^/\s:@]{1,200}:)[^/\s@]+@")


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """The newest progress notice of a turn."""

    ordinal: int
    at_ms: int
    is_settled: bool
    platform_id: str | None
    """What the platform knows it by; None where it did not arrive."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgressFacts:
    """What is known of a turn that is worked on."""

    route: Route
    since_ms: int
    """When it was opened, or the person answered its last question."""
    now_ms: int
    under_way: tuple[CallRecord, ...]
    told: Told | None
    held_up: tuple[CallRecord, ...] = ()
    """Commands that are not started, because as many run as may at once."""
    is_shown: bool = True
    """A person is told of it: it is not the work of a child."""
    lacks_agent: bool = False
    """No foreign agent is started for it yet."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rest:
    """There is nothing to say for so long."""

    wait_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Say:
    """A new notice, the `ordinal`-th of its turn."""

    ordinal: int
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Rewrite:
    """The notice that is there already says something else now."""

    platform_id: str
    text: str


Telling: TypeAlias = Rest | Say | Rewrite


def telling_of(
    facts: ProgressFacts, *, every_ms: int, can_edit: bool, redact: Callable[[str], str]
) -> Telling:
    """What to say now: at most one thing in `every_ms`, counted over all lives of the gateway."""
    told = facts.told
    # What was said before the person's answer is far above it in the chat: it is left alone.
    if told is not None and told.at_ms < facts.since_ms <= facts.now_ms:
        told = None
    # A clock that was set back must not silence us for as long.
    passed_ms = abs(facts.now_ms - (facts.since_ms if told is None else told.at_ms))
    if passed_ms < every_ms:
        return Rest(wait_ms=every_ms - passed_ms)
    if told is not None and not told.is_settled:
        return Rest(wait_ms=every_ms)
    text = phrases.still_working(_rounded(facts.now_ms - facts.since_ms), _doing_now(facts, redact))
    if can_edit and told is not None and told.platform_id is not None:
        return Rewrite(platform_id=told.platform_id, text=text)
    return Say(ordinal=1 + (facts.told.ordinal if facts.told else 0), text=text)


def _doing_now(facts: ProgressFacts, redact: Callable[[str], str]) -> str:
    if facts.lacks_agent and not facts.under_way:
        return "waiting for a foreign agent"
    return doing(facts.under_way, redact, facts.held_up)


def doing(
    under_way: Sequence[CallRecord],
    redact: Callable[[str], str],
    held_up: Sequence[CallRecord] = (),
) -> str:
    """What a turn does, in a few words on one line, without secrets. A command that waits for
    others to end is neither run nor thought about."""
    shown = under_way or held_up
    if not shown:
        return "thinking"
    more = len(shown) - 1
    waiting = "" if under_way else "waiting for a slot before "
    return waiting + _words_for(shown[0].call, redact) + (f" and {more} more" if more else "")


def progress_cause(turn_id: TurnId, ordinal: int) -> str:
    return f"progress:{turn_id}:{ordinal}"


def ordinal_in(cause: str) -> int:
    return int(cause.rpartition(":")[2])


def _words_for(call: Call, redact: Callable[[str], str]) -> str:
    arguments = _arguments(call)
    command, path = arguments.get("command"), arguments.get("path")
    if isinstance(command, str) and command.strip():
        return f"running `{_shown(command, redact)}`"
    if isinstance(path, str) and path.strip():
        return f"using `{call.tool}` on `{_shown(path, redact)}`"
    return f"using `{call.tool}`"


def _arguments(call: Call) -> dict[str, object]:
    try:
        found = json.loads(call.arguments)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _shown(text: str, redact: Callable[[str], str]) -> str:
    # Secrets go first: half of one would no longer be recognised.
    text = plain(redact(text))[:_LOOKED_AT_CHARS_MAX]
    text = _NAMED_SECRET.sub(r"\1***", text)
    text = _IN_ADDRESS.sub(r"\1***@", _BEARER.sub(r"\1***", text))
    return phrases.excerpt(text.replace("`", "'"), SHOWN_CHARS_MAX)


def _rounded(span_ms: int) -> str:
    """Whole minutes, from one minute on."""
    is_long = span_ms >= _MINUTE_MS
    return duration(span_ms - span_ms % _MINUTE_MS if is_long else span_ms)
