"""Recovery is decided by one table over durable facts, and here it meets every combination."""

from dataclasses import replace

import pytest

from koboshi.domain.call_fate import CallFate, fate_of
from koboshi.domain.errors import ContradictoryFacts
from koboshi.domain.recovery import (
    RULES,
    Interruption,
    Policy,
    RecoveryPolicy,
    VerdictKind,
    contradiction_in,
    decide,
)
from koboshi.domain.transcript import Effect, Tail
from koboshi.domain.turn import TRANSITIONS, TurnEvent, TurnState
from tests.harness.recovery_cases import (
    FRESH,
    HOUR_MS,
    POLICY,
    around_each_limit,
    cases,
    expected,
    facts_that_may_exclude_each_other,
    few_facts,
    is_impossible,
)

RULES_ABOUT_HISTORY = frozenset(
    "exhausted worn-out policy-moved-on policy-behind policy-off policy-ask "
    "stale-moved-on stale stale-unattended outcome-unknown".split()
)
"""Rules 6 to 12 of the design."""


@pytest.mark.slow
def test_facts_are_refused_exactly_when_they_exclude_each_other() -> None:
    for facts in facts_that_may_exclude_each_other():
        assert (contradiction_in(facts) is not None) == is_impossible(facts), facts


@pytest.mark.slow
def test_a_verdict_over_facts_that_exclude_each_other_is_refused() -> None:
    for facts in filter(is_impossible, facts_that_may_exclude_each_other()):
        with pytest.raises(ContradictoryFacts):
            decide(facts, POLICY)


def test_a_refusal_says_in_words_what_is_wrong() -> None:
    with pytest.raises(ContradictoryFacts, match="a closed turn was brought to recovery"):
        decide(replace(FRESH, state=TurnState.DONE), POLICY)


@pytest.mark.slow
def test_every_consistent_combination_of_facts_has_the_verdict_of_the_design() -> None:
    """The first rule of the table that holds speaks, and some rule always does."""
    for case in cases():
        verdict = case.verdict
        assert (verdict.rule, verdict.kind) == expected(case.facts, case.policy), case


@pytest.mark.slow
def test_the_kind_of_interruption_changes_no_verdict() -> None:
    """S37: what matters is what the turn is, not how the gateway went down."""
    for facts in few_facts():
        verdicts = {decide(replace(facts, interruption=kind), POLICY) for kind in Interruption}
        assert len(verdicts) == 1, facts


def test_the_limits_are_read_from_the_policy() -> None:
    policy = Policy(fresh_ms=5, deaths_max=1, recoveries_max=2)
    for facts in around_each_limit((0, 1, 2, 3), (0, 1, 2), (0, 4, 5, 6)):
        verdict = decide(facts, policy)
        assert (verdict.rule, verdict.kind) == expected(facts, policy), facts


def test_every_rule_is_reached() -> None:
    assert {case.verdict.rule for case in cases()} == {rule.label for rule in RULES}


def test_every_kind_of_verdict_is_reached() -> None:
    assert {case.verdict.kind for case in cases()} == set(VerdictKind)


def test_the_rules_stand_in_the_order_of_the_design() -> None:
    assert [rule.label for rule in RULES] == (
        "answered not-allowed-behind replied question-open person-not-allowed channel-unknown "
        "agent-attached host-away exhausted worn-out "
        "policy-moved-on policy-behind policy-off policy-ask stale-moved-on stale "
        "stale-unattended outcome-unknown breaker-moved-on boot-breaker fresh"
    ).split()


def test_every_verdict_names_its_rule_and_says_why() -> None:
    """S161, S168: each decision comes with its reason."""
    reasons = {rule.label: rule.because for rule in RULES}
    for case in cases():
        assert case.verdict.because == reasons[case.verdict.rule] != "", case


def test_the_same_facts_always_have_the_same_verdict() -> None:
    """S161, S61: startup, message and `explain` ask one function, and it has no memory."""
    for case in reversed(cases()):
        assert decide(case.facts, case.policy) == case.verdict, case


