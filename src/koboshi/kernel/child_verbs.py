"""The verbs of children: make one for a call, show them."""

from koboshi.domain.child import Child, ChildCounts, ChildTask, Delegated, why_no_child
from koboshi.domain.ids import CallId, ChildId, SessionId
from koboshi.domain.turn import Claim
from koboshi.kernel.child_rows import child_of, depth_of, open_children
from koboshi.kernel.children import begin_children
from koboshi.kernel.claims import is_held
from koboshi.kernel.context import VerbContext
from koboshi.kernel.facts import least_speaker
from koboshi.kernel.keys import of_sessions
from koboshi.kernel.loading import fenced
from koboshi.kernel.next_turn import OPENING
from koboshi.kernel.rows import read_session, read_turn
from koboshi.kernel.transaction import Readers, Transaction, Value, Writer
from koboshi.ports.wakeups import JOURNAL


class ChildVerbs:
    def __init__(self, writer: Writer, readers: Readers, context: VerbContext) -> None:
        self._writer = writer
        self._readers = readers
        self._context = context

    async def delegate(self, claim: Claim, call_id: CallId, task: ChildTask) -> Delegated:
        return await self._writer.write(
            "children.delegate",
            lambda tx: _delegate(tx, self._context, claim, call_id, task),
            of_sessions(claim.session_id),
        )

    async def of_session(self, session_id: SessionId) -> tuple[Child, ...]:
        return await self._readers.read(lambda tx: open_children(tx, session_id))

    async def child(self, child_id: ChildId) -> Child | None:
        row = await self._readers.read(lambda tx: tx.row("child_by_id", child_id=child_id))
        return None if row is None else child_of(row)


def _delegate(
    tx: Transaction, context: VerbContext, claim: Claim, call_id: CallId, task: ChildTask
) -> Delegated:
    if not is_held(tx, claim):
        raise fenced(claim)
    key: dict[str, Value] = {"turn_id": claim.turn_id, "call_id": call_id}
    before = tx.row("child_by_call", **key)
    if before is not None:
        return Delegated(child=child_of(before))
    session, turn = read_session(tx, claim.session_id), read_turn(tx, claim.turn_id)
    assert turn is not None
    depth = depth_of(tx, session)
    counts = ChildCounts(
        depth=depth,
        open_now=len(open_children(tx, session.session_id)),
        made=tx.number("children_made", session_id=session.session_id),
    )
    refusal = why_no_child(counts, context.child_limits)
    if refusal is not None:
        return Delegated(refusal=refusal)
    tx.change(
        "child_insert",
        session_id=session.session_id,
        generation=session.generation,
        **key,
        person=least_speaker(tx, context, session.route.channel, turn),
        name=task.name,
        task=task.task,
        depth=depth + 1,
        now=tx.now_ms,
    )
    begin_children(tx, context, session.session_id, OPENING)
    tx.hints.add(JOURNAL)
    made = tx.row("child_by_call", **key)
    assert made is not None
    return Delegated(child=child_of(made))
