"""Copies of files in the store, in pieces: no transaction is long. The last row makes it whole."""

from base64 import b64decode, b64encode
from functools import partial

from koboshi.kernel.decode import first_text, text, texts
from koboshi.kernel.transaction import Readers, Reading, Transaction, Writer

PIECE_BYTES = 192 * 1_024
PIECES_AT_ONCE = 8
WHOLE = -1
"""The piece that says how many there are."""


class KeptFileVerbs:
    def __init__(self, writer: Writer, readers: Readers) -> None:
        self._writer = writer
        self._readers = readers

    async def put(self, path: str, content: bytes) -> None:
        if await self._readers.read(lambda tx: _count(tx, path)) is not None:
            return
        starts = range(0, len(content), PIECE_BYTES)
        pieces = [b64encode(content[at : at + PIECE_BYTES]).decode() for at in starts]
        for begin in range(0, len(pieces), PIECES_AT_ONCE):
            some = list(enumerate(pieces[begin : begin + PIECES_AT_ONCE], start=begin))
            await self._write(path, some)
        await self._write(path, [(WHOLE, str(len(pieces)))])

    async def get(self, path: str) -> bytes | None:
        count = await self._readers.read(lambda tx: _count(tx, path))
        if count is None:
            return None
        found = []
        for part in range(count):
            piece = await self._readers.read(partial(_piece, path=path, part=part))
            found.append(b64decode(piece))
        return b"".join(found)

    async def forget(self, path: str) -> None:
        await self._writer.write(
            "files.forget", lambda tx: tx.change("kept_file_forget", path=path)
        )

    async def sweep(self, before_ms: int, kept: frozenset[str]) -> int:
        rows = await self._readers.read(lambda tx: tx.rows("kept_files_old", before_ms=before_ms))
        gone = [path for path in texts(rows) if path not in kept]
        for path in gone:
            await self.forget(path)
        return len(gone)

    async def _write(self, path: str, pieces: list[tuple[int, str]]) -> None:
        def operation(tx: Transaction) -> None:
            for part, content in pieces:
                tx.change("kept_file_put", path=path, part=part, content=content, now=tx.now_ms)

        await self._writer.write("files.put", operation)


def _count(tx: Reading, path: str) -> int | None:
    found = first_text(tx.row("kept_file_part", path=path, part=WHOLE))
    return None if found is None else int(found)


def _piece(tx: Reading, path: str, part: int) -> str:
    row = tx.row("kept_file_part", path=path, part=part)
    return "" if row is None else text(row[0])
