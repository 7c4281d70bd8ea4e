"""Erasing what a person said.

Theory of operation. The first transaction empties the rows and stores the erasure with the files
that have to go, so from here on no reader sees the words, and no crash forgets the rest. Deleting
files can be repeated. Then their names go from the row, the log is truncated, and only then the
erasure is finished: whatever was killed in between is found unfinished at the next start, and is
done again from its beginning.
"""

import json
import re
from collections.abc import Callable, Iterable, Iterator

from koboshi.domain.child import ChildEnd
from koboshi.domain.erasure import ERASED, erased_body
from koboshi.domain.files import PICTURES, UPLOADED, Attachment
from koboshi.domain.goal import GoalEvent, GoalRule
from koboshi.domain.ids import ChannelName, SessionId, shown
from koboshi.domain.inbox import JOINING, Words
from koboshi.domain.media import shelved
from koboshi.domain.role import PEOPLE_FOLDER
from koboshi.domain.schedule import ScheduleEvent
from koboshi.domain.session import Session
from koboshi.domain.talk_elsewhere import files_of
from koboshi.domain.transcript import Note
from koboshi.domain.turn import TurnEvent, TurnState
from koboshi.kernel.children import end_children_of
from koboshi.kernel.context import VerbContext
from koboshi.kernel.decode import (
    encoded,
    file_of,
    maybe_number,
    numbers,
    text,
    words_of,
)
from koboshi.kernel.goal_gate import move_goal
from koboshi.kernel.keys import lock, lock_session, people_key
from koboshi.kernel.memory_rows import erase_memories
from koboshi.kernel.next_turn import OPENING, end_turn
from koboshi.kernel.occasions import move_schedule
from koboshi.kernel.record import abandon_deliveries, settle_turn
from koboshi.kernel.rows import TurnRow, session_of, step_of, turn_of
from koboshi.kernel.timed_rows import goal_of, schedule_of
from koboshi.kernel.transaction import Row, Transaction, Value
from koboshi.ports.wakeups import ERASURES, JOURNAL, OUTBOX, OUTBOX_SOONER

NOTHING = encoded(Words(text="", sent_ms=0))
NOTHING_ASKED = '{"method":"koboshi/erased"}'
"""A message to a foreign agent in place of one that is erased. Agents refuse it."""


def erase_person(
    tx: Transaction,
    context: VerbContext,
    channel: ChannelName,
    person: str,
    by: str,
    *,
    cut: Callable[[Session], object],
) -> int:
    """Empty the rows with words of a person, and store what else has to go. `cut` ends what a
    private chat of theirs has going on."""
    who = {"channel": channel, "person": person}
    lock(tx, people_key(channel))
    private = [session_of(row) for row in tx.rows("sessions_of_person", **who)]
    for session_id in numbers(tx.rows("sessions_with_words", **who)):
        lock_session(tx, SessionId(session_id))
    end_children_of(tx, context, who, ChildEnd.ERASED, OPENING, cut)
    for session in private:
        if not session.is_child:  # those that were at work have ended
            cut(session)
    for row in tx.rows("turns_of_person", **who):
        _close(tx, context, turn_of(row))
    turns = _with_children(tx, numbers(tx.rows("turns_with_words", **who)))
    chats = json.dumps([session.session_id for session in private])
    erased = _empty(tx, channel, person, turns=turns, chats=chats, by=by)
    _erase_orders(tx, context, who)
    tx.change("erase_name", **who)
    tx.change("pairing_forget", **who)
    return erased


def _close(tx: Transaction, context: VerbContext, turn: TurnRow) -> None:
    """End a turn, wherever it stands. Of an answer, what was certainly not sent is withdrawn; what
    may be on its way closes the turn when it has arrived, and says no more what it was."""
    if turn.state is not TurnState.ANSWERED:
        end_turn(tx, context, turn, TurnEvent.DROPPED, "erased")
        return
    abandon_deliveries(tx, turn.session_id, turn.turn_id, "erased")
    settle_turn(tx, turn.turn_id)
    tx.hints.update((OUTBOX, OUTBOX_SOONER))


def erase_chat(
    tx: Transaction,
    context: VerbContext,
    sessions: Iterable[Session],
    by: str,
    *,
    cut: Callable[[Session], object],
) -> int:
    """Empty everything that was said in a chat, by its people and to them. What was ordered or
    wanted there ends: it would speak again in a chat that is gone."""
    found = tuple(sessions)
    for session in found:
        lock_session(tx, session.session_id)
        if not session.is_child:  # the cut of its parent ends it
            cut(session)
    chats = json.dumps([session.session_id for session in found])
    turns = json.dumps(numbers(tx.rows("turns_of_chat", sessions=chats)))
    for row in tx.rows("schedules_of_chats", sessions=chats):
        move_schedule(tx, context, schedule_of(row), ScheduleEvent.REMOVED, due_ms=None)
    tx.change("schedules_erase_chats", sessions=chats, erased=ERASED)
    tx.change("goals_erase_chats", sessions=chats, erased=ERASED)
    return _empty(tx, found[0].route.channel, None, turns=turns, chats=chats, by=by)


