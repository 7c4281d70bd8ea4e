"""The text of a page, whatever it is written in."""

import re
from dataclasses import dataclass

import msgspec

from koboshi.ports.parsers import NotParsed, ParserKind, Parsers
from koboshi.tools.web.getting import FetchedPage, NotFetched, Reach, WebClient
from koboshi.tools.web.settings import WebSettings

CHARSETS = re.compile(
    r"utf[-_]?(8|16|32)([-_]?[lb]e)?|(us[-_]?)?ascii|latin[-_]?\d{1,2}|iso[-_]?(8859|2022)[-_][\w-]{1,12}"
    r"|(windows[-_]|cp|ibm)\d{3,4}|koi8[-_][rtu]|mac[-_]?\w{1,12}|gb(k|2312|18030)|big5(hkscs)?"
    r"|shift[-_]?jis|sjis|euc[-_]?(jp|kr)|johab|tis[-_]?620|hz"
)
"""Those of pages. Python knows others, and some of them take minutes for a megabyte."""
_MARKUP = ("text/html", "application/xhtml+xml")
_PLAIN = ("application/json", "application/xml", "application/javascript", "application/yaml")
_ENDINGS = ("+json", "+xml")


@dataclass(frozen=True, slots=True, kw_only=True)
class PageText:
    url: str
    status: int
    title: str
    text: str
    is_cut: bool


class _Parsed(msgspec.Struct):
    title: str
    text: str


def client_of(settings: WebSettings) -> WebClient:
    return WebClient(
        user_agent=settings.user_agent,
        reach=Reach(hosts=settings.hosts, own_ports=settings.own_ports),
    )


async def fetch_text(url: str, settings: WebSettings, parsers: Parsers) -> PageText:
    """What a page says. Raises NotFetched."""
    page = await client_of(settings).get(url)
    title, text = await _text_of(page, parsers)
    return PageText(url=page.url, status=page.status, title=title, text=text, is_cut=page.is_cut)


async def _text_of(page: FetchedPage, parsers: Parsers) -> tuple[str, str]:
    """The title and the text. Raises NotFetched."""
    media_type = page.media_type or _guessed(page.body)
    if media_type in _MARKUP:
        try:
            said = await parsers.parse(ParserKind.PAGE, page.body, {"url": page.url})
            parsed = msgspec.json.decode(said, type=_Parsed)
        except NotParsed as error:
            raise NotFetched(f"the page was fetched and cannot be read: {error}") from None
        except (msgspec.ValidationError, msgspec.DecodeError, UnicodeError):
            raise NotFetched("the page was fetched and its parser gave nonsense") from None
        return parsed.title, parsed.text
    if media_type.startswith("text/") or media_type in _PLAIN or media_type.endswith(_ENDINGS):
        return "", _decoded(page)
    raise NotFetched(f"it is no text but {media_type[:100]}, {len(page.body)} bytes")


def _guessed(body: bytes) -> str:
    """What a body is whose server does not say."""
    beginning = body[:1_000].lstrip().lower()
    if beginning.startswith((b"<!doctype html", b"<html")):
        return "text/html"
    return "application/octet-stream" if b"\0" in body[:1_000] else "text/plain"


def _decoded(page: FetchedPage) -> str:
    charset = page.charset if CHARSETS.fullmatch(page.charset) else "utf-8"
    try:
        return page.body.decode(charset, "replace")
    except (LookupError, UnicodeError):  # the server names a charset that does not exist
        return page.body.decode("utf-8", "replace")
