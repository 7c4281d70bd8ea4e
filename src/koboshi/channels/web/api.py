"""The routes of the HTTP API."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path as FilePath

import msgspec
from anyio import to_thread
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import BaseRoute
from starlette.routing import Route as Path
from starlette.types import ASGIApp

from koboshi.channels.web.bodies import read_body
from koboshi.channels.web.codec import (
    Accepted,
    Post,
    Unacceptable,
    accepted_of,
    check_name,
    check_post,
    external_id,
    inbound_of,
    read_post,
    standing_of,
)
from koboshi.channels.web.entering import Entering, caller_of
from koboshi.channels.web.follow import EventStream, Followers, HintStream
from koboshi.channels.web.guard import STORE_FAILED, Guard, failure_response
from koboshi.channels.web.health import Alive, Check, Health, Readiness, Ready
from koboshi.channels.web.limits import WebLimits
from koboshi.channels.web.login import Logins
from koboshi.channels.web.names import Names
from koboshi.channels.web.openapi import document
from koboshi.channels.web.pages import Pages
from koboshi.channels.web.sent import FileAnswer, opened
from koboshi.channels.web.uploading import Uploading
from koboshi.domain.approver import SentBy
from koboshi.domain.errors import StoreFailed
from koboshi.domain.files import Attachment, OutFile
from koboshi.domain.ids import ChannelName, DeliveryId, EntryId, parse_shown
from koboshi.ports.channel import Inbound, Receipt
from koboshi.ports.clock import Clock
from koboshi.ports.files import NO_SHELF, FileShelf
from koboshi.ports.views import Views

KEY = "Idempotency-Key"

NEEDS_PERSON = (
    "only a person may answer an approval, and a token is no person: answer in the page, with "
    "`koboshi chat` on the gateway's machine, or in the chat where it was asked"
)

INDEX = """Koboshi: a crash-safe gateway between people and AI agents.

