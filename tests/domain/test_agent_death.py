"""Every combination of facts about an agent that died has a rule, and a prompt is sent again only
where it was certainly not received."""

from collections.abc import Iterator
from itertools import product

from koboshi.domain.agent_death import (
    DEATH_RULES,
    DEATHS_MAX,
    DeathFacts,
    DeathVerdict,
    FedState,
    Memory,
    decide_death,
)
from koboshi.domain.recovery import RecoveryPolicy

BOTH = (False, True)


def every_fact() -> Iterator[DeathFacts]:
    for fed, updates, memory, deaths, policy, asked, interactive, away in product(
        FedState, BOTH, Memory, range(DEATHS_MAX + 2), RecoveryPolicy, BOTH, BOTH, BOTH
    ):
        yield DeathFacts(
            fed=fed,
            has_updates=updates,
            memory=memory,
            deaths=deaths,
            policy=policy,
            is_asked=asked,
            is_interactive=interactive,
            is_away=away,
        )


def test_every_combination_has_a_rule_and_every_rule_is_reached() -> None:
    reached = {decide_death(facts).label for facts in every_fact()}

    assert reached == {rule.label for rule in DEATH_RULES}


def test_a_prompt_is_sent_again_only_where_it_was_certainly_not_received() -> None:
    for facts in every_fact():
        if decide_death(facts).then is DeathVerdict.PROMPT:
            is_unfed = facts.fed in (FedState.NONE, FedState.UNBEGUN)
            is_missing = facts.memory is Memory.WITHOUT and not facts.has_updates
            assert is_unfed or (is_missing and not facts.is_away)


def test_an_agent_does_not_die_for_ever() -> None:
    for facts in every_fact():
        if facts.deaths >= DEATHS_MAX:
            assert decide_death(facts).then is DeathVerdict.GIVE_UP


def test_no_person_is_asked_twice_nor_where_none_is() -> None:
    for facts in every_fact():
        if decide_death(facts).then is DeathVerdict.ASK:
            assert not facts.is_asked
            assert facts.is_interactive
            assert facts.policy is not RecoveryPolicy.AUTO


def test_nothing_is_decided_before_the_agent_was_asked_to_load() -> None:
    for facts in every_fact():
        if facts.memory is Memory.UNTRIED and facts.deaths < DEATHS_MAX:
            assert decide_death(facts).then is DeathVerdict.RESTART
