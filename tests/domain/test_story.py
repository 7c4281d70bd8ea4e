"""The journal in plain words: every event of a turn has some, and none leaks a code word."""

import pytest

from koboshi.domain.goal import GoalRule
from koboshi.domain.story import story_of_lines
from koboshi.domain.turn import TurnEvent
from koboshi.ports.views import JournalLine


def line(
    subject: str,
    event: str,
    *,
    number: int = 1,
    rule: str | None = None,
    reason: str | None = None,
    worker_id: int | None = None,
) -> JournalLine:
    return JournalLine(
        seq=1,
        at_ms=0,
        subject=subject,
        number=number,
        event=event,
        before=None,
        after=None,
        rule=rule,
        reason=reason,
        session_id=None,
        turn_id=None,
        worker_id=worker_id,
    )


def words(*lines: JournalLine) -> list[str]:
    return [said for _, said in story_of_lines(lines)]


@pytest.mark.parametrize("event", [each for each in TurnEvent if each is not TurnEvent.STEPPED])
def test_every_event_of_a_turn_has_words(event: TurnEvent) -> None:
    (said,) = words(line("turn", event, reason="why", worker_id=3))

    assert said not in (event, f"{event}: why")
    assert len(said.split()) > 1 or event in ("erred", "parked", "cleared", "gave-up")


@pytest.mark.parametrize(
    "reason,said",
    [
        ("crash", "taken up again after the gateway had died (rule fresh)"),
        ("drain", "taken up again after a restart (rule fresh)"),
        ("person", "taken up again, because the person wanted it (rule fresh)"),
        ("new-reason", "taken up again (rule fresh)"),
    ],
)
def test_why_a_turn_was_taken_up_again(reason: str, said: str) -> None:
    """S63: a crash, a restart and a person's wish are told apart."""
    assert words(line("turn", "resumed", rule="fresh", reason=reason)) == [said]


def test_a_verdict_is_told_with_its_rule_and_reason() -> None:
    """S161"""
    gave_up = line("turn", "gave-up", rule="exhausted", reason="it died each time")

    assert words(gave_up) == ["given up (rule exhausted): it died each time"]


def test_a_failure_is_told_in_the_words_that_the_person_got() -> None:
    assert words(line("turn", "erred", reason="too-many-steps")) == [
        "failed: it took too many steps"
    ]


def test_a_question_that_was_answered_by_other_words() -> None:
    assert words(line("turn", "declined", reason="other words"))[0].endswith(
        "they wrote something else, and that opened a turn of its own"
    )
    assert words(line("turn", "declined", reason="declined")) == [
        "the person did not want it to go on"
    ]


def test_a_call_and_its_result_are_told_by_the_name_of_the_tool() -> None:
    lines = (
        line("call", "started", reason="4.0 terminal"),
        line("step", "result", reason="call:4.0"),
        line("step", "result", reason="call:4.1"),
    )

    assert words(*lines) == [
        "the tool terminal began",
        "the tool terminal has its result",
        "call 4.1 has its result",
    ]


@pytest.mark.parametrize(
    "cause,said",
    [
        ("recovery", "the model was told of the interruption"),
        ("moved-on", "the model was told of the request that is not continued"),
        ("retry", "the model was told what ran before, so that it does not repeat it"),
        ("empty-reply", "the model was asked again, because its reply was empty"),
        ("entry:7", "a report was passed on to the model"),
        ("other", "the model was told something"),
    ],
)
def test_what_the_model_was_told(cause: str, said: str) -> None:
    assert words(line("step", "note", reason=cause)) == [said]


def test_who_asked() -> None:
    assert words(line("step", "question", reason="call:4.0")) == [
        "the model asked the person a question"
    ]
    assert words(line("step", "question", reason="verdict:stale")) == [
        "the gateway asked the person whether to go on"
    ]


def test_the_end_is_told_once() -> None:
    assert words(line("step", "note", reason="ended"), line("turn", "cut")) == [
        "stopped by the person"
    ]


def test_the_answer_is_told_once() -> None:
    assert words(line("turn", "answered"), line("step", "answer", reason="model")) == [
        "the answer was stored"
    ]


@pytest.mark.parametrize(
    "event,said",
    [
        ("delivered", "d9 was delivered"),
        ("postponed", "d9 was put off: why"),
        ("rejected", "d9 was refused by the platform: why"),
        ("abandoned", "d9 was given up: why"),
    ],
)
def test_deliveries(event: str, said: str) -> None:
    reason = None if event == "delivered" else "why"

    assert words(line("delivery", event, number=9, reason=reason)) == [said]


def test_processes() -> None:
    begun = line("process", "begun", number=4, reason="make test")
    ended = line("process", "ended", number=4, reason="it exited with code 0")

    assert words(begun, ended) == ["p4 began: make test", "p4 ended: it exited with code 0"]


@pytest.mark.parametrize(
    "event,rule,said",
    [
        ("begun", None, "goal g1 was set"),
        ("judging", "answered", "goal g1 is judged by the answer"),
        ("active", "judged", "goal g1 continues"),
        ("active", "person-first", "goal g1 continues: what a person wrote goes first"),
        ("paused", "turn-failed", "goal g1 was paused: its turn failed"),
        ("done", "judged", "goal g1 is reached"),
    ],
)
def test_goals(event: str, rule: str | None, said: str) -> None:
    """Issue 19, point 1: red before, "g1 active: judged"."""
    assert words(line("goal", event, rule=rule)) == [said]


def test_every_rule_of_a_goal_has_words_or_needs_none() -> None:
    said = {rule: words(line("goal", "paused", rule=rule))[0] for rule in GoalRule}

    bare = {rule for rule, each in said.items() if each == "goal g1 was paused"}
    assert bare == {GoalRule.ANSWERED, GoalRule.JUDGED}
    assert not [each for rule, each in said.items() if str(rule) in each.split(": ")[1:]]


def test_what_a_later_version_writes_is_shown_as_it_is() -> None:
    lines = (line("robot", "ended", number=4, reason="lost"), line("turn", "merged"))

    assert words(*lines) == ["robot 4: ended: lost", "merged"]
