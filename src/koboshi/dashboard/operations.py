"""What can be asked and done over the page's API: one table, of which `dashboard/app.py` makes the
routes and `dashboard/describe.py` the description."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from koboshi.control.replies import (
    ChatList,
    DeliveryExplained,
    DeliveryList,
    DeliveryShown,
    Done,
    InboxList,
    LineList,
    MessageExplained,
    MessageShown,
    PageOffer,
    ProcessEnded,
    ProcessExplained,
    ProcessList,
    ProcessOutput,
    QuestionList,
    SessionList,
    SessionShown,
    Troubles,
    TurnExplained,
    TurnList,
    TurnShown,
    WorkerList,
)
from koboshi.control.requests import (
    ChangeRow,
    ControlRequest,
    DropDelivery,
    DropMessage,
    DropTurn,
    EndProcess,
    Explain,
    GetInbox,
    GetTroubles,
    ListChats,
    ListProcesses,
    ListQuestions,
    ListRows,
    ReadProcessLog,
    ResumeTurn,
    RetryDelivery,
    RetryMessage,
    ShowRow,
    TellTurn,
)

BASE = "/api/v1"
PAGE_PATH, KILL_PATH = f"{BASE}/page", f"{BASE}/try/kill"
LIMIT = 50
LIMIT_MAX = 200
LOG_CHARS = 20_000
LOG_CHARS_MAX = 200_000

_OPEN_TURNS = "only those that are not closed"
_OPEN_MESSAGES = "only those that wait"
_OPEN_DELIVERIES = "only those that are owed"
_OPEN_LINES = "only what recovery decided and how boots began and ended, of the newest lines"
_PAGED = ("limit", "before")


@dataclass(frozen=True, slots=True, kw_only=True)
class PageCall:
    """One call of an address."""

    channel: str
    what: str
    """The part of the address that names something; empty if none does."""
    query: Mapping[str, str]


Make: TypeAlias = Callable[[PageCall], ControlRequest]


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


def _listing(kind: str) -> Make:
    def make(call: PageCall) -> ListRows:
        return ListRows(
            kind=kind,
            limit=_limit(call),
            before=call.query.get("before", ""),
            open=_is_open(call),
            session=call.query.get("session", ""),
            chat=call.query.get("chat", ""),
        )

    return make


def _inbox(call: PageCall) -> GetInbox:
    before = call.query.get("before", "")
    return GetInbox(limit=_limit(call), before=before, open=_is_open(call))


def _showing(kind: str) -> Make:
    return lambda call: ShowRow(kind=kind, what=call.what)


def _log(call: PageCall) -> ReadProcessLog:
    chars = _number(call.query.get("chars"), LOG_CHARS, LOG_CHARS_MAX)
    return ReadProcessLog(what=call.what, chars=chars)


def _limit(call: PageCall) -> int:
    return _number(call.query.get("limit"), LIMIT, LIMIT_MAX)


def _is_open(call: PageCall) -> bool:
    return call.query.get("open") in ("1", "true")


def _number(text: str | None, otherwise: int, most: int) -> int:
    is_number = text is not None and text.isascii() and text.isdigit() and len(text) < 10
    return max(1, min(int(text or 0), most)) if is_number else otherwise


def _list(
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


def _show(path: str, name: str, summary: str, reply: type[Done], make: Make) -> Operation:
    return Operation(
        path=f"{BASE}/{path}",
        name=name,
        summary=summary,
        replies=(reply,),
        make=make,
        example=_example(path),
    )


def _do(
    path: str, name: str, summary: str, reply: type[Done], kind: type[ChangeRow] | type[EndProcess]
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


def _example(path: str) -> str:
    return {"sessions": "s1", "turns": "t1", "inbox": "m1", "outbox": "d1", "processes": "p1"}.get(
        path.partition("/")[0], ""
    )


OPERATIONS: tuple[Operation, ...] = (
    # What people said and what became of it.
    _list(
        "sessions",
        "listSessions",
        "Sessions, newest first",
        SessionList,
        _listing("session"),
        (*_PAGED, "chat"),
    ),
    _show(
        "sessions/{what}",
        "showSession",
        "A session, `s1`, and its newest turns",
        SessionShown,
        _showing("session"),
    ),
    _list(
        "turns",
        "listTurns",
        "Turns, newest first",
        TurnList,
        _listing("turn"),
        (*_PAGED, "session"),
        _OPEN_TURNS,
    ),
    _show(
        "turns/{what}",
        "showTurn",
        "A turn, `t1`: why it is where it is, and its timeline",
        TurnExplained,
        lambda call: TellTurn(kind="turn", what=call.what),
    ),
    _list(
        "inbox",
        "listInbox",
        "What arrived, newest first",
        InboxList,
        _inbox,
        _PAGED,
        _OPEN_MESSAGES,
    ),
    _show("inbox/{what}", "showMessage", "A message, `m1`", MessageShown, _showing("message")),
    Operation(
        path=f"{BASE}/explain/{{what}}",
        name="explain",
        summary="Why it is where it is, as `koboshi explain` tells it",
        replies=(TurnExplained, MessageExplained, DeliveryExplained, ProcessExplained),
        make=lambda call: TellTurn(what=call.what),
        example="m1",
        takes_slashes=True,
    ),
    _show(
        "troubles",
        "listTroubles",
        "What keeps messages from being answered now, and what helps",
        Troubles,
        lambda _call: GetTroubles(),
    ),
    _list(
        "outbox",
        "listOutbox",
        "What is or was owed, newest first",
        DeliveryList,
        _listing("delivery"),
        _PAGED,
        _OPEN_DELIVERIES,
    ),
    _show("outbox/{what}", "showDelivery", "A delivery, `d1`", DeliveryShown, _showing("delivery")),
    _list(
        "questions",
        "listQuestions",
        "Open questions and approvals",
        QuestionList,
        lambda _call: ListQuestions(),
    ),
    _list(
        "chats",
        "listChats",
        "Chats of this channel, lately used",
        ChatList,
        lambda call: ListChats(channel=call.channel),
    ),
    # What is around them.
    _list(
        "processes",
        "listProcesses",
        "Background processes",
        ProcessList,
        lambda _call: ListProcesses(),
    ),
    _show(
        "processes/{what}",
        "showProcess",
        "A process, `p1`, and what was said about it",
        ProcessExplained,
        lambda call: Explain(what=call.what),
    ),
    _show(
        "processes/{what}/log",
        "showProcessLog",
        "The end of its output, `chars` of it",
        ProcessOutput,
        _log,
    ),
    _list(
        "workers",
        "listBoots",
        "Boots and how each ended, newest first",
        WorkerList,
        _listing("worker"),
        _PAGED,
    ),
    _list(
        "journal",
        "listJournal",
        "What happened, newest first",
        LineList,
        _listing("line"),
        _PAGED,
        _OPEN_LINES,
    ),
    Operation(
        path=PAGE_PATH,
        name="describePage",
        summary="What this page can offer",
        replies=(PageOffer,),
    ),
    # What can be done.
    _do(
        "turns/{what}/resume",
        "resumeTurn",
        "Go on at once, as `/resume` does",
        TurnShown,
        ResumeTurn,
    ),
    _do("turns/{what}/drop", "dropTurn", "End it for good, as `/drop` does", TurnShown, DropTurn),
    _do(
        "inbox/{what}/retry",
        "retryMessage",
        "Ask again what was dropped or not answered, once",
        MessageShown,
        RetryMessage,
    ),
    _do(
        "inbox/{what}/drop",
        "dropMessage",
        "Do not take up a message that waits",
        MessageShown,
        DropMessage,
    ),
    _do(
        "outbox/{what}/retry",
        "retryDelivery",
        "Send again what was refused, given up or put off",
        DeliveryShown,
        RetryDelivery,
    ),
    _do("outbox/{what}/drop", "dropDelivery", "Give up what is owed", DeliveryShown, DropDelivery),
    _do(
        "processes/{what}/kill",
        "killProcess",
        "End it, with everything it has started",
        ProcessEnded,
        EndProcess,
    ),
    Operation(
        path=KILL_PATH,
        name="killGateway",
        summary="`kill -9` the gateway; only under `koboshi run --supervise`",
        replies=(Done,),
        how="do",
    ),
)
