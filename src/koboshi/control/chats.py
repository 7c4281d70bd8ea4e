"""Chats, as the operator keeps them on the page."""

from koboshi.control.context import ControlContext
from koboshi.control.finding import found
from koboshi.control.page_replies import ChatDeleted
from koboshi.control.replies import Done, Refusal, refusal
from koboshi.control.requests import ChangeChat, DeleteChat, MarkChat, NameChat, SearchChats
from koboshi.domain.approval import OPERATOR
from koboshi.domain.chat import TITLE_CHARS_MAX, ChatMark
from koboshi.domain.ids import ChannelName

MARKS = {str(mark): mark for mark in ChatMark}


async def answer(jobs: ControlContext, asked: SearchChats | ChangeChat) -> Done:
    if isinstance(asked, SearchChats):
        return await found(jobs.store, asked)
    return await change(jobs, asked)


async def change(jobs: ControlContext, asked: ChangeChat) -> Done:
    chats, channel = jobs.store.chats, ChannelName(asked.channel)
    match asked:
        case NameChat(what=chat, text=title):
            plain = " ".join(title.split())[:TITLE_CHARS_MAX]
            return Done() if await chats.name(channel, chat, plain) else _no_chat(chat)
        case MarkChat(what=chat, kind=kind):
            mark = MARKS.get(kind)
            if mark is None:
                return refusal("bad-request", f'"{kind}" is none of {", ".join(MARKS)}')
            return Done() if await chats.mark(channel, chat, mark) else _no_chat(chat)
        case DeleteChat(what=chat):
            erased = await chats.delete(channel, chat, OPERATOR)
            if erased is None:
                return _no_chat(chat)
            # A gateway finishes it by itself, and a page does not wait for its disk.
            is_finished = not jobs.is_running and await jobs.finish_erasures()
            return ChatDeleted(
                chat=chat, messages=erased, is_finished=is_finished, backups=jobs.backups()
            )
        case other:
            raise AssertionError(f"nothing changes a chat as {type(other).__name__}")


def _no_chat(chat: str) -> Refusal:
    return refusal("not-found", f'nothing was said in a chat "{chat}"')
