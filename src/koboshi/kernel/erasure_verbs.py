"""The verbs of erasures: begin one, and note how far it has come."""

import json
from collections.abc import Awaitable, Callable
from functools import partial

from koboshi.domain.erasure import Erasure
from koboshi.domain.ids import ChannelName
from koboshi.domain.session import CutKind
from koboshi.kernel.context import VerbContext
from koboshi.kernel.decode import number, text
from koboshi.kernel.erasure import erase_person
from koboshi.kernel.operator_action import cut_session
from koboshi.kernel.transaction import Readers, Row, Transaction, Writer


class ErasureVerbs:
    def __init__(
        self,
        writer: Writer,
        readers: Readers,
        context: VerbContext,
        forget_log: Callable[[], Awaitable[bool]],
    ) -> None:
        self._writer = writer
        self._readers = readers
        self._context = context
        self._forget_log = forget_log

    async def erase(self, channel: ChannelName, person: str, by: str) -> int:
        def operation(tx: Transaction) -> int:
            cut = partial(cut_session, tx, self._context, kind=CutKind.NEW)
            return erase_person(tx, self._context, channel, person, by, cut=cut)

        return await self._writer.write("erasures.erase", operation)

    async def unfinished(self) -> tuple[Erasure, ...]:
        rows = await self._readers.read(lambda tx: tx.rows("erasures_unfinished"))
        return tuple(map(_erasure_of, rows))

    async def files_gone(self, erasure_id: int) -> None:
        await self._writer.write("erasures.files_gone", lambda tx: _gone(tx, erasure_id))

    async def forget_log(self) -> bool:
        return await self._forget_log()

    async def finished(self, erasure_id: int) -> None:
        await self._writer.write("erasures.finished", lambda tx: _finish(tx, erasure_id))


def _gone(tx: Transaction, erasure_id: int) -> None:
    tx.change("erasure_files_gone", erasure_id=erasure_id)


def _finish(tx: Transaction, erasure_id: int) -> None:
    tx.change("erasure_finish", erasure_id=erasure_id, now=tx.now_ms)


def _erasure_of(row: Row) -> Erasure:
    erasure_id, channel, person, files = row
    return Erasure(
        erasure_id=number(erasure_id),
        channel=ChannelName(text(channel)),
        person=text(person),
        files=() if files is None else tuple(map(str, json.loads(text(files)))),
    )
