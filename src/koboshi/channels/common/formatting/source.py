"""Markdown that is shown as given: the way back from a text with spans."""

import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence

from koboshi.channels.common.formatting.formatted import STYLES, FormattedText, Span

_MARKS = {"bold": "**", "italic": "*", "strikethrough": "~~"}
_BLOCKS = frozenset({"blockquote", "pre"})
_TICKS = re.compile(r"`+")
# What would mean something inside a line. An underscore between letters, a lone tilde and most
# other marks are left alone, but not at the ends of the text, where a mark of ours may follow.
_ACTIVE = re.compile(
    r"[\\`*\[\]]|(?<![^\W_])_|_(?![^\W_])|~(?=~|\Z)|(?<=~)~|\A~|<(?=[a-zA-Z])|&(?=[#a-zA-Z])|!\Z"
)
# What would mean something at the beginning of a line.
_LEADING = re.compile(r"\A([0-9]{1,9})(?=[.)](?:[ \t]|\Z))|\A(?=[#>+\-=~|:])")
_BEGIN_SPACES = re.compile(r"\A[ \t]+")
_END_SPACES = re.compile(r"(?<![ \t])[ \t]+\Z")


def source_of(shown: FormattedText, *, styles: bool = True) -> str:
    """Markdown for this text; without `styles` nothing is bold, italic or struck through.

    Styles that Markdown cannot express where they stand are left out.
    """
    spans = [s for s in shown.spans if s.begin < s.end and (styles or s.kind not in STYLES)]
    return "\n\n".join(_blocks(shown.text, spans, 0, len(shown.text)))


def _blocks(text: str, spans: Sequence[Span], begin: int, end: int) -> Iterator[str]:
    at = begin
    for block in spans:
        if block.kind not in _BLOCKS or block.begin < at:
            continue
        # A block has its lines for itself: what is before it on the line is whitespace.
        block_begin = max(at, text.rfind("\n", at, block.begin) + 1)
        yield from _paragraphs(text, spans, at, block_begin)
        inside = _between(spans, block.begin, block.end)
        inside.remove(block)
        if block.kind == "pre":
            yield _fence(text[block_begin : block.end], block.language)
        else:
            quoted = "\n\n".join(_blocks(text, inside, block.begin, block.end))
            yield "\n".join(f"> {line}" for line in quoted.split("\n"))
        at = block.end
    yield from _paragraphs(text, spans, at, end)


def _fence(code: str, language: str) -> str:
    ticks = "`" * max(3, 1 + max(map(len, _TICKS.findall(code)), default=0))
    return f"{ticks}{language}\n{code}\n{ticks}"


def _paragraphs(text: str, spans: Sequence[Span], begin: int, end: int) -> Iterator[str]:
    while begin < end and text[begin] == "\n":
        begin += 1
    while begin < end and text[end - 1] == "\n":
        end -= 1
    if begin < end:
        yield "".join(_inline(text, _between(spans, begin, end), begin, end))


def _between(spans: Sequence[Span], begin: int, end: int) -> list[Span]:
    first = bisect_left(spans, begin, key=_begin_of)
    return list(spans[first : bisect_left(spans, end, key=_begin_of)])


def _begin_of(span: Span) -> int:
    return span.begin


def _inline(text: str, spans: Sequence[Span], begin: int, end: int) -> Iterator[str]:
    at = begin
    opened: list[Span] = []
    for span in (*spans, Span("", end, end)):
        while opened and opened[-1].end <= span.begin:
            yield _words(text, at, opened[-1].end)
            at = opened[-1].end
            yield _closing(opened.pop())
        yield _words(text, at, span.begin)
        at = span.begin
        if span.kind == "code":
            yield _code(text[span.begin : span.end])
            at = span.end
        elif span.kind == "text_link" or (span.kind in STYLES and _takes_marks(text, span)):
            yield "[" if span.kind == "text_link" else _MARKS[span.kind]
            opened.append(span)


def _closing(span: Span) -> str:
    if span.kind != "text_link":
        return _MARKS[span.kind]
    return "](<" + re.sub(r"[\\<>]", r"\\\g<0>", span.url).replace("&", "&amp;") + ">)"


def _takes_marks(text: str, span: Span) -> bool:
    """Marks beside a punctuation mark inside need a space or another one outside."""
    before = text[span.begin - 1 : span.begin] or " "
    after = text[span.end : span.end + 1] or " "
    return (_is_inner(text[span.begin]) or not _is_inner(before)) and (
        _is_inner(text[span.end - 1]) or not _is_inner(after)
    )


def _is_inner(char: str) -> bool:
    return char.isalnum()


def _code(code: str) -> str:
    ticks = "`"
    runs = {len(run) for run in _TICKS.findall(code)}
    while len(ticks) in runs:
        ticks += "`"
    space = " " if code.startswith("`") or code.endswith("`") else ""
    return f"{ticks}{space}{code}{space}{ticks}"


def _words(text: str, begin: int, end: int) -> str:
    """A stretch of text with no meaning but itself."""
    lines = _ACTIVE.sub(r"\\\g<0>", text[begin:end]).split("\n") if begin < end else []
    last = len(lines) - 1
    for at, line in enumerate(lines):
        if at > 0 or begin == 0 or text[begin - 1] == "\n":
            line = _BEGIN_SPACES.sub(_as_references, _LEADING.sub(_escaped, line))
        if at < last or text[end : end + 1] in {"", "\n"}:
            line = _END_SPACES.sub(_as_references, line)
        lines[at] = line
    return "\n".join(lines)


def _escaped(found: re.Match[str]) -> str:
    return f"{found[0]}\\"


def _as_references(found: re.Match[str]) -> str:
    return "".join(f"&#{ord(char)};" for char in found[0])
