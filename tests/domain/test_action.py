"""What a turn does next follows from its transcript alone, so a resumed turn is a turn."""

from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from koboshi.domain.action import (
    EMPTY_REPLY,
    Ask,
    CallModel,
    Fail,
    Finish,
    Nudge,
    RunCalls,
    TurnLimits,
    next_action,
)
from koboshi.domain.ids import CallId, EntryId, Epoch, Seq, TurnId
from koboshi.domain.transcript import (
    Body,
    Call,
    CallRecord,
    Effect,
    Message,
    Need,
    Note,
    Reply,
    Result,
    ResultStatus,
    Step,
)

REQUEST = Message(text="count to three", sender="ann", entry_id=EntryId(1), sent_ms=0)
WORDS = Reply(text="one, two, three")
SILENCE = Reply(text=" \n")
NUDGED = Note(cause=EMPTY_REPLY, text="say something")


def transcript(*bodies: Body) -> tuple[Step, ...]:
    return tuple(
        Step(seq=Seq(place), turn_id=TurnId(1), epoch=Epoch(1), at_ms=place, body=body)
        for place, body in enumerate((REQUEST, *bodies), start=1)
    )


def record(
    place: int,
    need: Need = Need.NOBODY,
    *,
    effect: Effect = Effect.NONE,
    started_ms: int | None = None,
    finished_ms: int | None = None,
    approved_ms: int | None = None,
) -> CallRecord:
    call = Call(call_id=CallId(f"2.{place}"), tool="any", arguments="{}", effect=effect, need=need)
    return CallRecord(
        call=call, started_ms=started_ms, finished_ms=finished_ms, approved_ms=approved_ms
    )


def reply_with(*records: CallRecord) -> Reply:
    return Reply(text="", calls=tuple(each.call for each in records))


def test_an_unanswered_message_asks_the_model() -> None:
    """S58."""
    assert next_action(transcript(), []) == CallModel()


def test_a_reply_that_never_reached_its_end_is_asked_for_again() -> None:
    """S56: words without their end are not stored, so the message is still unanswered."""
    assert next_action(transcript(), [], proposed=None) == CallModel()


def test_proposed_calls_are_run() -> None:
    """S55: a reply with calls is unfinished work."""
    call = record(1)

    assert next_action(transcript(reply_with(call)), [call]) == RunCalls(records=(call,))


def test_results_without_an_answer_ask_the_model_to_go_on() -> None:
    """S57."""
    call = record(1, started_ms=3, finished_ms=4)
    result = Result(call_id=call.call.call_id, status=ResultStatus.OK, text="3")

    assert next_action(transcript(reply_with(call), result), [call]) == CallModel()


def test_a_recovery_note_changes_nothing_about_what_is_next() -> None:
    """S53: notes are not progress."""
    call = record(1)
    note = Note(cause="recovery", text="you were interrupted")
    before = transcript(reply_with(call))

    assert next_action(transcript(reply_with(call), note), [call]) == next_action(before, [call])


def test_parallel_calls_are_run_together() -> None:
    calls = (record(1), record(2), record(3))

    assert next_action(transcript(reply_with(*calls)), calls) == RunCalls(records=calls)


def test_of_parallel_calls_only_the_unfinished_are_run() -> None:
    done, left = record(1, started_ms=3, finished_ms=4), record(2)

    assert next_action(transcript(reply_with(done, left)), [done, left]) == RunCalls(
        records=(left,)
    )


def test_a_call_that_was_under_way_is_taken_up_again() -> None:
    """What its effect allows is decided where it is run; here it only has no result."""
    call = record(1, effect=Effect.ONCE, started_ms=3)

    assert next_action(transcript(reply_with(call)), [call]) == RunCalls(records=(call,))


def test_the_model_goes_on_only_when_every_call_has_its_result() -> None:
    done, left = record(1, started_ms=3, finished_ms=4), record(2, started_ms=3)

    assert not isinstance(next_action(transcript(), [done, left]), CallModel)


@pytest.mark.parametrize("need", [Need.ANSWER, Need.APPROVAL])
def test_calls_that_need_no_person_run_before_anything_is_asked(need: Need) -> None:
    question, work = record(1, need), record(2)

    assert next_action(transcript(), [question, work]) == RunCalls(records=(work,))


@pytest.mark.parametrize("need", [Need.ANSWER, Need.APPROVAL])
def test_a_person_is_asked_when_nothing_else_is_left(need: Need) -> None:
    done, question = record(1, started_ms=3, finished_ms=4), record(2, need)

    assert next_action(transcript(), [done, question]) == Ask(record=question)


def test_the_oldest_question_is_asked_first() -> None:
    first, second = record(1, Need.APPROVAL), record(2, Need.ANSWER)

    assert next_action(transcript(), [first, second]) == Ask(record=first)


def test_the_next_question_follows_when_the_first_has_its_answer() -> None:
    first, second = record(1, Need.ANSWER, started_ms=3, finished_ms=4), record(2, Need.ANSWER)

    assert next_action(transcript(), [first, second]) == Ask(record=second)


def test_an_approved_call_is_run() -> None:
    approved = record(1, Need.APPROVAL, approved_ms=5)

    assert next_action(transcript(), [approved]) == RunCalls(records=(approved,))


