"""The minutes of a gateway, as they are read and counted."""

import json
from collections.abc import Sequence

from koboshi.kernel.decode import maybe_number, number, text
from koboshi.kernel.transaction import Reading, Row, Value
from koboshi.ports.views import MinuteView

MINUTE_MS = 60_000


def minutes_since(tx: Reading, since_ms: int) -> tuple[MinuteView, ...]:
    rows = tx.rows("view_minutes", minute=since_ms // MINUTE_MS)
    return tuple(_minute_of(row) for row in rows)


def percentile(values: Sequence[int], share: float) -> int | None:
    """The value that this share of all does not exceed; None of nothing."""
    if not values:
        return None
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def _minute_of(row: Row) -> MinuteView:
    minute, messages, errors, p50, p95, tokens, heard, memory_bytes, store_bytes = row
    return MinuteView(
        minute=number(minute),
        messages=number(messages),
        errors=number(errors),
        latency_p50_ms=maybe_number(p50),
        latency_p95_ms=maybe_number(p95),
        tokens=_tokens(tokens),
        costs=_costs(tokens),
        heard=_pairs(heard),
        memory_bytes=maybe_number(memory_bytes),
        store_bytes=maybe_number(store_bytes),
    )


def _tokens(column: Value) -> tuple[tuple[str, int], ...]:
    return tuple((str(model), int(count)) for model, count, *_ in json.loads(text(column)))


def _costs(column: Value) -> tuple[tuple[str, int], ...]:
    """An entry has a cost beside its count where the price was known when it was stored."""
    found = json.loads(text(column))
    return tuple((str(each[0]), int(each[2])) for each in found if each[2:] not in ([], [None]))


def _pairs(column: Value) -> tuple[tuple[str, int], ...]:
    return tuple((str(name), int(count)) for name, count in json.loads(text(column)))
