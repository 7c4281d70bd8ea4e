"""Counting for metrics: only what is new in the journal, so that a look costs little."""

import json

from koboshi.domain.ids import WorkerId
from koboshi.domain.timing import BOUNDS_S
from koboshi.kernel.decode import maybe_number, number, text
from koboshi.kernel.transaction import Reading, Row
from koboshi.ports.tally import Called, Happened, Tally, Took

_BOUNDS_MS = json.dumps([round(bound * 1000) for bound in BOUNDS_S])


def tally_since(tx: Reading, worker_id: WorkerId, after: int | None) -> Tally:
    newest = tx.number("view_newest_line")
    begin = _begin(tx, worker_id) if after is None else after
    span = {"after": begin, "newest": newest}
    (now,) = tx.rows("tally_now")
    return Tally(
        place=newest,
        happened=tuple(_happened(row) for row in tx.rows("tally_lines", **span)),
        took=tuple(_took(row) for row in tx.rows("tally_times", **span, bounds_ms=_BOUNDS_MS)),
        called=tuple(_called(row) for row in tx.rows("tally_calls", **span)),
        waiting_since_ms=maybe_number(now[0]),
        owed_since_ms=maybe_number(now[1]),
        held=number(now[2]),
        ambiguous=number(now[3]),
        processes=number(now[4]),
        unclean_boots={text(how): number(count) for how, count in tx.rows("tally_boots")},
    )


def _begin(tx: Reading, worker_id: WorkerId) -> int:
    row = tx.row("tally_begin", worker_id=worker_id)
    return 0 if row is None else number(row[0])


def _took(row: Row) -> Took:
    what, label, bound_ms, count, total_ms = row
    return Took(
        what=text(what),
        label=text(label),
        bound_ms=maybe_number(bound_ms),
        count=number(count),
        total_ms=number(total_ms),
    )


def _called(row: Row) -> Called:
    tool, effect, outcome, decision, count = row
    return Called(
        tool=text(tool),
        effect=text(effect),
        outcome=None if outcome is None else text(outcome),
        decision=None if decision is None else text(decision),
        count=number(count),
    )


def _happened(row: Row) -> Happened:
    subject, event, after, label, channel, count = row
    return Happened(
        subject=text(subject),
        event=text(event),
        after=None if after is None else text(after),
        label=None if label is None else text(label),
        channel=None if channel is None else text(channel),
        count=number(count),
    )
