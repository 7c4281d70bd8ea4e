"""Issue 12, C18: the platform of a torture goes wrong as a real one does, and the check of what
people saw there finds what is wrong, and nothing where nothing is."""

import random
from dataclasses import replace

import pytest
from anyio import create_task_group

from koboshi.domain.ids import DeliveryId
from koboshi.domain.phrases import DUPLICATE_LABEL, undelivered
from koboshi.torture.check_visits import check_visits
from koboshi.torture.errands import Errand, ErrandKind
from koboshi.torture.faults import Fault
from koboshi.torture.platform import (
    GROUP,
    LABEL,
    SHARES,
    Broken,
    Mishap,
    Platform,
    Posted,
    Spot,
    parameters_in,
)
from koboshi.torture.seen import (
    DeliveryRow,
    JoinedRow,
    Remains,
    SeenEntry,
    SeenTurn,
    TrialSeen,
    Visit,
)

ALONE, TOPIC = Spot(chat=1_001), Spot(chat=GROUP, thread=7)
ECHO = Errand(kind=ErrandKind.ECHO, mark="v1x00001", text="echo v1x00001", answer="v1x00001")
LATER = Errand(kind=ErrandKind.ECHO, mark="v1x00002", text="echo v1x00002", answer="v1x00002")
FAIL = Errand(kind=ErrandKind.FAIL, mark="v1x00003", text="fail")
LONG = Errand(kind=ErrandKind.LONG, mark="v1x00004", text="long", answer="never in one piece")
VISITS = (
    Visit(spot=ALONE, number=1, update=1, errand=ECHO),
    Visit(spot=TOPIC, number=1, update=2, errand=LATER),
    Visit(spot=ALONE, number=3, update=3, errand=FAIL),
    Visit(spot=ALONE, number=4, update=4, errand=LONG),
)


def _part(*numbers: int) -> str:
    return "\n\n".join(f"v1x00004 {number} word word" for number in numbers)


POSTED = (
    Posted(number=2, spot=ALONE, text="v1x00001"),
    Posted(number=2, spot=TOPIC, text="v1x00002"),
    Posted(number=5, spot=ALONE, text="I could not finish «fail»: no.", replies_to=3),
    Posted(number=6, spot=ALONE, text=_part(0, 1, 2, 3, 4, 5)),
    Posted(number=7, spot=ALONE, text=_part(6, 7, 8, 9, 10, 11)),
)
ENTRIES = tuple(
    SeenEntry(
        entry_id=place,
        kind="message",
        external_id=visit.key,
        state="attached",
        turn_id=place,
        reason=None,
    )
    for place, visit in enumerate(VISITS, start=1)
)
STATES = ("done", "done", "failed", "done")
TURNS = tuple(
    SeenTurn(turn_id=place, chat="", state=state, reason=None, answers=1)
    for place, state in enumerate(STATES, start=1)
)
SEEN = TrialSeen(
    sent=(),
    told={},
    from_start={},
    remains=Remains(entries=ENTRIES, turns=TURNS),
    ledger={},
    visits=VISITS,
    posted=POSTED,
    acknowledged=4,
)


def _without(place: int) -> TrialSeen:
    return replace(SEEN, posted=[*POSTED[:place], *POSTED[place + 1 :]])


def _with(posted: Posted) -> TrialSeen:
    return replace(SEEN, posted=[*POSTED, posted])


def test_what_came_once_where_it_was_asked_is_fine() -> None:
    assert list(check_visits(SEEN)) == []


def test_a_labelled_copy_is_no_second_answer() -> None:
    copies = [replace(POSTED[0], number=8, is_labelled=True), replace(POSTED[3], is_labelled=True)]

    assert list(check_visits(replace(SEEN, posted=[*POSTED, *copies]))) == []


@pytest.mark.parametrize(
    "seen, fault",
    [
        (_without(0), Fault.LOST),
        (_without(2), Fault.LOST),
        (_without(3), Fault.WRONG),
        (_with(replace(POSTED[0], number=8)), Fault.DOUBLED),
        (_with(replace(POSTED[0], spot=TOPIC)), Fault.WRONG),
        (replace(SEEN, posted=[*POSTED[:3], POSTED[4], POSTED[3]]), Fault.WRONG),
        (replace(SEEN, remains=Remains(entries=ENTRIES[1:], turns=TURNS)), Fault.LOST),
        (
            replace(SEEN, posted=[replace(POSTED[0], number=9), *POSTED[1:]]),
            Fault.DISORDER,
        ),
    ],
    ids=[
        "an answer never came",
        "an end was not told",
        "a part is missing",
        "an answer came twice",
        "an answer came elsewhere",
        "parts are out of order",
        "an acknowledged message is not stored",
        "answers are out of order",
    ],
)
def test_what_is_wrong_is_found(seen: TrialSeen, fault: Fault) -> None:
    assert fault in {each.fault for each in check_visits(seen)}


