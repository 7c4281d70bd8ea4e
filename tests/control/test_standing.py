"""Where a turn stands is told in the same words by the chat, the command line and the page."""

from dataclasses import replace
from itertools import product
from pathlib import Path

import pytest

import koboshi.dashboard
from koboshi.cli.rows.cells import message_cells, session_cells, turn_cells
from koboshi.cli.rows.row_text import message_line, session_line, turn_line
from koboshi.commands.run import respond
from koboshi.control.narrate import stands_words
from koboshi.domain.command import Command, CommandName, SessionFacts, TurnGlance
from koboshi.domain.ids import ChannelName, EntryId, Generation, Seq, SessionId, TurnId
from koboshi.domain.recovery import RULES, Verdict, VerdictKind
from koboshi.domain.route import Route
from koboshi.domain.session import Session, Settings
from koboshi.domain.standing import (
    HELD_BACK,
    STANDS,
    stand_of,
    stand_words,
    where_it_stands,
    where_message_stands,
)
from koboshi.domain.turn import CLOSED, OPEN, TurnState
from koboshi.ports.views import EntryView, SessionView, TurnView

NOW_MS = 1_800_000_000_000
ROUTE = Route(channel=ChannelName("web:main"), chat="ann")
SESSION = Session(
    session_id=SessionId(1), route=ROUTE, generation=Generation(1), context_from=Seq(0)
)
VERDICTS = [None] + [
    Verdict(kind=VerdictKind.STAND, rule=rule.label, because=rule.because) for rule in RULES
]
EVERYTHING = list(product(TurnState, VERDICTS, (True, False)))


def chat_says(
    state: TurnState, verdict: Verdict | None, is_worked_on: bool, name: CommandName
) -> str:
    turn = TurnGlance(
        turn_id=12,
        state=state,
        request="build",
        opened_ms=NOW_MS,
        changed_ms=NOW_MS,
        steps=7,
        reason=None,
        is_worked_on=is_worked_on,
        verdict=verdict,
    )
    facts = SessionFacts(
        session=SESSION,
        now_ms=NOW_MS,
        open_turn=turn if state in OPEN else None,
        last_turn=turn,
        waiting=0,
        owed=0,
        running_processes=(),
    )
    return respond(Command(name=name, said=f"/{name}"), facts).reply


def a_view(state: TurnState, stands: str) -> TurnView:
    return TurnView(
        turn_id=TurnId(12),
        session_id=SessionId(1),
        route=ROUTE,
        state=state,
        event="",
        reason=None,
        epoch=1,
        recoveries=0,
        crash_streak=0,
        request="build",
        opened_ms=NOW_MS,
        changed_ms=NOW_MS,
        closed_ms=None,
        worker_id=None,
        stands=stands,
    )


def an_entry(stands: str) -> EntryView:
    return EntryView(
        entry_id=EntryId(7),
        session_id=SessionId(1),
        turn_id=TurnId(12),
        kind="message",
        state="attached",
        reason=None,
        source="web:main",
        external_id="1",
        sender="ann",
        text="build",
        received_ms=NOW_MS,
        stands=stands,
    )


@pytest.mark.parametrize("state, verdict, is_worked_on", EVERYTHING)
def test_every_surface_says_the_same(
    state: TurnState, verdict: Verdict | None, is_worked_on: bool
) -> None:
    """Issue 13, B8: for each state, each verdict, worked on or not."""
    words = where_it_stands(state, verdict, is_worked_on=is_worked_on)
    view = a_view(state, words)
    session = SessionView(
        session_id=SessionId(1),
        route=ROUTE,
        generation=1,
        settings=Settings(),
        open_turn=view,
        waiting=0,
        owed=0,
        created_ms=NOW_MS,
        changed_ms=NOW_MS,
    )

    begin = words[0].upper() + words[1:]
    for name in (CommandName.STATUS, CommandName.WHY):
        assert begin in chat_says(state, verdict, is_worked_on, name)
    assert f" {words} " in turn_line(view, NOW_MS)
    assert words in turn_cells(view, NOW_MS)
    assert f"t12 {words}," in session_line(session, NOW_MS)
    assert f"t12 {words}" in session_cells(session, NOW_MS)
    assert stands_words(view) == words
    entry = an_entry(where_message_stands("attached", words))
    assert f", {words}: " in message_line(entry, NOW_MS)
    assert words in message_cells(entry, NOW_MS)
    stand = stand_of(state, verdict, is_worked_on=is_worked_on)
    assert stand_words(stand) == words
    assert (stand in STANDS) == (state not in CLOSED)


@pytest.mark.parametrize("state", [TurnState.QUEUED, TurnState.RUNNING])
def test_what_the_breaker_holds_back_is_never_called_work(state: TurnState) -> None:
    """Issue 13, B8: and `/why` says what helps."""
    (verdict,) = [each for each in VERDICTS if each is not None and each.rule == HELD_BACK]

    assert where_it_stands(state, verdict, is_worked_on=False).startswith("held back")
    assert "or by /resume" in chat_says(state, verdict, False, CommandName.WHY)


@pytest.mark.parametrize("verdict", VERDICTS)
def test_what_this_gateway_works_on_is_called_so_whatever_recovery_would_say(
    verdict: Verdict | None,
) -> None:
    """Issue 13, B8."""
    assert where_it_stands(TurnState.RUNNING, verdict, is_worked_on=True) == "being worked on"


def test_the_page_has_no_words_of_its_own_for_where_a_turn_stands() -> None:
    """Issue 13, B8: it shows the words that it is sent."""
    scripts = Path(koboshi.dashboard.__file__).parent / "static"
    said = "".join((scripts / name).read_text() for name in ("chat-list.js", "board.js"))

    for state in OPEN:
        assert f'"{where_it_stands(state, None, is_worked_on=True)}"' not in said
    assert "chat.stands" in said
    assert "turn.stands" in said


def test_an_answer_of_an_earlier_gateway_is_put_into_words_here() -> None:
    view = replace(a_view(TurnState.RUNNING, ""), worker_id=1)

    assert stands_words(view) == "being worked on"
    assert stands_words(view, is_worked_on=False).startswith("interrupted")
