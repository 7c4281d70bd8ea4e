"""Memories as typed values, whose memory a chat has, and single changes of one."""

import json
from dataclasses import dataclass

from koboshi.domain.ids import ChannelName, TurnId
from koboshi.domain.memory import (
    KEPT_REVISIONS,
    MEMORY_FOLDER,
    NOT_TAKEN,
    MemoryEntry,
    MemoryId,
    MemoryPlan,
    MemoryView,
    Scope,
    ScopeId,
    ScopeKind,
    Shelf,
    folder_of,
    scope_of,
)
from koboshi.domain.role import Role
from koboshi.domain.session import Session
from koboshi.kernel.context import VerbContext
from koboshi.kernel.decode import first_number, maybe_number, number, text
from koboshi.kernel.keys import key_named, lock
from koboshi.kernel.rows import find_session
from koboshi.kernel.transaction import Reading, Row, Transaction, Value
from koboshi.ports.memory import MemoryStory
from koboshi.ports.wakeups import MEMORY

FILES = tuple(
    name
    for shelf in Shelf
    for name in (
        shelf.file,
        f".{shelf.file}.old",
        f".{shelf.file}.new",
        f"{shelf.file}{NOT_TAKEN}",
    )
)
"""What may lie in the folder of a memory."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScopeRow:
    scope_id: ScopeId
    scope: Scope
    revision: int
    erased: int
    changed_ms: int


def scope_row_of(row: Row) -> ScopeRow:
    scope_id, channel, kind, name, revision, erased, changed_ms = row
    return ScopeRow(
        scope_id=ScopeId(number(scope_id)),
        scope=Scope(
            channel=ChannelName(text(channel)), kind=ScopeKind(text(kind)), name=text(name)
        ),
        revision=number(revision),
        erased=number(erased),
        changed_ms=number(changed_ms),
    )


def memory_of(row: Row) -> MemoryEntry:
    memory_id, shelf, words, turn_id, born = row
    turn = maybe_number(turn_id)
    return MemoryEntry(
        memory_id=MemoryId(number(memory_id)),
        shelf=Shelf(text(shelf)),
        text=text(words),
        turn_id=None if turn is None else TurnId(turn),
        revision=number(born),
    )


def scope_in(tx: Reading, context: VerbContext, session: Session) -> Scope:
    """Whose memory a session has. Work beside a conversation has that of the conversation."""
    found = find_session(tx, session.route) if session.aside else None
    chat = session if found is None else found
    channel = chat.route.channel
    is_owners = not chat.person and context.role_of(tx, channel, "") is Role.OWNER
    return scope_of(channel, chat.route.chat, chat.person, is_owners_channel=is_owners)


def find_scope(tx: Reading, scope: Scope) -> ScopeRow | None:
    row = tx.row("memory_scope_find", channel=scope.channel, kind=scope.kind, name=scope.name)
    return None if row is None else scope_row_of(row)


def lock_scope(tx: Transaction, scope: Scope) -> None:
    """Hold the memory until the commit: all nodes change it one after the other."""
    lock(tx, key_named(f"memory:{scope.channel}\0{scope.kind}\0{scope.name}"))


def hold_scope(tx: Transaction, scope: Scope) -> ScopeRow:
    """The memory, held until the commit; made if there is none."""
    lock_scope(tx, scope)
    if (found := find_scope(tx, scope)) is not None:
        return found
    values = {"channel": scope.channel, "kind": scope.kind, "name": scope.name}
    tx.change("memory_scope_insert", **values, now=tx.now_ms)
    made = find_scope(tx, scope)
    assert made is not None
    return made


def entries_of(tx: Reading, scope_id: ScopeId) -> tuple[MemoryEntry, ...]:
    return tuple(map(memory_of, tx.rows("memories_now", scope_id=scope_id)))


def view_of(tx: Reading, home: str, row: ScopeRow) -> MemoryView:
    troubles = tx.rows("memory_troubles", scope_id=row.scope_id, home=home)
    return MemoryView(
        scope_id=row.scope_id,
        scope=row.scope,
        revision=row.revision,
        entries=entries_of(tx, row.scope_id),
        troubles=tuple(f"{Shelf(text(shelf)).file}: {text(why)}" for shelf, why in troubles),
        changed_ms=row.changed_ms,
    )


def story_of(tx: Reading, home: str, memory_id: MemoryId) -> MemoryStory | None:
    """An entry that is there, with whose it is."""
    scope_id = first_number(tx.row("memory_by_id", memory_id=memory_id))
    row = None if scope_id is None else tx.row("memory_scope_by_id", scope_id=scope_id)
    if row is None:
        return None
    view = view_of(tx, home, scope_row_of(row))
    found = next(each for each in view.entries if each.memory_id == memory_id)
    return MemoryStory(memory=found, view=view)


def shown_words(tx: Reading, turn_id: TurnId) -> str:
    """Which memory a turn was shown, in words; empty if none was."""
    row = tx.row("shown_by_turn", turn_id=turn_id)
    scope = None if row is None or row[1] is None else tx.row("memory_scope_by_id", scope_id=row[1])
    if row is None or scope is None:
        return ""
    return f"revision {number(row[2])} of the memory of {scope_row_of(scope).scope}"


def revise(
    tx: Transaction,
    row: ScopeRow,
    plan: MemoryPlan,
    *,
    kind: str,
    made_by: str,
    turn_id: TurnId | None = None,
    undoes: int | None = None,
) -> int:
    """Change a memory that is held. Returns its new revision."""
    revision = row.revision + 1
    for each in plan.removed:
        tx.change("memory_end", memory_id=each.memory_id, revision=revision)
    for shelf, words in plan.added:
        tx.insert(
            "memory_insert",
            scope_id=row.scope_id,
            shelf=shelf,
            text=words,
            turn_id=turn_id,
            revision=revision,
        )
    _count(tx, row, revision, kind, made_by, turn_id, undoes, plan.words)
    kept: dict[str, Value] = {"scope_id": row.scope_id, "revision": revision - KEPT_REVISIONS}
    if revision > KEPT_REVISIONS:
        tx.change("memories_forget", **kept)
        tx.change("memory_pictures_forget", **kept)
    tx.hints.add(MEMORY)
    return revision


def _count(
    tx: Transaction,
    row: ScopeRow,
    revision: int,
    kind: str,
    made_by: str,
    turn_id: TurnId | None,
    undoes: int | None,
    words: str,
) -> None:
    tx.change(
        "memory_revision_insert",
        scope_id=row.scope_id,
        revision=revision,
        kind=kind,
        made_by=made_by,
        turn_id=turn_id,
        undoes=undoes,
        words=words,
        now=tx.now_ms,
    )
    touched = tx.change(
        "memory_scope_revise", scope_id=row.scope_id, revision=revision, now=tx.now_ms
    )
    assert touched == 1, "a memory was changed by two at once"


def erase_memories(
    tx: Transaction, channel: ChannelName, person: str | None, *, turns: str, chats: str
) -> list[str]:
    """Empty what is remembered of a person, of chats, or from turns. Returns the files that have to
    go. Files of this and of every other home are not read again, but written anew."""
    place: dict[str, Value] = {
        "channel": channel,
        "person": person,
        "turns": turns,
        "sessions": chats,
    }
    files: list[str] = []
    tx.change("shown_texts_erase", scope_id=None, turns=turns)
    for found in map(scope_row_of, tx.rows("memory_scopes_to_erase", **place)):
        lock_scope(tx, found.scope)
        row = find_scope(tx, found.scope)
        assert row is not None
        is_whole = _is_whole(tx, row.scope, person, chats)
        rest: dict[str, Value] = {"scope_id": row.scope_id, "turns": turns}
        everything = int(is_whole)
        tx.change("memories_erase", **rest, revision=row.revision + 1, everything=everything)
        tx.change("memory_revisions_erase", **rest, everything=everything)
        tx.change("memory_pictures_erase", scope_id=row.scope_id)
        tx.change("shown_texts_erase", **rest)
        made_by = f"erase:{row.scope_id}:{row.revision + 1}"
        _count(tx, row, row.revision + 1, "erase", made_by, None, None, "")
        tx.change("memory_scope_erased", scope_id=row.scope_id)
        folder = f"home:{MEMORY_FOLDER}/{folder_of(row.scope_id, row.scope)}"
        files += [f"{folder}/{name}" for name in FILES]
        tx.hints.add(MEMORY)
    return files


def _is_whole(tx: Reading, scope: Scope, person: str | None, chats: str) -> bool:
    if scope.kind is ScopeKind.PERSON:
        return scope.name == person
    row = tx.row("chat_among", channel=scope.channel, chat=scope.name, sessions=chats)
    return row is not None


def sessions_to_recall(tx: Reading, scope: Scope) -> str:
    """The chats whose words may be looked through, as JSON."""
    is_person = scope.kind is ScopeKind.PERSON
    rows = tx.rows(
        "recall_sessions",
        channel=scope.channel,
        person=scope.name if is_person else "",
        kind=scope.kind,
        chat="" if is_person else scope.name,
    )
    return json.dumps([number(session_id) for (session_id,) in rows])
