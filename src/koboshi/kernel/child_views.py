"""The tree of those that work for one turn, for an operator."""

from collections.abc import Iterator

from koboshi.domain.child import Child, standing
from koboshi.domain.ids import ChildId, TurnId, shown
from koboshi.domain.phrases import excerpt
from koboshi.kernel.child_rows import child_in, children_of_turn
from koboshi.kernel.decode import numbers
from koboshi.kernel.rows import TurnRow, read_request, read_turn
from koboshi.kernel.transaction import Reading
from koboshi.ports.children import Relative

RELATIVES_MAX = 200
TURNS_READ_MAX = 50


def family_of(tx: Reading, turn: TurnRow) -> tuple[Relative, ...]:
    """The turn at whose root a turn stands, and the children below it; empty if there are none."""
    root = _root_of(tx, turn)
    found = list(_below(tx, root.turn_id, 1))
    if not found:
        return ()
    request = excerpt(read_request(tx, root))
    top = Relative(depth=0, name=shown("turn", root.turn_id), turn_id=root.turn_id, words=request)
    return (top, *found[:RELATIVES_MAX])


def child_turn(tx: Reading, child_id: ChildId) -> TurnId | None:
    """What explains a child: its newest turn, or that which made it; None without such a child."""
    row = tx.row("child_turn", child_id=child_id)
    return None if row is None else TurnId(numbers([row])[0])


def _root_of(tx: Reading, turn: TurnRow) -> TurnRow:
    child = child_in(tx, turn.session_id)
    while child is not None:
        above = read_turn(tx, child.turn_id)
        assert above is not None
        turn, child = above, child_in(tx, above.session_id)
    return turn


def _below(tx: Reading, turn_id: TurnId, depth: int) -> Iterator[Relative]:
    for child in children_of_turn(tx, turn_id):
        turns = _turns_of(tx, child)
        yield Relative(
            depth=depth,
            name=child.shown,
            turn_id=turns[0] if turns else None,
            words=standing(child),
        )
        for each in reversed(turns):
            yield from _below(tx, each, depth + 1)


def _turns_of(tx: Reading, child: Child) -> list[TurnId]:
    """The newest first."""
    if child.own_session is None:
        return []
    rows = tx.rows("turn_newest", session_id=child.own_session, limit=TURNS_READ_MAX)
    return [TurnId(each) for each in numbers(rows)]
