"""The requests by which a browser is let in, and by which it leaves."""

from dataclasses import dataclass

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route as Path

from koboshi.channels.web.bodies import read_body
from koboshi.channels.web.codec import Unacceptable
from koboshi.channels.web.login import Logins

LOGIN_PATH = "/api/v1/login"
LOGOUT_PATH = "/api/v1/logout"
BODY_BYTES_MAX = 1_000
NOT_GOOD = "this link was used already, is too old, or is of an earlier start of the gateway"


class Code(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    code: str


class Entered(msgspec.Struct, frozen=True, kw_only=True):
    """The cookie is in the header; the page sends the proof with each request."""

    proof: str


class Left(msgspec.Struct, frozen=True, kw_only=True):
    """The cookie is forgotten, and there is nothing to say about it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entering:
    logins: Logins
    body_s: float
    """To receive a body."""

    def routes(self) -> list[Path]:
        return [
            Path(LOGIN_PATH, self._login, methods=["POST"]),
            Path(LOGOUT_PATH, self._logout, methods=["POST"]),
        ]

    async def _login(self, request: Request) -> Response:
        body = await read_body(request, bytes_max=BODY_BYTES_MAX, seconds=self.body_s)
        ticket = self.logins.redeem(_code_in(body).code)
        if ticket is None:
            raise Unacceptable(403, "no-login", f"{NOT_GOOD}; `koboshi open` makes a new one")
        entered = msgspec.json.encode(Entered(proof=ticket.proof))
        headers = {"Set-Cookie": self.logins.set_cookie(ticket, request.headers)}
        return Response(entered, headers=headers, media_type="application/json")

    async def _logout(self, request: Request) -> Response:
        headers = {"Set-Cookie": self.logins.unset_cookie(request.headers)}
        return Response(b"{}", headers=headers, media_type="application/json")


def _code_in(body: bytes) -> Code:
    try:
        return msgspec.json.decode(body, type=Code)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise Unacceptable(400, "bad-body", f"the body does not fit: {error}") from error