Talk to it from a terminal:  koboshi chat
The HTTP API is under /api/v1/ and described by /api/v1/openapi.json.
It needs the header "Authorization: Bearer <token>"; the token is in <home>/web-token.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Api:
    """What the routes need. `store` has one message committed, or raises Unacceptable."""

    channel: ChannelName
    names: Names
    logins: Logins
    pages: Pages
    views: Views
    health: Health
    clock: Clock
    limits: WebLimits
    followers: Followers
    store: Callable[[Inbound], Awaitable[Receipt]]
    metrics: Callable[[], Awaitable[str]]
    on_refused: Callable[[], None] = lambda: None
    """Called for every request of an unknown client."""
    home: FilePath | None = None
    shelf: FileShelf = NO_SHELF
    """Copies of files that were sent are below it; None where none can be."""
    uploading: Uploading | None = None
    """Takes files of people; None where none can be kept."""

    def routes(self) -> list[BaseRoute]:
        """Everything that is served, by its address."""
        base = "/api/v1"
        chat = f"{base}/sessions/{{chat}}"
        return [
            *self.pages.routes,
            *Entering(logins=self.logins, body_s=self.limits.body_s).routes(),
            *(() if self.uploading is None else self.uploading.routes()),
            Path("/", _index),
            Path("/healthz", self._healthz),
            Path("/readyz", self._readyz),
            Path("/metrics", self._metrics),
            Path(f"{base}/openapi.json", self._openapi),
            Path(f"{base}/journal/events", self._hints),
            Path(f"{base}/status", self._status),
            Path(f"{base}/ready", self._ready),
            Path(f"{chat}/messages", self._post, methods=["POST"]),
            Path(f"{chat}/messages/{{message}}", self._message),
            Path(f"{chat}/events", self._events),
            Path(f"{chat}/files/{{delivery}}", self._sent_file),
        ]

    def app(self) -> ASGIApp:
        """The application, guarded."""
        app = Starlette(
            routes=self.routes(),
            exception_handlers={
                Unacceptable: _refuse,
                HTTPException: _refuse_http,
                StoreFailed: _refuse_for_now,
                Exception: _confess,
            },
        )
        app.router.redirect_slashes = False
        return Guard(
            app,
            logins=self.logins,
            names=self.names,
            pages=self.pages,
            on_refused=self.on_refused,
        )

    async def _post(self, request: Request) -> Response:
        """Store a message. Nothing is said about it before it is on disk."""
        chat, key = self._chat(request), self._key(request)
        limits = self.limits
        body = await read_body(request, bytes_max=limits.body_bytes_max, seconds=limits.body_s)
        sent_by = caller_of(request).sent_by
        return _json(await self._taken(chat, key, read_post(body, limits), sent_by), 202)

    async def say(self, chat: str, key: str, post: Post) -> Accepted:
        """Store a message that a person wrote at the terminal. Raises Unacceptable."""
        check_name("chat", chat, self.limits.route_chars_max)
        check_name(KEY, key, self.limits.key_chars_max)
        check_post(post, self.limits)
        return await self._taken(chat, key, post, SentBy.PERSON)

    async def _taken(self, chat: str, key: str, post: Post, sent_by: SentBy) -> Accepted:
        now_ms = self.clock.now_ms()
        inbound = inbound_of(
            post,
            channel=self.channel,
            chat=chat,
            key=key,
            now_ms=now_ms,
            sent_by=sent_by,
            files=await self._attached(post),
        )
        receipt = await self.store(inbound)
        if receipt.refused:
            raise Unacceptable(403, receipt.refused, NEEDS_PERSON)
        if receipt.is_duplicate and not await self._is_repeat(inbound, receipt):
            message = f"this {KEY} was used in this chat before, with another body"
            raise Unacceptable(409, "key-reused", message)
        return accepted_of(receipt)

    async def _attached(self, post: Post) -> tuple[Attachment, ...]:
        if self.uploading is not None:
            return await self.uploading.attached(post.files)
        if post.files:
            raise Unacceptable(400, "no-file", "this gateway takes no files")
        return ()

    async def _is_repeat(self, inbound: Inbound, receipt: Receipt) -> bool:
        """Whether a key was used again for the very same message, down to its thread."""
        entry = await self.views.entry(receipt.entry_id) if receipt.is_same else None
        if entry is None:
            return receipt.is_same
        # What was ignored belongs to no session.
        is_here = entry.session_id in (None, await self.views.session_of(inbound.route))
        return is_here and entry.sender == inbound.sender

    async def _message(self, request: Request) -> Response:
        chat, named = self._chat(request), parse_shown(request.path_params["message"])
        if named is not None and named[0] == "message":
            entry = await self.views.entry(EntryId(named[1]))
            # The id is counted over all chats; the key was stored with its chat.
            if entry is not None and entry.external_id.startswith(external_id(chat, "")):
                return _json(standing_of(entry))
        raise Unacceptable(404, "no-message", "there is no such message in this chat")

    async def _events(self, request: Request) -> Response:
        chat, thread = self._chat(request), request.query_params.get("thread")
        if thread is not None:
            check_name("thread", thread, self.limits.route_chars_max, may_be_empty=True)
        after = await self._place(request, chat)
        if request.method == "HEAD":
            return Response(media_type="text/event-stream")
        return EventStream(
            self.views,
            self.followers,
            channel=self.channel,
            chat=chat,
            thread=thread,
            after=after,
            limits=self.limits,
        )

    async def _sent_file(self, request: Request) -> Response:
        """A file that was delivered in the chat."""
        chat, named = self._chat(request), parse_shown(request.path_params["delivery"])
        file: OutFile | None = None
        if named is not None and named[0] == "delivery":
            file = await self.views.sent_file(self.channel, chat, DeliveryId(named[1]))
        if file is None or self.home is None:
            raise Unacceptable(404, "no-file", "no such file was sent in this chat")
        await self.shelf.bring(file.path)
        descriptor = await to_thread.run_sync(opened, self.home, file)
        return FileAnswer(descriptor, file.name, has_body=request.method != "HEAD")

    async def _hints(self, request: Request) -> Response:
        """That something has happened, in any chat of any channel."""
        if request.method == "HEAD":
            return Response(media_type="text/event-stream")
        return HintStream(self.followers, limits=self.limits)

    async def _openapi(self, _request: Request) -> Response:
        return _json(document(self.pages, self.logins.cookie_name))

    async def _place(self, request: Request, chat: str) -> int:
        """After which journal line to begin. What a browser sends by itself when it comes back
        counts more than what the address said in the beginning."""
        newest = await self.views.last_event(self.channel, chat)
        given = request.headers.get("last-event-id") or request.query_params.get("after")
        if given is not None:
            if not (given.isascii() and given.isdigit() and len(given) < 19):
                raise Unacceptable(400, "bad-place", "after is not the id of an event")
            # A place that the journal has not reached is from before a restored backup.
            return min(int(given), newest)
        match request.query_params.get("from", "recent"):
            case "start":
                return 0
            case "now":
                return newest
            case "recent":
                lines = self.limits.recent_lines
                return await self.views.place_before(self.channel, chat, lines=lines)
            case _:
                raise Unacceptable(400, "bad-place", "from is one of recent, start, now")

    async def _status(self, _request: Request) -> Response:
        return _json(await self.views.status())

    async def _healthz(self, _request: Request) -> Response:
        is_alive = self.health.is_alive()
        return _json(Alive(ok=is_alive), 200 if is_alive else 503)

    async def _readyz(self, request: Request) -> Response:
        ready = self._checked()
        body = ready if caller_of(request).is_known else Readiness(ok=ready.ok)
        return _json(body, 200 if ready.ok else 503)

    async def _ready(self, _request: Request) -> Response:
        """The same for a page, whose cookie is for the API alone; what is asked here is known,
        whatever it is."""
        return _json(self._checked())

    def _checked(self) -> Ready:
        checks, neighbours = self.health.readiness(), self.health.neighbours()
        return Ready(
            ok=all(is_ok for _, is_ok, _ in checks),
            checks=tuple(_check(*each) for each in checks),
            neighbours=tuple(_check(*each) for each in neighbours),
        )

    async def _metrics(self, _request: Request) -> Response:
        return Response(await self.metrics(), media_type="text/plain; version=0.0.4")

    def _chat(self, request: Request) -> str:
        chat: str = request.path_params["chat"]
        check_name("chat", chat, self.limits.route_chars_max)
        return chat

    def _key(self, request: Request) -> str:
        keys = request.headers.getlist(KEY)
        if len(keys) != 1:
            message = f"needs the header {KEY}: one of your own choice for each new message"
            raise Unacceptable(400, "no-idempotency-key", message)
        check_name(KEY, keys[0], self.limits.key_chars_max)
        return keys[0]


