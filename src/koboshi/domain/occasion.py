"""What is done about a due time that has come, decided by one table of rules. Pure.

The order of `RULES` is the argument: the first rule that holds speaks. The last one always holds,
so every due time has a verdict, and every verdict but `stands` leaves a row.
"""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from koboshi.domain.schedule import Late, OccasionVerdict, Overlap, ScheduleKind
from koboshi.domain.worker import Breaker

LATE_TOLD_MS = 60_000
"""Less late than this is on time."""
AT_LATE_MS = 24 * 3_600_000
LATE_MS_MAX = 2 * 3_600_000
RETRY_MS = (5 * 60_000, 15 * 60_000, 30 * 60_000)
"""After these waits an occasion is tried again that has not reached the model."""
FAILURES_MAX = 10
"""So many in a row, and the schedule is switched off."""


class Deed(StrEnum):
    """What follows from a rule."""

    PAUSE = "pause"  # the schedule; the owners are told once
    STAND = "stand"  # nothing now; it is looked at again
    FIRE = "fire"  # an entry, and so a turn
    ASK = "ask"  # an entry whose turn begins with a question
    PASS = "pass"  # no entry; the row says why


@dataclass(frozen=True, slots=True, kw_only=True)
class OccasionFacts:
    """All that the decision may rest on."""

    kind: ScheduleKind
    late: Late
    late_ms_max: int
    """How late it may be, as `allowed_late_ms` says."""
    overlap: Overlap
    late_ms: int
    is_person_allowed: bool
    is_interactive: bool
    """Whether a person can be asked in its chat."""
    breaker: Breaker = Breaker.CLOSED
    open_turn: str = ""
    """The turn or the entry of the previous occasion while that is open; else empty."""
    is_decided: bool = False
    """This due time has its row already: the clock was ahead when it was decided."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OccasionDecision:
    deed: Deed
    verdict: OccasionVerdict | None
    rule: str
    because: str


@dataclass(frozen=True, slots=True, kw_only=True)
class OccasionRule:
    label: str
    when: Callable[[OccasionFacts], bool]
    deed: Deed
    verdict: OccasionVerdict | None
    says: str
    """The condition in words, for the docs and for a person who asks why."""


def _is_too_late(facts: OccasionFacts) -> bool:
    return facts.late is not Late.RUN and facts.late_ms > facts.late_ms_max


RULES: tuple[OccasionRule, ...] = (
    OccasionRule(
        label="person-not-allowed",
        when=lambda facts: not facts.is_person_allowed,
        deed=Deed.PAUSE,
        verdict=OccasionVerdict.SKIPPED,
        says="its person is no longer allowed to use this gateway",
    ),
    OccasionRule(
        label="boot-breaker",
        when=lambda facts: facts.breaker is Breaker.OPEN,
        deed=Deed.STAND,
        verdict=None,
        says="the gateway keeps dying; it is looked at again after ten quiet minutes",
    ),
    OccasionRule(
        label="already-run",
        when=lambda facts: facts.is_decided,
        deed=Deed.PASS,
        verdict=None,
        says="it was decided before, when the clock was ahead",
    ),
    OccasionRule(
        label="still-open",
        when=lambda facts: bool(facts.open_turn) and facts.overlap is Overlap.SKIP,
        deed=Deed.PASS,
        verdict=OccasionVerdict.SKIPPED,
        says="its previous occasion was still open",
    ),
    OccasionRule(
        label="too-late-to-ask",
        when=lambda facts: (
            _is_too_late(facts) and facts.late is Late.ASK and not facts.is_interactive
        ),
        deed=Deed.FIRE,
        verdict=OccasionVerdict.LATE,
        says="it was too late, and there is no person to ask whether it is still wanted",
    ),
    OccasionRule(
        label="too-late-ask",
        when=lambda facts: _is_too_late(facts) and facts.late is Late.ASK,
        deed=Deed.ASK,
        verdict=OccasionVerdict.ASKED,
        says="it was too late to be carried out without asking",
    ),
    OccasionRule(
        label="too-late",
        when=_is_too_late,
        deed=Deed.PASS,
        verdict=OccasionVerdict.MISSED,
        says="it was too late to be of use",
    ),
    OccasionRule(
        label="late",
        when=lambda facts: facts.late_ms >= LATE_TOLD_MS,
        deed=Deed.FIRE,
        verdict=OccasionVerdict.LATE,
        says="it is late, and still of use",
    ),
    OccasionRule(
        label="due",
        when=lambda _facts: True,
        deed=Deed.FIRE,
        verdict=OccasionVerdict.FIRED,
        says="its time has come",
    ),
)

OTHER_RULES = {
    "newer-due": "a newer due time had come, too: only the newest is carried out",
    "run-now": "a person asked for it",
    "tried-again": "the model could not be reached the time before",
    "taken-away": "it was taken away while it waited",
}
"""Labels of rows that no rule of the table has written."""


def decide_occasion(facts: OccasionFacts) -> OccasionDecision:
    """What is done about a due time. Total."""
    rule = next(rule for rule in RULES if rule.when(facts))
    return OccasionDecision(
        deed=rule.deed, verdict=rule.verdict, rule=rule.label, because=rule.says
    )


def rule_words(label: str) -> str:
    """Why an occasion is what it is, in words."""
    known = {rule.label: rule.says for rule in RULES} | OTHER_RULES
    rule, _, what = label.partition(":")
    words = known.get(rule, rule)
    return f"{words} ({what})" if what else words


def allowed_late_ms(kind: ScheduleKind, own_ms: int | None, period_ms: int | None) -> int:
    """How late an occasion may be carried out: as the order says, else by its kind. What comes
    again may be late by half of its period, and never by more than two hours. Nothing is too late
    that is still on time."""
    if own_ms is not None:
        return own_ms
    if kind is ScheduleKind.AT:
        return AT_LATE_MS
    half_ms = LATE_MS_MAX if period_ms is None else period_ms // 2
    return max(LATE_TOLD_MS, min(LATE_MS_MAX, half_ms))


def retry_wait_ms(tries: int, now_ms: int, next_due_ms: int | None) -> int | None:
    """How long until an occasion that has failed is tried again; None if it is not: it was tried
    often enough, or the next one comes first."""
    if not 1 <= tries <= len(RETRY_MS):
        return None
    wait_ms = RETRY_MS[tries - 1]
    is_in_time = next_due_ms is None or now_ms + wait_ms < next_due_ms
    return wait_ms if is_in_time else None
