"""Searching what was said in the chats of a channel."""

from koboshi.control.page_replies import Found, FoundWords
from koboshi.control.requests import SearchChats
from koboshi.domain.ids import ChannelName
from koboshi.ports.store import Store

HITS = 20
HITS_MAX = 100


async def found(store: Store, asked: SearchChats) -> Found:
    limit = max(1, min(asked.limit or HITS, HITS_MAX))
    hits = await store.search.find(ChannelName(asked.channel), asked.text, limit)
    return Found(
        hits=tuple(
            FoundWords(
                chat=hit.chat,
                title=hit.title,
                excerpt=hit.excerpt,
                at_ms=hit.at_ms,
                message=hit.message,
                turn=hit.turn,
            )
            for hit in hits
        )
    )
