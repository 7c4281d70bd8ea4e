"""Search engines: `ddgs` without a key, SearXNG by its address, Brave and Tavily by a key."""

from dataclasses import dataclass
from typing import Protocol

import anyio
import httpx2
import msgspec

from koboshi.ports.parsers import NotParsed, ParserKind, Parsers
from koboshi.tools.web.settings import WebSettings

SECONDS_MAX = 20.0
ANSWER_BYTES_MAX = 2_000_000
BRAVE = "https://api.search.brave.com/res/v1/web/search"
TAVILY = "https://api.tavily.com/search"


class NotSearched(Exception):
    """There are no hits, and why, in words for the model."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit:
    title: str
    url: str
    text: str


class SearchEngine(Protocol):
    async def search(self, query: str, count: int) -> tuple[Hit, ...]:
        """The first hits. Raises NotSearched."""
        ...


def engine_of(settings: WebSettings, parsers: Parsers) -> SearchEngine:
    """The engine that the owner chose. Raises NotSearched."""
    match settings.engine:
        case "searxng":
            return JsonEngine(
                url=f"{settings.engine_url.rstrip('/')}/search", fields=_SEARXNG, key=""
            )
        case "brave":
            return JsonEngine(
                url=settings.engine_url or BRAVE, fields=_BRAVE, key=settings.engine_key
            )
        case "tavily":
            return JsonEngine(
                url=settings.engine_url or TAVILY, fields=_TAVILY, key=settings.engine_key
            )
        case "ddgs":
            return Ddgs(parsers=parsers)
        case "off":
            raise NotSearched("the owner has switched searching off")


class _Answer(msgspec.Struct, frozen=True):
    """Each engine has its own names, and leaves out what it does not know."""

    title: str | None = None
    url: str | None = None
    content: str | None = None
    description: str | None = None

    def hit(self) -> Hit | None:
        if not self.url:
            return None
        text = self.content or self.description or ""
        return Hit(title=self.title or "", url=self.url, text=text)


class _Listed(msgspec.Struct, frozen=True):
    results: tuple[_Answer, ...] = ()


class _Brave(msgspec.Struct, frozen=True):
    web: _Listed = _Listed()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Fields:
    """How an engine is asked."""

    query: str
    count: str
    key_header: str = ""
    is_post: bool = False
    fixed: tuple[tuple[str, str], ...] = ()


_SEARXNG = _Fields(query="q", count="", fixed=(("format", "json"),))
_BRAVE = _Fields(query="q", count="count", key_header="X-Subscription-Token")
_TAVILY = _Fields(query="query", count="max_results", key_header="Authorization", is_post=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class JsonEngine:
    """An engine with an address, which answers in JSON. The owner named the address, so it may be
    one of the own network."""

    url: str
    fields: _Fields
    key: str

    async def search(self, query: str, count: int) -> tuple[Hit, ...]:
        try:
            with anyio.fail_after(SECONDS_MAX):
                body = await self._ask(query, count)
        except TimeoutError:
            raise NotSearched("the search engine did not answer in time") from None
        except (httpx2.HTTPError, OSError) as error:
            words = str(error).strip() or type(error).__name__
            raise NotSearched(f"the search engine cannot be reached: {words[:200]}") from None
        return _hits(body, is_brave=self.fields is _BRAVE)[:count]

    async def _ask(self, query: str, count: int) -> bytes:
        asked: dict[str, str | int] = {self.fields.query: query, **dict(self.fields.fixed)}
        if self.fields.count:
            asked[self.fields.count] = count
        async with httpx2.AsyncClient(timeout=SECONDS_MAX, trust_env=False) as client:
            request = client.build_request(
                "POST" if self.fields.is_post else "GET",
                self.url,
                params=None if self.fields.is_post else asked,
                json=asked if self.fields.is_post else None,
                headers=self._headers(),
            )
            answer = await client.send(request, stream=True)
            try:
                return await _body_of(answer)
            finally:
                await answer.aclose()

    def _headers(self) -> dict[str, str]:
        found = {"Accept": "application/json", "Accept-Encoding": "identity"}
        if self.fields.key_header and self.key:
            prefix = "Bearer " if self.fields.key_header == "Authorization" else ""
            found[self.fields.key_header] = prefix + self.key
        return found


async def _body_of(answer: httpx2.Response) -> bytes:
    if answer.status_code in (401, 403):
        raise NotSearched("the search engine refuses the key; the owner can change it")
    if answer.status_code == 429:
        raise NotSearched("the search engine asks to wait: too many searches")
    if answer.status_code != 200:
        raise NotSearched(f"the search engine answered {answer.status_code}")
    body = bytearray()
    async for chunk in answer.aiter_raw():
        body += chunk
        if len(body) > ANSWER_BYTES_MAX:
            raise NotSearched("the search engine answered with too much")
    return bytes(body)


def _hits(body: bytes, *, is_brave: bool) -> tuple[Hit, ...]:
    try:
        listed = (
            msgspec.json.decode(body, type=_Brave).web
            if is_brave
            else msgspec.json.decode(body, type=_Listed)
        )
    except (msgspec.DecodeError, UnicodeError):
        raise NotSearched("the search engine answered with something else than hits") from None
    found = (answer.hit() for answer in listed.results)
    return tuple(hit for hit in found if hit is not None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ddgs:
    """Public engines without a key, by the library of that name. It reads their pages, so it runs
    as a parser."""

    parsers: Parsers

    async def search(self, query: str, count: int) -> tuple[Hit, ...]:
        try:
            said = await self.parsers.parse(
                ParserKind.SEARCH, query.encode("utf-8", "replace"), {"count": count}
            )
        except NotParsed as error:
            raise NotSearched(f"the search engines gave nothing: {error}") from None
        return _hits(said, is_brave=False)[:count]
