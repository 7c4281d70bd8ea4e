"""Messages that were sent while no gateway was connected: which of them one turn answers. Pure.

A person who writes three times while the gateway is down may have taken back with the third what
they asked with the first. So what one person has sent in a row is read as a whole. This is the one
exception to one turn per message, and it is decided once for a turn, at its first claim.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby

from koboshi.domain.ids import WorkerId
from koboshi.domain.inbox import Entry, EntryKind, Words


@dataclass(frozen=True, slots=True, kw_only=True)
class BacklogLimits:
    messages_max: int = 10
    """How many messages one turn answers; the others are for the next."""
    chars_max: int = 16_000
    """How much text these have together."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Boot:
    """The boot that claims the turn."""

    worker_id: WorkerId
    connected_ms: int
    """When it first reached the platform; its beginning, where that is not told."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AcceptedMessage:
    """An entry, with who has stored it and when."""

    entry: Entry
    accepted_by: int | None
    received_ms: int
    is_by_gone: bool = False
    """Whether the worker that stored it has ended."""


def joined(
    begun: Sequence[AcceptedMessage],
    waiting: Iterable[AcceptedMessage],
    boot: Boot,
    limits: BacklogLimits,
) -> tuple[Entry, ...]:
    """The messages that join a turn at its first claim, in order.

    `begun` is what the turn has heard so far, `waiting` what waits in its session, oldest first.
    All are of one person, were sent before this boot, and came one after the other: the first
    message that is not so ends the row, and so does one that was sent to wait or to steer, or that
    answers a question. What was sent as one, an album, joins as a whole or not at all. Reports are
    no messages: they neither join nor end the row.
    """
    own = [each for each in begun if each.entry.kind is EntryKind.MESSAGE]
    if not own or not all(_is_of_row(each, own[0].entry, boot) for each in own):
        return ()
    row = _row(own[0].entry, waiting, boot, limits.messages_max)
    count, chars = len(own), sum(_chars(each.entry) for each in own)
    found: list[Entry] = []
    for _, parts in groupby(row, key=_sent_as):
        sent_as_one = list(parts)
        count += len(sent_as_one)
        chars += sum(map(_chars, sent_as_one))
        if count > limits.messages_max or chars > limits.chars_max:
            break
        found += sent_as_one
    return tuple(found)


def was_sent_before(accepted: AcceptedMessage, boot: Boot) -> bool:
    """Whether it was sent before this boot connected, by stored facts alone.

    What a worker has stored that is gone was. What this boot has stored was if the platform says
    that it was sent in a second before the one in which the boot connected: platforms tell whole
    seconds. Where we have received it before that moment, too, our clock was set back since, and
    the comparison says nothing.
    """
    if accepted.accepted_by is None or not isinstance(accepted.entry.body, Words):
        return False
    if accepted.accepted_by != boot.worker_id:
        return accepted.is_by_gone
    sent_ms = accepted.entry.body.sent_ms
    is_earlier = sent_ms > 0 and sent_ms // 1_000 < boot.connected_ms // 1_000
    return is_earlier and boot.connected_ms <= accepted.received_ms


def _row(
    first: Entry, waiting: Iterable[AcceptedMessage], boot: Boot, messages_max: int
) -> Iterable[Entry]:
    """The messages that stand in a row with the first one. One more than can join is enough."""
    found: list[Entry] = []
    for each in waiting:
        if each.entry.kind is not EntryKind.MESSAGE:
            continue
        if not _is_of_row(each, first, boot) or len(found) > messages_max:
            break
        found.append(each.entry)
    return found


def _is_of_row(accepted: AcceptedMessage, first: Entry, boot: Boot) -> bool:
    entry, body = accepted.entry, accepted.entry.body
    is_plain = isinstance(body, Words) and body.busy is None and body.question is None
    is_theirs = (entry.sender, entry.generation) == (first.sender, first.generation)
    return is_plain and is_theirs and was_sent_before(accepted, boot)


def _sent_as(entry: Entry) -> str:
    """What it was sent as a part of; itself, where it stands alone."""
    assert isinstance(entry.body, Words)
    return entry.body.group or f"m{entry.entry_id}"


def _chars(entry: Entry) -> int:
    assert isinstance(entry.body, Words)
    return len(entry.body.text)
