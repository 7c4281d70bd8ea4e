"""Who may talk to us: the first thing that every request meets."""

import hmac
import re

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from koboshi.channels.web.codec import Unacceptable, failure_of

OPEN_PATHS = frozenset({"/", "/healthz", "/readyz"})
"""What may be seen without the token."""

SAFE_HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}


class Guard:
    """Wraps the application: refuses what comes by another name, from another site or without the
    token, and gives every answer the headers that keep browsers careful.

    A page of another site can make a browser call us, by our address or by a name of its own that
    it points here. So the Host must be ours, the Origin must be the Host, and what is not public
    needs a token that a browser does not send by itself.
    """

    def __init__(self, app: ASGIApp, *, token: str, host: str) -> None:
        self._app = app
        self._token = token
        named = f"[{host}]" if ":" in host else host
        names = {"localhost", "127.0.0.1", "[::1]", named.lower()}
        self._host = re.compile(rf"(?:{'|'.join(map(re.escape, sorted(names)))})(?::\d{{1,5}})?")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def send_carefully(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in SAFE_HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        refusal = self._refusal(scope["path"], Headers(scope=scope))
        if refusal is None:
            await self._app(scope, receive, send_carefully)
        else:
            await failure_response(refusal)(scope, receive, send_carefully)

    def _refusal(self, path: str, headers: Headers) -> Unacceptable | None:
        hosts = headers.getlist("host")
        if len(hosts) != 1 or not self._host.fullmatch(hosts[0].lower()):
            message = "this gateway answers to localhost, 127.0.0.1 and [::1] only"
            return Unacceptable(421, "wrong-host", message)
        origin = headers.get("origin")
        is_foreign = origin is not None and origin.partition("://")[2].lower() != hosts[0].lower()
        if is_foreign or not self._is_site_ours(path, headers):
            return Unacceptable(403, "wrong-origin", "pages of other sites may not call this")
        if path not in OPEN_PATHS and not bears_token(headers, self._token):
            message = "needs the header: Authorization: Bearer <the token in <home>/web-token>"
            return Unacceptable(401, "no-token", message)
        return None

    def _is_site_ours(self, path: str, headers: Headers) -> bool:
        """Browsers say where a request comes from. A link to an open page may be anywhere."""
        site = headers.get("sec-fetch-site")
        return site in (None, "same-origin", "none") or path in OPEN_PATHS


def bears_token(headers: Headers, token: str) -> bool:
    """Whether the request shows the token; the time this takes says nothing about it."""
    scheme, _, given = headers.get("authorization", "").partition(" ")
    is_equal = hmac.compare_digest(given.strip().encode(), token.encode())
    return is_equal and scheme.lower() == "bearer" and bool(token)


def failure_response(refusal: Unacceptable) -> Response:
    headers = {}
    if refusal.status == 401:
        headers["WWW-Authenticate"] = "Bearer"
    if refusal.retry_after_s is not None:
        headers["Retry-After"] = str(refusal.retry_after_s)
    return Response(failure_of(refusal), refusal.status, headers, media_type="application/json")