def test_an_approved_call_runs_before_the_next_question() -> None:
    question, approved = record(1, Need.ANSWER), record(2, Need.APPROVAL, approved_ms=5)

    assert next_action(transcript(), [question, approved]) == RunCalls(records=(approved,))


def test_words_without_calls_are_the_answer() -> None:
    """S54: they are stored only as the answer."""
    assert next_action(transcript(), [], proposed=WORDS) == Finish(reply=WORDS)


def test_an_empty_reply_is_asked_for_once_more() -> None:
    assert next_action(transcript(), [], proposed=SILENCE) == Nudge(cause=EMPTY_REPLY)


def test_after_the_reminder_the_model_is_asked_again() -> None:
    assert next_action(transcript(NUDGED), []) == CallModel()


def test_the_second_empty_reply_fails_the_turn() -> None:
    assert next_action(transcript(NUDGED), [], proposed=SILENCE) == Fail(reason="empty-reply")


def test_each_empty_reply_counts_once() -> None:
    limits = TurnLimits(empty_replies_max=2)

    assert next_action(transcript(NUDGED), [], proposed=SILENCE, limits=limits) == Nudge()


def test_words_after_an_empty_reply_are_the_answer() -> None:
    assert next_action(transcript(NUDGED), [], proposed=WORDS) == Finish(reply=WORDS)


def test_other_notes_are_not_counted_as_empty_replies() -> None:
    note = Note(cause="recovery", text="you were interrupted")

    assert next_action(transcript(note), [], proposed=SILENCE) == Nudge()


@pytest.mark.parametrize("steps_max", [1, 2])
def test_a_turn_fails_when_its_steps_are_used_up(steps_max: int) -> None:
    steps = transcript(NUDGED)
    action = next_action(steps, [], limits=TurnLimits(steps_max=steps_max))

    assert action == Fail(reason="too-many-steps")


def test_a_turn_goes_on_while_it_has_a_step_left() -> None:
    assert next_action(transcript(NUDGED), [], limits=TurnLimits(steps_max=3)) == CallModel()


def test_an_answer_is_taken_even_at_the_step_limit() -> None:
    limits = TurnLimits(steps_max=1)

    assert next_action(transcript(), [], proposed=WORDS, limits=limits) == Finish(reply=WORDS)


def test_calls_are_finished_even_at_the_step_limit() -> None:
    call = record(1)
    limits = TurnLimits(steps_max=1)

    assert next_action(transcript(), [call], limits=limits) == RunCalls(records=(call,))


@st.composite
def any_record(draw: st.DrawFn, place: int = 1) -> CallRecord:
    started_ms = draw(st.none() | st.just(3))
    return record(
        place,
        draw(st.sampled_from(Need)),
        effect=draw(st.sampled_from(Effect)),
        started_ms=started_ms,
        finished_ms=None if started_ms is None else draw(st.none() | st.just(4)),
        approved_ms=draw(st.none() | st.just(2)),
    )


ANY_CALLS = st.lists(any_record(), max_size=5)
ANY_BODY: st.SearchStrategy[Body] = st.sampled_from((WORDS, NUDGED))
ANY_STEPS = st.lists(ANY_BODY, max_size=5).map(lambda bodies: transcript(*bodies))
ANY_REPLY = st.sampled_from((None, WORDS, SILENCE))
ANY_LIMITS = st.builds(TurnLimits, steps_max=st.integers(0, 8), empty_replies_max=st.integers(0, 3))


@given(ANY_STEPS, ANY_CALLS, ANY_REPLY, ANY_LIMITS)
@settings(deadline=None)
def test_a_finished_call_is_never_run(
    steps: Sequence[Step], calls: list[CallRecord], proposed: Reply | None, limits: TurnLimits
) -> None:
    """S159: an effect whose result is stored is not executed again."""
    action = next_action(steps, calls, proposed, limits)

    if isinstance(action, RunCalls):
        assert action.records
        assert all(each.finished_ms is None for each in action.records)


@given(ANY_STEPS, ANY_CALLS, ANY_REPLY, ANY_LIMITS)
@settings(deadline=None)
def test_a_call_that_waits_for_a_person_is_never_run(
    steps: Sequence[Step], calls: list[CallRecord], proposed: Reply | None, limits: TurnLimits
) -> None:
    """S143: no restart is an approval."""
    action = next_action(steps, calls, proposed, limits)

    if isinstance(action, RunCalls):
        assert not any(each.waits_for_person for each in action.records)


@given(ANY_STEPS, ANY_CALLS, ANY_REPLY, ANY_LIMITS)
@settings(deadline=None)
def test_while_a_call_has_no_result_the_turn_runs_it_or_asks_and_does_nothing_else(
    steps: Sequence[Step], calls: list[CallRecord], proposed: Reply | None, limits: TurnLimits
) -> None:
    action = next_action(steps, calls, proposed, limits)

    assert isinstance(action, RunCalls | Ask) == any(each.is_unresolved for each in calls)


@given(ANY_STEPS, ANY_CALLS, ANY_REPLY, ANY_LIMITS)
@settings(deadline=None)
def test_the_same_transcript_always_has_the_same_next_action(
    steps: Sequence[Step], calls: list[CallRecord], proposed: Reply | None, limits: TurnLimits
) -> None:
    """S161."""
    once = next_action(steps, calls, proposed, limits)

    assert next_action(tuple(steps), tuple(calls), proposed, limits) == once
