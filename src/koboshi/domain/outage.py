"""A model that does not answer: how long it is tried, and when the person is told. Pure.

What counts is the time since the first failure of one request. It is added up try by try and
stored with the turn, so neither a crash nor a clock that was set changes how long it has been.
"""

from dataclasses import dataclass
from typing import TypeAlias

from koboshi.domain.durations import duration
from koboshi.domain.worker import WAIT_MS_MAX

_FIRST_WAIT_MS = 1_000
_WAIT_MS_MAX = 60_000
"""Between two tries, unless the provider names a longer wait."""
_MINUTE_MS = 60_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Patience:
    total_ms: int = 600_000
    """How long a request is tried; 0 gives up at the first failure."""
    told_after_ms: int = 20_000
    """The person is told when it has failed for so long."""
    wait_ms_max: int = WAIT_MS_MAX
    """A provider that asks for a longer wait is given up."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelFailure:
    """One request that the model did not answer. `spent_ms` is the time since the failure before
    it, as far as the gateway knows; `asked_ms` is the wait that the provider names."""

    reason: str
    spent_ms: int = 0
    asked_ms: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Outage:
    """The failures of one request so far, and the time since the first of them."""

    tries: int
    waited_ms: int
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TryAgain:
    wait_ms: int
    is_told: bool = False
    """Whether the person is to know by now."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GiveUp:
    words: str


Decision: TypeAlias = TryAgain | GiveUp


def after_failure(outage: Outage, asked_ms: int | None, patience: Patience) -> Decision:
    """What follows a request that failed: again after a wait, each longer than the one before, or
    the end.

    A wait that the provider names is kept, or it is the end: asking earlier would not help. The
    last wait of our own ends with the patience, and one of them when the person is to be told.
    """
    left_ms = patience.total_ms - outage.waited_ms
    if left_ms <= 0:
        return GiveUp(words=gave_up(outage))
    asked_ms = asked_ms or 0
    if asked_ms > min(left_ms, patience.wait_ms_max):
        words = f"{gave_up(outage)}, and asks for a wait of {duration(asked_ms)}"
        return GiveUp(words=words)
    grown_ms = _FIRST_WAIT_MS * 2 ** min(outage.tries - 1, 10)
    own_ms = min(grown_ms, _WAIT_MS_MAX, left_ms)
    until_told_ms = patience.told_after_ms - outage.waited_ms
    if until_told_ms > 0:
        own_ms = min(own_ms, until_told_ms)
    wait_ms = max(asked_ms, own_ms)
    return TryAgain(wait_ms=wait_ms, is_told=until_told_ms <= 0 or wait_ms > until_told_ms)


def gave_up(outage: Outage) -> str:
    tried = f" for {duration(outage.waited_ms)}" if outage.waited_ms >= 1_000 else ""
    return f"the model did not answer{tried} ({outage.reason})"


def outage_notice(patience: Patience) -> str:
    """What the person is told once."""
    return (
        f"The model provider does not answer. I keep trying for up to {_span(patience)}. "
        "/stop ends it."
    )


def standing(outage: Outage, patience: Patience) -> str:
    """Where it stands, for a person who asks why."""
    tries = "1 try" if outage.tries == 1 else f"{outage.tries} tries"
    return (
        f"the model provider has not answered for {duration(outage.waited_ms)} ({tries}): "
        f"{outage.reason}; I keep trying for up to {_span(patience)}"
    )


def _span(patience: Patience) -> str:
    minutes, rest_ms = divmod(patience.total_ms, _MINUTE_MS)
    if rest_ms or not minutes:
        return duration(patience.total_ms)
    return "1 minute" if minutes == 1 else f"{minutes} minutes"
