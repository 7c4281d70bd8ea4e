"""Who may talk to us: the first thing that every request meets."""

import re
from collections.abc import Callable

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from koboshi.channels.web.codec import Unacceptable, failure_of
from koboshi.channels.web.entering import CALLER, LOGIN_PATH
from koboshi.channels.web.identity import IDENTITY_PATH
from koboshi.channels.web.login import COOKIE_PATH, NOT_KNOWN, Caller, Logins
from koboshi.channels.web.names import Names
from koboshi.channels.web.pages import NO_PAGES, Pages
from koboshi.domain.errors import StoreFailed

HEALTH_PATH = "/healthz"
"""Answered whatever else is the matter: nothing is looked up for it."""
OPEN_PATHS = frozenset({"/", HEALTH_PATH, "/readyz"})
"""What may be seen without the token."""
FILE_PATH = re.compile(r"/api/v1/sessions/[^/]+/(?:files|uploads)/[^/]+")
STORE_FAILED = "the database failed; this gateway ends, and the next one can tell"
LINKED_METHODS = frozenset({"GET", "HEAD"})

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
    needs something that a browser does not send by itself: the token, or the proof that belongs to
    a cookie of ours.
    """

    def __init__(
        self,
        app: ASGIApp,
        *,
        logins: Logins,
        names: Names,
        pages: Pages = NO_PAGES,
        on_refused: Callable[[], None] = lambda: None,
    ) -> None:
        self._app = app
        self._on_refused = on_refused
        self._logins = logins
        self._open_paths = OPEN_PATHS | pages.open_paths
        self._open_folder = pages.open_folder
        self._names = names

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        shown = Headers(scope=scope)
        refusal, caller, renewed = self._stranger_refusal(scope, shown), NOT_KNOWN, None
        if refusal is None and scope["path"] != HEALTH_PATH:
            try:
                caller = await self._logins.caller(scope["method"], shown)
                refusal = self._refusal(scope["method"], scope["path"], caller)
                if refusal is None and scope["path"].startswith(COOKIE_PATH):
                    renewed = await self._logins.note_use(caller, shown)
            except StoreFailed:
                refusal = Unacceptable(503, "store-failed", STORE_FAILED, retry_after_s=1)
        scope[CALLER] = caller

        async def send_carefully(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in SAFE_HEADERS.items():
                    headers.setdefault(name, value)
                if renewed is not None:
                    headers.setdefault("set-cookie", renewed)
            await send(message)

        if refusal is None:
            await self._app(scope, receive, send_carefully)
        else:
            await failure_response(refusal)(scope, receive, send_carefully)

    def _stranger_refusal(self, scope: Scope, headers: Headers) -> Unacceptable | None:
        """Why the request is refused from any sender."""
        hosts = headers.getlist("host")
        ours = self._names.origins_of(hosts[0]) if len(hosts) == 1 else frozenset()
        if not ours:
            message = f"this gateway answers to {self._names.words} only"
            return Unacceptable(421, "wrong-host", message)
        is_foreign = any(origin.lower() not in ours for origin in headers.getlist("origin"))
        is_link = scope["method"] in LINKED_METHODS and self._is_open(scope["path"])
        if is_foreign or not (is_link or _is_site_ours(headers)):
            return Unacceptable(403, "wrong-origin", "pages of other sites may not call this")
        return None

    def _refusal(self, method: str, path: str, caller: Caller) -> Unacceptable | None:
        """Why the request is refused, because of who sent it."""
        is_link = method in LINKED_METHODS and (self._is_open(path) or path == IDENTITY_PATH)
        if is_link or path == LOGIN_PATH or caller.is_known:
            return None
        if is_file(method, path) and caller.browser is not None:
            return None
        self._on_refused()
        message = "needs the header: Authorization: Bearer <the token in <home>/web-token>"
        return Unacceptable(401, "no-token", message)

    def _is_open(self, path: str) -> bool:
        folder = self._open_folder
        return path in self._open_paths or (bool(folder) and path.startswith(folder))


def _is_site_ours(headers: Headers) -> bool:
    """Browsers say where a request comes from. A link to an open page may be anywhere."""
    return headers.get("sec-fetch-site") in (None, "same-origin", "none")


def is_file(method: str, path: str) -> bool:
    """Whether a file that was sent is fetched. A link to it, opened in a tab of its own, brings the
    cookie and nothing else. That changes nothing, no browser shows it, and no other site can read
    it; `_is_site_ours` has refused what comes from one."""
    return method in LINKED_METHODS and FILE_PATH.fullmatch(path) is not None


def failure_response(refusal: Unacceptable) -> Response:
    headers = {}
    if refusal.status == 408:
        # The rest of the request is not read.
        headers["Connection"] = "close"
    if refusal.status == 401:
        headers["WWW-Authenticate"] = "Bearer"
    if refusal.retry_after_s is not None:
        headers["Retry-After"] = str(refusal.retry_after_s)
    return Response(failure_of(refusal), refusal.status, headers, media_type="application/json")
