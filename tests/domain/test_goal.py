"""The gate of a goal, and what a judge says."""

from itertools import product

import pytest

from koboshi.domain.goal import (
    JUDGE_WAIT_MS,
    TRIES_MAX,
    BegunBy,
    Gate,
    JudgeVerdict,
    gate,
    judge_wait_ms,
    read_judgement,
)
from koboshi.domain.turn import TurnEvent, TurnState


def test_only_an_answer_passes_the_gate() -> None:
    """Every state × event × beginning: nothing but an answer, in the goal's generation, of a turn
    that a person or the goal began, is judged. An error text is never progress."""
    for state, event, by, current, other in product(
        TurnState, TurnEvent, BegunBy, (True, False), (True, False)
    ):
        is_silent = state is TurnState.DONE and event is TurnEvent.SILENCED
        is_answer = state is TurnState.ANSWERED or is_silent
        passed = gate(state, event, by, is_current=current, has_other_words=other)
        is_judged = is_answer and current and by is not BegunBy.OTHER
        assert (passed is Gate.JUDGE) == is_judged
        if state is TurnState.FAILED and current and by is not BegunBy.OTHER:
            assert passed is Gate.PAUSE


def test_a_question_of_the_agent_means_nothing_to_the_goal() -> None:
    for state in (TurnState.WAITING, TurnState.QUEUED, TurnState.RUNNING, TurnState.SUSPENDED):
        assert gate(state, TurnEvent.ASKED, BegunBy.GOAL, is_current=True) is Gate.NOTHING


def test_a_step_that_was_ended_pauses_and_one_that_gave_way_to_a_message_does_not() -> None:
    ended = TurnState.STOPPED
    assert gate(ended, TurnEvent.DROPPED, BegunBy.GOAL, is_current=True) is Gate.PAUSE
    assert gate(ended, TurnEvent.DECLINED, BegunBy.GOAL, is_current=True) is Gate.PAUSE
    assert gate(ended, TurnEvent.INTERRUPTED, BegunBy.GOAL, is_current=True) is Gate.NOTHING
    answered_otherwise = gate(
        ended, TurnEvent.DECLINED, BegunBy.GOAL, is_current=True, has_other_words=True
    )
    assert answered_otherwise is Gate.NOTHING


@pytest.mark.parametrize(
    "text, verdict",
    [
        ('{"verdict": "done", "reason": "all tests pass"}', JudgeVerdict.DONE),
        ('```json\n{"verdict": "continue", "reason": "two fail"}\n```', JudgeVerdict.CONTINUE),
        ('{"verdict": "wait", "reason": "it runs", "process": "p4"}', JudgeVerdict.WAIT),
        ('{"verdict": "wait", "reason": "later", "minutes": 10}', JudgeVerdict.WAIT),
        ('{"verdict": "blocked", "reason": "no key"}', JudgeVerdict.BLOCKED),
        ('{"verdict": "wait", "reason": "for what?"}', None),
        ('{"verdict": "wait", "reason": "x", "minutes": -1}', None),
        ('{"verdict": "wait", "reason": "x", "minutes": true}', None),
        ('{"verdict": "done"}', None),
        ('{"verdict": "done", "reason": "  "}', None),
        ('{"verdict": "probably", "reason": "x"}', None),
        ("It is done!", None),
        ("", None),
        ("[]", None),
        ("{" * 100_000 + "}" * 100_000, None),
    ],
)
def test_a_verdict_is_read_whole_or_not_at_all(text: str, verdict: JudgeVerdict | None) -> None:
    found = read_judgement(text)
    assert (None if found is None else found.verdict) == verdict


def test_the_judge_is_asked_again_a_bounded_number_of_times() -> None:
    waits = [judge_wait_ms(tries) for tries in range(1, TRIES_MAX + 1)]
    assert waits[:3] == list(JUDGE_WAIT_MS)
    assert waits[-1] is None
    assert all(wait is not None for wait in waits[:-1])