def test_an_outage_of_the_model_may_be_told_once_for_each_request() -> None:
    notice = Posted(
        number=8,
        spot=ALONE,
        text="The model provider does not answer. I keep trying.",
        replies_to=1,
    )
    other = replace(notice, number=9, replies_to=4)
    copy = replace(notice, number=10, is_labelled=True)

    once = check_visits(replace(SEEN, posted=[*POSTED, notice, other, copy]))
    twice = check_visits(replace(SEEN, posted=[*POSTED, notice, replace(notice, number=9)]))

    assert list(once) == []
    assert {each.fault for each in twice} == {Fault.DOUBLED}


@pytest.mark.parametrize(
    "told, faults",
    [
        (undelivered([DeliveryId(9)]), []),
        (undelivered([DeliveryId(8)]), [Fault.LOST]),
        ("", [Fault.LOST]),
    ],
    ids=["told", "told of another", "not told"],
)
def test_an_answer_that_expired_is_told_of_by_its_number(told: str, faults: list[Fault]) -> None:
    """Issue 12, A1 and A5: the wrong clocks of many lives make a day, and then it expires."""
    row = DeliveryRow(
        delivery_id=9,
        chat="",
        turn_id=1,
        cause="step:1",
        part=1,
        parts=1,
        text="v1x00001",
        state="abandoned",
    )
    notice = [Posted(number=8, spot=ALONE, text=told)] if told else []
    seen = replace(
        SEEN,
        posted=[*POSTED[1:], *notice],
        remains=replace(SEEN.remains, deliveries=[row]),
    )

    assert [each.fault for each in check_visits(seen)] == faults


def test_a_message_that_was_not_acknowledged_may_be_missing() -> None:
    remains = Remains(entries=ENTRIES[:3], turns=TURNS[:3])
    seen = replace(SEEN, remains=remains, posted=POSTED[:3], acknowledged=3)

    assert list(check_visits(seen)) == []


def test_only_strangers_may_be_ignored() -> None:
    ignored = replace(ENTRIES[0], turn_id=None, state="ignored", reason="not-allowed")
    remains = Remains(entries=[ignored, *ENTRIES[1:]], turns=TURNS)
    stranger = [replace(VISITS[0], is_regular=False), *VISITS[1:]]

    known = {each.fault for each in check_visits(replace(SEEN, remains=remains))}
    answered = check_visits(replace(SEEN, remains=remains, visits=stranger))
    silent = replace(SEEN, remains=remains, visits=stranger, posted=POSTED[1:])

    assert known == {Fault.LOST}
    assert {each.fault for each in answered} == {Fault.WRONG}
    assert list(check_visits(silent)) == []


def test_who_loses_the_right_may_be_answered_after_others_but_in_order() -> None:
    first = Visit(spot=TOPIC, number=1, update=1, errand=ECHO, is_regular=False)
    later = Visit(spot=TOPIC, number=2, update=2, errand=LATER)
    posted = [
        Posted(number=5, spot=TOPIC, text="v1x00002"),
        Posted(number=6, spot=TOPIC, text="v1x00001"),
    ]
    entries = [
        replace(entry, external_id=each.key)
        for entry, each in zip(ENTRIES, (first, later), strict=False)
    ]
    remains = Remains(entries=entries, turns=TURNS)
    seen = replace(SEEN, visits=[first, later], posted=posted, remains=remains)
    same = replace(seen, visits=[first, replace(later, is_regular=False)])

    assert list(check_visits(seen)) == []
    assert {each.fault for each in check_visits(same)} == {Fault.DISORDER}


def test_only_who_loses_the_right_gives_way() -> None:
    stopped = [replace(TURNS[0], state="stopped"), *TURNS[1:]]
    seen = replace(SEEN, remains=Remains(entries=ENTRIES, turns=stopped), posted=POSTED[1:])
    revoked = [replace(VISITS[0], is_regular=False), *VISITS[1:]]

    assert {each.fault for each in check_visits(seen)} == {Fault.LOST}
    assert list(check_visits(replace(seen, visits=revoked))) == []


async def test_updates_are_brought_until_they_are_acknowledged() -> None:
    platform = Platform(dice=random.Random(1), is_calm=True)
    platform.say(ALONE, 1_001, "hello")
    platform.say(TOPIC, 1_001, "hello, all")

    first = await platform.call("getUpdates", {"timeout": 0})
    again = await platform.call("getUpdates", {"offset": 2, "timeout": 0})
    none = await platform.call("getUpdates", {"offset": 3, "timeout": 0})

    assert [each["update_id"] for each in first[1]["result"]] == [1, 2]
    (topic,) = again[1]["result"]
    assert topic["message"]["message_thread_id"] == 7
    assert topic["message"]["text"] == "@torture_bot hello, all"
    assert none[1]["result"] == []
    assert (platform.acknowledged, platform.is_taken) == (2, True)


