"""What the chat client prints for an event."""

import pytest

from koboshi.channels.web.chat_events import (
    DeliveryLine,
    EntryLine,
    Line,
    MessageLine,
    Option,
    ShownCall,
    StepLine,
    TurnLine,
    TypingLine,
)
from koboshi.cli.chat.render import ScreenLines, render, safe

AT = "2025-11-15T21:00:00.123Z"


def delivery(text: str, *choices: str, may_be_duplicate: bool = False) -> DeliveryLine:
    return DeliveryLine(
        at=AT,
        thread="",
        turn="t1",
        delivery="d1",
        cause="step:1",
        part=1,
        parts=1,
        text=text,
        choices=tuple(Option(id=each.lower(), label=each) for each in choices),
        may_be_duplicate=may_be_duplicate,
    )


def test_an_answer_is_printed_as_it_is() -> None:
    assert render("answer", delivery("one\n\ttwo\n")) == (ScreenLines("one\n\ttwo"),)


def test_how_a_turn_goes_is_an_aside() -> None:
    """S102: it is not part of the conversation."""
    said = render("progress", delivery("Still working, 3 min, thinking."))

    assert said == (ScreenLines("Still working, 3 min, thinking.", is_aside=True),)


def test_a_question_has_numbered_choices() -> None:
    said = render("question", delivery("Shall I?", "Yes", "No"))

    assert said == (ScreenLines("Shall I?\n  1) Yes\n  2) No"),)


def test_a_possible_duplicate_is_labelled() -> None:
    """S146."""
    (said,) = render("answer", delivery("words", may_be_duplicate=True))

    assert "may be a duplicate" in said.text


def test_tool_steps_are_short_asides() -> None:
    reply = StepLine(
        at=AT,
        thread="",
        kind="reply",
        text="I will look.",
        calls=(ShownCall(call="7.1", tool="terminal", arguments='{"command": "ls"}'),),
    )
    result = StepLine(at=AT, thread="", kind="result", text="a\n" * 500, call="7.1", status="ok")

    assert render("step", reply) == (
        ScreenLines("I will look.", is_aside=True),
        ScreenLines('  → terminal {"command": "ls"}', is_aside=True),
    )
    (said,) = render("step", result)
    assert said.is_aside
    assert said.text.startswith("  ← ok: a a a")
    assert len(said.text) <= 110


@pytest.mark.parametrize(
    "kind,line,words",
    [
        (
            "message",
            MessageLine(at=AT, thread="", message="m1", sender="web", text="hello"),
            "> hello",
        ),
        (
            "entry",
            EntryLine(
                at=AT, thread="", message="m1", event="dropped", reason="cut", words="it was cut"
            ),
            "m1 was not answered: it was cut",
        ),
        (
            "turn",
            TurnLine(at=AT, thread="", turn="t1", state="queued", event="resumed", words="again"),
            "again",
        ),
    ],
)
def test_asides(kind: str, line: Line, words: str) -> None:
    assert render(kind, line) == (ScreenLines(words, is_aside=True),)


@pytest.mark.parametrize(
    "line",
    [
        TypingLine(at=AT, thread=""),
        TurnLine(at=AT, thread="", turn="t1", state="running", event="claimed"),
        EntryLine(at=AT, thread="", message="m1", event="accepted", state="command"),
    ],
)
def test_most_events_are_not_printed(line: Line) -> None:
    assert render("x", line) == ()


ATTACKS = [
    "\x1b]52;c;ZXZpbA==\x07",  # writes the clipboard
    "\x1b[2J\x1b[1;1H",  # clears the screen
    "\x1b]8;;http://evil.example\x1b\\click\x1b]8;;\x1b\\",  # a link that is not what it says
    "\x9b2J\x90q\x9c",  # the same as one-byte controls
    "safe\rEVIL",  # writes over the line
    "a\bb\x7fc\x00d",
    "\u202egnp.exe",  # turns the text around
    "a\u200bb\u2066c\ufeff",
    "\x0b\x0c\x85\u2028",
]


@pytest.mark.parametrize("attack", ATTACKS)
def test_nothing_that_a_terminal_would_obey_is_printed(attack: str) -> None:
    lines: list[tuple[str, Line]] = [
        ("answer", delivery(attack)),
        ("question", delivery("which?", attack)),
        ("message", MessageLine(at=AT, thread="", message="m1", sender="x", text=attack)),
        ("step", StepLine(at=AT, thread="", kind="result", text=attack, status=attack)),
        (
            "step",
            StepLine(
                at=AT,
                thread="",
                kind="reply",
                text=attack,
                calls=(ShownCall(call="1", tool=attack, arguments=attack),),
            ),
        ),
        ("entry", EntryLine(at=AT, thread="", message="m1", event="dropped", reason=attack)),
    ]
    for kind, line in lines:
        for said in render(kind, line):
            assert all(each.isprintable() or each in "\n\t" for each in said.text), said


def test_what_is_neutralised_stays_visible() -> None:
    assert safe("a\x1b[2J\r\nb\tc\x9b") == "a␛[2J\nb\tc<U+009B>"
    assert safe("はい 🙂 é") == "はい 🙂 é"
