"""GET from the public Internet, and from nowhere else.

A name is resolved once for each connection; every address it has must be public and none of this
machine, and the connection is made to the very address that was looked at, so no second answer of a
name server counts. Each
redirect goes the same way. Proxies of the environment are not asked: they would resolve by
themselves. Bodies are bounded after decompression.
"""

import socket
import ssl
import zlib
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from ipaddress import ip_address

import anyio
import httpcore2
import httpx2
from httpcore2 import SOCKET_OPTION

from koboshi.tools.web.addresses import is_public

REDIRECTS_MAX = 5
SECONDS_MAX = 30.0
CONNECT_SECONDS_MAX = 10.0
BODY_BYTES_MAX = 5_000_000
ADDRESSES_TRIED_MAX = 4
URL_CHARS_MAX = 2_000
_REDIRECTS = (301, 302, 303, 307, 308)
_PORTS = {"http": 80, "https": 443}
_CHUNK_BYTES = 65_536


class NotFetched(Exception):
    """There is no page, in words for the model."""


Resolve = Callable[[str, int], Awaitable[tuple[str, ...]]]


async def resolve(host: str, port: int) -> tuple[str, ...]:
    """The addresses of a host, as the machine finds them. Raises OSError."""
    found = await anyio.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return tuple(dict.fromkeys(str(address[4][0]) for address in found))


@dataclass(frozen=True, slots=True, kw_only=True)
class Reach:
    """What may be reached beyond the public Internet, and what never."""

    hosts: frozenset[str] = frozenset()
    """Hosts that the owner named, as `wiki.lan` or `wiki.lan:8080`."""
    own_ports: frozenset[int] = frozenset()
    """Ports of ours: on this machine, and on addresses that are not public, they are never
    reached."""

    def refusal(self, host: str, port: int, addresses: Iterable[str]) -> str:
        """Why a host is not connected to; empty if it is."""
        closed = [(each, why) for each in addresses if (why := _why_closed(each))]
        if not closed:
            return ""
        if port not in self.own_ports and not self.hosts.isdisjoint((host, f"{host}:{port}")):
            return ""
        address, why = closed[0]
        return (
            f"{host} is at {address}, which is {why}. "
            "The owner can name the host in `tools.web.hosts`"
        )


def _why_closed(address: str) -> str:
    """Why an address is not connected to by itself; empty if it is."""
    if not is_public(address):
        return "not an address of the public Internet"
    return "this machine" if is_own(address) else ""


