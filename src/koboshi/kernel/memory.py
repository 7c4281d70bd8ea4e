"""The verbs of memory: change it, show it to a turn, write it to files and read these back.

Theory of operation. The rows are the truth, over all nodes. A change is one transaction with the
key of the memory: a new revision with the call that made it, so a call that is repeated after a
kill finds its revision and does nothing. What a turn is shown is stored with the turn before the
model is asked, and a later run of the turn finds it.

A file is a picture of a revision. Its content is stored as known, then the file is put in place,
then it is stored as written. So at every moment a file in a home is known, and then it is current
or stale, or it is a hand edit. A hand edit that was read is known from the same transaction on.
Nothing that was written before an erasure is read back.
"""

import json
from collections.abc import Callable
from functools import partial
from hashlib import blake2b

from koboshi.domain.finding import holds, passage_of, wanted_words
from koboshi.domain.ids import TurnId, shown
from koboshi.domain.memory import (
    KEPT_REVISIONS,
    EditedFile,
    MemoryId,
    MemoryOutcome,
    MemoryPlan,
    MemoryStatus,
    MemoryView,
    MemoryWish,
    ScopeId,
    Shelf,
    ShownToTurn,
    folder_of,
    merge,
    picture,
    read_picture,
    why_no_edit,
)
from koboshi.domain.transcript import Answer, Message
from koboshi.domain.turn import Claim
from koboshi.kernel.claims import is_held
from koboshi.kernel.context import VerbContext
from koboshi.kernel.decode import (
    body_of,
    first_number,
    first_text,
    maybe_number,
    number,
    numbers,
    text,
)
from koboshi.kernel.keys import of_sessions
from koboshi.kernel.loading import fenced
from koboshi.kernel.memory_changes import grant
from koboshi.kernel.memory_rows import (
    ScopeRow,
    entries_of,
    find_scope,
    lock_scope,
    revise,
    scope_in,
    scope_row_of,
    sessions_to_recall,
    story_of,
    view_of,
)
from koboshi.kernel.rows import read_session
from koboshi.kernel.transaction import Readers, Reading, Transaction, Value, Writer
from koboshi.ports.memory import FileFate, MemoryStory, Painting, Recalled

TAIL_MAX = 2_000
RECALLED_CHARS = 600


def digest_of(content: str) -> str:
    return blake2b(content.encode("utf-8", "replace"), digest_size=16).hexdigest()