async def test_a_poll_is_answered_when_a_person_writes() -> None:
    platform = Platform(dice=random.Random(1), is_calm=True)
    found: list[object] = []

    async def poll() -> None:
        found.extend((await platform.call("getUpdates", {"timeout": 50}))[1]["result"])

    async with create_task_group() as tasks:
        tasks.start_soon(poll)
        await platform.hears(0)
        platform.say(ALONE, 1_001, "hello")

    assert len(found) == 1


async def test_an_edit_that_changes_nothing_tells_what_is_there() -> None:
    platform = Platform(dice=random.Random(1), is_calm=True)
    platform.say(ALONE, 1_001, "hello")
    status, said = await platform.call("sendMessage", {"chat_id": 1_001, "text": "hi"})
    assert (status, said["result"]["message_id"]) == (200, 2)

    tried = [
        (await platform.call("editMessageReplyMarkup", {"chat_id": 1_001, "message_id": each}))[1]
        for each in (1, 2, 3)
    ]

    words = [each["description"].removeprefix("Bad Request: ") for each in tried]
    assert words == [
        "message can't be edited",
        "message is not modified",
        "message to edit not found",
    ]


async def test_every_mishap_happens_and_is_counted() -> None:
    platform = Platform(dice=random.Random(7), hangs_s=(0.0, 0.0))
    broken = 0
    for number in range(300):
        try:
            await platform.call("sendMessage", {"chat_id": 1_001, "text": f"{number}"})
        except Broken:
            broken += 1
        if all(platform.mishaps[f"sendMessage: {each}"] for each in SHARES["sendMessage"]):
            break

    assert broken
    assert {name.partition(": ")[2] for name in platform.mishaps} == set(Mishap)
    assert len(platform.posted) < 300


def test_the_fields_of_a_form_are_read_without_its_file() -> None:
    body = (
        b'--x\r\nContent-Disposition: form-data; name="chat_id"\r\n\r\n5\r\n'
        b'--x\r\nContent-Disposition: form-data; name="caption"\r\n\r\nnotes\r\n'
        b'--x\r\nContent-Disposition: form-data; name="document"; filename="a"\r\n\r\n..\r\n--x--'
    )

    assert parameters_in(body, "multipart/form-data; boundary=x") == {
        "chat_id": "5",
        "caption": "notes",
    }


def test_the_label_is_the_one_that_the_gateway_uses() -> None:
    assert LABEL == DUPLICATE_LABEL


TWO = (
    Visit(spot=ALONE, number=1, update=1, errand=ECHO),
    Visit(spot=ALONE, number=2, update=2, errand=LATER),
)


def _joined(
    text: str, *, state: str = "done", replies_to: int = 2, is_joined: bool = True
) -> TrialSeen:
    """Two messages in one turn, and what was said of it below the newest."""
    entries = [replace(ENTRIES[0], external_id=TWO[0].key)]
    entries.append(replace(ENTRIES[0], entry_id=2, external_id=TWO[1].key))
    rows = [JoinedRow(turn_id=1, entry_id=number, sender="1001") for number in (1, 2)]
    remains = Remains(
        entries=entries,
        turns=[replace(TURNS[0], state=state)],
        joined=rows if is_joined else (),
    )
    posted = [Posted(number=3, spot=ALONE, text=text, replies_to=replies_to)]
    return replace(SEEN, visits=TWO, posted=posted, remains=remains, acknowledged=2)


def test_one_answer_is_the_answer_of_a_whole_backlog() -> None:
    """Issue 13, B10."""
    assert list(check_visits(_joined("v1x00001\n\nv1x00002"))) == []


def test_one_apology_is_that_of_a_whole_backlog() -> None:
    """Issue 13, B10."""
    apology = "I could not finish «echo v1x00001 (and 1 more)»: no."

    assert list(check_visits(_joined(apology, state="failed"))) == []


@pytest.mark.parametrize(
    "seen",
    [
        _joined("v1x00002"),
        _joined("v1x00001\n\nv1x00002", is_joined=False),
        _joined("v1x00001 v1x00002"),
    ],
    ids=["one is left out", "no backlog", "not apart"],
)
def test_a_message_of_a_backlog_without_an_answer_is_lost(seen: TrialSeen) -> None:
    """Issue 13, B10."""
    assert Fault.LOST in {violation.fault for violation in check_visits(seen)}