def is_own(address: str) -> bool:
    """Whether an address is one of this machine: to such a one the system talks from the same
    address. Nothing is sent to find that out."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.connect((address, 9))
            return bool(ip_address(probe.getsockname()[0]) == ip_address(address))
    except (OSError, ValueError):  # there is no way there
        return False


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchedPage:
    """What a server gave, at the end of its redirects."""

    url: str
    status: int
    media_type: str
    charset: str
    body: bytes
    is_cut: bool


class PublicNetwork(httpcore2.AsyncNetworkBackend):
    """Connects to hosts that may be reached, and looks each of them up itself."""

    def __init__(self, reach: Reach, resolve: Resolve) -> None:
        self._reach = reach
        self._resolve = resolve
        self._network = httpcore2.AnyIOBackend()

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109  (the contract's)
        local_address: str | None = None,
        socket_options: Iterable[SOCKET_OPTION] | None = None,
    ) -> httpcore2.AsyncNetworkStream:
        try:
            addresses = await self._resolve(host, port)
        except (OSError, UnicodeError):
            raise NotFetched(f"{host} is not known to the name servers") from None
        if refusal := self._reach.refusal(host, port, addresses):
            raise NotFetched(refusal)
        last: Exception = NotFetched(f"{host} has no address")
        for address in addresses[:ADDRESSES_TRIED_MAX]:
            try:
                return await self._network.connect_tcp(
                    address, port, timeout, local_address, socket_options
                )
            except (httpcore2.ConnectError, httpcore2.ConnectTimeout) as error:
                last = error
        raise last

    async def connect_unix_socket(
        self,
        path: str,  # noqa: ARG002  (the contract's)
        timeout: float | None = None,  # noqa: ARG002, ASYNC109
        socket_options: Iterable[SOCKET_OPTION] | None = None,  # noqa: ARG002
    ) -> httpcore2.AsyncNetworkStream:
        raise NotFetched("sockets of this machine are not fetched from")

    async def sleep(self, seconds: float) -> None:
        await anyio.sleep(seconds)


@dataclass(frozen=True, slots=True, kw_only=True)
class WebClient:
    user_agent: str
    reach: Reach = field(default_factory=Reach)
    resolve: Resolve = resolve
    body_bytes_max: int = BODY_BYTES_MAX
    seconds_max: float = SECONDS_MAX
    trust: ssl.SSLContext | None = None

    async def get(self, url: str, headers: Mapping[str, str] | None = None) -> FetchedPage:
        """The page at an address, redirects followed. Raises NotFetched."""
        network = PublicNetwork(self.reach, self.resolve)
        trust = self.trust or httpx2.create_ssl_context()
        try:
            with anyio.fail_after(self.seconds_max):
                async with httpcore2.AsyncConnectionPool(
                    ssl_context=trust, network_backend=network, max_connections=1
                ) as pool:
                    return await self._follow(pool, checked(url), dict(headers or {}))
        except TimeoutError:
            raise NotFetched(f"it took longer than {self.seconds_max:g} seconds") from None
        except httpcore2.TimeoutException:
            raise NotFetched("the server did not answer in time") from None
        except (httpcore2.NetworkError, httpcore2.ProtocolError, OSError) as error:
            raise NotFetched(f"the server could not be read: {_words(error)}") from None

    async def _follow(
        self, pool: httpcore2.AsyncConnectionPool, url: httpx2.URL, headers: dict[str, str]
    ) -> FetchedPage:
        for _ in range(REDIRECTS_MAX + 1):
            async with pool.stream(
                "GET",
                httpcore2.URL(
                    scheme=url.raw_scheme, host=url.raw_host, port=url.port, target=url.raw_path
                ),
                headers=[*(self._headers(url) | headers).items()],
                extensions={"timeout": _timeouts(self.seconds_max)},
            ) as response:
                found = {name.lower(): value for name, value in response.headers}
                place = found.get(b"location", b"")
                if response.status in _REDIRECTS and place:
                    url = checked(str(_joined(url, place)))
                    headers = {}  # a key is for the server it was meant for
                    continue
                return await self._page(url, response, found)
        raise NotFetched(f"it redirects more than {REDIRECTS_MAX} times")

    def _headers(self, url: httpx2.URL) -> dict[str, str]:
        return {
            "Host": url.netloc.decode("ascii"),
            "User-Agent": self.user_agent,
            "Accept": "text/html,application/xhtml+xml,text/*;q=0.9,application/json,*/*;q=0.1",
            "Accept-Encoding": "gzip, deflate",
        }

    async def _page(
        self, url: httpx2.URL, response: httpcore2.Response, headers: Mapping[bytes, bytes]
    ) -> FetchedPage:
        encoding = headers.get(b"content-encoding", b"").decode("latin-1").strip().lower()
        media_type, charset = _media(headers.get(b"content-type", b"").decode("latin-1"))
        body = bytearray()
        is_cut = False
        async for chunk in _decoded(response.aiter_stream(), encoding, self.body_bytes_max):
            body += chunk
            if len(body) > self.body_bytes_max:
                is_cut = True
                break
        return FetchedPage(
            url=str(url),
            status=response.status,
            media_type=media_type,
            charset=charset,
            body=bytes(body[: self.body_bytes_max]),
            is_cut=is_cut,
        )


def checked(text: str) -> httpx2.URL:
    """An address that can be fetched. Raises NotFetched."""
    if len(text) > URL_CHARS_MAX:
        raise NotFetched("the address is too long")
    try:
        url = httpx2.URL(text.strip())
        port = _PORTS.get(url.scheme, 0) if url.port is None else url.port
    except (httpx2.InvalidURL, ValueError) as error:
        raise NotFetched(f"the address cannot be read: {_words(error)}") from None
    if url.scheme not in _PORTS or not url.host:
        raise NotFetched("only addresses that begin with http:// or https:// can be fetched")
    if url.userinfo:
        raise NotFetched("an address with a name or password in it is not fetched")
    if not 0 < port < 65_536:
        raise NotFetched("the address has no port that exists")
    return url.copy_with(fragment=None)


def _joined(url: httpx2.URL, place: bytes) -> httpx2.URL:
    try:
        return url.join(place.decode("utf-8", "replace"))
    except (httpx2.InvalidURL, ValueError):
        raise NotFetched("it redirects to an address that cannot be read") from None


def _media(value: str) -> tuple[str, str]:
    """The media type and the charset of a Content-Type."""
    media_type, *parameters = (part.strip() for part in value.split(";"))
    named = (part.partition("=") for part in parameters)
    charsets = (text.strip(" \"'") for name, _, text in named if name.strip().lower() == "charset")
    return media_type.lower(), next(charsets, "").lower()


async def _decoded(
    chunks: AsyncIterator[bytes], encoding: str, bytes_max: int
) -> AsyncIterator[bytes]:
    """What the chunks hold, unpacked piece by piece: a small bomb never becomes a large one."""
    if encoding in ("", "identity"):
        async for chunk in chunks:
            yield chunk
        return
    if encoding not in ("gzip", "x-gzip", "deflate"):
        raise NotFetched(f'the server packed it as "{encoding[:40]}", which was not asked for')
    unpack = zlib.decompressobj(wbits=47 if encoding != "deflate" else 15)
    is_first = True
    given = 0
    async for chunk in chunks:
        rest = chunk
        while rest and given <= bytes_max:
            try:
                piece = unpack.decompress(rest, _CHUNK_BYTES)
            except zlib.error:
                if not (is_first and encoding == "deflate"):
                    raise NotFetched("what the server packed cannot be unpacked") from None
                unpack = zlib.decompressobj(wbits=-15)  # deflate without its wrapping is common
                is_first = False
                continue
            is_first = False
            given += len(piece)
            rest = unpack.unconsumed_tail
            yield piece
        if unpack.eof:
            return  # what follows is none of it, and would be kept


def _timeouts(seconds: float) -> dict[str, float]:
    bound = min(seconds, CONNECT_SECONDS_MAX)
    return {"connect": bound, "read": seconds, "write": bound, "pool": bound}


def _words(error: Exception) -> str:
    return str(error).strip()[:200] or type(error).__name__
