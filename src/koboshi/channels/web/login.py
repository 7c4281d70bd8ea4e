"""How a browser is let in: a one-time code, exchanged for a cookie and a proof.

The code is in the fragment of a link, which a browser sends to nobody; it works once, for a while,
and dies with the process that made it. Cookie and proof are made from the token alone, so that they
outlive a gateway that is killed, and end when the token is changed.

A cookie is sent to every port of its host, whoever listens there. So it is worth little without
the proof, which the page keeps to itself and sends in a header: what another port or another site
can make a browser send is never enough to read a conversation or to change anything. The one thing
that the cookie alone opens are files that the agent sent, so that a link to one can be opened in a
tab of its own.
"""

import hashlib
import hmac
import secrets
from base64 import urlsafe_b64encode
from dataclasses import dataclass, field

from starlette.datastructures import Headers
from starlette.requests import cookie_parser

from koboshi.channels.web.names import Names
from koboshi.ports.clock import Clock

PROOF = "X-Koboshi-Proof"
COOKIE_PATH = "/api/"
CODE_SECONDS = 900.0
CODES_MAX = 20
IDLE_SECONDS = 12 * 3_600
RENEW_SECONDS = 3_600
"""A cookie that is older is replaced when it is used."""
SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Ticket:
    """What a browser shows: the cookie by itself, the proof by the page."""

    cookie: str
    proof: str


@dataclass(slots=True, kw_only=True)
class Logins:
    token: str
    clock: Clock
    names: Names = field(default_factory=Names)
    _codes: dict[str, float] = field(default_factory=dict)
    """What is left of each code that nobody has used: its hash, and until when it is good."""

    def make_code(self) -> str:
        """A new code. Only the newest few are good."""
        code = secrets.token_urlsafe(24)
        self._codes[_hashed(code)] = self.clock.monotonic() + CODE_SECONDS
        for oldest in list(self._codes)[:-CODES_MAX]:
            del self._codes[oldest]
        return code

    def redeem(self, code: str) -> Ticket | None:
        """What the code is exchanged for, once; None if it is not good (any more)."""
        good_until = self._codes.pop(_hashed(code), None)
        if good_until is None or self.clock.monotonic() >= good_until:
            return None
        return self._ticket(secrets.token_urlsafe(16))

    def is_let_in(self, method: str, headers: Headers) -> bool:
        """Whether the request shows both halves. One that changes something must also say that it
        comes from a page: the guard has compared with our own whatever it says."""
        nonce = self._nonce_of(headers)
        if nonce is None or not _is_same(headers.get(PROOF, ""), self._proof(nonce)):
            return False
        return method in SAFE_METHODS or "origin" in headers

    def has_cookie(self, headers: Headers) -> bool:
        """Whether the request shows the cookie, with or without its proof. That is enough for files
        that were sent, and for nothing else."""
        return self._nonce_of(headers) is not None

    def renewed(self, headers: Headers) -> str | None:
        """The header that replaces the cookie of a request that was let in; None while it is
        new."""
        nonce = self._nonce_of(headers, older_than=RENEW_SECONDS)
        return None if nonce is None else self.set_cookie(self._ticket(nonce), headers)

    def set_cookie(self, ticket: Ticket, headers: Headers) -> str:
        """The header that gives the cookie to whoever sent a request with these headers."""
        return self._cookie_header(ticket.cookie, IDLE_SECONDS, headers)

    def unset_cookie(self, headers: Headers) -> str:
        return self._cookie_header("", 0, headers)

    @property
    def cookie_name(self) -> str:
        """One for each token: gateways beside each other do not take away each other's."""
        return f"koboshi-{self._mac('name')[:8]}"

    def _nonce_of(self, headers: Headers, older_than: int = -1) -> str | None:
        """What the cookie was made with, if it was made here and is not too old."""
        shown = cookie_parser(headers.get("cookie", "")).get(self.cookie_name, "")
        born, _, rest = shown.partition(".")
        nonce, _, mac = rest.partition(".")
        if not _is_same(mac, self._mac(f"cookie.{born}.{nonce}")):
            return None
        age = self._now_s() - int(born)
        return nonce if older_than < age < IDLE_SECONDS else None

    def _ticket(self, nonce: str) -> Ticket:
        born = self._now_s()
        mac = self._mac(f"cookie.{born}.{nonce}")
        return Ticket(cookie=f"{born}.{nonce}.{mac}", proof=self._proof(nonce))

    def _proof(self, nonce: str) -> str:
        return self._mac(f"proof.{nonce}")

    def _mac(self, text: str) -> str:
        mac = hmac.digest(self.token.encode(), f"koboshi.{text}".encode(), "sha256")
        return urlsafe_b64encode(mac).decode().rstrip("=").replace("-", "x").replace("_", "y")

    def _cookie_header(self, value: str, seconds: int, headers: Headers) -> str:
        rules = f"Path={COOKIE_PATH}; Max-Age={seconds}; HttpOnly; SameSite=Strict"
        tls = "; Secure" if self.names.needs_tls(headers.get("host", "")) else ""
        return f"{self.cookie_name}={value}; {rules}{tls}"

    def _now_s(self) -> int:
        return self.clock.now_ms() // 1000


def _hashed(code: str) -> str:
    return hashlib.sha256(code.encode("utf-8", "replace")).hexdigest()


def _is_same(given: str, wanted: str) -> bool:
    return hmac.compare_digest(given.encode("utf-8", "replace"), wanted.encode())
