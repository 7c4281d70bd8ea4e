"""The requests by which a browser is let in, and by which it leaves; and by which a program learns,
before it sends anything, that it talks to us."""

import re
from dataclasses import dataclass

import msgspec
import structlog
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route as Path

from koboshi.channels.web.bodies import read_body
from koboshi.channels.web.codec import Unacceptable
from koboshi.channels.web.identity import (
    IDENTITY_PATH,
    Identity,
    identity_of,
    page_identity_of,
    page_key_of,
)
from koboshi.channels.web.login import Caller, Logins
from koboshi.domain.ids import shown

LOGIN_PATH = "/api/v1/login"
LOGOUT_PATH = "/api/v1/logout"
CALLER = "koboshi.caller"
"""Where the guard leaves in a request's scope who sent it."""
BODY_BYTES_MAX = 1_000
CHALLENGE = re.compile(r"[A-Za-z0-9_-]{16,128}")
NOT_GOOD = "this link was used already, is too old, or belongs to an earlier start of the gateway"

log = structlog.get_logger()


class Code(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    code: str


class Entered(msgspec.Struct, frozen=True, kw_only=True):
    """The cookie is in the header; the page sends the proof with each request. With the key of its
    browser it can check, before it sends anything, that it still talks to us."""

    proof: str
    browser: str
    key: str


class Left(msgspec.Struct, frozen=True, kw_only=True):
    """The browser is logged out, and there is nothing to say about it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entering:
    logins: Logins
    body_s: float
    """To receive a body."""

    def routes(self) -> list[Path]:
        return [
            Path(LOGIN_PATH, self._login, methods=["POST"]),
            Path(LOGOUT_PATH, self._logout, methods=["POST"]),
            Path(IDENTITY_PATH, self._identity),
        ]

    async def _login(self, request: Request) -> Response:
        body = await read_body(request, bytes_max=BODY_BYTES_MAX, seconds=self.body_s)
        ticket = await self.logins.redeem(_code_in(body).code, request.headers)
        if ticket is None:
            raise Unacceptable(403, "no-login", f"{NOT_GOOD}; `koboshi open` makes a new one")
        browser = shown("browser", ticket.browser.browser_id)
        log.info("browser_let_in", browser=browser, label=ticket.browser.label)
        key = page_key_of(self.logins.token, browser)
        entered = msgspec.json.encode(Entered(proof=ticket.proof, browser=browser, key=key))
        headers = {"Set-Cookie": self.logins.set_cookie(ticket, request.headers)}
        return Response(entered, headers=headers, media_type="application/json")

    async def _logout(self, request: Request) -> Response:
        browser = caller_of(request).browser
        if browser is not None:
            await self.logins.browsers.revoke(browser.browser_id)
            log.info("browser_left", browser=shown("browser", browser.browser_id))
        headers = {"Set-Cookie": self.logins.unset_cookie(request.headers)}
        return Response(b"{}", headers=headers, media_type="application/json")

    async def _identity(self, request: Request) -> Response:
        challenge = request.query_params.get("challenge", "")
        if CHALLENGE.fullmatch(challenge) is None:
            message = "challenge is 16 to 128 letters, digits, - and _, of your own choice"
            raise Unacceptable(400, "bad-challenge", message)
        host, browser = request.headers.get("host", ""), request.query_params.get("browser", "")
        if browser:
            made = page_identity_of(self.logins.token, browser[:30], host, challenge)
        else:
            made = identity_of(self.logins.token, host, challenge)
        return Response(msgspec.json.encode(Identity(identity=made)), media_type="application/json")


def caller_of(request: Request) -> Caller:
    """Who sent the request, as the guard found."""
    caller: Caller = request.scope[CALLER]
    return caller


def _code_in(body: bytes) -> Code:
    try:
        return msgspec.json.decode(body, type=Code)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise Unacceptable(400, "bad-body", f"the body does not fit: {error}") from error