class MemoryVerbs:
    def __init__(
        self,
        writer: Writer,
        readers: Readers,
        context: VerbContext,
        match: Callable[[tuple[str, ...]], tuple[str, ...]],
    ) -> None:
        self._writer = writer
        self._readers = readers
        self._context = context
        self._match = match

    async def look(self, claim: Claim) -> ShownToTurn:
        def look(tx: Reading) -> ShownToTurn:
            scope = scope_in(tx, self._context, read_session(tx, claim.session_id))
            row = find_scope(tx, scope)
            return ShownToTurn(
                scope=scope,
                text=first_text(tx.row("shown_by_turn", turn_id=claim.turn_id)),
                memory=None if row is None else view_of(tx, self._context.home, row),
                session_id=claim.session_id,
            )

        return await self._readers.read(look)

    async def show(self, claim: Claim, text: str, view: MemoryView | None) -> str:
        def operation(tx: Transaction) -> str:
            if not is_held(tx, claim):
                raise fenced(claim)
            before = first_text(tx.row("shown_by_turn", turn_id=claim.turn_id))
            if before is not None:
                return before
            digest = digest_of(text)
            tx.change("shown_text_insert", digest=digest, text=text, now=tx.now_ms)
            tx.change(
                "turn_shown_insert",
                turn_id=claim.turn_id,
                digest=digest,
                scope_id=None if view is None else view.scope_id,
                revision=0 if view is None else view.revision,
            )
            return text

        return await self._writer.write("memory.show", operation, of_sessions(claim.session_id))

    async def revision_shown(self, turn_id: TurnId) -> tuple[ScopeId, int] | None:
        row = await self._readers.read(lambda tx: tx.row("shown_by_turn", turn_id=turn_id))
        scope_id = None if row is None else maybe_number(row[1])
        return None if row is None or scope_id is None else (ScopeId(scope_id), number(row[2]))

    async def wish(self, claim: Claim, wish: MemoryWish, by: str) -> MemoryOutcome:
        def operation(tx: Transaction) -> MemoryOutcome:
            if not is_held(tx, claim):
                raise fenced(claim)
            scope = scope_in(tx, self._context, read_session(tx, claim.session_id))
            return grant(tx, self._context, scope, wish, by, claim.turn_id)

        return await self._writer.write("memory.wish", operation, of_sessions(claim.session_id))

    async def order(self, scope_id: ScopeId, wish: MemoryWish, by: str) -> MemoryOutcome:
        def operation(tx: Transaction) -> MemoryOutcome:
            row = tx.row("memory_scope_by_id", scope_id=scope_id)
            if row is None:
                return MemoryOutcome(status=MemoryStatus.REFUSED, words="There is no such memory.")
            return grant(tx, self._context, scope_row_of(row).scope, wish, by, None)

        return await self._writer.write("memory.order", operation)

    async def views(self, limit: int) -> tuple[MemoryView, ...]:
        def look(tx: Reading) -> tuple[MemoryView, ...]:
            rows = map(scope_row_of, tx.rows("memory_scopes_all", limit=limit))
            return tuple(view_of(tx, self._context.home, row) for row in rows)

        return await self._readers.read(look)

    async def view(self, scope_id: ScopeId) -> MemoryView | None:
        return await self._readers.read(partial(self._view, scope_id=scope_id))

    def _view(self, tx: Reading, scope_id: ScopeId) -> MemoryView | None:
        row = tx.row("memory_scope_by_id", scope_id=scope_id)
        return None if row is None else view_of(tx, self._context.home, scope_row_of(row))

    async def story(self, memory_id: MemoryId) -> MemoryStory | None:
        return await self._readers.read(lambda tx: story_of(tx, self._context.home, memory_id))

    async def behind(self, limit: int, after: int | None = None) -> tuple[MemoryView, ...]:
        def look(tx: Reading) -> tuple[MemoryView, ...]:
            home = self._context.home
            if after is None:
                rows = tx.rows("memory_scopes_newest_behind", home=home, limit=limit)
            else:
                rows = tx.rows("memory_scopes_behind", after=after, home=home, limit=limit)
            return tuple(view_of(tx, home, scope_row_of(row)) for row in rows)

        return await self._readers.read(look)

    async def paint(self, scope_id: ScopeId, shelves: tuple[Shelf, ...]) -> Painting:
        def operation(tx: Transaction) -> Painting:
            row = _held(tx, scope_id)
            view = view_of(tx, self._context.home, row)
            files = tuple((shelf, picture(view.texts(shelf), row.revision)) for shelf in shelves)
            for shelf, content in files:
                _know(tx, self._context, row.scope_id, shelf, digest_of(content), row.revision)
            return Painting(
                scope_id=scope_id,
                folder=folder_of(scope_id, row.scope),
                revision=row.revision,
                files=files,
            )

        return await self._writer.write("memory.paint", operation)

    async def painted(self, painting: Painting) -> None:
        def operation(tx: Transaction) -> None:
            home = self._context.home
            place = {"scope_id": painting.scope_id, "revision": painting.revision}
            tx.change("memory_picture_written", home=home, **place)

        await self._writer.write("memory.painted", operation)

    async def read_back(self, scope_id: ScopeId, file: EditedFile) -> FileFate:
        known = await self._readers.read(lambda tx: _known(tx, self._context, scope_id, file))
        if known is not None:
            return known
        return await self._writer.write(
            "memory.read_back", lambda tx: _read_back(tx, self._context, scope_id, file)
        )

    async def recall(self, claim: Claim, text: str, limit: int) -> tuple[Recalled, ...]:
        words = wanted_words(text)
        if not words:
            return ()
        matches = self._match(words)

        def look(tx: Reading) -> tuple[Recalled, ...]:
            scope = scope_in(tx, self._context, read_session(tx, claim.session_id))
            sessions = sessions_to_recall(tx, scope)
            return _recall(tx, claim, words, matches, sessions, limit)

        return await self._readers.read(look)

    async def forget(self, before_ms: int, limit: int) -> int:
        def operation(tx: Transaction) -> int:
            rows = tx.rows("turns_shown_old", before_ms=before_ms, limit=limit)
            count = tx.change("turns_shown_forget", turns=json.dumps(numbers(rows)))
            tx.change("shown_texts_forget", before_ms=before_ms)
            return count

        return await self._writer.write("memory.forget", operation)


def _held(tx: Transaction, scope_id: ScopeId) -> ScopeRow:
    row = tx.row("memory_scope_by_id", scope_id=scope_id)
    assert row is not None
    lock_scope(tx, scope_row_of(row).scope)
    row = tx.row("memory_scope_by_id", scope_id=scope_id)
    assert row is not None
    return scope_row_of(row)


