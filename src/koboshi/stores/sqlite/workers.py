"""One row per boot."""

from koboshi.domain.ids import WorkerId
from koboshi.domain.worker import EndedHow, Worker
from koboshi.stores.sqlite.ground import Ground
from koboshi.stores.sqlite.rows import worker_of
from koboshi.stores.sqlite.transaction import Transaction
from koboshi.stores.sqlite.writer import Writer


class SqliteWorkers:
    def __init__(self, writer: Writer, ground: Ground) -> None:
        self._writer = writer
        self._ground = ground

    async def start(self, host: str, pid: int, birth: str, version: str) -> Worker:
        def operation(tx: Transaction) -> Worker:
            tx.change("workers_bury")
            tx.insert(
                "worker_insert", host=host, pid=pid, birth=birth, version=version, now=tx.now_ms
            )
            row = tx.row("worker_newest", limit=1)
            assert row is not None
            return worker_of(row)

        worker = await self._writer.write("workers.start", operation)
        self._ground.worker_id = worker.worker_id
        return worker

    async def beat(self, worker_id: WorkerId) -> bool:
        def operation(tx: Transaction) -> bool:
            row = tx.row("worker_beat", worker_id=worker_id, now=tx.now_ms)
            return row is not None and bool(row[0])

        return await self._writer.write("workers.beat", operation)

    async def request_drain(self, worker_id: WorkerId) -> None:
        await self._writer.write(
            "workers.request_drain", lambda tx: tx.change("worker_drain", worker_id=worker_id)
        )

    async def end(self, worker_id: WorkerId, how: EndedHow) -> None:
        await self._writer.write(
            "workers.end",
            lambda tx: tx.change("worker_end", worker_id=worker_id, how=how, now=tx.now_ms),
        )
