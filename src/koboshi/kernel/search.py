"""Finding what was said, with the full-text index of the store.

Theory of operation. A commit of a message or an answer does not touch the index, so a message costs
nothing more. A task indexes the steps behind the stored place, in transactions of its own: the
words and the new place are one commit, so a crash neither skips nor doubles a step. What is behind
the place is searched by reading it: it is a few steps while a gateway runs. A hit is read from its
step, and one that was erased is none.

Where several nodes write, a step may be committed after one with a greater number. So the store
says how far every step is there (`search_bound`), and the place goes no further.
"""

from collections.abc import Callable
from typing import TypeAlias

from koboshi.domain.finding import excerpt_of, holds, wanted_words
from koboshi.domain.ids import ChannelName, shown
from koboshi.domain.transcript import Answer, Body, Message
from koboshi.kernel.decode import body_of, number, text
from koboshi.kernel.keys import key_named
from koboshi.kernel.transaction import Keys, Readers, Reading, Transaction, Writer
from koboshi.ports.search import SearchHit

TAIL_MAX = 2_000
"""Steps that are not indexed and are searched all the same, the newest ones."""
LOOKED_AT = 5
"""Hits that are read for each that is wanted: some are of other channels, or erased."""
TITLES_MAX = 500
CHARS_MAX = 200_000
"""So much of a step is indexed."""


Matches: TypeAlias = tuple[str, ...]


class SearchVerbs:
    def __init__(
        self, writer: Writer, readers: Readers, match: Callable[[tuple[str, ...]], Matches]
    ) -> None:
        """`match` says in the language of the store: all of these words, the last one begun. The
        second way of saying it is tried where the first finds too little."""
        self._writer = writer
        self._readers = readers
        self._match = match

    async def index(self, limit: int) -> int:
        def look(tx: Reading) -> bool:
            return bool(tx.rows("search_behind", after=tx.number("search_place")))

        if not await self._readers.read(look):
            return 0
        return await self._writer.write(
            "search.index", lambda tx: _index(tx, limit), Keys(chats=(key_named("search"),))
        )

    async def clear(self) -> None:
        await self._writer.write("search.clear", _clear)

    async def find(self, channel: ChannelName, text: str, limit: int) -> tuple[SearchHit, ...]:
        words = wanted_words(text)
        if not words:
            return ()
        match = self._match(words)
        return await self._readers.read(lambda tx: _find(tx, channel, words, match, limit))


def _index(tx: Transaction, limit: int) -> int:
    after, upto = tx.number("search_place"), tx.number("search_bound")
    rows = tx.rows("search_steps", after=after, upto=upto, limit=limit)
    for seq, kind, body, erased_ms in rows:
        if kind in ("message", "answer") and erased_ms is None:
            words = _said(body_of(kind, body))[:CHARS_MAX].replace("\0", " ")
            tx.change("search_add", seq=seq, words=words)
    if rows:
        tx.change("search_move", upto=rows[-1][0])
    return len(rows)


def _clear(tx: Transaction) -> None:
    tx.change("search_clear")
    tx.change("search_move", upto=0)


def _find(
    tx: Reading, channel: ChannelName, words: tuple[str, ...], matches: Matches, limit: int
) -> tuple[SearchHit, ...]:
    found = [*_in_tail(tx, words), *_in_index(tx, matches, limit * LOOKED_AT)]
    hits = [hit for seq in found if (hit := _hit(tx, channel, words, seq)) is not None]
    return (*_in_titles(tx, channel, words), *hits)[:limit]


def _in_index(tx: Reading, matches: Matches, limit: int) -> list[int]:
    """The newest steps with the words. A long word is looked for as it is first: it is rarely the
    beginning of another one, and all of those would have to be sorted."""
    found: list[int] = []
    for match in matches:
        if len(found) < limit:
            rows = tx.rows("search_find", words=match, limit=limit)
            found = [number(seq) for (seq,) in rows]
    return found


def _in_tail(tx: Reading, words: tuple[str, ...]) -> list[int]:
    rows = tx.rows("search_tail", after=tx.number("search_place"), limit=TAIL_MAX)
    return [number(seq) for seq, kind, body in rows if holds(_said(body_of(kind, body)), words)]


def _in_titles(tx: Reading, channel: ChannelName, words: tuple[str, ...]) -> list[SearchHit]:
    rows = tx.rows("search_titles", channel=channel, limit=TITLES_MAX)
    return [
        SearchHit(
            chat=text(chat),
            title=text(title),
            excerpt=excerpt_of(text(title), words),
            at_ms=number(at_ms),
        )
        for chat, title, at_ms in rows
        if holds(text(title), words)
    ]


def _hit(tx: Reading, channel: ChannelName, words: tuple[str, ...], seq: int) -> SearchHit | None:
    row = tx.row("search_hit", seq=seq, channel=channel)
    if row is None:
        return None
    kind, body, at_ms, chat, title, turn_id = row
    said = body_of(kind, body)
    return SearchHit(
        chat=text(chat),
        title=text(title),
        excerpt=excerpt_of(_said(said), words),
        at_ms=number(at_ms),
        message=shown("message", said.entry_id) if isinstance(said, Message) else "",
        turn=shown("turn", number(turn_id)),
    )


def _said(body: Body) -> str:
    return body.text if isinstance(body, Message | Answer) else ""
