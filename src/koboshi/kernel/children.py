"""Children: how one begins, and how its end reaches its parent.

Theory of operation. A turn gives work away by one call, whose id is the key of the child. The row,
the session, the entry with the task and the turn that it opens are one transaction. So at every
moment:

* A call has made its child, or it has not. Carried out again after a kill, it finds the child.
* At most so many children of a parent work. Another one waits as a row without a session, and is
  begun in the transaction that ends one of the others. None is forgotten, and no loop looks for it.
* A child has ended when nothing of it is open: no turn, and no child of its own. Every way out of a
  turn passes `settle_child`, and so does every end of a child, for its parent's sake.
* The end is one row of the parent's inbox, in the transaction that ends the child. Its key is the
  child, so it cannot be told twice. It joins the parent's turn like the report of a process.
* A cut of the parent ends its children, and what they would tell is dropped, with the cut as the
  reason: they are of an earlier generation.
* What a child still runs is asked to end with it.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TypeAlias

from koboshi.domain.child import (
    UNHEARD,
    Child,
    ChildEnd,
    ChildEvent,
    ChildState,
    bounded,
    end_of,
    first_note,
    headline,
)
from koboshi.domain.ids import EntryId, SessionId, TurnId
from koboshi.domain.inbox import ChildWords, Entry, EntryKind, Words
from koboshi.domain.notes import CHILD
from koboshi.domain.phrases import failure
from koboshi.domain.session import Session, Settings
from koboshi.domain.transcript import Answer, Note
from koboshi.kernel.child_rows import child_in, child_of, open_children, read_child
from koboshi.kernel.context import VerbContext
from koboshi.kernel.decode import body_of, encoded, first_text
from koboshi.kernel.moves import move
from koboshi.kernel.rows import (
    TurnRow,
    moved_ms_of,
    read_open_turn,
    read_session,
    read_turn,
    session_of,
    turn_of,
)
from koboshi.kernel.transaction import Reading, Transaction, Value
from koboshi.ports.wakeups import JOURNAL

SOURCE = "child"
TASK_SOURCE = "task"
NEW = EntryId(0)
"""The id of an entry that is not in the inbox yet."""
OpenTurnWith: TypeAlias = Callable[[Transaction, VerbContext, Session, Entry, Note | None], TurnId]
Admit: TypeAlias = Callable[[Transaction, VerbContext, Entry], None]
Store: TypeAlias = Callable[[Transaction, VerbContext, Entry], Entry | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class ChildOpening:
    """The effects that a child needs of others (`next_turn.py`, `record.py`)."""

    open_turn: OpenTurnWith
    admit: Admit
    """Does with a stored entry what `admit()` says."""
    store: Store
    """Puts an entry into the inbox, where it waits; None if its key is there already."""
    drop: Callable[[Transaction, EntryId, str], None]
    end_processes: Callable[[Transaction, SessionId], None]
    """Asks all that a session runs to end."""


def begin_children(
    tx: Transaction, context: VerbContext, session_id: SessionId, opening: ChildOpening
) -> None:
    """Begin those that wait, as many as may work at once. Those of an earlier generation are about
    to be ended."""
    found = open_children(tx, session_id)
    free = context.child_limits.at_once - sum(each.own_session is not None for each in found)
    waiting = [each for each in found if each.own_session is None]
    if not waiting:
        return
    parent = read_session(tx, session_id)
    current = [each for each in waiting if each.generation == parent.generation]
    for child in current[: max(0, free)]:
        _begin(tx, context, parent, child, opening)


def _begin(
    tx: Transaction, context: VerbContext, parent: Session, child: Child, opening: ChildOpening
) -> None:
    # Whatever works for the conversation, a child is worked on by the built-in agent.
    settings: Settings = replace(parent.settings, agent="")
    place: dict[str, Value] = {"session_id": parent.session_id, "aside": child.shown}
    tx.change("child_session_insert", **place, settings=encoded(settings), now=tx.now_ms)
    route = parent.route
    row = tx.row(
        "session_aside",
        channel=route.channel,
        chat=route.chat,
        thread=route.thread,
        aside=child.shown,
    )
    assert row is not None
    own = session_of(row)
    values = {"child_id": child.child_id, "own_session": own.session_id, "now": tx.now_ms}
    move(tx, "child_begin", ChildEvent.BEGUN, **values)
    entry = Entry(
        entry_id=NEW,
        session_id=own.session_id,
        generation=own.generation,
        kind=EntryKind.TASK,
        source=TASK_SOURCE,
        external_id=str(child.child_id),
        sender=child.person,
        body=Words(text=child.task, sent_ms=tx.now_ms),
    )
    stored = opening.store(tx, context, entry)
    assert stored is not None, "a child that has not begun has its task already"
    opening.open_turn(tx, context, own, stored, Note(cause=CHILD, text=first_note(child)))


def settle_child(
    tx: Transaction, context: VerbContext, session_id: SessionId, opening: ChildOpening
) -> None:
    """End the child that works in a session, if it does and nothing of it is open any more."""
    child = child_in(tx, session_id)
    if child is None or child.state is not ChildState.WORKING:
        return
    if read_open_turn(tx, session_id) is not None or open_children(tx, session_id):
        return
    row = tx.row("turn_newest", session_id=session_id, limit=1)
    assert row is not None
    turn = turn_of(row)
    how = end_of(turn.state, turn.event)
    if not _is_served(tx, context, child):
        how = ChildEnd.NOT_ALLOWED
    end_child(tx, context, child, how, _said(tx, turn), opening)


def _is_served(tx: Reading, context: VerbContext, child: Child) -> bool:
    return context.allows(tx, read_session(tx, child.session_id).route.channel, child.person)


def _said(tx: Reading, turn: TurnRow) -> str:
    """What the last turn of a child says: its answer, or why there is none."""
    found = first_text(tx.row("child_answer", turn_id=turn.turn_id))
    if found is None:
        return failure(turn.reason or "unknown")
    answer = body_of("answer", found)
    assert isinstance(answer, Answer)
    return bounded(answer.text)


def end_child(
    tx: Transaction,
    context: VerbContext,
    child: Child,
    how: ChildEnd,
    said: str,
    opening: ChildOpening,
) -> None:
    """End a child: its parent hears of it, and one that waited may begin."""
    values: dict[str, Value] = {"child_id": child.child_id, "how": how, "now": tx.now_ms}
    if not move(tx, "child_end", ChildEvent.ENDED, **values):
        return
    if child.own_session is not None:
        opening.end_processes(tx, child.own_session)
    stored = opening.store(tx, context, _entry(tx, child, how, said))
    assert stored is not None, "the end of a child that has not ended was told"
    if how in UNHEARD:
        opening.drop(tx, stored.entry_id, UNHEARD[how])
    else:
        opening.admit(tx, context, stored)
    tx.hints.add(JOURNAL)
    begin_children(tx, context, child.session_id, opening)
    settle_child(tx, context, child.session_id, opening)


def _entry(tx: Reading, child: Child, how: ChildEnd, said: str) -> Entry:
    turn = read_turn(tx, child.turn_id)
    assert turn is not None
    is_here = turn.closed_ms is None or turn.closed_ms > moved_ms_of(tx, child.session_id)
    words = ChildWords(
        child_id=child.child_id,
        how=how,
        headline=headline(child, how, tx.now_ms),
        output="" if how is ChildEnd.ERASED else said,
        anchor=turn.anchor if is_here else "",
    )
    return Entry(
        entry_id=NEW,
        session_id=child.session_id,
        generation=child.generation,
        kind=EntryKind.CHILD,
        source=SOURCE,
        external_id=str(child.child_id),
        sender=child.person,
        body=words,
    )


def stop_children(
    tx: Transaction,
    context: VerbContext,
    session_id: SessionId,
    opening: ChildOpening,
    cut: Callable[[Session], object],
) -> None:
    """End all children of a session whose generation has ended. Those that wait come first: none of
    them begins. `cut` ends what one that works has going on, its own children included."""
    found = sorted(open_children(tx, session_id), key=lambda each: each.own_session is not None)
    for child in found:
        end_child(tx, context, child, ChildEnd.STOPPED, "stopped by the person", opening)
        if child.own_session is not None:
            cut(read_session(tx, child.own_session))


def end_children_of(
    tx: Transaction,
    context: VerbContext,
    who: dict[str, str],
    how: ChildEnd,
    opening: ChildOpening,
    cut: Callable[[Session], object],
) -> int:
    """End the children that work for a person or with their words; how many."""
    ended = 0
    for row in tx.rows("children_of_person", **who):
        child = read_child(tx, child_of(row).child_id)
        if child.state is ChildState.ENDED:
            continue  # with its parent
        end_child(tx, context, child, how, "", opening)
        if child.own_session is not None:
            cut(read_session(tx, child.own_session))
        ended += 1
    return ended
