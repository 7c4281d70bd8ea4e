"""What a person, the agent or the operator wants of a memory, in one transaction.

A wish has a key, the entry or the call that it comes from. Carried out a second time, after a kill
behind its commit, it changes nothing and is answered as the first time.
"""

from koboshi.domain.ids import EntryId, TurnId
from koboshi.domain.memory import (
    KEPT_REVISIONS,
    AddMemory,
    MemoryLimits,
    MemoryOutcome,
    MemoryPlan,
    MemoryStatus,
    MemoryWish,
    ReplaceMemory,
    Scope,
    Shelf,
    UndoMemory,
    plan_wish,
    size_of,
    why_too_full,
)
from koboshi.domain.memory_elsewhere import Fitting, fitting
from koboshi.domain.session import Session
from koboshi.kernel.context import VerbContext
from koboshi.kernel.decode import first_number, first_text
from koboshi.kernel.memory_rows import (
    ScopeRow,
    entries_of,
    find_scope,
    hold_scope,
    memory_of,
    revise,
    scope_in,
)
from koboshi.kernel.transaction import Transaction


def grant_to_person(
    tx: Transaction, context: VerbContext, session: Session, wish: MemoryWish, entry_id: EntryId
) -> str:
    """What a command wants of the memory of its chat. Returns the reply."""
    scope = scope_in(tx, context, session)
    return grant(tx, context, scope, wish, f"entry:{entry_id}", None).words


def grant(
    tx: Transaction,
    context: VerbContext,
    scope: Scope,
    wish: MemoryWish,
    by: str,
    turn_id: TurnId | None,
) -> MemoryOutcome:
    """Do what is wished for. `by` is the key of the wish: with the same key it is done once."""
    before = first_text(tx.row("memory_revision_by", made_by=by))
    if before is not None:
        return MemoryOutcome(status=MemoryStatus.SAME, words=before)
    if not isinstance(wish, AddMemory) and find_scope(tx, scope) is None:
        return _refused("Nothing is remembered here yet.")
    row = hold_scope(tx, scope)
    if isinstance(wish, UndoMemory):
        return _undo(tx, context.memory_limits, row, by, turn_id)
    plan = plan_wish(wish, entries_of(tx, row.scope_id), context.memory_limits)
    if isinstance(plan, MemoryOutcome):
        return plan
    kind = "add"
    if not isinstance(wish, AddMemory):
        kind = "replace" if isinstance(wish, ReplaceMemory) else "remove"
    revise(tx, row, plan, kind=kind, made_by=by, turn_id=turn_id)
    return MemoryOutcome(status=MemoryStatus.DONE, words=plan.words)


def _undo(
    tx: Transaction, limits: MemoryLimits, row: ScopeRow, by: str, turn_id: TurnId | None
) -> MemoryOutcome:
    after = row.revision - KEPT_REVISIONS
    undone = first_number(tx.row("memory_revision_to_undo", scope_id=row.scope_id, after=after))
    if undone is None:
        return _refused("There is no change that I could take back.")
    place = {"scope_id": row.scope_id, "revision": undone}
    begun, over = (
        [(each.shelf, each.text) for each in map(memory_of, tx.rows(query, **place))]
        for query in ("memories_begun_by", "memories_ended_by")
    )
    # What came back by an earlier undo is another row with the same words.
    now = entries_of(tx, row.scope_id)
    gone = tuple(each for each in now if (each.shelf, each.text) in begun)
    kept = [each for each in now if each not in gone]
    there = {(each.shelf, each.text) for each in kept}
    added = tuple(each for each in over if each not in there)
    for shelf in Shelf:
        texts = [each.text for each in kept if each.shelf is shelf]
        new = [words for place, words in added if place is shelf]
        if new and size_of([*texts, *new]) > limits.of(shelf):
            refusal = why_too_full(shelf, [*texts, *new[:-1]], new[-1], limits, kept)
            return _refused(refusal or "")
    lines = [f"− {each.text}" for each in gone] + [f"+ {words}" for _, words in added]
    words = "Taken back:\n" + ("\n".join(lines) or "a change that is gone already")
    plan = MemoryPlan(removed=gone, added=added, words=words)
    revise(tx, row, plan, kind="undo", made_by=by, turn_id=turn_id, undoes=undone)
    return MemoryOutcome(status=MemoryStatus.DONE, words=words)


def bring(
    tx: Transaction,
    limits: MemoryLimits,
    scope: Scope,
    texts: tuple[tuple[Shelf, str], ...],
    by: str,
) -> Fitting:
    """Take over texts from elsewhere, as many as fit, once for a key."""
    if tx.row("memory_revision_by", made_by=by) is not None:
        return Fitting()
    row = hold_scope(tx, scope)
    fits = fitting(texts, limits, entries_of(tx, row.scope_id))
    if fits.taken:
        plan = MemoryPlan(added=fits.taken, words=f"{len(fits.taken)} entries were brought along.")
        revise(tx, row, plan, kind="add", made_by=by)
    return fits


def _refused(words: str) -> MemoryOutcome:
    return MemoryOutcome(status=MemoryStatus.REFUSED, words=words)
