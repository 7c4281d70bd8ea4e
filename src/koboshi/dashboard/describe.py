"""The page's part of the description of the API."""

from typing import Any, TypeAlias

import msgspec

from koboshi.dashboard import shapes

# JSON has no types to offer; this is a codec.
Json: TypeAlias = dict[str, Any]

SHAPES: tuple[type, ...] = tuple(
    shape
    for shape in vars(shapes).values()
    if isinstance(shape, type) and issubclass(shape, msgspec.Struct) and shape is not msgspec.Struct
)
"""What the answers look like."""

EXPLAINED = (
    shapes.TurnExplained,
    shapes.MessageExplained,
    shapes.DeliveryExplained,
    shapes.ProcessExplained,
)

KILL_PATH = "/api/v1/try/kill"

_EXAMPLES = {
    "sessions": "s1",
    "turns": "t1",
    "inbox": "m1",
    "explain": "m1",
    "outbox": "d1",
    "processes": "p1",
}
_OPEN = {
    "turns": "only those that are not closed",
    "messages": "only those that wait",
    "deliveries": "only those that are owed",
    "lines": "only what recovery decided and how boots began and ended, of the newest lines",
}
_PAGE = "limit before"


def paths() -> Json:
    """What can be looked at and done, by its address."""
    told = _told()
    for path, methods in told.items():
        for operation in methods.values():
            named = [_named(path)] if "{what}" in path else []
            operation["parameters"] = [*named, *operation.get("parameters", ())]
    return told


def _named(path: str) -> Json:
    return _in("path", "what") | {"example": _EXAMPLES[path.split("/")[3]]}


def _told() -> Json:
    return {**_conversations(), **_surroundings(), **_done()}


def _conversations() -> Json:
    """What people said and what became of it."""
    s = shapes
    return {
        "/api/v1/sessions": _list(
            "listSessions", "Sessions, newest first", s.SessionList, "limit before chat"
        ),
        "/api/v1/sessions/{what}": _show(
            "showSession", "A session, `s1`, and its newest turns", s.SessionShown
        ),
        "/api/v1/turns": _list(
            "listTurns", "Turns, newest first", s.TurnList, "limit before session", _OPEN["turns"]
        ),
        "/api/v1/turns/{what}": _show(
            "showTurn", "A turn, `t1`: why it is where it is, and its timeline", s.TurnExplained
        ),
        "/api/v1/inbox": _list(
            "listInbox", "What arrived, newest first", s.InboxList, _PAGE, _OPEN["messages"]
        ),
        "/api/v1/inbox/{what}": _show("showMessage", "A message, `m1`", s.MessageShown),
        "/api/v1/explain/{what}": _show(
            "explain", "Why it is where it is, as `koboshi explain` tells it", *EXPLAINED
        ),
        "/api/v1/troubles": _show(
            "listTroubles",
            "What keeps messages from being answered now, and what helps",
            s.Troubles,
        ),
        "/api/v1/outbox": _list(
            "listOutbox",
            "What is or was owed, newest first",
            s.DeliveryList,
            _PAGE,
            _OPEN["deliveries"],
        ),
        "/api/v1/outbox/{what}": _show("showDelivery", "A delivery, `d1`", s.DeliveryShown),
        "/api/v1/questions": _list(
            "listQuestions", "Open questions and approvals", s.QuestionList, ""
        ),
        "/api/v1/chats": _list("listChats", "Chats of this channel, lately used", s.ChatList, ""),
    }


def _surroundings() -> Json:
    """What is around them."""
    s = shapes
    return {
        "/api/v1/processes": _list("listProcesses", "Background processes", s.ProcessList, ""),
        "/api/v1/processes/{what}": _show(
            "showProcess", "A process, `p1`, and what was said about it", s.ProcessExplained
        ),
        "/api/v1/processes/{what}/log": _show(
            "showProcessLog", "The end of its output, `chars` of it", s.ProcessOutput
        ),
        "/api/v1/workers": _list(
            "listBoots", "Boots and how each ended, newest first", s.WorkerList, _PAGE
        ),
        "/api/v1/journal": _list(
            "listJournal", "What happened, newest first", s.LineList, _PAGE, _OPEN["lines"]
        ),
        "/api/v1/page": _show("describePage", "What this page can offer", s.PageOffer),
    }


def _done() -> Json:
    s = shapes
    return {
        "/api/v1/turns/{what}/resume": _do(
            "resumeTurn", "Go on at once, as `/resume` does", s.TurnShown
        ),
        "/api/v1/turns/{what}/drop": _do(
            "dropTurn", "End it for good, as `/drop` does", s.TurnShown
        ),
        "/api/v1/inbox/{what}/retry": _do(
            "retryMessage", "Ask again what was dropped or not answered, once", s.MessageShown
        ),
        "/api/v1/inbox/{what}/drop": _do(
            "dropMessage", "Do not take up a message that waits", s.MessageShown
        ),
        "/api/v1/outbox/{what}/retry": _do(
            "retryDelivery", "Send again what was refused, given up or put off", s.DeliveryShown
        ),
        "/api/v1/outbox/{what}/drop": _do("dropDelivery", "Give up what is owed", s.DeliveryShown),
        "/api/v1/processes/{what}/kill": _do(
            "killProcess", "End it, with everything it has started", s.ProcessEnded
        ),
        KILL_PATH: _do(
            "killGateway",
            "`kill -9` the gateway; only under `koboshi run --supervise`",
            s.Done,
            status="202",
        ),
    }


def _list(name: str, summary: str, shape: type, queries: str, is_open: str = "") -> Json:
    optional = [_in("query", query, is_required=False) for query in queries.split()]
    if is_open:
        optional.append(_in("query", "open", is_required=False) | {"description": is_open})
    told = {"200": _answer(shape), **_failures("400", "401", "503")}
    operation = {"operationId": name, "summary": summary, "responses": told}
    return {"get": {**operation, "parameters": optional}}


def _show(name: str, summary: str, *answers: type) -> Json:
    told = {"200": _answer(*answers), **_failures("401", "404", "503")}
    return {"get": {"operationId": name, "summary": summary, "responses": told}}


def _do(name: str, summary: str, shape: type, *, status: str = "200") -> Json:
    told = {status: _answer(shape), **_failures("401", "403", "404", "409", "503")}
    return {"post": {"operationId": name, "summary": summary, "responses": told}}


def _answer(*answers: type) -> Json:
    refs = [{"$ref": f"#/components/schemas/{shape.__name__}"} for shape in answers]
    schema = refs[0] if len(refs) == 1 else {"anyOf": refs}
    names = " or ".join(shape.__name__ for shape in answers)
    return {"description": names, "content": {"application/json": {"schema": schema}}}


def _in(place: str, name: str, *, is_required: bool = True) -> Json:
    return {"in": place, "name": name, "required": is_required, "schema": {"type": "string"}}


def _failures(*statuses: str) -> Json:
    content = {"application/json": {"schema": {"$ref": "#/components/schemas/Failure"}}}
    return {status: {"description": "Failure", "content": content} for status in statuses}
