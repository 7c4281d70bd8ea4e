"""Counts for the metrics, from the journal lines since the last look."""

import json

from koboshi.domain.ids import WorkerId
from koboshi.domain.timing import BOUNDS_S
from koboshi.kernel.decode import first_number, maybe_number, maybe_text, number, text
from koboshi.kernel.transaction import Reading, Row
from koboshi.ports.tally import Called, Happened, Tally, Took

_BOUNDS_MS = json.dumps([round(bound * 1000) for bound in BOUNDS_S])


def tally_since(tx: Reading, worker_id: WorkerId, after: int | None) -> Tally:
    begin = boot_line(tx, worker_id) if after is None else after
    # Lines of other nodes become visible in any order, those of one boot in theirs.
    newest = tx.number("tally_newest", after=begin, worker_id=worker_id)
    span = {"after": begin, "newest": newest, "worker_id": worker_id}
    ((waiting_since_ms, owed_since_ms, held, ambiguous, processes, children),) = tx.rows(
        "tally_now"
    )
    return Tally(
        place=newest,
        happened=tuple(_happened(row) for row in tx.rows("tally_lines", **span)),
        took=tuple(_took(row) for row in tx.rows("tally_times", **span, bounds_ms=_BOUNDS_MS)),
        called=tuple(_called(row) for row in tx.rows("tally_calls", **span)),
        waiting_since_ms=maybe_number(waiting_since_ms),
        owed_since_ms=maybe_number(owed_since_ms),
        held=number(held),
        ambiguous=number(ambiguous),
        processes=number(processes),
        children=number(children),
        unclean_boots={text(how): number(count) for how, count in tx.rows("tally_boots")},
    )


def boot_line(tx: Reading, worker_id: WorkerId) -> int:
    """The journal line with which a boot began; 0 if it is not kept."""
    return first_number(tx.row("tally_begin", worker_id=worker_id)) or 0


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
        outcome=maybe_text(outcome),
        decision=maybe_text(decision),
        count=number(count),
    )


def _happened(row: Row) -> Happened:
    subject, event, after, label, channel, count = row
    return Happened(
        subject=text(subject),
        event=text(event),
        after=maybe_text(after),
        label=maybe_text(label),
        channel=maybe_text(channel),
        count=number(count),
    )
