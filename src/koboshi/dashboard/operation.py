"""One address of the page's API, and how its request is made of a call."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from koboshi.control.page_replies import ChatDeleted
from koboshi.control.replies import Done
from koboshi.control.requests import (
    AnswerApproval,
    ChangeRow,
    ControlRequest,
    DeleteChat,
    EndProcess,
    GetInbox,
    ListActivity,
    ListRows,
    MarkChat,
    MoveTimed,
    NameChat,
    ReadProcessLog,
    RemoveMemoryEntry,
    RetryMessage,
    RevokeBrowser,
    RevokeRule,
    SearchChats,
    ShowRow,
)

BASE = "/api/v1"
LIMIT = 50
LIMIT_MAX = 200
TEXT_CHARS_MAX = 200
LOG_CHARS = 20_000
LOG_CHARS_MAX = 200_000

OPEN_TURNS = "only those that are not closed"
OPEN_MESSAGES = "only those that wait"
OPEN_DELIVERIES = "only those that are not settled"
OPEN_LINES = "only what recovery decided and how boots began and ended, of the newest lines"
PAGED = ("limit", "before")
_EXAMPLES = {
    "sessions": "s1",
    "turns": "t1",
    "inbox": "m1",
    "outbox": "d1",
    "processes": "p1",
    "browsers": "b1",
    "memory": "n1",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class PageCall:
    """One call of an address."""

    channel: str
    what: str
    """The part of the address that names something; empty if none does."""
    query: Mapping[str, str]


Make: TypeAlias = Callable[[PageCall], ControlRequest]
NamedRequest: TypeAlias = (
    ChangeRow
    | EndProcess
    | AnswerApproval
    | RevokeRule
    | RevokeBrowser
    | MoveTimed
    | RemoveMemoryEntry
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """An address and what is asked there. `queries` and `is_open` are described to clients; the
    latter says what `open` leaves."""

    path: str
    name: str
    summary: str
    replies: tuple[type[Done], ...]
    make: Make | None = None
    """What is asked of the owner of the home; None if the page answers it itself."""
    queries: tuple[str, ...] = ()
    is_open: str = ""
    how: str = "show"
    """list, show or do."""
    example: str = ""
    """Of what is named in the address."""
    takes_slashes: bool = False


def listing(kind: str) -> Make:
    def make(call: PageCall) -> ListRows:
        return ListRows(
            kind=kind,
            limit=limit_of(call),
            before=call.query.get("before", ""),
            open=is_open_asked(call),
            session=call.query.get("session", ""),
            chat=call.query.get("chat", ""),
        )

    return make


def inbox_of(call: PageCall) -> GetInbox:
    before = call.query.get("before", "")
    return GetInbox(limit=limit_of(call), before=before, open=is_open_asked(call))


def showing(kind: str) -> Make:
    return lambda call: ShowRow(kind=kind, what=call.what)


def log_of(call: PageCall) -> ReadProcessLog:
    chars = _number(call.query.get("chars"), LOG_CHARS, LOG_CHARS_MAX)
    return ReadProcessLog(what=call.what, chars=chars)


def activity_of(call: PageCall) -> ListActivity:
    query = call.query
    return ListActivity(
        kind=query.get("kind", ""),
        state=query.get("state", ""),
        channel=query.get("channel", ""),
        text=query.get("text", "")[:TEXT_CHARS_MAX],
        since=_moment(query.get("since")),
        until=_moment(query.get("until")),
        limit=limit_of(call),
        before=query.get("before", ""),
    )


def _moment(text: str | None) -> int | None:
    is_number = text is not None and text.isascii() and text.isdigit() and len(text) < 16
    return int(text or 0) if is_number else None


def searching(call: PageCall) -> SearchChats:
    text = call.query.get("text", "")[:TEXT_CHARS_MAX]
    return SearchChats(channel=call.channel, text=text, limit=limit_of(call))


def naming(call: PageCall) -> NameChat:
    return NameChat(channel=call.channel, what=call.what, text=call.query.get("title", ""))


def marking(mark: str) -> Make:
    return lambda call: MarkChat(channel=call.channel, what=call.what, kind=mark)


def deleting(call: PageCall) -> DeleteChat:
    return DeleteChat(channel=call.channel, what=call.what)


def chat_done(word: str, name: str, summary: str, make: Make, *queries: str) -> Operation:
    """Something is done to a chat of the page's own channel."""
    return Operation(
        path=f"{BASE}/chats/{{what}}/{word}",
        name=name,
        summary=summary,
        replies=(ChatDeleted if make is deleting else Done,),
        make=make,
        queries=queries,
        how="do",
        example="main",
    )


def limit_of(call: PageCall) -> int:
    return _number(call.query.get("limit"), LIMIT, LIMIT_MAX)


def is_open_asked(call: PageCall) -> bool:
    return call.query.get("open") in ("1", "true")


def _number(text: str | None, otherwise: int, most: int) -> int:
    is_number = text is not None and text.isascii() and text.isdigit() and len(text) < 10
    return max(1, min(int(text or 0), most)) if is_number else otherwise


def listed_at(
    path: str,
    name: str,
    summary: str,
    reply: type[Done],
    make: Make,
    queries: tuple[str, ...] = (),
    is_open: str = "",
) -> Operation:
    return Operation(
        path=f"{BASE}/{path}",
        name=name,
        summary=summary,
        replies=(reply,),
        make=make,
        queries=queries,
        is_open=is_open,
        how="list",
    )


def shown_at(path: str, name: str, summary: str, reply: type[Done], make: Make) -> Operation:
    return Operation(
        path=f"{BASE}/{path}",
        name=name,
        summary=summary,
        replies=(reply,),
        make=make,
        example=_example(path),
    )


def done_at(
    path: str, name: str, summary: str, reply: type[Done], kind: Callable[..., NamedRequest]
) -> Operation:
    return Operation(
        path=f"{BASE}/{path}",
        name=name,
        summary=summary,
        replies=(reply,),
        make=lambda call: kind(what=call.what),
        how="do",
        example=_example(path),
    )


def asking_anew(what: str) -> RetryMessage:
    return RetryMessage(what=what, anew=True)


def _example(path: str) -> str:
    first = path.partition("/")[0]
    return {"outbox": "d1", "inbox": "m1", "questions": "12"}.get(first, f"{first[0]}1")
