"""Issue 13, B10: which messages one turn answers, of those that came while no gateway ran."""

from dataclasses import replace

import pytest

from koboshi.domain.backlog import AcceptedMessage, BacklogLimits, Boot, joined, was_sent_before
from koboshi.domain.ids import EntryId, Generation, ProcessId, Seq, SessionId, WorkerId
from koboshi.domain.inbox import Entry, EntryKind, ReportWords, Words
from koboshi.domain.session import Busy
from koboshi.domain.watch import WatcherKind

BOOT = Boot(worker_id=WorkerId(3), connected_ms=5_500)
LIMITS = BacklogLimits()


def message(
    number: int,
    *,
    sender: str = "ann",
    text: str = "hello",
    sent_ms: int = 4_000,
    accepted_by: int | None = 3,
    received_ms: int = 6_000,
    group: str = "",
    busy: Busy | None = None,
    question: int | None = None,
) -> AcceptedMessage:
    entry = Entry(
        entry_id=EntryId(number),
        session_id=SessionId(1),
        generation=Generation(1),
        kind=EntryKind.MESSAGE,
        source="telegram:main",
        external_id=f"{number}",
        sender=sender,
        body=Words(
            text=text,
            sent_ms=sent_ms,
            group=group,
            busy=busy,
            question=None if question is None else Seq(question),
        ),
    )
    is_by_gone = accepted_by in (1, 2)
    return AcceptedMessage(
        entry=entry, accepted_by=accepted_by, received_ms=received_ms, is_by_gone=is_by_gone
    )


def report(number: int) -> AcceptedMessage:
    words = ReportWords(
        kind=WatcherKind.EXIT, process_id=ProcessId(1), headline="p1 ended", output=""
    )
    found = message(number)
    return replace(found, entry=replace(found.entry, kind=EntryKind.REPORT, body=words))


def numbers(
    begun: list[AcceptedMessage], waiting: list[AcceptedMessage], limits: BacklogLimits = LIMITS
) -> list[int]:
    return [entry.entry_id for entry in joined(begun, waiting, BOOT, limits)]


def test_what_one_person_sent_in_a_row_before_the_boot_joins() -> None:
    """Issue 13, B10."""
    assert numbers([message(1)], [message(2), message(3)]) == [2, 3]


@pytest.mark.parametrize(
    "other",
    [
        message(2, sender="bob"),
        message(2, sent_ms=5_600),
        message(2, busy=Busy.QUEUE),
        message(2, busy=Busy.STEER),
        message(2, question=7),
        replace(
            message(2),
            entry=replace(message(2).entry, generation=Generation(2)),
        ),
    ],
    ids=["another person", "sent since", "queued", "steers", "a press", "behind a cut"],
)
def test_the_first_that_is_not_of_the_row_ends_it(other: AcceptedMessage) -> None:
    """Issue 13, B10: also where a message of the same person follows."""
    assert numbers([message(1)], [other, message(3)]) == []
    assert numbers([message(1), other], [message(3)]) == []


@pytest.mark.parametrize("begun", [[], [report(1)]], ids=["nothing", "a report"])
def test_a_turn_that_no_worker_began_with_words_is_joined_by_no_one(
    begun: list[AcceptedMessage],
) -> None:
    """Issue 13, B10."""
    assert numbers(begun, [message(2), message(3)]) == []


def test_a_report_between_two_messages_does_not_keep_them_apart() -> None:
    """Issue 13, B10: it was said by no person."""
    assert numbers([message(1), report(2)], [report(3), message(4)]) == [4]


def test_ten_messages_are_the_most() -> None:
    """Issue 13, B10."""
    waiting = [message(number) for number in range(2, 20)]

    assert numbers([message(1)], waiting) == list(range(2, 11))


def test_sixteen_thousand_characters_are_the_most() -> None:
    """Issue 13, B10: the one that does not fit ends the row, so that none is overtaken."""
    half, small = "x" * 8_000, "x"

    assert numbers([message(1, text=half)], [message(2, text=half), message(3, text=small)]) == [2]
    assert numbers([message(1, text=half + small)], [message(2, text=half), message(3)]) == []


def test_an_album_joins_as_a_whole_or_not_at_all() -> None:
    """Issue 13, B10."""
    album = [message(number, group="a") for number in range(3, 12)]

    assert numbers([message(1)], album) == list(range(3, 12))
    assert numbers([message(1)], [message(2), *album]) == [2]


@pytest.mark.parametrize(
    "accepted,is_before",
    [
        (message(1, accepted_by=2, sent_ms=0), True),
        (message(1, accepted_by=2, sent_ms=9_000, received_ms=9_000), True),
        (message(1, sent_ms=4_999), True),
        (message(1, sent_ms=5_000), False),
        (message(1, sent_ms=0), False),
        (message(1, sent_ms=4_000, received_ms=5_000), False),
        (message(1, accepted_by=4, sent_ms=4_000), False),
        (message(1, accepted_by=None, sent_ms=4_000), False),
    ],
    ids=[
        "stored by an earlier boot",
        "stored by an earlier boot, whatever the clock says",
        "sent just before",
        "sent in the second of the boot",
        "its time of sending is not said",
        "our clock was set back since the boot",
        "stored by another worker that lives",
        "stored by no one who is known",
    ],
)
def test_what_was_sent_before_the_boot_is_told_by_stored_facts(
    accepted: AcceptedMessage, is_before: bool
) -> None:
    """Issue 13, B10."""
    assert was_sent_before(accepted, BOOT) is is_before
