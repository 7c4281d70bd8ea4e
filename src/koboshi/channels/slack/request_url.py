"""The Events API over HTTP: Slack calls us, signs what it says, and hears 200 behind the commit."""

import hmac
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from hashlib import sha256
from urllib.parse import parse_qs

import msgspec

from koboshi.channels.common.called import Answer, CalledServer, Headers
from koboshi.channels.slack.options import SlackOptions
from koboshi.channels.slack.types import EventCallback
from koboshi.ports.clock import Clock

SIGNED_S_MAX = 300
"""A call that was signed longer ago is a copy that someone has kept."""
LATE_TRIES = frozenset({b"2", b"3"})
"""The first repeat comes at once, the next one after a minute."""
_callback = msgspec.json.Decoder(EventCallback)


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestUrl:
    options: SlackOptions
    clock: Clock
    take: Callable[[str, bytes], Awaitable[bool]]
    """Stores what a call says. Returns whether Slack may forget it."""
    hear: Callable[[], None]
    on_missed: Callable[[], None]
    """Called where Slack has tried for a minute or longer: others may be lost by now."""

    async def serve(self, begin: Callable[[], Awaitable[None]]) -> None:
        """Serve until cancelled; `begin` is awaited before anything is taken. Raises CannotListen
        where the address cannot be had, and StoreFailed as soon as a call has met with it."""
        server = CalledServer(
            host=self.options.webhook_host,
            port=self.options.webhook_port,
            refusal=lambda method, _: None if method == "POST" else 405,
            take=self._answer,
        )
        await server.serve(first=begin)

    async def _answer(self, headers: Headers, body: bytes) -> Answer:
        secret, now_s = self.options.signing_secret, self.clock.now_ms() / 1000
        if not is_signed(body, headers, secret, now_s):
            return 401, b""
        self.hear()
        answer = await self._taken(body, headers.get(b"content-type", b""))
        if answer[0] == 200 and headers.get(b"x-slack-retry-num", b"0") in LATE_TRIES:
            self.on_missed()
        return answer

    async def _taken(self, body: bytes, kind: bytes) -> Answer:
        envelope = envelope_in(body, kind)
        if envelope is None:
            return 400, b""
        what, payload = envelope
        if what == "challenge":
            return 200, payload
        return (200 if await self.take(what, payload) else 503), b""


def is_signed(body: bytes, headers: Headers, secret: str, now_s: float) -> bool:
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