def _with_children(tx: Transaction, turns: list[int]) -> str:
    """The turns, those of the children that they gave work to, and those that heard of them."""
    found: set[int] = set()
    more = set(turns)
    while more:
        found |= more
        more = set(numbers(tx.rows("children_turns", turns=json.dumps(sorted(more))))) - found
    return json.dumps(sorted(found))


def _empty(
    tx: Transaction, channel: ChannelName, person: str | None, *, turns: str, chats: str, by: str
) -> int:
    """Empty the rows of turns and chats, and store which files have to go. Without a person, it is
    all that was said there."""
    place: dict[str, Value] = {
        "channel": channel,
        "person": person,
        "turns": turns,
        "sessions": chats,
    }
    files = [*_received(tx.rows("erased_entries", **place)), *_sent(tx, turns, chats)]
    files += _erase_steps(tx, turns, person)
    files += erase_memories(tx, channel, person, turns=turns, chats=chats)
    if person is not None:
        files += [f"home:{file}" for file in files_of(channel, person)]
    erased = tx.change("erase_entries", **place, nothing=NOTHING, now=tx.now_ms)
    rest: dict[str, Value] = {"turns": turns, "sessions": chats, "erased": ERASED}
    tx.change("erase_deliveries", **rest, now=tx.now_ms)
    tx.change("erase_calls", turns=turns)
    tx.change("children_erase", turns=turns, erased=ERASED)
    tx.change("erase_commands", turns=turns, erased=ERASED)
    tx.change("erase_agent_messages", turns=turns, sessions=chats, nothing=NOTHING_ASKED)
    for query in ("erase_agent_requests", "erase_agent_events", "erase_agent_words"):
        tx.change(query, turns=turns, sessions=chats)
    tx.change("erase_lines", turns=turns)
    tx.change("erase_rules", sessions=chats)
    tx.change("erase_titles", sessions=chats)
    who: dict[str, Value] = {"channel": channel, "person": person or ""}
    tx.change("erasure_insert", **who, by=by, files=json.dumps(files), now=tx.now_ms)
    tx.hints.update((ERASURES, JOURNAL))
    return erased


def _erase_orders(tx: Transaction, context: VerbContext, who: dict[str, str]) -> None:
    """What the person ordered and wanted ends, and says no more what it was."""
    for row in tx.rows("schedules_to_erase", **who):
        move_schedule(tx, context, schedule_of(row), ScheduleEvent.REMOVED, due_ms=None)
    for row in tx.rows("goals_to_erase", **who):
        move_goal(tx, goal_of(row), GoalEvent.CLEARED, GoalRule.BY_PERSON, revised=True)
    tx.change("schedules_erase", **who, erased=ERASED)
    tx.change("goals_erase", **who, erased=ERASED)
    tx.change("zone_forget", **who)


def _erase_steps(tx: Transaction, turns: str, person: str | None) -> list[str]:
    """Empty the steps. Returns the pictures that they showed."""
    pictures: list[str] = []
    for row in tx.rows("erased_steps", turns=turns):
        step = step_of(row)
        if isinstance(step.body, Note) and (picture := shelved(step.body.cause)):
            pictures.append(f"home:{PICTURES}/{picture[0]}")
        body = erased_body(step.body, person)
        if body is not None:
            tx.change("erase_step", seq=step.seq, body=encoded(body), now=tx.now_ms)
    return pictures


def _received(rows: Iterable[Row]) -> Iterator[str]:
    """Where files of these messages were put. The folder of a chat depends on the role that its
    person has, which may have changed: both places are looked at."""
    for kind, body, session in rows:
        session_id = maybe_number(session)
        if kind in JOINING or session_id is None:
            continue
        for attachment in words_of(text(body)).files:
            yield from _places_of(attachment, SessionId(session_id))


def _places_of(attachment: Attachment, session_id: SessionId) -> Iterator[str]:
    if re.fullmatch(r"[0-9a-f]{32}", attachment.reference):
        yield f"home:{UPLOADED}/{attachment.reference}"
    yield f"work:{attachment.path}"
    yield f"work:{PEOPLE_FOLDER}/{shown('session', session_id)}/{attachment.path}"


def _sent(tx: Transaction, turns: str, sessions: str) -> Iterator[str]:
    """Copies of files that were sent to people."""
    for (file,) in tx.rows("erased_files", turns=turns, sessions=sessions):
        yield f"home:{file_of(file).path}"
