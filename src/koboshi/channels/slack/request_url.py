"""The Events API over HTTP: Slack calls us, signs what it says, and hears 200 behind the commit."""

import hmac
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from hashlib import sha256
from urllib.parse import parse_qs

import msgspec
import structlog
from anyio import Event, create_task_group
from starlette.types import Receive, Scope, Send

from koboshi.channels.common.listening import listen, webhook_place
from koboshi.channels.common.serving import EmbeddedServer
from koboshi.channels.slack.options import SlackOptions
from koboshi.channels.slack.types import EventCallback
from koboshi.domain.errors import StoreFailed
from koboshi.ports.clock import Clock

log = structlog.get_logger()

BODY_BYTES_MAX = 4_000_000
CONNECTIONS_MAX = 100
GOODBYE_S = 2
SIGNED_S_MAX = 300
"""A call that was signed longer ago is a copy that someone has kept."""
LATE_TRIES = frozenset({b"2", b"3"})
"""The first repeat comes at once, the next one after a minute."""
_callback = msgspec.json.Decoder(EventCallback)


@dataclass(slots=True, kw_only=True)
class RequestUrl:
    options: SlackOptions
    clock: Clock
    take: Callable[[str, bytes], Awaitable[bool]]
    """Stores what a call says. Returns whether Slack may forget it."""
    hear: Callable[[], None]
    on_missed: Callable[[], None]
    """Called where Slack has tried for a minute or longer: others may be lost by now."""
    _failure: StoreFailed | None = None
    _has_failed: Event = field(default_factory=Event)

    async def serve(self, begin: Callable[[], Awaitable[None]]) -> None:
        """Serve until cancelled; `begin` is awaited before anything is taken. Raises CannotListen
        where the address cannot be had, and StoreFailed as soon as a call has met with it."""
        place = webhook_place(self.options.webhook_host, self.options.webhook_port)
        with await listen(place) as listener:
            await begin()
            async with create_task_group() as tasks:
                server = EmbeddedServer(
                    self._answer, connections_max=CONNECTIONS_MAX, goodbye_s=GOODBYE_S
                )
                try:
                    tasks.start_soon(server.run_until_told, listener)
                    await self._has_failed.wait()
                finally:
                    server.should_exit = True
        if self._failure is not None:
            raise self._failure

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        status, body = await self._status(scope, receive)
        headers = [(b"content-type", b"text/plain; charset=utf-8")]
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": body})

    async def _status(self, scope: Scope, receive: Receive) -> tuple[int, bytes]:
        """What the call is answered with. Whatever is not 200 is repeated by Slack."""
        if scope["method"] != "POST":
            return 405, b""
        headers = dict(scope["headers"])
        body = await _body(receive)
        if body is None:
            return 413, b""
        secret, now_s = self.options.signing_secret, self.clock.now_ms() / 1000
        if not is_signed(body, headers, secret, now_s):
            return 401, b""
        self.hear()
        try:
            answer = await self._taken(body, headers.get(b"content-type", b""))
        except StoreFailed as failure:
            # The HTTP server would swallow it, and the channel has to end with it.
            self._failure = failure
            self._has_failed.set()
            return 503, b""
        except Exception:  # it is not stored: the platform is to bring it again
            log.error("webhook_failed", exc_info=True)
            return 503, b""
        if answer[0] == 200 and headers.get(b"x-slack-retry-num", b"0") in LATE_TRIES:
            self.on_missed()
        return answer

    async def _taken(self, body: bytes, kind: bytes) -> tuple[int, bytes]:
        envelope = envelope_in(body, kind)
        if envelope is None:
            return 400, b""
        what, payload = envelope
        if what == "challenge":
            return 200, payload
        return (200 if await self.take(what, payload) else 503), b""


def is_signed(body: bytes, headers: dict[bytes, bytes], secret: str, now_s: float) -> bool:
    """Whether Slack has signed this very body, a short while ago."""
    at = headers.get(b"x-slack-request-timestamp", b"")
    if not at.isdigit() or len(at) > 12 or abs(now_s - int(at)) > SIGNED_S_MAX:
        return False
    code = hmac.new(secret.encode(), b"v0:" + at + b":" + body, sha256).hexdigest()
    return hmac.compare_digest(headers.get(b"x-slack-signature", b""), f"v0={code}".encode())


def envelope_in(body: bytes, kind: bytes) -> tuple[str, bytes] | None:
    """The kind of an envelope and its payload, as over a socket; the answer to a challenge; None
    for what cannot be read."""
    if kind.startswith(b"application/x-www-form-urlencoded"):
        try:
            form = parse_qs(body.decode(), keep_blank_values=True)
        except (UnicodeDecodeError, ValueError):
            return None
        if "payload" in form:
            return "interactive", form["payload"][0].encode()
        fields = {name: values[0] for name, values in form.items()}
        return "slash_commands", msgspec.json.encode(fields)
    try:
        callback = _callback.decode(body)
    except (msgspec.DecodeError, RecursionError):
        return "events_api", body  # kept as it came
    if callback.type == "url_verification":
        return "challenge", callback.challenge.encode()
    return "events_api", body


async def _body(receive: Receive) -> bytes | None:
    """The whole body; None if there is too much of it."""
    pieces: list[bytes] = []
    size, more = 0, True
    while more:
        event = await receive()
        if event["type"] == "http.disconnect":
            return None
        pieces.append(event.get("body", b""))
        size += len(pieces[-1])
        more = event.get("more_body", False)
        if size > BODY_BYTES_MAX:
            return None
    return b"".join(pieces)
