"""What people are told of rows: where each stands, why, and what became of it.

The sentences themselves are pure and stand in the domain, because the kernel needs them in
transactions: `domain/standing.py` (where a turn stands, and why), `domain/reasons.py` (why
something was not answered, and what helps) and `domain/story.py` (what happened). Here they are
chosen for the views, once for the command line, the page and its API.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from koboshi.domain.ids import shown
from koboshi.domain.inbox import EntryKind
from koboshi.domain.outbox import UNSETTLED, DeliveryState
from koboshi.domain.reasons import (
    START,
    OwedPart,
    Reason,
    TurnStanding,
    or_by_hand,
    why_closed,
    why_delivery,
    why_message,
    why_turn,
)
from koboshi.domain.standing import where_it_stands
from koboshi.domain.story import words_of_lines
from koboshi.domain.turn import CLOSED, TurnState
from koboshi.ports.views import DeliveryView, EntryView, Explanation, JournalLine, TurnView

_LOST = frozenset({DeliveryState.REJECTED, DeliveryState.ABANDONED})


@dataclass(frozen=True, slots=True, kw_only=True)
class Narrator:
    """What can be said here and now: whether a gateway runs, and which channels it cannot reach,
    with the reason."""

    is_running: bool
    troubles: Mapping[str, str | None]

    def of_turn(self, explanation: Explanation) -> Reason:
        turn = explanation.turn
        if explanation.held_up is not None:
            return explanation.held_up
        owed = _not_arrived(turn, explanation.deliveries)
        return why_turn(
            TurnStanding(
                name=shown("turn", turn.turn_id),
                state=turn.state,
                event=turn.event,
                reason=turn.reason,
                deaths=turn.crash_streak,
                channel=turn.route.channel,
                barred=explanation.barred,
                is_running=self.is_running,
                verdict=explanation.why,
                question=explanation.question,
                message=_said(explanation.entries),
                owed=None if owed is None else self._part(owed, turn.route.channel),
            )
        )

    def of_message(self, entry: EntryView, behind: TurnView | None = None) -> Reason:
        """Of one that is in no turn; `behind` is what it waits for."""
        name = shown("message", entry.entry_id)
        if entry.state != "waiting":
            return _of_settled(entry)
        if behind is None and self.is_running:
            return Reason(words="waiting; the next look of the gateway takes it up")
        if behind is None:
            return Reason(words="waiting; no gateway runs to take it up", remedy=START)
        turn = shown("turn", behind.turn_id)
        words = f"waiting behind {turn}, which has to end first"
        drop = "" if entry.kind != EntryKind.MESSAGE else f"; `koboshi inbox drop {name}` drops it"
        remedy = f"`koboshi explain {turn}` says why that has not ended{drop}"
        return Reason(words=words, remedy=remedy)

    def of_delivery(self, delivery: DeliveryView, channel: str) -> Reason:
        return why_delivery(self._part(delivery, channel))

    def _part(self, delivery: DeliveryView, channel: str) -> OwedPart:
        return OwedPart(
            name=shown("delivery", delivery.delivery_id),
            state=delivery.state,
            reason=delivery.reason,
            attempts=delivery.attempts,
            channel=channel,
            is_running=self.is_running,
            trouble=self.troubles.get(channel),
        )


def worded(lines: Sequence[JournalLine]) -> tuple[JournalLine, ...]:
    """The lines, each with what it says: a reader needs no words of its own for events."""
    told = zip(lines, words_of_lines(lines), strict=True)
    return tuple(replace(line, words=words) for line, words in told)


def fate_of(entry: EntryView, turn: TurnView | None) -> Reason | None:
    """What became of a message, in a list; None while it waits or its turn is not closed: what is
    asked about that turn says more."""
    if turn is None:
        return None if entry.state == "waiting" else _of_settled(entry)
    if turn.state not in CLOSED:
        return None
    closed = why_closed(turn.state, turn.event, turn.reason, turn.crash_streak)
    if entry.kind != EntryKind.MESSAGE:
        return closed
    return or_by_hand(closed, turn.state, shown("message", entry.entry_id))


def stands_words(turn: TurnView, *, is_worked_on: bool = True) -> str:
    """Where a turn stands. A gateway of an earlier version does not say it in words."""
    return turn.stands or where_it_stands(TurnState(turn.state), None, is_worked_on=is_worked_on)


def fate_of_message(entry: EntryView) -> str:
    """What became of a message that is in no turn. One that waits is told by who is before it."""
    return _of_settled(entry).words


def fate_of_delivery(delivery: DeliveryView, *, is_running: bool) -> str:
    """Where a delivery stands, and why."""
    return Narrator(is_running=is_running, troubles={}).of_delivery(delivery, "").words


def _of_settled(entry: EntryView) -> Reason:
    return why_message(
        shown("message", entry.entry_id),
        entry.state,
        entry.kind,
        entry.reason,
        sender=entry.sender,
        channel=entry.source,
    )


def _said(entries: Sequence[EntryView]) -> str:
    """The first message of a person, by its name; empty without one."""
    named = (each.entry_id for each in entries if each.kind == EntryKind.MESSAGE)
    return next((shown("message", entry_id) for entry_id in named), "")


def _not_arrived(turn: TurnView, deliveries: Sequence[DeliveryView]) -> DeliveryView | None:
    """The first part of what a turn says that has not arrived, if that is why it stands where it
    does. What is said in passing is no part of it, and what was sent again is told by that."""
    again = {each.cause.removeprefix("retry:") for each in deliveries}
    said = [
        each
        for each in deliveries
        if not each.cause.startswith("progress:") and str(each.delivery_id) not in again
    ]
    match turn.state:
        case TurnState.WAITING | TurnState.ANSWERED:
            left = [each for each in said if each.state in UNSETTLED]
            failed = [each for each in left if each.attempts or each.state != DeliveryState.OWED]
            return next(iter(failed or left), None)
        case TurnState.DONE:
            return next((each for each in said if each.state in _LOST), None)
        case _:
            return None