def _know(
    tx: Transaction,
    context: VerbContext,
    scope_id: ScopeId,
    shelf: Shelf,
    digest: str,
    revision: int,
    trouble: str | None = None,
) -> None:
    place: dict[str, Value] = {"scope_id": scope_id, "shelf": shelf}
    place |= {"home": context.home, "digest": digest}
    tx.change("memory_pictures_settled", **place)
    tx.change("memory_picture_insert", **place, revision=revision, trouble=trouble)


def _known(
    tx: Reading, context: VerbContext, scope_id: ScopeId, file: EditedFile
) -> FileFate | None:
    """What becomes of a file that was written here, or read before; None for a hand edit."""
    found = tx.row("memory_scope_by_id", scope_id=scope_id)
    place: dict[str, Value] = {"scope_id": scope_id, "shelf": file.shelf, "home": context.home}
    known = tx.row("memory_picture_known", **place, digest=digest_of(file.content))
    if found is None or known is None or known[1] is not None:
        return None
    row = scope_row_of(found)
    content = picture(view_of(tx, context.home, row).texts(file.shelf), row.revision)
    return FileFate.CURRENT if content == file.content else FileFate.REWRITE


def _read_back(
    tx: Transaction, context: VerbContext, scope_id: ScopeId, file: EditedFile
) -> FileFate:
    row, digest = _held(tx, scope_id), digest_of(file.content)
    if (fate := _known(tx, context, scope_id, file)) is not None:
        return fate
    place: dict[str, Value] = {"scope_id": scope_id, "shelf": file.shelf, "home": context.home}
    newest = first_number(tx.row("memory_picture_newest", **place))
    read = read_picture(file.content)
    if read.is_blank or (newest or 0) < row.erased:
        return FileFate.REWRITE
    base = newest if read.base is None else read.base
    is_kept = base is not None and row.revision - KEPT_REVISIONS < base <= row.revision
    texts = _texts_at(tx, row, file.shelf, base) if is_kept and base is not None else []
    entries = [each for each in entries_of(tx, scope_id) if each.shelf is file.shelf]
    now = [each.text for each in entries]
    merged = merge(texts, now, read.texts)
    refusal = why_no_edit(file.shelf, now, merged, context.memory_limits)
    if refusal is not None:
        if tx.row("memory_picture_known", **place, digest=digest) is None:
            _know(tx, context, scope_id, file.shelf, digest, row.revision, refusal)
        return FileFate.KEEP
    revision = row.revision
    if not merged.is_empty:
        gone = set(merged.removed)
        plan = MemoryPlan(
            removed=tuple(each for each in entries if each.text in gone),
            added=tuple((file.shelf, words) for words in merged.added),
        )
        made_by = f"hand:{scope_id}:{row.revision + 1}"
        revision = revise(tx, row, plan, kind="hand", made_by=made_by)
    _know(tx, context, scope_id, file.shelf, digest, revision)
    return FileFate.REWRITE


def _texts_at(tx: Reading, row: ScopeRow, shelf: Shelf, revision: int) -> list[str]:
    rows = tx.rows("memories_at", scope_id=row.scope_id, shelf=shelf, revision=revision)
    return [text(words) for (words,) in rows]


def _recall(
    tx: Reading,
    claim: Claim,
    words: tuple[str, ...],
    matches: tuple[str, ...],
    sessions: str,
    limit: int,
) -> tuple[Recalled, ...]:
    tail = tx.rows("search_tail", after=tx.number("search_place"), limit=TAIL_MAX)
    found = [number(seq) for seq, kind, body in tail if holds(body_of(kind, body).text, words)]
    for match in matches:
        rows = tx.rows("recall_find", words=match, sessions=sessions, limit=limit + 20)
        found += [seq for seq in numbers(rows) if seq not in found]
    hits: list[Recalled] = []
    for seq in found:
        row = tx.row("recall_hit", seq=seq, sessions=sessions)
        if row is None or number(row[3]) == claim.turn_id:
            continue  # of other people, erased, or what was just said
        said = body_of(row[0], row[1])
        if isinstance(said, Message | Answer):
            hits.append(
                Recalled(
                    text=passage_of(said.text, words, RECALLED_CHARS),
                    at_ms=number(row[2]),
                    turn=shown("turn", number(row[3])),
                    is_persons=isinstance(said, Message),
                )
            )
        if len(hits) == limit:
            break
    return tuple(hits)
