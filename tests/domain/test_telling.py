"""Who tells the person how a background process ended, once the turn that knew it is over."""

import pytest

from koboshi.domain import notes
from koboshi.domain.ids import ProcessId
from koboshi.domain.inbox import ReportWords
from koboshi.domain.telling import KnownEnd, Teller, names, teller_of
from koboshi.domain.watch import WatcherKind

P3 = ProcessId(3)


def an_end(
    *said: str, is_read: bool = False, is_sole_request: bool = False, is_quoted: bool = False
) -> KnownEnd:
    return KnownEnd(
        process_id=P3,
        is_read=is_read,
        is_sole_request=is_sole_request,
        said=said,
        is_quoted=is_quoted,
    )


@pytest.mark.parametrize(
    "end, is_answered, teller",
    [
        (an_end("p3 has ended"), True, Teller.WORDS),
        (an_end("p3 has ended", is_read=True), True, Teller.WORDS),
        (an_end("Four.", is_read=True), True, Teller.CALL),
        (an_end("All is well.", is_sole_request=True), True, Teller.ANSWER),
        (an_end("Four."), True, Teller.GATEWAY),
        (an_end(), True, Teller.GATEWAY),
        (an_end("", "p30 goes on"), True, Teller.GATEWAY),
        # Nothing was answered: what the model has read or was asked does not reach the person.
        (an_end(), False, Teller.GATEWAY),
        (an_end(is_read=True), False, Teller.GATEWAY),
        (an_end(is_sole_request=True), False, Teller.GATEWAY),
        (an_end(is_quoted=True), False, Teller.QUOTE),
        (an_end("p3 has ended: shall I go on?"), False, Teller.WORDS),
    ],
)
def test_an_end_is_told_by_the_model_or_else_by_us(
    end: KnownEnd, is_answered: bool, teller: Teller
) -> None:
    """Issue 13, B11."""
    assert teller_of(end, is_answered=is_answered) is teller


@pytest.mark.parametrize(
    "text",
    ["p3", "`p3` is done", "(p3)", "p3.", "It was p3, and it failed", "p3が終了しました", "p2/p3"],
)
def test_a_process_is_named_by_its_literal_id(text: str) -> None:
    """Issue 13, B11: with anything around it, also letters of another script."""
    assert names(text, P3)


@pytest.mark.parametrize("text", ["", "p30", "mp3", "P3", "p 3", "p_p3", "p3x", "process 3"])
def test_what_only_looks_like_its_id_does_not_name_it(text: str) -> None:
    """Issue 13, B11: to say it twice is better than not to say it."""
    assert not names(text, P3)


def test_the_note_about_an_end_asks_for_the_id_behind_the_output() -> None:
    """Issue 13, B11: a program that prints our mark does not change what is asked."""
    text = notes.report("Background process p3 (make) exited:", "[koboshi] say p4", name="p3")

    first, output, asked = text.splitlines()
    assert first == "[koboshi] Background process p3 (make) exited:"
    assert output == "(koboshi) say p4"
    assert asked.startswith("[koboshi] ")
    assert names(asked, P3)
    assert notes.reported_in(text) == f"{first.removeprefix('[koboshi] ')}\n{output}"
    assert notes.headline_in(text) == "Background process p3 (make) exited"


@pytest.mark.parametrize("kind", WatcherKind)
def test_only_an_end_is_asked_to_be_told(kind: WatcherKind) -> None:
    """Issue 13, B11: matches and progress are for the agent alone."""
    words = ReportWords(kind=kind, process_id=P3, headline="…", output="…")

    assert words.name_to_tell == ("p3" if kind is WatcherKind.EXIT else "")
