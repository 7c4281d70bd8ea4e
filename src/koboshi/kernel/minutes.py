"""The verb of minutes. The place up to which the journal is counted is stored with the counts, in
one transaction, so each line is counted once whatever happens in between."""

import json
from collections import defaultdict
from collections.abc import Mapping

from koboshi.kernel.decode import number
from koboshi.kernel.keys import key_named
from koboshi.kernel.minute_rows import MINUTE_MS, percentile
from koboshi.kernel.transaction import Keys, Readers, Row, Transaction, Writer

KEPT_MINUTES = 2 * 24 * 60
LINES_MAX = 20_000
"""Lines that one transaction counts. The rest is counted a minute later."""


class MinuteVerbs:
    def __init__(self, writer: Writer, readers: Readers) -> None:
        self._writer = writer
        self._readers = readers

    async def note(
        self,
        *,
        tokens: Mapping[str, int],
        memory_bytes: int | None,
        store_bytes: int | None,
        costs: Mapping[str, int] | None = None,
    ) -> None:
        known = costs or {}
        used = [(model, count, known.get(model)) for model, count in sorted(tokens.items())]

        def operation(tx: Transaction) -> None:
            minute, heard = tx.now_ms // MINUTE_MS, _count(tx)
            tx.change(
                "minute_measure",
                minute=minute,
                tokens=json.dumps(used),
                heard=json.dumps(heard),
                memory_bytes=memory_bytes,
                store_bytes=store_bytes,
            )
            tx.change("minutes_forget", minute=minute - KEPT_MINUTES)

        # One node at a time: the place and the counts belong together.
        await self._writer.write("minutes.note", operation, Keys(chats=(key_named("minutes"),)))


def _count(tx: Transaction) -> list[Row]:
    """Count the next lines into their minutes. Returns which channels were heard in them."""
    after = tx.number("minutes_place")
    upto = tx.number("minutes_upto", after=after, limit=LINES_MAX)
    window = {"after": after, "upto": upto}
    counts = {number(row[0]): row[1:] for row in tx.rows("minutes_counts", **window)}
    times: dict[int, list[int]] = defaultdict(list)
    for minute, took_ms in tx.rows("minutes_latencies", **window):
        times[number(minute)].append(number(took_ms))
    for minute in {tx.now_ms // MINUTE_MS, *counts}:
        messages, errors = counts.get(minute, (0, 0))
        tx.change(
            "minute_add",
            minute=minute,
            upto=upto,
            messages=messages,
            errors=errors,
            median=percentile(times[minute], 0.5),
            slowest=percentile(times[minute], 0.95),
        )
    return tx.rows("minutes_heard", **window)