def test_every_verdict_can_be_carried_out() -> None:
    """A verdict is an event that the turn's state allows, or changes nothing."""
    event_of = {
        VerdictKind.RESUME: TurnEvent.RESUMED,
        VerdictKind.CLEAR: TurnEvent.CLEARED,
        VerdictKind.ASK_USER: TurnEvent.PROMPTED,
        VerdictKind.SUSPEND: TurnEvent.PARKED,
        VerdictKind.GIVE_UP: TurnEvent.GAVE_UP,
    }
    changes_nothing = {
        (TurnState.QUEUED, VerdictKind.RESUME),
        (TurnState.SUSPENDED, VerdictKind.SUSPEND),
        (TurnState.ANSWERED, VerdictKind.DELIVER),
        *((state, VerdictKind.STAND) for state in TurnState),
    }
    for state, kind in {(case.facts.state, case.verdict.kind) for case in cases()}:
        assert (state, kind) in changes_nothing or (state, event_of[kind]) in TRANSITIONS


def test_no_verdict_leads_to_a_second_run_of_a_call_that_must_run_once() -> None:
    """S68, S159: in any resumed turn, only what may be repeated is run again."""
    resumed = {
        case.facts.under_way
        for case in cases()
        if case.verdict.kind is VerdictKind.RESUME and case.facts.under_way is not None
    }
    run_again = {effect for effect in resumed if fate_of(effect) is CallFate.RUN_AGAIN}

    assert resumed == set(Effect)
    assert run_again == {Effect.NONE, Effect.REPEATABLE}


def test_an_answered_turn_is_only_ever_delivered() -> None:
    """S5, S54, S147: an answer that exists is not worked out a second time."""
    kinds = {case.verdict.kind for case in cases() if case.facts.state is TurnState.ANSWERED}

    assert kinds == {VerdictKind.DELIVER}


def test_only_an_answered_turn_is_delivered() -> None:
    states = {case.facts.state for case in cases() if case.verdict.kind is VerdictKind.DELIVER}

    assert states == {TurnState.ANSWERED}


def test_a_waiting_turn_stands_until_a_message_is_there() -> None:
    """S60, S140, S142, S143: a restart neither answers a question nor withdraws it."""
    seen = {
        (case.facts.message_waits, case.verdict.kind)
        for case in cases()
        if case.facts.state is TurnState.WAITING and case.facts.is_person_allowed
    }

    assert seen == {(False, VerdictKind.STAND), (True, VerdictKind.RESUME)}


def test_a_turn_that_was_never_claimed_is_not_judged_by_its_past() -> None:
    """S50, S58: a person waits for it, however long the gateway was down."""
    rules = {case.verdict.rule for case in cases() if not case.facts.is_claimed_before}

    assert not rules & RULES_ABOUT_HISTORY


def test_a_turn_that_a_person_asked_for_is_not_judged_by_its_past() -> None:
    """S41, S51: /resume brings back what recovery would not."""
    rules = {case.verdict.rule for case in cases() if case.facts.is_willed}

    assert not rules & RULES_ABOUT_HISTORY


def test_a_turn_is_cleared_only_for_a_message_that_waits() -> None:
    """S51: nothing is dropped without something that takes its place."""
    assert all(
        case.facts.message_behind for case in cases() if case.verdict.kind is VerdictKind.CLEAR
    )


def test_a_person_is_asked_only_where_one_can_answer() -> None:
    """S65."""
    assert all(
        case.facts.is_interactive for case in cases() if case.verdict.kind is VerdictKind.ASK_USER
    )


def test_nothing_resumes_by_itself_where_recovery_is_off() -> None:
    """S168: an answered question is not "by itself", a person has written; and a turn that waits
    for the model was not interrupted."""
    resumed = [
        case.facts
        for case in cases()
        if case.verdict.kind is VerdictKind.RESUME and case.facts.policy is RecoveryPolicy.OFF
    ]

    assert resumed
    assert all(
        facts.is_willed
        or facts.is_postponed
        or facts.is_attached  # its agent goes on by itself
        or not facts.is_claimed_before
        or facts.state is TurnState.WAITING
        for facts in resumed
    )


def test_work_on_an_unknown_channel_is_never_resumed() -> None:
    """S40, S42: it is set aside, and kept."""
    kinds = {
        case.verdict.kind
        for case in cases()
        if not case.facts.is_channel_known
        and case.facts.state in (TurnState.QUEUED, TurnState.RUNNING, TurnState.SUSPENDED)
    }

    assert kinds == {VerdictKind.SUSPEND}


