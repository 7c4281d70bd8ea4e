"""A checker that cannot fail proves nothing: each invariant is shown rows that break it."""

import copy
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from tests.crash.stories import CHAT, STORIES
from tests.harness.client import Client, Event
from tests.harness.invariants import check_growth, check_person, check_rows, transcript
from tests.harness.lives import lives
from tests.harness.rows import Rows, read_rows

pytestmark = pytest.mark.crash


class Kept:
    """What one undisturbed run left: made once, and copied for each test."""

    rows: Rows | None = None
    person: Client
    told: list[Event]


@pytest.fixture
async def kept(tmp_path: Path) -> tuple[Rows, Client, list[Event]]:
    if Kept.rows is None:
        async with lives(tmp_path / "home") as life:
            await STORIES["two-tools"].tell(life, CHAT)
            told = await life.finish()
            Kept.person, Kept.told = life.people[CHAT], told[CHAT]
            Kept.rows = read_rows(tmp_path / "home")
    person = replace(Kept.person, events=list(Kept.person.events))
    return copy.deepcopy(Kept.rows), person, list(Kept.told)


def test_rows_without_a_fault_pass(kept: tuple[Rows, Client, list[Event]]) -> None:
    rows, person, told = kept

    check_rows(rows)
    check_growth([rows], rows)
    check_person(person, rows, told)


def _drop_answer(rows: Rows) -> None:
    rows.steps.remove(rows.one("steps", kind="answer"))


def _double_answer(rows: Rows) -> None:
    answer = rows.one("steps", kind="answer")
    rows.steps.append({**answer, "seq": answer["seq"] + 1})


def _lose_message(rows: Rows) -> None:
    rows.inbox[0]["state"] = "waiting"


def _leave_open(rows: Rows) -> None:
    rows.turns[0]["state"] = "running"


def _lose_result(rows: Rows) -> None:
    rows.steps.remove(rows.of("steps", kind="result")[0])


def _leave_owed(rows: Rows) -> None:
    rows.outbox[0]["state"] = "owed"


def _note_as_words(rows: Rows) -> None:
    message = rows.one("steps", kind="message")
    message["body"] = json.dumps({**json.loads(message["body"]), "text": "[koboshi] go on"})


def _go_back_an_epoch(rows: Rows) -> None:
    rows.steps[-1]["epoch"] = 0


def _two_notes(rows: Rows) -> None:
    note = {**rows.steps[0], "kind": "note", "cause": "recovery", "body": '{"text": "[koboshi]"}'}
    rows.steps[1:1] = [note, note]


def _damage(rows: Rows) -> None:
    rows.damage.append("row 1 missing from index")


@pytest.mark.parametrize(
    "spoil",
    [
        _drop_answer,
        _double_answer,
        _lose_message,
        _leave_open,
        _lose_result,
        _leave_owed,
        _note_as_words,
        _go_back_an_epoch,
        _two_notes,
        _damage,
    ],
)
def test_rows_with_a_fault_do_not(
    kept: tuple[Rows, Client, list[Event]], spoil: Callable[[Rows], None]
) -> None:
    rows, _, _ = kept
    spoil(rows)

    with pytest.raises(AssertionError):
        check_rows(rows)


def _take_back_a_step(rows: Rows) -> None:
    del rows.steps[1]


def _reorder(rows: Rows) -> None:
    rows.journal[3], rows.journal[4] = rows.journal[4], rows.journal[3]


def _change_a_closed_turn(rows: Rows) -> None:
    rows.turns[0]["epoch"] += 1


def _settle_again(rows: Rows) -> None:
    rows.outbox[0]["attempts"] += 1


@pytest.mark.parametrize(
    "spoil", [_take_back_a_step, _reorder, _change_a_closed_turn, _settle_again]
)
def test_what_did_not_only_grow_is_noticed(
    kept: tuple[Rows, Client, list[Event]], spoil: Callable[[Rows], None]
) -> None:
    earlier, _, _ = kept
    later = copy.deepcopy(earlier)
    spoil(later)

    with pytest.raises(AssertionError):
        check_growth([earlier], later)


def _words_twice(person: Client) -> None:
    person.events.append(person.events[-1])


def _skip_one(person: Client) -> None:
    del person.events[2]


def _swap_two(person: Client) -> None:
    person.events[1], person.events[2] = person.events[2], person.events[1]


def _other_ack(person: Client) -> None:
    person.acks = {key: replace(ack, message="m99") for key, ack in person.acks.items()}


@pytest.mark.parametrize("spoil", [_words_twice, _skip_one, _swap_two, _other_ack])
def test_a_person_who_was_told_something_else_is_noticed(
    kept: tuple[Rows, Client, list[Event]], spoil: Callable[[Client], None]
) -> None:
    rows, person, told = kept
    spoil(person)

    with pytest.raises(AssertionError):
        check_person(person, rows, told)


def test_a_transcript_does_not_say_how_long_a_process_took(
    kept: tuple[Rows, Client, list[Event]],
) -> None:
    """A slow machine is no other story; what was said beside it is."""
    told = []
    for words in ("after 0 s:\n3", "after 1 min 2 s:\n3", "after 0 s:\n4"):
        rows = copy.deepcopy(kept[0])
        answer = rows.one("steps", kind="answer")
        answer["body"] = json.dumps(json.loads(answer["body"]) | {"text": f"p1 exited {words}"})
        told.append(transcript(rows, CHAT))

    assert told[0] == told[1]
    assert told[0] != told[2]
