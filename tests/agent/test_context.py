"""What a claimed turn shows to the model."""

from collections.abc import Sequence
from dataclasses import fields, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from koboshi.agent.context import build_request
from koboshi.agent.prompt import DEFAULT, system_prompt
from koboshi.domain.action import EMPTY_REPLY
from koboshi.domain.ids import (
    CallId,
    ChannelName,
    EntryId,
    Epoch,
    Generation,
    Seq,
    SessionId,
    TurnId,
)
from koboshi.domain.marks import MARK
from koboshi.domain.notes import ENDED, MOVED_ON, RECOVERY, RETRY
from koboshi.domain.phrases import YES_NO
from koboshi.domain.route import Route
from koboshi.domain.session import Session
from koboshi.domain.transcript import (
    Answer,
    Author,
    Body,
    Call,
    Effect,
    HeardMessage,
    HeardNote,
    Message,
    Note,
    Question,
    Reply,
    Result,
    ResultStatus,
    Step,
)
from koboshi.ports.model import Request, ToolSpec
from koboshi.ports.store import Loaded

TURN = TurnId(50)

SESSION = Session(
    session_id=SessionId(3),
    route=Route(channel=ChannelName("web:main"), chat="ann"),
    generation=Generation(1),
    context_from=Seq(0),
)
TOOL = ToolSpec(name="pause", description="", parameters="{}")


def says(text: str) -> Message:
    return Message(text=text, sender="ann", entry_id=EntryId(1), sent_ms=0)


def note(text: str, cause: str = RECOVERY) -> Note:
    return Note(cause=cause, text=text)


def calls(*call_ids: str) -> Reply:
    return Reply(
        text="",
        calls=tuple(
            Call(call_id=CallId(call_id), tool="pause", arguments="{}", effect=Effect.NONE)
            for call_id in call_ids
        ),
    )


def result(call_id: str) -> Result:
    return Result(call_id=CallId(call_id), status=ResultStatus.OK, text="{}")


ASKED_BY_GATEWAY = Question(author=Author.GATEWAY, text="Shall I continue?", choices=YES_NO)


def turn(turn_id: int, *bodies: Body) -> list[Step]:
    return [
        Step(
            seq=Seq(turn_id * 1_000 + place),
            turn_id=TurnId(turn_id),
            epoch=Epoch(1),
            at_ms=0,
            body=body,
        )
        for place, body in enumerate(bodies)
    ]


def loaded(*bodies: Body, context: Sequence[Step] = ()) -> Loaded:
    return Loaded(
        session=SESSION,
        context=tuple(context),
        steps=tuple(turn(TURN, *bodies)),
        calls=(),
        model_tries=0,
    )


def request(*bodies: Body, context: Sequence[Step] = (), steps_max: int = 400) -> Request:
    return build_request(
        loaded(*bodies, context=context), TURN, "Be kind.", [TOOL], steps_max=steps_max
    )


def bodies_of(made: Request) -> list[Body]:
    """What is shown, without its times."""
    return [as_stored(step.body) for step in made.steps]


def as_stored(body: Body) -> Body:
    match body:
        case HeardMessage():
            kept = {each.name: getattr(body, each.name) for each in fields(Message)}
            return Message(**kept)
        case HeardNote(cause=cause, text=text):
            return Note(cause=cause, text=text)
        case _:
            return body


def test_earlier_turns_come_before_this_one() -> None:
    earlier = turn(49, says("hello"), Answer(text="hi"))

    made = request(says("how are you?"), context=earlier)

    assert bodies_of(made) == [says("hello"), Answer(text="hi"), says("how are you?")]
    assert (made.session_id, made.turn_id, made.tools) == (SESSION.session_id, TURN, (TOOL,))


def test_the_system_prompt_has_no_time() -> None:
    """Issue 13, B9: providers cache it, so it changes neither with the hour nor with the day."""
    assert request(says("hi")).system == "Be kind."


def test_only_the_newest_recovery_note_of_a_turn_is_shown() -> None:
    """S63: exactly one recovery note for each resumed turn."""
    earlier = turn(49, says("a"), note("died once"), note("died twice"), Answer(text="b"))

    made = request(says("c"), note("one"), note("two"), note("three"), context=earlier)

    assert bodies_of(made) == [
        says("a"),
        note("died twice"),
        Answer(text="b"),
        says("c"),
        note("three"),
    ]


def test_other_notes_are_all_shown() -> None:
    made: list[Body] = [
        note("report 1", "report"),
        says("hi"),
        note("report 2", "report"),
        note("died"),
    ]

    assert bodies_of(request(*made)) == made


def test_the_question_of_the_gateway_and_its_yes_are_between_it_and_the_person() -> None:
    made = request(says("build it"), note("died"), ASKED_BY_GATEWAY, says("Yes."))

    assert bodies_of(made) == [says("build it"), note("died")]