def test_work_for_a_person_who_is_no_longer_allowed_is_set_aside() -> None:
    """S43; issue 12, A3: an allowed person who waits behind it is served, whenever they wrote."""
    for behind, kind in ((False, VerdictKind.SUSPEND), (True, VerdictKind.CLEAR)):
        kinds = {
            case.verdict.kind
            for case in cases()
            if not case.facts.is_person_allowed
            and case.facts.is_channel_known
            and case.facts.message_behind is behind
            and case.facts.state in (TurnState.QUEUED, TurnState.RUNNING, TurnState.SUSPENDED)
        }
        assert kinds == {kind}


def test_nothing_goes_on_for_a_person_who_is_no_longer_allowed() -> None:
    """Issue 12, A3: in no state, even with messages of others."""
    barred = [case for case in cases() if not case.facts.is_person_allowed]
    resumed = [case.facts for case in barred if case.verdict.kind is VerdictKind.RESUME]

    assert barred
    assert not resumed


@pytest.mark.parametrize("tail", [Tail.TRIGGER, Tail.PROPOSED, Tail.RESULT])
def test_unfinished_work_is_resumed_whatever_it_ends_with(tail: Tail) -> None:
    """S55, S57, S58: calls not started, results without an answer, an unanswered message."""
    assert decide(replace(FRESH, tail=tail), POLICY).kind is VerdictKind.RESUME


@pytest.mark.parametrize("effect", [Effect.NONE, Effect.REPEATABLE, Effect.RESUMABLE])
def test_work_is_resumed_over_a_call_that_can_be_taken_up(effect: Effect) -> None:
    facts = replace(FRESH, tail=Tail.STARTED, under_way=effect)

    assert decide(facts, POLICY).kind is VerdictKind.RESUME


@pytest.mark.parametrize(
    "idle_ms, rule", [(HOUR_MS - 1, "fresh"), (HOUR_MS, "fresh"), (HOUR_MS + 1, "stale")]
)
def test_an_hour_is_fresh_to_its_last_millisecond(idle_ms: int, rule: str) -> None:
    """S38, S47."""
    assert decide(replace(FRESH, idle_ms=idle_ms), POLICY).rule == rule


@pytest.mark.parametrize("fresh_ms", [0, -1])
def test_without_a_time_limit_everything_is_fresh(fresh_ms: int) -> None:
    """S47."""
    facts = replace(FRESH, idle_ms=365 * 24 * HOUR_MS)

    assert decide(facts, Policy(fresh_ms=fresh_ms)).rule == "fresh"


def test_the_shortest_time_limit_is_a_limit() -> None:
    assert decide(replace(FRESH, idle_ms=2), Policy(fresh_ms=1)).rule == "stale"


@pytest.mark.parametrize("deaths, kind", [(2, VerdictKind.RESUME), (3, VerdictKind.GIVE_UP)])
def test_the_third_death_without_a_new_step_is_the_last(deaths: int, kind: VerdictKind) -> None:
    """S59, S71: a restart loop ends by the turn's own count."""
    assert decide(replace(FRESH, crash_streak=deaths), POLICY).kind is kind


@pytest.mark.parametrize("recoveries, kind", [(9, VerdictKind.RESUME), (10, VerdictKind.ASK_USER)])
def test_after_ten_recoveries_a_person_decides(recoveries: int, kind: VerdictKind) -> None:
    """An agent that restarts its own gateway makes a step in every life."""
    assert decide(replace(FRESH, recoveries=recoveries), POLICY).kind is kind


@pytest.mark.parametrize(
    "crash_streak, wait_ms", [(1, 2_000), (2, 30_000), (3, 30_000), (1_000, 30_000)]
)
def test_a_turn_that_died_waits_longer_each_time_up_to_a_bound(
    crash_streak: int, wait_ms: int
) -> None:
    assert POLICY.not_before(crash_streak, worked_ms=7) == 7 + wait_ms


def test_a_turn_that_did_not_die_need_not_wait() -> None:
    assert POLICY.not_before(0, worked_ms=7) == 0


def test_without_a_back_off_nothing_waits() -> None:
    assert Policy(backoff_ms=()).not_before(5, worked_ms=7) == 0


def test_a_clock_that_went_back_fails_no_turn() -> None:
    """S169."""
    assert decide(replace(FRESH, idle_ms=-1), POLICY).kind is VerdictKind.RESUME
