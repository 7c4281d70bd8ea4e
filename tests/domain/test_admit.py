"""What becomes of an entry, by everything that it may meet."""

from dataclasses import replace
from itertools import product

import pytest

from koboshi.domain.ids import EntryId, Generation, ProcessId, Seq, SessionId, TurnId
from koboshi.domain.inbox import (
    NO,
    YES,
    Admission,
    Attach,
    Drop,
    Entry,
    EntryKind,
    Hold,
    Interrupt,
    Open,
    OpenTurn,
    Redecide,
    ReportWords,
    Tell,
    Words,
    admit,
    picked_choice,
    yes_or_no,
)
from koboshi.domain.session import Busy
from koboshi.domain.transcript import Author, Choice, Question
from koboshi.domain.turn import TurnState
from koboshi.domain.watch import WatcherKind

NOW, BEFORE = Generation(2), Generation(1)
THIS_TURN, ANOTHER_TURN = TurnId(7), TurnId(6)
OPEN_QUESTION, OLD_QUESTION = Seq(40), Seq(30)
BOTH = (False, True)


def message(question: Seq | None = None) -> Entry:
    choice_id = None if question is None else "yes"
    return Entry(
        entry_id=EntryId(1),
        session_id=SessionId(1),
        generation=NOW,
        kind=EntryKind.MESSAGE,
        source="web",
        external_id="1",
        sender="ann",
        body=Words(text="Yes", sent_ms=0, question=question, choice_id=choice_id),
    )


def report(kind: WatcherKind, during_turn: TurnId | None = THIS_TURN) -> Entry:
    return replace(
        message(),
        kind=EntryKind.REPORT,
        body=ReportWords(kind=kind, process_id=ProcessId(1), headline="p1", output="ready"),
        during_turn=during_turn,
    )


ENTRIES = {
    "message": message(),
    "press": message(OPEN_QUESTION),
    "old-press": message(OLD_QUESTION),
    "exit": report(WatcherKind.EXIT),
    "every": report(WatcherKind.EVERY),
    "match": report(WatcherKind.MATCH),
    "match-0": report(WatcherKind.MATCH, during_turn=None),
    "match-2": report(WatcherKind.MATCH, during_turn=ANOTHER_TURN),
}
ENTRIES["told"] = replace(
    report(WatcherKind.EXIT),
    body=ReportWords(
        kind=WatcherKind.EXIT, process_id=ProcessId(1), headline="p1", output="", for_agent=False
    ),
)
REPORTS = ("told", "exit", "every", "match", "match-0", "match-2")

TABLE = """
situation           message   press  old-press exit   every  match  match-0 match-2 told
no-turn             open      closed closed    open   open   ended  open    ended   tell
queued              hold      closed closed    attach attach attach attach  ended   hold
postponed-queue     hold      closed closed    attach attach attach attach  ended   hold
postponed-steer     hold      closed closed    attach attach attach attach  ended   hold
postponed-interrupt interrupt closed closed    attach attach attach attach  ended   hold
running-queue       hold      closed closed    hold   hold   hold   hold    ended   hold
running-steer       hold      closed closed    hold   hold   hold   hold    ended   hold
running-interrupt   interrupt closed closed    hold   hold   hold   hold    ended   hold
boundary-queue      hold      closed closed    attach attach attach attach  ended   hold
boundary-steer      attach    closed closed    attach attach attach attach  ended   hold
boundary-interrupt  hold      closed closed    attach attach attach attach  ended   hold
waiting             attach    attach closed    hold   hold   hold   hold    ended   tell
suspended           redecide  closed closed    hold   hold   hold   hold    ended   tell
"""
"""What becomes of an entry of the session's own generation, whose process has no exit that was
read."""

REASONS = {"closed": "question-closed", "ended": "turn-ended"}
"""Why an entry is dropped, for the words of the table."""

NAMES: dict[Admission, str] = {
    Attach(): "attach",
    Open(): "open",
    Hold(): "hold",
    Interrupt(): "interrupt",
    Redecide(): "redecide",
    Tell(): "tell",
}


def cells() -> list[tuple[str, str, str]]:
    header, *rows = (line.split() for line in TABLE.strip().splitlines())
    return [
        (situation, entry, REASONS.get(outcome, outcome))
        for situation, *outcomes in rows
        for entry, outcome in zip(header[1:], outcomes, strict=True)
    ]


