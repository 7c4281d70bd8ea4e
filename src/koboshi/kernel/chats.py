"""The verbs of chats as the operator keeps them."""

from functools import partial

from koboshi.domain.chat import ChatMark
from koboshi.domain.ids import ChannelName, SessionId
from koboshi.domain.session import CutKind, Session
from koboshi.kernel.context import VerbContext
from koboshi.kernel.decode import numbers
from koboshi.kernel.erasure import erase_chat
from koboshi.kernel.keys import lock_session
from koboshi.kernel.operator_action import cut_session
from koboshi.kernel.record import ask_processes_to_end
from koboshi.kernel.rows import read_session
from koboshi.kernel.transaction import Reading, Transaction, Writer
from koboshi.ports.wakeups import JOURNAL

_COLUMN = {
    ChatMark.PIN: ("chat_mark_pinned", True),
    ChatMark.UNPIN: ("chat_mark_pinned", False),
    ChatMark.ARCHIVE: ("chat_mark_archived", True),
    ChatMark.UNARCHIVE: ("chat_mark_archived", False),
}


class ChatVerbs:
    def __init__(self, writer: Writer, context: VerbContext) -> None:
        self._writer = writer
        self._context = context

    async def name(self, channel: ChannelName, chat: str, title: str) -> bool:
        def operation(tx: Transaction) -> bool:
            found = _marked(tx, channel, chat)
            for session in found:
                tx.change("chat_mark_title", session_id=session.session_id, title=title)
            return bool(found)

        return await self._writer.write("chats.name", operation)

    async def mark(self, channel: ChannelName, chat: str, mark: ChatMark) -> bool:
        query, is_set = _COLUMN[mark]

        def operation(tx: Transaction) -> bool:
            found = _marked(tx, channel, chat)
            at_ms = tx.now_ms if is_set else None
            for session in found:
                tx.change(query, session_id=session.session_id, at_ms=at_ms)
            return bool(found)

        return await self._writer.write("chats.mark", operation)

    async def delete(self, channel: ChannelName, chat: str, by: str) -> int | None:
        def operation(tx: Transaction) -> int | None:
            found = _marked(tx, channel, chat)
            if not found:
                return None
            cut = partial(cut_session, tx, self._context, kind=CutKind.NEW)
            for session in found:
                ask_processes_to_end(tx, session.session_id, None, everything=True)
            erased = erase_chat(tx, self._context, found, by, cut=cut)
            for session in found:
                tx.change("chat_mark_deleted", session_id=session.session_id, now=tx.now_ms)
            return erased

        return await self._writer.write("chats.delete", operation)


def _marked(tx: Transaction, channel: ChannelName, chat: str) -> tuple[Session, ...]:
    """The sessions of a chat, each with a row of marks."""
    found = _sessions(tx, channel, chat)
    for session in found:
        lock_session(tx, session.session_id)
        tx.change("chat_mark_make", session_id=session.session_id)
        tx.hints.add(JOURNAL)
    return found


def _sessions(tx: Reading, channel: ChannelName, chat: str) -> tuple[Session, ...]:
    rows = tx.rows("sessions_of_chat", channel=channel, chat=chat)
    return tuple(read_session(tx, SessionId(each)) for each in numbers(rows))
