"""One turn per message, and the one exception: a backlog. Pure."""

from collections import defaultdict
from collections.abc import Iterator

from koboshi.torture.faults import Fault, Violation
from koboshi.torture.seen import JoinedRow, Remains

JOINED_MAX = 10
"""How many messages one turn answers."""


def check_joined(remains: Remains) -> Iterator[Violation]:
    """A backlog is of one person, has few messages, and they are in the turn in their order."""
    turns: dict[int, list[JoinedRow]] = defaultdict(list)
    for row in remains.joined:
        turns[row.turn_id].append(row)
    places = {entry.entry_id: entry.turn_id for entry in remains.entries}
    for turn_id, rows in turns.items():
        order = [row.entry_id for row in rows]
        people = sorted({row.sender for row in rows})
        if len(people) > 1:
            yield _violation(Fault.WRONG, f"t{turn_id} answers {people} together")
        if not 2 <= len(rows) <= JOINED_MAX:
            yield _violation(Fault.WRONG, f"t{turn_id} answers {len(rows)} messages together")
        if order != sorted(set(order)):
            yield _violation(Fault.DISORDER, f"t{turn_id} heard its messages in the order {order}")
        for entry_id in order:
            if places.get(entry_id) != turn_id:
                yield _violation(
                    Fault.LOST, f"m{entry_id} was heard in t{turn_id} and is not there"
                )


def _violation(fault: Fault, words: str) -> Violation:
    return Violation(fault=fault, words=words)
