"""Whose messages are in a turn. It runs only while all of them may use the gateway."""

from koboshi.domain.ids import ChannelName, TurnId
from koboshi.stores.sqlite.ground import Ground
from koboshi.stores.sqlite.rows import TurnRow, text
from koboshi.stores.sqlite.transaction import Reading


def are_senders_allowed(
    tx: Reading, ground: Ground, channel: ChannelName, turn_id: TurnId, person: str
) -> bool:
    """Whether everybody whose message is in the turn is allowed, and `person`, for whom it is
    worked on. What a process reported was said by no person."""
    if not ground.allows(tx, channel, person):
        return False
    rows = tx.rows("turn_senders", turn_id=turn_id, person=person)
    return all(ground.allows(tx, channel, text(row[0])) for row in rows)


def barred_in(tx: Reading, ground: Ground, channel: ChannelName, turn: TurnRow) -> tuple[str, ...]:
    """Those of them who are not allowed: what keeps the turn from running."""
    others = tx.rows("turn_senders", turn_id=turn.turn_id, person=turn.person)
    people = [turn.person, *(text(row[0]) for row in others)]
    return tuple(each for each in people if not ground.allows(tx, channel, each))


def may_run(tx: Reading, ground: Ground, channel: ChannelName, turn: TurnRow) -> bool:
    return are_senders_allowed(tx, ground, channel, turn.turn_id, turn.person)


def has_allowed_sender(tx: Reading, ground: Ground, channel: ChannelName, turn: TurnRow) -> bool:
    """Whether a message of a person who may use the gateway is in the turn."""
    rows = tx.rows("turn_senders", turn_id=turn.turn_id, person="")
    return any(ground.allows(tx, channel, text(row[0])) for row in rows)
