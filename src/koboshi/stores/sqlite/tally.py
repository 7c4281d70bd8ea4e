"""Counting for metrics: only what is new in the journal, so that a look costs little."""

from koboshi.domain.ids import WorkerId
from koboshi.domain.outbox import HELD_MS
from koboshi.ports.views import Happened, Tally
from koboshi.stores.sqlite.rows import maybe_number, number, text
from koboshi.stores.sqlite.transaction import Reading, Row


def tally_since(tx: Reading, worker_id: WorkerId, after: int | None) -> Tally:
    newest = tx.number("view_newest_line")
    begin = _begin(tx, worker_id) if after is None else after
    (now,) = tx.rows("tally_now", held_ms=HELD_MS)
    return Tally(
        place=newest,
        happened=tuple(
            _happened(row) for row in tx.rows("tally_lines", after=begin, newest=newest)
        ),
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