def test_a_yes_that_came_after_work_went_on_is_words_for_the_model() -> None:
    """The question was answered by a button, and the message joined the running turn later."""
    made = request(says("go"), ASKED_BY_GATEWAY, calls("1.0"), result("1.0"), says("ok"))

    assert bodies_of(made)[-1] == says("ok")


def test_other_words_after_a_question_of_the_gateway_are_shown() -> None:
    made = request(says("build it"), ASKED_BY_GATEWAY, says("yes, but smaller"))

    assert bodies_of(made) == [says("build it"), says("yes, but smaller")]


def test_a_question_of_the_model_is_shown_as_its_call_and_result() -> None:
    question = Question(author=Author.MODEL, text="Why?", call_id=CallId("1.0"))

    made = request(says("ask me"), calls("1.0"), question, result("1.0"))

    assert bodies_of(made) == [says("ask me"), calls("1.0"), result("1.0")]


def test_every_result_stands_behind_its_reply_in_the_order_of_the_calls() -> None:
    """A recovery note came between, and the second call was faster."""
    made = request(says("go"), calls("1.0", "1.1"), note("died"), result("1.1"), result("1.0"))

    assert bodies_of(made) == [
        says("go"),
        calls("1.0", "1.1"),
        result("1.0"),
        result("1.1"),
        note("died"),
    ]


@pytest.mark.parametrize(
    "bodies",
    [
        (),
        (says(""),),
        (says(" \n"), note("died")),
        (note("died"),),
        (note("an earlier request was interrupted", MOVED_ON),),
        (note("the request was stopped", ENDED),),
        (note("these calls ran before", RETRY),),
        (note("your reply was empty", EMPTY_REPLY),),
        (ASKED_BY_GATEWAY, says("yes")),
    ],
)
def test_a_blank_turn_never_reaches_the_model(bodies: tuple[Body, ...]) -> None:
    """S67; S59: a recovery note alone is nothing to respond to."""
    with pytest.raises(ValueError, match="turn 50 holds no message, report or result"):
        request(*bodies, context=turn(49, says("hello"), Answer(text="hi")))


def test_a_report_is_something_to_respond_to() -> None:
    report = note("[koboshi] p3 exited", "report")

    assert bodies_of(request(report)) == [report]


def test_a_blank_message_beside_others_is_left_out() -> None:
    """S66: no empty words of a person are shown."""
    assert bodies_of(request(says("  "), says("hi"))) == [says("hi")]


def test_the_context_is_cut_at_the_border_of_a_turn() -> None:
    earlier = [
        *turn(47, says("a"), Answer(text="b")),
        *turn(48, says("c"), calls("48.0"), result("48.0"), Answer(text="d")),
        *turn(49, says("e"), Answer(text="f")),
    ]

    made = request(says("now"), context=earlier, steps_max=6)

    assert bodies_of(made) == [says("e"), Answer(text="f"), says("now")]
    assert len(request(says("now"), context=earlier, steps_max=7).steps) == 7
    assert len(request(says("now"), context=earlier, steps_max=9).steps) == 9


def test_this_turn_is_shown_whole_however_long_it_is() -> None:
    bodies: list[Body] = [says("count")]
    for place in range(500):
        bodies += [calls(f"{place}.0"), result(f"{place}.0")]

    made = request(*bodies, context=turn(49, says("a"), Answer(text="b")))

    assert bodies_of(made) == bodies


lengths = st.lists(st.integers(min_value=0, max_value=6), max_size=12)


@given(sizes=lengths, steps_max=st.integers(min_value=0, max_value=40))
def test_no_call_is_ever_separated_from_its_result(sizes: list[int], steps_max: int) -> None:
    context: list[Step] = []
    for number, size in enumerate(sizes, start=1):
        worked: list[Body] = []
        for place in range(size):
            worked += [calls(f"{number}.{place}"), result(f"{number}.{place}")]
        context += turn(number, says("go"), *worked, Answer(text="done"))

    made = request(says("now"), context=context, steps_max=steps_max)

    proposed = [
        call.call_id for body in bodies_of(made) if isinstance(body, Reply) for call in body.calls
    ]
    finished = [body.call_id for body in bodies_of(made) if isinstance(body, Result)]
    assert proposed == finished
    assert len(made.steps) <= max(steps_max, 1)
    stored = [*context, *turn(TURN, says("now"))][-len(made.steps) :]
    assert [replace(step, body=as_stored(step.body)) for step in made.steps] == stored


def test_the_default_prompt_explains_the_notes() -> None:
    assert MARK in DEFAULT
    assert "not the person's words" in DEFAULT


def test_the_configured_prompt_follows_the_default() -> None:
    assert system_prompt() == DEFAULT
    assert system_prompt("  \n") == DEFAULT
    assert system_prompt(" Speak like a pirate. ") == f"{DEFAULT}\n\nSpeak like a pirate."
