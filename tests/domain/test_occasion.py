"""What is done about a due time: the whole table, case by case."""

from collections import Counter
from itertools import product

import pytest

from koboshi.domain.occasion import (
    AT_LATE_MS,
    LATE_MS_MAX,
    LATE_TOLD_MS,
    RETRY_MS,
    RULES,
    Deed,
    OccasionFacts,
    allowed_late_ms,
    decide_occasion,
    retry_wait_ms,
    rule_words,
)
from koboshi.domain.schedule import Late, OccasionVerdict, Overlap, ScheduleKind
from koboshi.domain.worker import Breaker

MINUTE_MS, HOUR_MS, DAY_MS = 60_000, 3_600_000, 86_400_000
DOWNTIMES = (0, 5 * MINUTE_MS, 6 * HOUR_MS, 3 * DAY_MS)
PERIODS = {ScheduleKind.AT: None, ScheduleKind.EVERY: HOUR_MS, ScheduleKind.CRON: DAY_MS}


def every_case() -> list[OccasionFacts]:
    return [
        OccasionFacts(
            kind=kind,
            late=late,
            late_ms_max=allowed_late_ms(kind, None, PERIODS[kind]),
            overlap=overlap,
            late_ms=late_ms,
            is_person_allowed=allowed,
            is_interactive=interactive,
            breaker=breaker,
            open_turn=open_turn,
            is_decided=decided,
        )
        for kind, late, overlap, late_ms, allowed, interactive, breaker, open_turn, decided in (
            product(
                ScheduleKind,
                Late,
                Overlap,
                DOWNTIMES,
                (True, False),
                (True, False),
                Breaker,
                ("", "t12"),
                (True, False),
            )
        )
    ]


def expected(facts: OccasionFacts) -> str:
    """The table of the design, said once more and otherwise."""
    if not facts.is_person_allowed:
        return "person-not-allowed"
    if facts.breaker is Breaker.OPEN:
        return "boot-breaker"
    if facts.is_decided:
        return "already-run"
    if facts.open_turn and facts.overlap is Overlap.SKIP:
        return "still-open"
    limit = {
        ScheduleKind.AT: DAY_MS,
        ScheduleKind.EVERY: HOUR_MS // 2,
        ScheduleKind.CRON: 2 * HOUR_MS,
    }
    if facts.late_ms > limit[facts.kind]:
        if facts.late is Late.SKIP:
            return "too-late"
        if facts.late is Late.ASK:
            return "too-late-ask" if facts.is_interactive else "too-late-to-ask"
    return "late" if facts.late_ms >= MINUTE_MS else "due"


def test_every_case_of_the_table_is_decided_as_the_design_says() -> None:
    """Must show: the exhaustive case table, kind × late × overlap × downtime and the rest."""
    cases = every_case()
    assert len(cases) == 3 * 3 * 2 * 4 * 2 * 2 * 3 * 2 * 2
    spoken: Counter[str] = Counter()
    for facts in cases:
        decision = decide_occasion(facts)
        assert decision.rule == expected(facts), facts
        spoken[decision.rule] += 1
    assert set(spoken) == {rule.label for rule in RULES}, "each rule speaks somewhere"


def test_no_due_time_is_lost_in_silence() -> None:
    """Whatever is decided leaves a row, or has one, or is decided again; and a reminder is never
    only missed unless its own order says so."""
    for facts in every_case():
        decision = decide_occasion(facts)
        if decision.deed in (Deed.FIRE, Deed.ASK, Deed.PAUSE):
            assert decision.verdict is not None
        if decision.verdict is None:
            assert decision.deed is Deed.STAND or facts.is_decided
        if facts.kind is ScheduleKind.AT and decision.verdict is OccasionVerdict.MISSED:
            assert facts.late is Late.SKIP


def test_the_defaults() -> None:
    assert allowed_late_ms(ScheduleKind.AT, None, None) == AT_LATE_MS == DAY_MS
    assert allowed_late_ms(ScheduleKind.CRON, None, DAY_MS) == LATE_MS_MAX == 2 * HOUR_MS
    assert allowed_late_ms(ScheduleKind.EVERY, None, HOUR_MS) == HOUR_MS // 2
    assert allowed_late_ms(ScheduleKind.EVERY, None, 1_000) == LATE_TOLD_MS
    assert allowed_late_ms(ScheduleKind.CRON, 7, DAY_MS) == 7


@pytest.mark.parametrize("tries", [0, 1, 2, 3, 4])
def test_tries_are_five_fifteen_and_thirty_minutes_apart_and_end_before_the_next_time(
    tries: int,
) -> None:
    wait_ms = retry_wait_ms(tries, 1_000, None)
    assert wait_ms == (RETRY_MS[tries - 1] if 1 <= tries <= 3 else None)
    if wait_ms is not None:
        assert retry_wait_ms(tries, 1_000, 1_000 + wait_ms) is None
        assert retry_wait_ms(tries, 1_000, 1_001 + wait_ms) == wait_ms


def test_each_rule_has_words() -> None:
    assert rule_words("still-open:t12") == "its previous occasion was still open (t12)"
    assert rule_words("newer-due") != "newer-due"
    assert rule_words("unheard-of") == "unheard-of"
