"""Whose messages are in a turn. It runs only while all of them may use the gateway."""

from koboshi.domain.ids import ChannelName, TurnId
from koboshi.kernel.context import VerbContext
from koboshi.kernel.decode import TurnRow, text
from koboshi.kernel.transaction import Reading


def are_senders_allowed(
    tx: Reading, context: VerbContext, channel: ChannelName, turn_id: TurnId, person: str
) -> bool:
    """Whether everybody whose message is in the turn is allowed, and `person`, for whom it is
    worked on. What a process reported was said by no person."""
    if not context.allows(tx, channel, person):
        return False
    rows = tx.rows("turn_senders", turn_id=turn_id, person=person)
    return all(context.allows(tx, channel, text(row[0])) for row in rows)


def barred_in(
    tx: Reading, context: VerbContext, channel: ChannelName, turn: TurnRow
) -> tuple[str, ...]:
    """Those of them who are not allowed: what keeps the turn from running."""
    others = tx.rows("turn_senders", turn_id=turn.turn_id, person=turn.person)
    people = [turn.person, *(text(row[0]) for row in others)]
    return tuple(each for each in people if not context.allows(tx, channel, each))


def may_run(tx: Reading, context: VerbContext, channel: ChannelName, turn: TurnRow) -> bool:
    return are_senders_allowed(tx, context, channel, turn.turn_id, turn.person)


def has_allowed_sender(
    tx: Reading, context: VerbContext, channel: ChannelName, turn: TurnRow
) -> bool:
    """Whether a message of a person who may use the gateway is in the turn."""
    rows = tx.rows("turn_senders", turn_id=turn.turn_id, person="")
    return any(context.allows(tx, channel, text(row[0])) for row in rows)
