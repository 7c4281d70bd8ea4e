"""The page's part of the description of the API."""

from typing import Any, TypeAlias

from koboshi.domain.worker import Worker
from koboshi.ports import views

# JSON has no types to offer; this is a codec.
Json: TypeAlias = dict[str, Any]

SHAPES: tuple[type, ...] = (
    *(getattr(views, name) for name in sorted(vars(views)) if name.endswith("View")),
    views.JournalLine,
    Worker,
)
"""What rows look like: every view of the store, and what has none of its own."""

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
    return {
        "/api/v1/sessions": _list("Sessions, newest first", "sessions", views.SessionView, "chat"),
        "/api/v1/sessions/{what}": _show("A session, `s1`, and its newest turns"),
        "/api/v1/turns": _list("Turns, newest first", "turns", views.TurnView, "session"),
        "/api/v1/turns/{what}": _show("A turn, `t1`: why it is where it is, and its timeline"),
        "/api/v1/turns/{what}/resume": _do("Go on at once, as `/resume` does"),
        "/api/v1/turns/{what}/drop": _do("End it for good, as `/drop` does"),
        "/api/v1/inbox": _list("What arrived, newest first", "messages", views.EntryView),
        "/api/v1/inbox/{what}": _show("A message, `m1`"),
        "/api/v1/inbox/{what}/retry": _do("Ask again what was dropped or not answered, once"),
        "/api/v1/inbox/{what}/drop": _do("Do not take up a message that waits"),
        "/api/v1/explain/{what}": _show("Why it is where it is, as `koboshi explain` tells it"),
        "/api/v1/troubles": _show("What keeps messages from being answered now, and what helps"),
        "/api/v1/outbox": _list(
            "What is or was owed, newest first", "deliveries", views.DeliveryView
        ),
        "/api/v1/outbox/{what}": _show("A delivery, `d1`"),
        "/api/v1/outbox/{what}/retry": _do("Send again what was refused, given up or put off"),
        "/api/v1/outbox/{what}/drop": _do("Give up what is owed"),
        "/api/v1/processes": _list("Background processes", "processes", views.ProcessView),
        "/api/v1/processes/{what}": _show("A process, `p1`, and what was said about it"),
        "/api/v1/processes/{what}/log": _show("The end of its output, `chars` of it"),
        "/api/v1/processes/{what}/kill": _do("End it, with everything it has started"),
        "/api/v1/workers": _list("Boots and how each ended, newest first", "workers", Worker),
        "/api/v1/journal": _list("What happened, newest first", "lines", views.JournalLine),
        "/api/v1/questions": _list("Open questions and approvals", "questions", views.QuestionView),
        "/api/v1/chats": _list("Chats of this channel, lately used", "chats", views.ChatView),
        "/api/v1/page": _show("What this page can offer"),
        KILL_PATH: _do("`kill -9` the gateway; only under `koboshi run --supervise`"),
    }


def _list(summary: str, name: str, shape: type, *more: str) -> Json:
    queries = ["limit", "before", *more]
    optional = [_in("query", query, is_required=False) for query in queries]
    if name in _OPEN:
        optional.append(_in("query", "open", is_required=False) | {"description": _OPEN[name]})
    rows = {"type": "array", "items": {"$ref": f"#/components/schemas/{shape.__name__}"}}
    document = {
        "type": "object",
        "properties": {
            "ok": {"const": True},
            name: rows,
            "next": {"type": ["string", "null"], "description": "`before` of the next page"},
        },
    }
    content = {"application/json": {"schema": document}}
    told = {"200": {"description": name, "content": content}, **_failures("400", "401", "503")}
    return {"get": {"summary": summary, "parameters": optional, "responses": told}}


def _show(summary: str) -> Json:
    told = {"200": {"description": "what is known"}, **_failures("401", "404", "503")}
    return {"get": {"summary": summary, "responses": told}}


def _do(summary: str) -> Json:
    told = {"200": {"description": "done"}, **_failures("401", "403", "404", "409", "503")}
    return {"post": {"summary": summary, "responses": told}}


def _in(place: str, name: str, *, is_required: bool = True) -> Json:
    return {"in": place, "name": name, "required": is_required, "schema": {"type": "string"}}


def _failures(*statuses: str) -> Json:
    content = {"application/json": {"schema": {"$ref": "#/components/schemas/Failure"}}}
    return {status: {"description": "Failure", "content": content} for status in statuses}
