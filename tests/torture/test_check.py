"""The check of a torture finds what is wrong, and nothing where nothing is."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from koboshi.torture.check import check
from koboshi.torture.errands import Errand, ErrandKind
from koboshi.torture.faults import Fault
from koboshi.torture.seen import (
    DeliveryRow,
    JoinedRow,
    ProcessRow,
    Remains,
    SeenEntry,
    SeenEvent,
    SeenSent,
    SeenTurn,
    TrialSeen,
)

CHAT = "p1"

ECHO = Errand(kind=ErrandKind.ECHO, mark="p1x00001", text="echo p1x00001", answer="p1x00001")
COMMAND = Errand(
    kind=ErrandKind.COMMAND,
    mark="p1x00002",
    text="run echo p1x00002 >> ledger",
    answer="It exited with code 0\\.\np1x00002",
)
JOB = Errand(kind=ErrandKind.JOB, mark="p1x00003", text="in background …", answer="It runs", code=3)
FAIL = Errand(kind=ErrandKind.FAIL, mark="p1x00004", text="fail")
STOP = Errand(kind=ErrandKind.ORDER, mark="p1o00001", text="/help")


def words(place: int, turn: int, text: str, *, kind: str = "answer", cause: str = "") -> SeenEvent:
    return SeenEvent(
        place=place,
        kind=kind,
        turn=f"t{turn}" if turn else "",
        delivery=f"d{place}",
        cause=cause or f"step:{place}",
        part=1,
        parts=1,
        text=text,
    )


REPORT = "Background process p2 (echo p1x00003 …) exited with code 3 after 0 s:\np1x00003"

TOLD = (
    words(10, 1, "p1x00001"),
    words(20, 2, "It exited with code 0.\np1x00002"),
    words(30, 3, "It runs"),
    words(40, 4, REPORT),
    words(50, 5, "I could not finish", kind="notice", cause="failed:5"),
    words(60, 0, "I can …", kind="notice", cause="command:6"),
)

SENT = tuple(
    SeenSent(chat=CHAT, key=str(number), errand=errand, message=f"m{entry}")
    for number, (errand, entry) in enumerate(
        ((ECHO, 1), (COMMAND, 2), (JOB, 3), (FAIL, 5), (STOP, 6))
    )
)


def entry(entry_id: int, key: str, turn_id: int | None, *, kind: str = "message") -> SeenEntry:
    return SeenEntry(
        entry_id=entry_id,
        kind=kind,
        external_id=key,
        state="handled" if turn_id is None else "attached",
        turn_id=turn_id,
        reason=None,
    )


def turn(turn_id: int, state: str = "done") -> SeenTurn:
    answers = int(state == "done")
    return SeenTurn(turn_id=turn_id, chat=CHAT, state=state, reason=None, answers=answers)


def process(process_id: int, turn_mark: str, *, foreground: int, code: int) -> ProcessRow:
    return ProcessRow(
        process_id=process_id,
        chat=CHAT,
        foreground=foreground,
        command=f"echo {turn_mark} >> ledger",
        state="exited",
        exit_code=code,
        boundary="bubblewrap",
    )


REMAINS = Remains(
    entries=(
        entry(1, "p1/0", 1),
        entry(2, "p1/1", 2),
        entry(3, "p1/2", 3),
        entry(4, "2:end", 4, kind="report"),
        entry(5, "p1/3", 5),
        entry(6, "p1/4", None, kind="command"),
    ),
    turns=(turn(1), turn(2), turn(3), turn(4), turn(5, "failed")),
    deliveries=tuple(
        DeliveryRow(
            delivery_id=each.place,
            chat=CHAT,
            turn_id=int(each.turn[1:] or 0) or None,
            cause=each.cause,
            part=each.part,
            parts=each.parts,
            text=each.text,
            state="delivered",
        )
        for each in TOLD
    ),
    processes=(
        process(1, "p1x00002", foreground=1, code=0),
        process(2, "p1x00003", foreground=0, code=3),
    ),
    heard={"entry:4": 1},
)

CLEAN = TrialSeen(
    sent=SENT,
    told={CHAT: TOLD},
    from_start={CHAT: TOLD},
    remains=REMAINS,
    ledger={"p1x00002": 1, "p1x00003": 1},
)


def telling(*told: SeenEvent) -> TrialSeen:
    return replace(CLEAN, told={CHAT: told}, from_start={CHAT: told})


def leaving(**rows: Any) -> TrialSeen:
    return replace(CLEAN, remains=replace(REMAINS, **rows))


def closing(place: int, row: SeenTurn) -> TrialSeen:
    turns = list(REMAINS.turns)
    turns[place] = row
    return leaving(turns=turns)


DOCTORED: dict[str, tuple[Callable[[], TrialSeen], Fault]] = {
    "an acknowledged message is not stored": (
        lambda: leaving(entries=REMAINS.entries[1:]),
        Fault.LOST,
    ),
    "a message still waits": (
        lambda: leaving(entries=(*REMAINS.entries, replace(REMAINS.entries[0], state="waiting"))),
        Fault.LOST,
    ),
    "a message is in no turn": (
        lambda: leaving(entries=(replace(REMAINS.entries[0], turn_id=None), *REMAINS.entries[1:])),
        Fault.LOST,
    ),
    "a command ran with nothing around it": (
        lambda: leaving(
            processes=(replace(REMAINS.processes[0], boundary="none"), REMAINS.processes[1])
        ),
        Fault.OUTSIDE,
    ),
    "a turn goes on for ever": (lambda: closing(0, turn(1, "running")), Fault.LOST),
    "a turn was stopped by nobody": (lambda: closing(0, turn(1, "stopped")), Fault.LOST),
    "an end was not told": (lambda: telling(*TOLD[:4], TOLD[5]), Fault.LOST),
    "an answer was not told": (lambda: telling(*TOLD[1:]), Fault.LOST),
    "a reply to a command was not told": (lambda: telling(*TOLD[:5]), Fault.LOST),
    "a delivery is still owed": (
        lambda: leaving(deliveries=(replace(REMAINS.deliveries[0], state="owed"),)),
        Fault.LOST,
    ),
    "a person waited in vain": (lambda: replace(CLEAN, unfinished=["p1x00009"]), Fault.LOST),
    "a delivery was told twice": (
        lambda: telling(*TOLD, replace(TOLD[0], place=70)),
        Fault.DOUBLED,
    ),
    "the same words came as another delivery": (
        lambda: telling(*TOLD, words(70, 6, "p1x00001")),
        Fault.DOUBLED,
    ),
    "a part without a mark came as another delivery": (
        lambda: telling(
            *TOLD, replace(TOLD[0], place=70, delivery="d70", cause="step:70", text="x")
        ),
        Fault.DOUBLED,
    ),
    "a turn has two answers": (
        lambda: closing(0, replace(turn(1), answers=2)),
        Fault.DOUBLED,
    ),
    "another answer was given": (
        lambda: telling(replace(TOLD[0], text="something else"), *TOLD[1:]),
        Fault.WRONG,
    ),
    "a new follower is told less": (
        lambda: replace(CLEAN, from_start={CHAT: TOLD[:-1]}),
        Fault.WRONG,
    ),
    "what was told is not stored": (
        lambda: leaving(deliveries=REMAINS.deliveries[1:]),
        Fault.WRONG,
    ),
    "answers changed places": (
        lambda: telling(replace(TOLD[1], place=10), replace(TOLD[0], place=20), *TOLD[2:]),
        Fault.DISORDER,
    ),
    "events went backwards": (lambda: telling(*reversed(TOLD)), Fault.DISORDER),
    "a later message was worked on first": (
        lambda: replace(CLEAN, sent=(SENT[1], SENT[0], *SENT[2:])),
        Fault.DISORDER,
    ),
    "a command ran twice": (
        lambda: replace(CLEAN, ledger={"p1x00002": 2, "p1x00003": 1}),
        Fault.RAN_TWICE,
    ),
    "a command ran without a request": (
        lambda: replace(CLEAN, ledger={**CLEAN.ledger, "p9x00001": 1}),
        Fault.RAN_TWICE,
    ),
    "a job was begun twice": (
        lambda: leaving(
            processes=(*REMAINS.processes, replace(REMAINS.processes[1], process_id=3))
        ),
        Fault.RAN_TWICE,
    ),
    "a command is said to have run": (
        lambda: replace(CLEAN, ledger={"p1x00003": 1}),
        Fault.NOT_RUN,
    ),
    "a job was not reported": (lambda: leaving(entries=REMAINS.entries[:3]), Fault.JOB),
    "a job was reported twice": (lambda: leaving(heard={"entry:4": 2}), Fault.JOB),
    "a job has another code": (
        lambda: leaving(
            processes=(REMAINS.processes[0], replace(REMAINS.processes[1], exit_code=4))
        ),
        Fault.JOB,
    ),
    "a report says something else": (
        lambda: telling(*TOLD[:3], replace(TOLD[3], text="Noted."), *TOLD[4:]),
        Fault.JOB,
    ),
    "the database is damaged": (lambda: leaving(damage=["row missing"]), Fault.DAMAGE),
}


def test_nothing_is_wrong_where_nothing_is() -> None:
    assert check(CLEAN) == []


@pytest.mark.parametrize("what", DOCTORED)
def test_it_is_seen_that(what: str) -> None:
    make, fault = DOCTORED[what]

    found = check(make())

    assert fault in {violation.fault for violation in found}, found


OUTAGE = Errand(
    kind=ErrandKind.OUTAGE, mark="p1x00005", text="busy", answer="p1x00005", recovers_after_s=0.5
)
"""Issue 12, C18: the model was busy for a while."""
TOLD_OF_IT = words(70, 7, "The model provider does not answer.", kind="notice", cause="outage:7:9")
ANSWERED = words(80, 7, "p1x00005")
OVERCOME = replace(
    CLEAN,
    sent=(*SENT, SeenSent(chat=CHAT, key="5", errand=OUTAGE, message="m7")),
    remains=replace(
        REMAINS,
        entries=(*REMAINS.entries, entry(7, "p1/5", 7)),
        turns=(*REMAINS.turns, turn(7)),
    ),
)


def hearing(*more: SeenEvent) -> TrialSeen:
    """What came of the outage, with rows that fit."""
    told = (*TOLD, *more)
    first = REMAINS.deliveries[0]
    rows = [
        replace(first, delivery_id=each.place, turn_id=7, cause=each.cause, text=each.text)
        for each in more
    ]
    remains = replace(OVERCOME.remains, deliveries=(*REMAINS.deliveries, *rows))
    return replace(OVERCOME, told={CHAT: told}, from_start={CHAT: told}, remains=remains)


@pytest.mark.parametrize("heard", [(TOLD_OF_IT, ANSWERED), (ANSWERED,)])
def test_an_outage_that_is_answered_once_and_told_at_most_once_is_fine(
    heard: tuple[SeenEvent, ...],
) -> None:
    assert check(hearing(*heard)) == []


@pytest.mark.parametrize(
    "heard, fault",
    [
        ((TOLD_OF_IT,), Fault.LOST),
        ((TOLD_OF_IT, replace(TOLD_OF_IT, place=75, cause="outage:7:10"), ANSWERED), Fault.DOUBLED),
        ((TOLD_OF_IT, ANSWERED, words(90, 7, "p1x00005")), Fault.DOUBLED),
        ((TOLD_OF_IT, replace(ANSWERED, text="Noted.")), Fault.WRONG),
    ],
    ids=["never answered", "told twice", "answered twice", "answered otherwise"],
)
def test_it_is_seen_that_an_outage_was(heard: tuple[SeenEvent, ...], fault: Fault) -> None:
    assert fault in {each.fault for each in check(hearing(*heard))}


def test_it_is_seen_that_a_command_is_said_not_to_have_started() -> None:
    """Issue 12, C18: want of descriptors passes, so the command is started when there are some."""
    said = replace(TOLD[1], text="It ended: failed start.")
    deliveries = [
        replace(row, text=said.text) if row.delivery_id == said.place else row
        for row in REMAINS.deliveries
    ]
    seen = telling(TOLD[0], said, *TOLD[2:])
    remains = replace(REMAINS, deliveries=deliveries)
    found = check(replace(seen, ledger={"p1x00003": 1}, remains=remains))

    assert {each.fault for each in found} == {Fault.WRONG, Fault.NOT_RUN}


def given_up(*, ran: bool, is_failed: bool) -> TrialSeen:
    """A job whose process was lost, and whose turn was given up before it said anything."""
    lost = replace(REMAINS.processes[1], state="lost", exit_code=None)
    turns = [
        replace(row, state="failed", answers=0) if row.turn_id == 3 and is_failed else row
        for row in REMAINS.turns
    ]
    apology = words(30, 3, "I am sorry", kind="notice", cause="verdict:3:4")
    told = (*TOLD[:2], apology if is_failed else TOLD[2], *TOLD[3:])
    deliveries = [
        replace(row, text=told[2].text) if row.delivery_id == 30 else row
        for row in REMAINS.deliveries
    ]
    ledger = {"p1x00002": 1} | ({"p1x00003": 1} if ran else {})
    processes = (REMAINS.processes[0], lost)
    remains = replace(REMAINS, processes=processes, turns=turns, deliveries=deliveries)
    return replace(telling(*told), ledger=ledger, remains=remains)


def test_a_job_that_was_given_up_before_it_began_is_lost_and_told_once() -> None:
    """Issue 12, C18: the turn died each time before the job began. The report that it never began
    was counted twice, as if the turn had shown it in an answer, which it does not have."""
    assert check(given_up(ran=False, is_failed=True)) == []


@pytest.mark.parametrize("ran, is_failed", [(True, True), (False, False), (True, False)])
def test_it_is_seen_that_any_other_job_is_lost(ran: bool, is_failed: bool) -> None:
    found = check(given_up(ran=ran, is_failed=is_failed))

    assert any("instead of exited" in each.words for each in found)


def test_a_job_whose_end_the_agent_was_shown_at_once_is_reported_by_that() -> None:
    """The gateway died between the start of the job and its result."""
    shown = Errand(kind=ErrandKind.JOB, mark="p1x00003", text="…", answer="It .*", code=3)
    sent = (*SENT[:2], replace(SENT[2], errand=shown), *SENT[3:])
    told = (*TOLD[:2], replace(TOLD[2], text="It exited with code 3.\np1x00003"), *TOLD[4:])
    deliveries = [
        replace(row, text=told[2].text) if row.delivery_id == 30 else row
        for row in REMAINS.deliveries
        if row.delivery_id != 40
    ]
    entries = [
        replace(row, state="dropped", turn_id=None) if row.entry_id == 4 else row
        for row in REMAINS.entries
    ]
    remains = replace(REMAINS, entries=entries, deliveries=deliveries, heard={})

    seen = replace(CLEAN, sent=sent, told={CHAT: told}, from_start={CHAT: told}, remains=remains)

    assert check(seen) == []


OF_US = words(45, 0, REPORT, kind="notice", cause="report:4")


def reported_to_another_turn(words: str, *told: SeenEvent) -> TrialSeen:
    """The end of the job came while the turn of the command was open, and that was answered so."""
    said = replace(TOLD[1], text=words)
    heard = tuple(sorted((TOLD[0], said, TOLD[2], *TOLD[4:], *told), key=lambda each: each.place))
    entries = [replace(row, turn_id=2) if row.entry_id == 4 else row for row in REMAINS.entries]
    turns = [row for row in REMAINS.turns if row.turn_id != 4]
    deliveries = [
        DeliveryRow(
            delivery_id=each.place,
            chat=CHAT,
            turn_id=int(each.turn[1:] or 0) or None,
            cause=each.cause,
            part=each.part,
            parts=each.parts,
            text=each.text,
            state="delivered",
        )
        for each in heard
    ]
    errand = replace(COMMAND, answer=".*")
    sent = (SENT[0], replace(SENT[1], errand=errand), *SENT[2:])
    remains = replace(REMAINS, entries=entries, turns=turns, deliveries=deliveries)
    told_here = {CHAT: heard}
    return replace(CLEAN, sent=sent, told=told_here, from_start=told_here, remains=remains)


@pytest.mark.parametrize(
    "words, told, is_right",
    [
        ("Four.", (OF_US,), True),
        ("Four, and p2 has ended.", (), True),
        ("Four.", (), False),
        ("Four, and p2 has ended.", (OF_US,), False),
        ("p20 runs.", (), False),
    ],
)
def test_the_end_of_a_job_is_told_once_by_the_agent_or_by_the_gateway(
    words: str, told: tuple[SeenEvent, ...], is_right: bool
) -> None:
    """Issue 13, B11: from the chair of the person."""
    found = check(reported_to_another_turn(words, *told))

    assert [each.fault for each in found] == ([] if is_right else [Fault.JOB]), found


SECOND = Errand(kind=ErrandKind.ECHO, mark="p1x00009", text="echo p1x00009", answer="p1x00009")


def _backlog(*joined: JoinedRow, answer: str = "p1x00001\n\np1x00009") -> TrialSeen:
    """Two messages in one turn, and the rows that say why."""
    told = (words(10, 1, answer),)
    sent = tuple(
        SeenSent(chat=CHAT, key=str(place), errand=errand, message=f"m{place + 1}")
        for place, errand in enumerate((ECHO, SECOND))
    )
    delivered = DeliveryRow(
        delivery_id=10,
        chat=CHAT,
        turn_id=1,
        cause="step:10",
        part=1,
        parts=1,
        text=answer,
        state="delivered",
    )
    remains = Remains(
        entries=(entry(1, "p1/0", 1), entry(2, "p1/1", 1)),
        turns=(turn(1),),
        deliveries=(delivered,),
        joined=joined,
    )
    return TrialSeen(
        sent=sent, told={CHAT: told}, from_start={CHAT: told}, remains=remains, ledger={}
    )


BOTH = tuple(JoinedRow(turn_id=1, entry_id=number, sender="ann") for number in (1, 2))


def test_a_backlog_that_is_answered_together_is_fine() -> None:
    """Issue 13, B10: the one exception to one turn per message."""
    assert check(_backlog(*BOTH)) == []


@pytest.mark.parametrize(
    "seen, fault",
    [
        (_backlog(), Fault.WRONG),
        (_backlog(*BOTH, answer="p1x00009"), Fault.WRONG),
        (_backlog(BOTH[0], replace(BOTH[1], sender="bob")), Fault.WRONG),
        (_backlog(BOTH[1], BOTH[0], answer="p1x00009\n\np1x00001"), Fault.DISORDER),
        (_backlog(*BOTH, replace(BOTH[1], entry_id=7)), Fault.LOST),
    ],
    ids=["without a reason", "one is left out", "two people", "out of order", "one is not there"],
)
def test_what_is_wrong_with_a_backlog_is_seen(seen: TrialSeen, fault: Fault) -> None:
    """Issue 13, B10."""
    assert fault in {violation.fault for violation in check(seen)}
