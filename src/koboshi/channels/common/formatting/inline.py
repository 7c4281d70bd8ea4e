"""What stands inside a line of Markdown: words, styles, code, links and pictures."""

import re
from dataclasses import dataclass

from markdown_it.token import Token

from koboshi.channels.common.formatting.formatted import clean
from koboshi.channels.common.formatting.writer import SpanWriter

_STYLES = {"strong_open": "bold", "em_open": "italic", "s_open": "strikethrough"}
# Telegram, the strictest, wants a dot in the host of a web address, and knows no other scheme but
# its own. It would take "mailto:" for the name of a user, and finds addresses of e-mail by itself.
_LINK = re.compile(
    r"https?://(?:[^\s/?#@\[]+[.][^\s/?#@]+|\[[0-9a-fA-F:.]+\](?::\d+)?)(?:[/?#]\S*)?"
    r"|tg://[a-zA-Z0-9_-]+(?:[/?#]\S*)?",
    re.IGNORECASE,
)
_URL_CHARS_MAX = 2048


@dataclass(frozen=True, slots=True)
class _Link:
    url: str
    begin: int
    is_entity: bool


def write_inline(writer: SpanWriter, inline: Token, *, links: bool = True) -> None:
    """Write what is inside a block. Without `links` all addresses are written out."""
    open_links: list[_Link] = []
    for token in inline.children or ():
        match token.type:
            case "code_inline":
                writer.open("code")
                writer.write(words(token.content))
                writer.close()
            case "softbreak" | "hardbreak":
                writer.break_line()
            case "strong_open" | "em_open" | "s_open":
                writer.open(_STYLES[token.type])
            case "strong_close" | "em_close" | "s_close":
                writer.close()
            case "link_open":
                open_links.append(_open_link(writer, str(token.attrGet("href") or ""), links))
            case "link_close":
                _close_link(writer, open_links.pop())
            case "image" if not open_links:
                link = _open_link(writer, str(token.attrGet("src") or ""), links)
                writer.write(_alt_words(token))
                _close_link(writer, link)
            case "image":
                writer.write(_alt_words(token))
            case _:
                writer.write(words(token.content))


def words(text: str) -> str:
    """The text of a token. It may hold what a character reference named: a line end is none."""
    return clean(text).replace("\n", " ")


def is_link(url: str) -> bool:
    """Whether every platform takes this address for a link."""
    return len(url) <= _URL_CHARS_MAX and _LINK.fullmatch(url) is not None


def _open_link(writer: SpanWriter, href: str, links: bool) -> _Link:
    url = words(href).strip().replace(" ", "%20").removeprefix("mailto:")
    link = _Link(url, writer.mark(), links and is_link(url))
    if link.is_entity:
        writer.open("text_link", url)
    return link


def _close_link(writer: SpanWriter, link: _Link) -> None:
    shown = writer.since(link.begin).strip()
    if not shown:
        writer.write(link.url)
    if link.is_entity:
        writer.close()
    elif link.url and shown and link.url != shown.removeprefix("mailto:"):
        writer.write(f" ({link.url})")


def _alt_words(image: Token) -> str:
    return words(" ".join(child.content or " " for child in image.children or ()))
