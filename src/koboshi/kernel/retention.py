"""Deleting old journal lines and settled deliveries, in batches that do not hold up other writes.

No decision reads what is deleted here. The newest row of a table is never deleted, because SQLite
would give its id to the next row.
"""

import json

from koboshi.domain.ids import WorkerId
from koboshi.kernel.decode import first_number, numbers
from koboshi.kernel.journal_tally import boot_line
from koboshi.kernel.keys import lock_found
from koboshi.kernel.transaction import Readers, Reading, Row, Transaction, Writer
from koboshi.ports.retention import Outdated

LOOKED_AT = 200
"""Rows of one look, and so the maximum that one transaction deletes."""


class RetentionVerbs:
    def __init__(self, writer: Writer, readers: Readers) -> None:
        self._writer = writer
        self._readers = readers

    async def begin(self, worker_id: WorkerId) -> int:
        return await self._readers.read(lambda tx: boot_line(tx, worker_id))

    async def lines(self, after: int, before_ms: int, boot_seq: int) -> Outdated:
        def look(tx: Reading) -> Outdated:
            upto = _window(tx, "retention_line_window", after)
            if upto is None:
                return Outdated(ids=(), place=None)
            rows = tx.rows(
                "retention_lines",
                after=after,
                upto=upto,
                before_ms=before_ms,
                boot_seq=boot_seq,
                tried_seq=tx.number("retention_tried"),
            )
            return Outdated(ids=_ids(rows), place=upto if upto < boot_seq else None)

        return await self._readers.read(look)

    async def forget_lines(self, seqs: tuple[int, ...]) -> int:
        def operation(tx: Transaction) -> int:
            ids = json.dumps(_ids(tx.rows("retention_lines_still", ids=json.dumps(seqs))))
            lock_found(tx, "keys_of_lines", ids=ids)
            tx.change("retention_mark", ids=ids)
            return tx.change("retention_lines_delete", ids=ids)

        return await self._writer.write("retention.forget_lines", operation)

    async def deliveries(self, after: int, before_ms: int) -> Outdated:
        def look(tx: Reading) -> Outdated:
            upto = _window(tx, "retention_delivery_window", after)
            if upto is None:
                return Outdated(ids=(), place=None)
            rows = tx.rows("retention_deliveries", after=after, upto=upto, before_ms=before_ms)
            return Outdated(ids=_ids(rows), place=upto)

        return await self._readers.read(look)

    async def forget_deliveries(self, delivery_ids: tuple[int, ...]) -> int:
        def operation(tx: Transaction) -> int:
            asked = json.dumps(delivery_ids)
            ids = json.dumps(_ids(tx.rows("retention_deliveries_still", ids=asked)))
            lock_found(tx, "keys_of_deliveries", ids=ids)
            tx.change("retention_notices_delete", ids=ids)
            return tx.change("retention_deliveries_delete", ids=ids)

        return await self._writer.write("retention.forget_deliveries", operation)


def _window(tx: Reading, query: str, after: int) -> int | None:
    return first_number(tx.row(query, after=after, limit=LOOKED_AT))


def _ids(rows: list[Row]) -> tuple[int, ...]:
    return tuple(numbers(rows))
