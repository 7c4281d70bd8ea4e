"""What a database says of its own rows, once they were moved: whether they are those that count.

Of the two ends of a move at most one is live at any moment. The rows arrive as a copy that does not
count; then the end that they come from is marked as moved; then the other one is live. A crash in
between leaves one that is live, or none until the move is repeated.
"""

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Self

from koboshi.domain.errors import StoreRefused
from koboshi.kernel.decode import number, text
from koboshi.kernel.transaction import Value


class MoveState(StrEnum):
    ARRIVING = "arriving"
    """A copy of rows that still count elsewhere."""
    LIVE = "live"
    """The rows that count."""
    MOVED = "moved"
    """Rows that counted once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    move_id: str
    state: MoveState
    place: str
    at_ms: int

    @classmethod
    def of_row(cls, row: tuple[object, ...]) -> Self:
        move_id, state, place, at_ms = row
        return cls(
            move_id=text(move_id),
            state=MoveState(text(state)),
            place=text(place),
            at_ms=number(at_ms),
        )

    def turned(self, state: MoveState) -> "Mark":
        return replace(self, state=state)

    def values(self) -> dict[str, Value]:
        return {
            "move_id": self.move_id,
            "state": str(self.state),
            "place": self.place,
            "now": self.at_ms,
        }


def refuse_idle_rows(database: str, mark: Mark | None) -> None:
    """Raises StoreRefused that says where the rows are, if those of this database do not count."""
    if mark is None or mark.state is MoveState.LIVE:
        return
    if mark.state is MoveState.ARRIVING:
        raise StoreRefused(
            f"a move from {mark.place} to {database} was not finished; repeat `koboshi move`"
        )
    raise StoreRefused(
        f"the rows of {database} were moved to {mark.place}. Have the configuration name that "
        "store (store.url, empty for the file in the home), or move them back: `koboshi move`"
    )
