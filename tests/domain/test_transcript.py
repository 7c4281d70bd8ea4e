"""What a transcript ends with, and how far a call got."""

from typing import get_args

import pytest

from koboshi.domain.ids import CallId
from koboshi.domain.transcript import (
    KIND_OF,
    Body,
    Call,
    CallRecord,
    Effect,
    Need,
    StepKind,
    Tail,
    fingerprint,
    tail_of,
)


def record(
    need: Need = Need.NOBODY,
    *,
    started_ms: int | None = None,
    finished_ms: int | None = None,
    approved_ms: int | None = None,
) -> CallRecord:
    call = Call(call_id=CallId("1.1"), tool="any", arguments="{}", effect=Effect.ONCE, need=need)
    return CallRecord(
        call=call, started_ms=started_ms, finished_ms=finished_ms, approved_ms=approved_ms
    )


PROPOSED = record()
STARTED = record(started_ms=1)
FINISHED = record(started_ms=1, finished_ms=2)


def test_every_kind_of_step_has_a_name() -> None:
    assert set(KIND_OF) == set(get_args(Body))


def test_no_two_kinds_of_step_share_a_name() -> None:
    assert sorted(KIND_OF.values()) == sorted(StepKind)


def test_a_turn_that_waits_ends_with_its_question() -> None:
    """S60: a person is asked, with any step before it."""
    assert tail_of(last=StepKind.REPLY, is_waiting=True, unresolved=[STARTED]) is Tail.QUESTION


def test_a_turn_with_an_answer_is_over() -> None:
    """S54."""
    assert tail_of(last=StepKind.ANSWER, is_waiting=False, unresolved=[]) is Tail.ANSWER


def test_a_call_that_was_started_outweighs_those_that_were_not() -> None:
    tail = tail_of(last=StepKind.REPLY, is_waiting=False, unresolved=[PROPOSED, STARTED])

    assert tail is Tail.STARTED


def test_a_call_that_was_started_outweighs_the_results_of_others() -> None:
    assert tail_of(last=StepKind.RESULT, is_waiting=False, unresolved=[STARTED]) is Tail.STARTED


def test_calls_that_were_only_proposed_have_certainly_not_run() -> None:
    """S55."""
    assert tail_of(last=StepKind.REPLY, is_waiting=False, unresolved=[PROPOSED]) is Tail.PROPOSED


def test_when_every_call_has_its_result_the_model_is_next() -> None:
    """S57."""
    assert tail_of(last=StepKind.RESULT, is_waiting=False, unresolved=[]) is Tail.RESULT


@pytest.mark.parametrize("last", [StepKind.MESSAGE, None])
def test_a_message_or_a_report_that_no_one_replied_to_is_the_trigger(last: StepKind | None) -> None:
    """S58, S59: a report arrives as a note, and notes do not count as a last step."""
    assert tail_of(last=last, is_waiting=False, unresolved=[]) is Tail.TRIGGER


@pytest.mark.parametrize(
    "call, is_unresolved, is_under_way",
    [(PROPOSED, True, False), (STARTED, True, True), (FINISHED, False, False)],
)
def test_a_call_is_proposed_then_under_way_then_finished(
    call: CallRecord, is_unresolved: bool, is_under_way: bool
) -> None:
    assert (call.is_unresolved, call.is_under_way) == (is_unresolved, is_under_way)


@pytest.mark.parametrize(
    "call, waits",
    [
        (record(Need.NOBODY), False),
        (record(Need.ANSWER), True),
        (record(Need.APPROVAL), True),
        (record(Need.APPROVAL, approved_ms=5), False),
    ],
)
def test_a_call_waits_for_a_person_until_it_has_what_it_needs(
    call: CallRecord, waits: bool
) -> None:
    """S143: only an approval that is stored counts."""
    assert call.waits_for_person == waits


def test_starting_a_question_does_not_answer_it() -> None:
    assert record(Need.ANSWER, started_ms=1, approved_ms=1).waits_for_person


def test_the_same_call_has_the_same_fingerprint_in_every_life() -> None:
    """It is stored, so it may not depend on the process that made it."""
    assert fingerprint("read", "{}") == "aafd7ae97f6a0d33cc188a7f4fa47177"


def test_another_tool_has_another_fingerprint() -> None:
    assert fingerprint("read", "{}") != fingerprint("write", "{}")


def test_other_arguments_have_another_fingerprint() -> None:
    assert fingerprint("read", '{"path": "a"}') != fingerprint("read", '{"path": "b"}')


def test_the_same_arguments_in_another_order_are_the_same_call() -> None:
    assert fingerprint("t", '{"a":1,"b":2}') == fingerprint("t", '{"b": 2, "a": 1}')
