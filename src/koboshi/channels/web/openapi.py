"""The description of the API, for programs that read such things."""

from collections.abc import Sequence
from typing import Any, TypeAlias

import msgspec
from msgspec import UNSET

from koboshi.channels.web.chat_events import LINES, HintLine, PlaceLine
from koboshi.channels.web.codec import Accepted, Failure, Post, Standing, Uploaded
from koboshi.channels.web.entering import LOGIN_PATH, LOGOUT_PATH, Code, Entered, Left
from koboshi.channels.web.health import Alive, Readiness, Ready
from koboshi.channels.web.identity import IDENTITY_PATH, Identity
from koboshi.channels.web.login import PROOF
from koboshi.channels.web.pages import Pages
from koboshi.channels.web.uploading import UPLOADS_PATH
from koboshi.ports.views import Status

# JSON has no types to offer; this is a codec.
Json: TypeAlias = dict[str, Any]

REFERENCE = "#/components/schemas/{name}"

SAYS_SOMETHING: Json = {
    "if": {"properties": {"choice": {"type": "null"}}},
    "then": {"required": ["text"], "properties": {"text": {"pattern": r"\S"}}},
    "else": {"required": ["question"], "properties": {"question": {"type": "integer"}}},
}
"""What a message must have: words, or the choice of an answer."""

TEXT: Json = {"type": "string"}
BYTES: Json = {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}}
PICTURES = ("image/png", "image/jpeg", "image/gif", "image/webp")
FILE: Json = dict.fromkeys((*BYTES, *PICTURES), BYTES["application/octet-stream"])
"""A file as it is served: a picture by what it holds is told to be one."""
EVENT_STREAM: Json = {"text/event-stream": {"schema": TEXT}}
ASKED = ("Post", "PostedFile", "Code")
"""What others send. Everything else is an answer of ours."""

EXAMPLES = {
    "chat": "ann",
    "message": "m1",
    "delivery": "d1",
    "file": "0" * 32,
    "Idempotency-Key": "3c1f0a",
}

EVENTS = """Server-sent events: `id` is the place in the journal, `event` one of {kinds}, `data` a
JSON object on one line. Begins behind `Last-Event-ID` or `after` if one is given; otherwise as
`from` says: `recent` (the newest 200 lines of the chat, the default), `start` (all of it) or `now`.
`place` (`PlaceLine`) only tells the place, first of all and after every quiet while. Nothing is
skipped or repeated for a client that comes back with the last id it saw."""


def document(pages: Pages, cookie: str) -> Json:
    """The API as an OpenAPI 3.1 document, with what is served beside it, for the gateway whose
    cookie has this name."""
    shapes: list[type] = [Post, Accepted, Standing, Failure, Status, Code, Entered, Identity]
    shapes += [Uploaded, HintLine, PlaceLine, Ready, Readiness, Alive, Left]
    shapes += [*dict.fromkeys(LINES.values()), *pages.shapes]
    _, components = msgspec.json.schema_components(shapes, ref_template=REFERENCE)
    for name, schema in components.items():
        if name not in ASKED and "properties" in schema:
            schema["required"] = [
                each for each in schema["properties"] if each not in _absent(name, shapes)
            ]
    components["Post"].update(SAYS_SOMETHING)
    _end_pairs(components)
    paths = {**_own_paths(), **pages.paths()}
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


def _end_pairs(schema: object) -> None:
    """Pairs have their length as `maxItems`. That no more items follow need not be said again as
    `items: false`, which generators of clients do not read."""
    if isinstance(schema, dict):
        if schema.get("items") is False:
            del schema["items"]
        for each in schema.values():
            _end_pairs(each)
    elif isinstance(schema, list):
        for each in schema:
            _end_pairs(each)


def _absent(name: str, shapes: Sequence[type]) -> frozenset[str]:
    """The fields that an answer may lack. All others are always there, whatever their default."""
    for shape in shapes:
        if shape.__name__ == name and issubclass(shape, msgspec.Struct):
            fields = msgspec.structs.fields(shape)
            return frozenset(field.encode_name for field in fields if field.default is UNSET)
    return frozenset()


def _own_paths() -> Json:
    return {
        **_chat_paths(),
        "/api/v1/status": {
            "get": {
                "operationId": "getStatus",
                "summary": "How the gateway is doing",
                "responses": {"200": _answer("Status"), **_failures("401")},
            }
        },
        "/api/v1/ready": {
            "get": {
                "operationId": "getReady",
                "summary": "Whether it can serve, and why not; always 200",
                "responses": {"200": _answer("Ready"), **_failures("401")},
            }
        },
        "/api/v1/journal/events": {"get": _follow_journal()},
        IDENTITY_PATH: {"get": _identity()},
        LOGIN_PATH: {"post": _login()},
        LOGOUT_PATH: {
            "post": {
                "operationId": "logout",
                "summary": "Log this browser out",
                "responses": {"200": _answer("Left"), **_failures("401")},
            }
        },
        "/api/v1/openapi.json": _served(
            "getDescription", "This document", "application/json", {"type": "object"}
        ),
        "/metrics": _served(
            "getMetrics", "What was counted, as Prometheus reads it", "text/plain", TEXT
        ),
        "/healthz": {"get": _health("getAlive", "Whether the process makes progress", "Alive")},
        "/readyz": {
            "get": _health(
                "getReadiness", "Whether it can serve; with the token also why not", "Readiness"
            )
        },
    }


