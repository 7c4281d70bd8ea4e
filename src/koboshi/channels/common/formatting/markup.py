"""Text with spans as a platform's own markup: marks around each stretch, and escaped words."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from html import escape

from koboshi.channels.common.formatting.formatted import FormattedText, Span
from koboshi.channels.common.formatting.parts import split


@dataclass(frozen=True, slots=True, kw_only=True)
class Markup:
    """How one platform writes formatted text. Spans are nested or apart, so marks are, too."""

    opening: Callable[[Span], str]
    """What stands before a span: bold, italic, strikethrough, code, pre, text_link, blockquote."""
    closing: Callable[[Span], str]
    words: Callable[[str, tuple[Span, ...]], str]
    """A stretch of the text, escaped as it must be inside these spans, the outermost first."""


def marked(shown: FormattedText, markup: Markup) -> str:
    """The text in the platform's own form."""
    return "".join(_pieces(shown, markup))


def _pieces(shown: FormattedText, markup: Markup) -> Iterator[str]:
    text, at = shown.text, 0
    opened: list[Span] = []
    for span in (*shown.spans, Span("", len(text), len(text))):
        while opened and opened[-1].end <= span.begin:
            yield markup.words(text[at : opened[-1].end], tuple(opened))
            at = opened[-1].end
            yield markup.closing(opened.pop())
        if at < span.begin:
            yield markup.words(text[at : span.begin], tuple(opened))
            at = span.begin
        if span.kind:
            yield markup.opening(span)
            opened.append(span)


_HTML = {
    "bold": "strong",
    "italic": "em",
    "strikethrough": "del",
    "code": "code",
    "blockquote": "blockquote",
}


def _html_opening(span: Span) -> str:
    if span.kind == "pre":
        language = f' class="language-{escape(span.language)}"' if span.language else ""
        return f"<pre><code{language}>"
    if span.kind == "text_link":
        return f'<a href="{escape(span.url)}">'
    return f"<{_HTML[span.kind]}>"


def _html_closing(span: Span) -> str:
    if span.kind == "pre":
        return "</code></pre>"
    return "</a>" if span.kind == "text_link" else f"</{_HTML[span.kind]}>"


def _html_words(text: str, inside: tuple[Span, ...]) -> str:
    words = escape(text, quote=False)
    return words if any(span.kind == "pre" for span in inside) else words.replace("\n", "<br>")


HTML = Markup(opening=_html_opening, closing=_html_closing, words=_html_words)
"""The subset of HTML that clients of Matrix and of e-mail show."""


def parts_that_fit(
    markdown: str, units_max: int, size_of: Callable[[str], int], size_max: int
) -> tuple[str, ...]:
    """Split a Markdown text into parts of at most `units_max` units as shown, each of which also
    has at most `size_max` by the platform's own measure of what is sent. Escapes and marks make
    some parts longer than they look; such a part is split again, into smaller ones."""
    parts: list[str] = []
    for part in split(markdown, units_max):
        if size_of(part) <= size_max or units_max < _UNITS_MIN:
            parts.append(part)
        else:
            parts.extend(parts_that_fit(part, units_max // 2, size_of, size_max))
    return tuple(parts)


_UNITS_MIN = 16