def situations(named: str) -> list[tuple[OpenTurn | None, Busy, bool]]:
    """All that the name leaves open: only a turn at work knows busy modes and boundaries."""
    if named == "no-turn":
        return list(product((None,), Busy, BOTH))
    place, _, mode = named.partition("-")
    if place == "postponed":
        turn = OpenTurn(turn_id=THIS_TURN, state=TurnState.QUEUED, is_postponed=True)
        return list(product((turn,), (Busy(mode),), BOTH))
    if mode:
        turn = OpenTurn(turn_id=THIS_TURN, state=TurnState.RUNNING)
        return [(turn, Busy(mode), place == "boundary")]
    question = OPEN_QUESTION if place == "waiting" else None
    turn = OpenTurn(turn_id=THIS_TURN, state=TurnState(place), question=question)
    return list(product((turn,), Busy, BOTH))


SITUATIONS = tuple(line.split()[0] for line in TABLE.strip().splitlines()[1:])


def outcome_of(admission: Admission) -> str:
    return admission.reason if isinstance(admission, Drop) else NAMES[admission]


def outcomes(
    entry: Entry, situation: str, *, is_exit_read: bool = False, generation: Generation = NOW
) -> set[str]:
    return {
        outcome_of(
            admit(
                entry,
                generation=generation,
                open_turn=open_turn,
                busy=busy,
                is_boundary=is_boundary,
                is_exit_read=is_exit_read,
            )
        )
        for open_turn, busy, is_boundary in situations(situation)
    }


@pytest.mark.parametrize("situation, entry, outcome", cells())
def test_an_entry_is_admitted_as_the_table_says(situation: str, entry: str, outcome: str) -> None:
    """S91: what is current and unread behaves as its situation says, and nothing else matters.

    S90: a match that belongs to another turn is dropped. S126: a report reaches an idle session.
    """
    assert outcomes(ENTRIES[entry], situation) == {outcome}


@pytest.mark.parametrize("situation", SITUATIONS)
@pytest.mark.parametrize("entry", ENTRIES)
@pytest.mark.parametrize("is_exit_read", BOTH)
def test_an_entry_of_another_generation_is_dropped_wherever_it_arrives(
    entry: str, situation: str, is_exit_read: bool
) -> None:
    """S86, S87, S89, S127: after a cut nothing of the old generation reaches the session. Only how
    a process ended is for the person, who knows nothing of generations."""
    old = replace(ENTRIES[entry], generation=BEFORE)

    found = outcomes(old, situation, is_exit_read=is_exit_read)

    if is_exit_read and entry in REPORTS:
        assert found == {"already-read"}
    elif entry in ("exit", "told"):
        assert found == outcomes(ENTRIES["told"], situation)
    else:
        assert found == {"cut"}


def test_generations_are_compared_for_equality_and_not_for_order() -> None:
    """S86: an entry of a generation that the session has not reached yet is not its own either."""
    assert outcomes(ENTRIES["message"], "no-turn", generation=BEFORE) == {"cut"}


@pytest.mark.parametrize("situation", SITUATIONS)
@pytest.mark.parametrize("entry", REPORTS)
def test_a_report_of_a_process_whose_exit_was_read_is_dropped(entry: str, situation: str) -> None:
    """S114, S115, S139: what the model has read is not told again."""
    assert outcomes(ENTRIES[entry], situation, is_exit_read=True) == {"already-read"}


@pytest.mark.parametrize("situation", SITUATIONS)
def test_a_message_does_not_care_about_processes(situation: str) -> None:
    unread, read = (outcomes(message(), situation, is_exit_read=known) for known in BOTH)

    assert read == unread


@pytest.mark.parametrize("situation", SITUATIONS)
@pytest.mark.parametrize("entry", ["press", "old-press"])
def test_a_press_never_opens_a_turn_and_never_interrupts_one(entry: str, situation: str) -> None:
    assert not outcomes(ENTRIES[entry], situation) & {"open", "interrupt"}


@pytest.mark.parametrize("situation", SITUATIONS)
@pytest.mark.parametrize("entry", REPORTS)
def test_a_report_never_interrupts_a_turn_and_never_reopens_one(entry: str, situation: str) -> None:
    """S98: only people interrupt."""
    assert not outcomes(ENTRIES[entry], situation) & {"interrupt", "redecide"}