def _chat_paths() -> Json:
    return {
        "/api/v1/sessions/{chat}/messages": {"post": _post_message()},
        "/api/v1/sessions/{chat}/messages/{message}": {
            "get": {
                "operationId": "getMessage",
                "summary": "What has become of a message",
                "parameters": [_in("path", "chat"), _in("path", "message")],
                "responses": {"200": _answer("Standing"), **_failures("400", "401", "404")},
            }
        },
        "/api/v1/sessions/{chat}/events": {"get": _follow_events()},
        "/api/v1/sessions/{chat}/files/{delivery}": {"get": _sent_file()},
        UPLOADS_PATH: {"post": _upload()},
        f"{UPLOADS_PATH}/{{file}}": {"get": _uploaded()},
    }


def _served(name: str, summary: str, kind: str, schema: Json) -> Json:
    told = {"description": summary, "content": {kind: {"schema": schema}}}
    responses = {"200": told, **_failures("401", "503")}
    return {"get": {"operationId": name, "summary": summary, "responses": responses}}


def _post_message() -> Json:
    return {
        "operationId": "postMessage",
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


def _upload() -> Json:
    return {
        "operationId": "uploadFile",
        "summary": "Store a file for a message",
        "description": "201 says that it is on disk. Name it in `files` of a message within a day.",
        "parameters": [_in("path", "chat"), _in("query", "name", is_required=False)],
        "requestBody": {"required": True, "content": BYTES},
        "responses": {"201": _answer("Uploaded"), **_failures("400", "401", "408", "413", "503")},
    }


def _uploaded() -> Json:
    return {
        "operationId": "getUpload",
        "summary": "A file that a person sent along; pictures can be shown",
        "security": [{"token": []}, {"cookie": [], "proof": []}, {"cookie": []}],
        "parameters": [_in("path", "chat"), _in("path", "file")],
        "responses": {
            "200": {"description": "the file", "content": FILE},
            **_failures("400", "401", "404"),
        },
    }


def _sent_file() -> Json:
    return {
        "operationId": "getFile",
        "summary": "A file that the agent sent, to be saved",
        "description": "`delivery` is that of an event with a `file`, which has this address.",
        # A link that is opened in a tab of its own brings the cookie alone.
        "security": [{"token": []}, {"cookie": [], "proof": []}, {"cookie": []}],
        "parameters": [_in("path", "chat"), _in("path", "delivery")],
        "responses": {
            "200": {"description": "the file", "content": FILE},
            **_failures("400", "401", "404", "410"),
        },
    }


def _follow_events() -> Json:
    optional = [
        _in("header", "Last-Event-ID", is_required=False),
        *(_in("query", name, is_required=False) for name in ("after", "from", "thread")),
    ]
    return {
        "operationId": "followChat",
        "summary": "Follow a chat",
        "description": EVENTS.format(kinds=", ".join(f"`{kind}`" for kind in LINES)),
        "parameters": [_in("path", "chat"), *optional],
        "responses": {
            "200": {"description": "events, for ever", "content": EVENT_STREAM},
            **_failures("400", "401", "503"),
        },
    }


def _follow_journal() -> Json:
    return {
        "operationId": "followJournal",
        "summary": "Be told that something has happened, anywhere",
        "description": "Server-sent events `journal`, a few a second at most: look again at what "
        "you show. They may be lost; one comes at the start, and after every quiet while.",
        "responses": {
            "200": {"description": "`HintLine`, for ever", "content": EVENT_STREAM},
            **_failures("401", "503"),
        },
    }


def _login() -> Json:
    return {
        "operationId": "login",
        "summary": "Exchange the code of a login link for a cookie and its proof",
        "security": [],
        "requestBody": {"required": True, "content": _content("Code")},
        "responses": {"200": _answer("Entered"), **_failures("400", "408", "413")},
    }


def _identity() -> Json:
    return {
        "operationId": "proveIdentity",
        "summary": "Proof that a gateway with the token answers at this Host",
        "security": [],
        "parameters": [_in("query", "challenge"), _in("query", "browser", is_required=False)],
        "responses": {"200": _answer("Identity"), **_failures("400")},
    }


def _health(name: str, summary: str, shape: str) -> Json:
    said = {"200": _answer(shape), "503": _answer(shape)}
    return {"operationId": name, "summary": summary, "security": [], "responses": said}


def _in(place: str, name: str, *, is_required: bool = True) -> Json:
    told = {"in": place, "name": name, "required": is_required, "schema": {"type": "string"}}
    return told | ({"example": EXAMPLES[name]} if name in EXAMPLES else {})


def _content(name: str) -> Json:
    return {"application/json": {"schema": {"$ref": REFERENCE.format(name=name)}}}


def _answer(name: str) -> Json:
    return {"description": name, "content": _content(name)}


def _failures(*statuses: str) -> Json:
    return {status: _answer("Failure") for status in statuses}