async def no_metrics() -> str:
    """Where nothing is counted."""
    return ""


async def _index(_request: Request) -> Response:
    return PlainTextResponse(INDEX)


async def _refuse(_request: Request, error: Exception) -> Response:
    assert isinstance(error, Unacceptable)
    return failure_response(error)


async def _refuse_http(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    kinds = {404: "not-found", 405: "wrong-method"}
    kind = kinds.get(error.status_code, "http")
    message = f"{request.method} {request.url.path}: {str(error.detail).lower()}"
    response = failure_response(Unacceptable(error.status_code, kind, message))
    response.headers.update(error.headers or {})
    return response


async def _refuse_for_now(_request: Request, _error: Exception) -> Response:
    """The store reports its failure itself, and ends the gateway."""
    return failure_response(Unacceptable(503, "store-failed", STORE_FAILED, retry_after_s=1))


async def _confess(_request: Request, _error: Exception) -> Response:
    """A bug. The server logs the traceback; what is on disk is on disk."""
    return failure_response(
        Unacceptable(500, "bug", "something went wrong here; the log says what")
    )


def _check(name: str, is_ok: bool, reason: str) -> Check:
    return Check(name=name, ok=is_ok, reason=reason)


def _json(body: object, status: int = 200) -> Response:
    return Response(msgspec.json.encode(body), status, media_type="application/json")
