"""Issue 14, point 4: page, chat and command line get the words of an event from one narrator."""

import re

import pytest

from koboshi.dashboard.files import contents
from koboshi.domain.boot import ENDED_WORDS
from koboshi.domain.outbox import DeliveryEvent
from koboshi.domain.story import words_of_lines
from koboshi.domain.transcript import ResultStatus
from koboshi.domain.turn import TurnEvent
from koboshi.domain.worker import EndedHow
from koboshi.ports.views import JournalLine

EVENTS = frozenset(map(str, [*TurnEvent, *DeliveryEvent, *EndedHow])) - set(map(str, ResultStatus))
"""Without "stopped", which is also how a call can end."""

WORDED = re.compile(
    r"(?:^|[{,])\s*(?P<quote>[\"']?)(?P<event>[a-z-]+)(?P=quote)\s*:\s*[\"'`](?P<words>[^\"'`]*)",
    re.MULTILINE,
)
"""A key with a text, as in `parked: "set aside"`."""


def narrated() -> frozenset[str]:
    """The sentences of the narrator, as far as they are not common words."""
    turns = [line("turn", event, reason="") for event in TurnEvent]
    causes = [line("turn", TurnEvent.RESUMED, reason=each) for each in ("crash", "drain", "person")]
    steps = [line("step", each) for each in ("reply", "question", "note", "summary")]
    told = [*words_of_lines([*turns, *causes, *steps]), *ENDED_WORDS.values()]
    return frozenset(words for words in told if words.count(" ") > 1)


def line(subject: str, event: str, reason: str | None = None) -> JournalLine:
    return JournalLine(
        seq=1,
        at_ms=0,
        subject=subject,
        number=1,
        event=event,
        before=None,
        after=None,
        rule=None,
        reason=reason,
        session_id=None,
        turn_id=None,
        worker_id=None,
    )


def own_words(script: str) -> list[str]:
    """The places where a script words an event by itself."""
    tables = [
        found[0]
        for found in WORDED.finditer(script)
        if found["event"] in EVENTS and found["words"].strip()
    ]
    return tables + [words for words in sorted(narrated()) if words in script]


@pytest.mark.parametrize("name", sorted(name for name in contents() if name.endswith(".js")))
def test_no_script_of_the_page_words_an_event(name: str) -> None:
    assert own_words(contents()[name].decode()) == []


@pytest.mark.parametrize(
    "planted",
    [
        'const EVENTS = { opened: "opened", "gave-up": "given up" };',
        "const ENDS = { killed: 'was killed' };",
        "return `done: nothing is left to deliver`;",
    ],
)
def test_a_script_that_words_an_event_is_found(planted: str) -> None:
    assert own_words(planted)
