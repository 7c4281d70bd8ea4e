"""How a browser is let in: a one-time code, exchanged for a cookie and a proof.

The code is in the fragment of a link, which a browser never sends; it works once, for a while,
and dies with the process that made it. Cookie and proof are random. Their hashes are a row of the
store (`ports/browsers.py`), so a browser stays let in over restarts, can be listed and revoked, and
is out after 30 days. The hashes are made with the token: a new token lets everyone out.

A cookie is sent to every port of its host, to any program there. So it is worth little without
the proof, which the page keeps to itself and sends in a header: what another port or another site
can make a browser send is never enough to read a conversation or to change anything. The one thing
that the cookie alone opens are files that the agent sent, so that a link to one can be opened in a
tab of its own.
"""

import hashlib
import hmac
import secrets
from dataclasses import dataclass, field

from starlette.datastructures import Headers
from starlette.requests import cookie_parser

from koboshi.channels.web.identity import mac_of
from koboshi.channels.web.names import Names
from koboshi.domain.approver import SentBy
from koboshi.domain.browser import Browser, is_use_due, label_of, seconds_left
from koboshi.ports.browsers import Browsers
from koboshi.ports.clock import Clock

PROOF = "X-Koboshi-Proof"
COOKIE_PATH = "/api/"
CODE_SECONDS = 900.0
CODES_MAX = 20
COOKIE_CHARS_MAX = 200
SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """Who sent a request, as far as it shows."""

    has_token: bool = False
    browser: Browser | None = None
    """The browser whose cookie it shows, with or without the proof."""
    has_proof: bool = False

    @property
    def is_known(self) -> bool:
        """Whether it was let in: a program with the token, or a page with a cookie and its
        proof."""
        return self.has_token or self.has_proof

    @property
    def sent_by(self) -> SentBy:
        """A browser is a person's. A token may be in any program's hands."""
        return SentBy.PERSON if self.has_proof else SentBy.PROGRAM


NOT_KNOWN = Caller()


@dataclass(frozen=True, slots=True, kw_only=True)
class Ticket:
    """What a browser shows: the cookie by itself, the proof by the page."""

    cookie: str
    proof: str
    browser: Browser


@dataclass(slots=True, kw_only=True)
class Logins:
    token: str
    clock: Clock
    browsers: Browsers
    names: Names = field(default_factory=Names)
    _codes: dict[str, float] = field(default_factory=dict)
    """What is kept of each unused code: its hash, and until when it is good."""
    shares_codes: bool = False
    """Whether other gateways may redeem a code: then the store has them."""

    def make_code(self) -> str:
        """A new code. Only the newest few are good."""
        code = secrets.token_urlsafe(24)
        self._codes[_hashed(code)] = self.clock.monotonic() + CODE_SECONDS
        for oldest in list(self._codes)[:-CODES_MAX]:
            del self._codes[oldest]
        return code

    async def share(self) -> None:
        """Have the new codes stored, where other gateways may redeem them."""
        while self.shares_codes and self._codes:
            code_hash = next(iter(self._codes))
            await self.browsers.offer(
                code_hash, life_ms=round(CODE_SECONDS * 1_000), kept=CODES_MAX
            )
            self._codes.pop(code_hash, None)

    async def redeem(self, code: str, headers: Headers) -> Ticket | None:
        """What the code is exchanged for, once; None if it is not good (any more). The browser is
        let in when its row is on disk."""
        if not await self._is_good(_hashed(code)):
            return None
        cookie, proof = secrets.token_urlsafe(32), secrets.token_urlsafe(32)
        browser = await self.browsers.make(
            cookie_hash=self._mac(f"cookie.{cookie}"),
            proof_hash=self._mac(f"proof.{proof}"),
            label=label_of(headers.get("user-agent", "")),
        )
        return Ticket(cookie=cookie, proof=proof, browser=browser)

    async def _is_good(self, code_hash: str) -> bool:
        if self.shares_codes:
            await self.share()
            return await self.browsers.redeem(code_hash)
        good_until = self._codes.pop(code_hash, None)
        return good_until is not None and self.clock.monotonic() < good_until

    async def caller(self, method: str, headers: Headers) -> Caller:
        """Who sent a request with these headers. One from a page that changes something must also
        say that it comes from a page: the guard has compared with our own whatever it says."""
        if self._bears_token(headers):
            return Caller(has_token=True)
        shown = cookie_parser(headers.get("cookie", "")).get(self.cookie_name, "")
        if not shown or len(shown) > COOKIE_CHARS_MAX:
            return NOT_KNOWN
        found = await self.browsers.find(self._mac(f"cookie.{shown}"))
        if found is None:
            return NOT_KNOWN
        browser, proof_hash = found
        is_proven = _is_same(self._mac(f"proof.{headers.get(PROOF, '')}"), proof_hash)
        says_where = method in SAFE_METHODS or "origin" in headers
        return Caller(browser=browser, has_proof=is_proven and says_where)

    async def note_use(self, caller: Caller, headers: Headers) -> str | None:
        """The header that lengthens the life of the cookie of a request that was let in, now and
        then; the row is written first."""
        browser = caller.browser
        if browser is None or not caller.has_proof or not is_use_due(browser, self.clock.now_ms()):
            return None
        await self.browsers.use(browser.browser_id)
        shown = cookie_parser(headers.get("cookie", "")).get(self.cookie_name, "")
        return self._set_cookie(shown, browser, headers)

    def set_cookie(self, ticket: Ticket, headers: Headers) -> str:
        """The header that gives the cookie to the sender of a request with these headers."""
        return self._set_cookie(ticket.cookie, ticket.browser, headers)

    def unset_cookie(self, headers: Headers) -> str:
        return self._cookie_header("", 0, headers)

    @property
    def cookie_name(self) -> str:
        """One for each token: gateways beside each other do not take away each other's."""
        return f"koboshi-{self._mac('name')[:8]}"

    def _bears_token(self, headers: Headers) -> bool:
        """Whether the request shows the token; the time this takes says nothing about it."""
        scheme, _, given = headers.get("authorization", "").partition(" ")
        is_equal = hmac.compare_digest(given.strip().encode(), self.token.encode())
        return is_equal and scheme.lower() == "bearer" and bool(self.token)

    def _mac(self, text: str) -> str:
        return mac_of(self.token, text)

    def _set_cookie(self, cookie: str, browser: Browser, headers: Headers) -> str:
        return self._cookie_header(cookie, seconds_left(browser, self.clock.now_ms()), headers)

    def _cookie_header(self, value: str, seconds: int, headers: Headers) -> str:
        rules = f"Path={COOKIE_PATH}; Max-Age={seconds}; HttpOnly; SameSite=Strict"
        tls = "; Secure" if self.names.needs_tls(headers.get("host", "")) else ""
        return f"{self.cookie_name}={value}; {rules}{tls}"


def _hashed(code: str) -> str:
    return hashlib.sha256(code.encode("utf-8", "replace")).hexdigest()


def _is_same(given: str, wanted: str) -> bool:
    return hmac.compare_digest(given.encode("utf-8", "replace"), wanted.encode())