def test_the_next_plain_message_answers_an_open_question() -> None:
    """S141."""
    assert outcomes(ENTRIES["message"], "waiting") == {"attach"}


def test_the_button_of_the_open_question_answers_it() -> None:
    """S141."""
    assert outcomes(ENTRIES["press"], "waiting") == {"attach"}


def test_the_button_of_an_older_question_does_not_answer_the_open_one() -> None:
    assert outcomes(ENTRIES["old-press"], "waiting") == {"question-closed"}


@pytest.mark.parametrize("kind", [EntryKind.COMMAND, EntryKind.IGNORED])
def test_a_command_never_becomes_input_of_a_turn(kind: EntryKind) -> None:
    """S96, S141: commands pass through and leave the question open."""
    with pytest.raises(ValueError, match="never becomes input"):
        outcomes(replace(message(), kind=kind), "waiting")


@pytest.mark.parametrize("entry", REPORTS[1:-1])
def test_a_report_does_not_answer_a_question(entry: str) -> None:
    assert outcomes(ENTRIES[entry], "waiting") == {"hold"}


QUESTION = Question(
    author=Author.MODEL,
    text="Which colour?",
    choices=(
        Choice(choice_id="r", label="Red"),
        Choice(choice_id="g", label="Grün"),
        Choice(choice_id="b", label="Deep blue"),
    ),
)


def said(text: str, choice_id: str | None = None) -> Words:
    return Words(text=text, sent_ms=0, choice_id=choice_id)


@pytest.mark.parametrize(
    "words, choice_id",
    [
        (said("Red"), "r"),
        (said("  deep BLUE \n"), "b"),
        (said("GRÜN"), "g"),
        (said("b"), "b"),
        (said("1"), "r"),
        (said("3"), "b"),
        (said("", choice_id="g"), "g"),
    ],
)
def test_a_choice_is_named_by_label_by_id_by_number_or_by_button(
    words: Words, choice_id: str
) -> None:
    """S141."""
    choice = picked_choice(QUESTION, words)

    assert choice is not None
    assert choice.choice_id == choice_id


@pytest.mark.parametrize("label", ["3", "2", "1"])
def test_a_number_that_is_a_label_names_the_choice_with_that_label(label: str) -> None:
    numbers = tuple(Choice(choice_id=f"n{number}", label=number) for number in ("3", "2", "1"))
    choice = picked_choice(replace(QUESTION, choices=numbers), said(label))

    assert choice is not None
    assert choice.label == label


@pytest.mark.parametrize("text", ["0", "4", "purple", "", "1.5", "red or blue"])
def test_other_words_name_no_choice(text: str) -> None:
    assert picked_choice(QUESTION, said(text)) is None


def test_a_button_counts_more_than_the_words_beside_it() -> None:
    choice = picked_choice(QUESTION, said("Red", choice_id="b"))

    assert choice == QUESTION.choices[2]


def test_a_button_that_the_question_does_not_have_names_no_choice() -> None:
    assert picked_choice(QUESTION, said("Red", choice_id="x")) is None


def test_a_question_without_choices_takes_any_words() -> None:
    assert picked_choice(replace(QUESTION, choices=()), said("1")) is None


@pytest.mark.parametrize("word", sorted(YES))
def test_a_literal_yes_is_a_yes(word: str) -> None:
    assert yes_or_no(said(f" {word.upper()}! ")) is True


@pytest.mark.parametrize("word", sorted(NO))
def test_a_literal_no_is_a_no(word: str) -> None:
    assert yes_or_no(said(f"{word.title()}.")) is False


@pytest.mark.parametrize("text", ["", "yes please", "no way, do it", "maybe", "1", "yesno", "?"])
def test_other_words_are_neither_yes_nor_no(text: str) -> None:
    assert yes_or_no(said(text)) is None


@pytest.mark.parametrize("choice_id, meant", [("yes", True), ("no", False), ("later", None)])
def test_a_button_says_what_its_id_says(choice_id: str, meant: bool | None) -> None:
    assert yes_or_no(said("Yes", choice_id=choice_id)) is meant


def test_no_word_is_both_yes_and_no() -> None:
    assert not YES & NO
