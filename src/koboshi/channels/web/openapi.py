"""The description of the API, for programs that read such things."""

from typing import Any, TypeAlias

import msgspec

from koboshi.channels.web.codec import Accepted, Failure, Post, Standing
from koboshi.channels.web.entering import LOGIN_PATH, LOGOUT_PATH, Code, Entered
from koboshi.channels.web.lines import LINES, HintLine, PlaceLine
from koboshi.channels.web.login import PROOF
from koboshi.channels.web.pages import Pages
from koboshi.ports.views import Status

# JSON has no types to offer; this is a codec.
Json: TypeAlias = dict[str, Any]

REFERENCE = "#/components/schemas/{name}"

SAYS_SOMETHING = [
    {"required": ["text"], "properties": {"text": {"pattern": r"\S"}}},
    {"required": ["choice", "question"]},
]
"""What a message must have: words, or the choice of an answer."""

EXAMPLES = {"chat": "ann", "message": "m1", "Idempotency-Key": "3c1f0a"}

EVENTS = """Server-sent events: `id` is the place in the journal, `event` one of {kinds}, `data` a
JSON object on one line. Begins behind `Last-Event-ID` or `after` if one is given; otherwise as
`from` says: `recent` (the newest 200 lines of the chat, the default), `start` (all of it) or `now`.
`place` (`PlaceLine`) only tells the place, first of all and after every quiet while. Nothing is
skipped or repeated for a client that comes back with the last id it saw."""


def document(pages: Pages, cookie: str) -> Json:
    """The API as an OpenAPI 3.1 document, with what is served beside it, for the gateway whose
    cookie has this name."""
    shapes = [Post, Accepted, Standing, Failure, Status, Code, Entered, HintLine, PlaceLine]
    shapes += [*dict.fromkeys(LINES.values()), *pages.shapes]
    _, components = msgspec.json.schema_components(shapes, ref_template=REFERENCE)
    components["Post"]["anyOf"] = SAYS_SOMETHING
    paths = {**_own_paths(), **pages.paths}
    for operation in (each for methods in paths.values() for each in methods.values()):
        # The guard stands in front of all of them.
        operation["responses"] = {**_failures("403", "421"), **operation["responses"]}
    return {
        "openapi": "3.1.0",
        "info": {"title": "Koboshi", "version": "1"},
        "security": [{"token": []}, {"cookie": [], "proof": []}],
        "paths": paths,
        "components": {
            "securitySchemes": {
                "token": {"type": "http", "scheme": "bearer"},
                "cookie": {"type": "apiKey", "in": "cookie", "name": cookie},
                "proof": {"type": "apiKey", "in": "header", "name": PROOF},
            },
            "schemas": components,
        },
    }


def _own_paths() -> Json:
    return {
        "/api/v1/sessions/{chat}/messages": {"post": _post_message()},
        "/api/v1/sessions/{chat}/messages/{message}": {
            "get": {
                "summary": "What has become of a message",
                "parameters": [_in("path", "chat"), _in("path", "message")],
                "responses": {"200": _answer("Standing"), **_failures("400", "401", "404")},
            }
        },
        "/api/v1/sessions/{chat}/events": {"get": _follow_events()},
        "/api/v1/status": {
            "get": {
                "summary": "How the gateway is doing",
                "responses": {"200": _answer("Status"), **_failures("401")},
            }
        },
        "/api/v1/ready": {
            "get": {
                "summary": "Whether it can serve, and why not; always 200",
                "responses": {"200": {"description": "`ok`, `checks`"}, **_failures("401")},
            }
        },
        "/api/v1/journal/events": {"get": _follow_journal()},
        LOGIN_PATH: {"post": _login()},
        LOGOUT_PATH: {
            "post": {
                "summary": "Forget the cookie",
                "responses": {"200": {"description": "forgotten"}, **_failures("401")},
            }
        },
        "/api/v1/openapi.json": _served("This document", "application/json"),
        "/metrics": _served("What was counted, as Prometheus reads it", "text/plain"),
        "/healthz": {"get": _health("Whether the process makes progress")},
        "/readyz": {"get": _health("Whether it can serve; with the token also why not")},
    }


def _served(summary: str, kind: str) -> Json:
    told = {"200": {"description": summary, "content": {kind: {}}}, **_failures("401", "503")}
    return {"get": {"summary": summary, "responses": told}}


def _post_message() -> Json:
    return {
        "summary": "Send a message",
        "description": "202 says that it is on disk. After anything else, or nothing, send it "
        "again with the same key: it is stored once.",
        "parameters": [_in("path", "chat"), _in("header", "Idempotency-Key")],
        "requestBody": {"required": True, "content": _content("Post")},
        "responses": {
            "202": _answer("Accepted"),
            **_failures("400", "401", "408", "409", "413", "503"),
        },
    }


def _follow_events() -> Json:
    optional = [
        _in("header", "Last-Event-ID", is_required=False),
        *(_in("query", name, is_required=False) for name in ("after", "from", "thread")),
    ]
    return {
        "summary": "Follow a chat",
        "description": EVENTS.format(kinds=", ".join(f"`{kind}`" for kind in LINES)),
        "parameters": [_in("path", "chat"), *optional],
        "responses": {
            "200": {"description": "events, for ever", "content": {"text/event-stream": {}}},
            **_failures("400", "401", "503"),
        },
    }


def _follow_journal() -> Json:
    return {
        "summary": "Be told that something has happened, anywhere",
        "description": "Server-sent events `journal`, a few a second at most: look again at what "
        "you show. They may be lost; one comes at the start, and after every quiet while.",
        "responses": {
            "200": {"description": "`HintLine`, for ever", "content": {"text/event-stream": {}}},
            **_failures("401", "503"),
        },
    }


def _login() -> Json:
    return {
        "summary": "Exchange the code of a login link for a cookie and its proof",
        "security": [],
        "requestBody": {"required": True, "content": _content("Code")},
        "responses": {"200": _answer("Entered"), **_failures("400", "408", "413")},
    }


def _health(summary: str) -> Json:
    said = {"200": {"description": "yes"}, "503": {"description": "no"}}
    return {"summary": summary, "security": [], "responses": said}


def _in(place: str, name: str, *, is_required: bool = True) -> Json:
    told = {"in": place, "name": name, "required": is_required, "schema": {"type": "string"}}
    return told | ({"example": EXAMPLES[name]} if name in EXAMPLES else {})


def _content(name: str) -> Json:
    return {"application/json": {"schema": {"$ref": REFERENCE.format(name=name)}}}


def _answer(name: str) -> Json:
    return {"description": name, "content": _content(name)}


def _failures(*statuses: str) -> Json:
    return {status: _answer("Failure") for status in statuses}
